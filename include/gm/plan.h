/* Plans: offsets for blocks whose lifetimes are known beforehand (F68). Pure: nothing here asks a device, and nothing
 * is kept. Every function is thread-safe but those of gm_plan_replay, which is externally synchronised. */
#ifndef GM_PLAN_H
#define GM_PLAN_H

#include <stdint.h>

#include "gm/services.h"
#include "gm/status.h"

GM_BEGIN_DECLS

/* No plan, and no tensor, is larger than this. */
#define GM_PLAN_MAX_BYTES (UINT64_C(1) << 63)

/* One tensor: written by the operation `first_op`, read for the last time by `last_op` (not before it). Operations are
 * numbered by their order; gaps are fine. Two tensors may share memory when one's last operation comes before the
 * other's first. Zero-initialised but for the bytes, it is a tensor of operation 0 without any wish. Never grows. */
typedef struct gm_plan_tensor {
  uint64_t bytes; /* up to GM_PLAN_MAX_BYTES; 0: it takes no place, and its offset is 0 */
  uint64_t align; /* of the offset: a power of two; 0: 1 */
  uint64_t first_op;
  uint64_t last_op;
  /* 1 + the number of an earlier tensor in whose place this one may be written, 0: none. It is, when its first
   * operation is the other's last one and did not write that, too, both are as large once padded to the largest
   * alignment of all tensors, and no tensor before it took the place. Then both have the same offset. */
  uint64_t take_over;
} gm_plan_tensor;

typedef enum gm_plan_policy {
  /* As engines of the ggml family plan their compute buffer, to the byte: sizes padded to the largest alignment, the
   * smallest free block that fits, of equal ones the later, else the open end; operation by operation. */
  GM_PLAN_ENGINE = 0,
  /* The smallest of several plans, never larger than that of GM_PLAN_ENGINE; the same on every machine. */
  GM_PLAN_BEST = 1
} gm_plan_policy;

/* Give each of `count` tensors an offset such that no two that live at once overlap. `out_peak` is the bytes that the
 * plan needs: the highest end (with GM_PLAN_ENGINE of what is padded). `services` may be NULL (malloc); all memory is
 * given back, about 200 bytes for each tensor. `tensors` and `out_offsets` may be NULL when count is 0. On failure the
 * outputs are undefined. GM_ERR_INVALID_ARGUMENT: NULL where something is needed, no such policy, a tensor outside the
 * rules above, more than 2^31 tensors, a plan larger than GM_PLAN_MAX_BYTES; GM_ERR_OUT_OF_HOST_MEMORY. */
GM_API gm_status gm_plan_make(const gm_services *services, gm_plan_policy policy, const gm_plan_tensor *tensors,
                              uint64_t count, uint64_t *out_offsets, uint64_t *out_peak, gm_error *err);

/* Prove a plan, whoever made it: offsets are aligned, and no two tensors that live at once overlap, but where one takes
 * the other's place as above. `out_peak` (may be NULL) is the highest end. GM_ERR_FORMAT: the plan is wrong, with the
 * tensors; GM_ERR_INVALID_ARGUMENT, GM_ERR_OUT_OF_HOST_MEMORY as for gm_plan_make. */
GM_API gm_status gm_plan_check(const gm_services *services, const gm_plan_tensor *tensors, uint64_t count,
                               const uint64_t *offsets, uint64_t *out_peak, gm_error *err);

/* The most bytes that live at one operation: no plan needs less. Failures as for gm_plan_make. */
GM_API gm_status gm_plan_peak_live(const gm_services *services, const gm_plan_tensor *tensors, uint64_t count,
                                   uint64_t *out_bytes, gm_error *err);

/* The policy GM_PLAN_ENGINE step by step, for who walks a list of operations and knows lifetimes only as it goes: a
 * range of memory from 0 up with an open end. */
typedef struct gm_plan_replay gm_plan_replay;

/* An empty range; sizes are padded to `align`, a power of two. `services` may be NULL (malloc); they are copied. The
 * caller closes *out. GM_ERR_INVALID_ARGUMENT: align is no power of two, out is NULL; GM_ERR_OUT_OF_HOST_MEMORY. */
GM_API gm_status gm_plan_replay_open(const gm_services *services, uint64_t align, gm_plan_replay **out, gm_error *err);

/* Take a block for `bytes`. 0 bytes take none, and the offset is 0. GM_ERR_INVALID_ARGUMENT: the range would be larger
 * than GM_PLAN_MAX_BYTES, or an argument is NULL; then the range is as before. */
GM_API gm_status gm_plan_replay_alloc(gm_plan_replay *replay, uint64_t bytes, uint64_t *out_offset, gm_error *err);

/* Give the block at `offset` back, with the bytes it was asked for with. A result that is written in an operand's place
 * needs no call: its block is the operand's, and is freed in its stead. GM_ERR_INVALID_ARGUMENT: not all of it is
 * taken, or replay is NULL; GM_ERR_OUT_OF_HOST_MEMORY. After a failure the range is as before. */
GM_API gm_status gm_plan_replay_free(gm_plan_replay *replay, uint64_t offset, uint64_t bytes, gm_error *err);

/* The highest end so far: what a buffer for all that was taken needs. 0 for NULL. */
GM_API uint64_t gm_plan_replay_peak(const gm_plan_replay *replay);

/* NULL is harmless. */
GM_API void gm_plan_replay_close(gm_plan_replay *replay);

GM_END_DECLS

#endif
