/* Plans give offsets to blocks whose lifetimes are known beforehand. Nothing here asks a device, and nothing is kept.
 * Every function is thread-safe, except those of gm_plan_replay: only one thread at a time may use one. */
#ifndef GM_PLAN_H
#define GM_PLAN_H

#include <stdint.h>

#include "gm/services.h"
#include "gm/status.h"

GM_BEGIN_DECLS

/* The largest size of a plan, and of a tensor. */
#define GM_PLAN_MAX_BYTES (UINT64_C(1) << 63)

/* One tensor. The operation `first_op` writes it, and `last_op` reads it for the last time (not before first_op).
 * Operations are numbered in their order; gaps are allowed. Two tensors may share memory when one's last operation
 * comes before the other's first. Zero-initialised with `bytes` set, it is a tensor of operation 0. Never grows. */
typedef struct gm_plan_tensor {
  uint64_t bytes; /* up to GM_PLAN_MAX_BYTES; 0: it takes no place, and its offset is 0 */
  uint64_t align; /* alignment of the offset, a power of two; 0: 1 */
  uint64_t first_op;
  uint64_t last_op;
  /* 1 + the number of an earlier tensor whose place this one may take; 0: none. It takes the place when all of this
   * holds; then both have the same offset:
   * - its first operation is the other's last one, which did not write the other;
   * - both are equally large once padded to the largest alignment of all tensors;
   * - no tensor before it took the place. */
  uint64_t take_over;
} gm_plan_tensor;

typedef enum gm_plan_policy {
  /* Plans as engines of the ggml family plan their compute buffer, to the byte. Sizes are padded to the largest
   * alignment. Operation by operation, a tensor takes the smallest free block that fits. Among equal blocks it takes
   * the later one, and without one the open end. */
  GM_PLAN_ENGINE = 0,
  /* The smallest of several plans, never larger than that of GM_PLAN_ENGINE. Every machine gets the same plan. */
  GM_PLAN_BEST = 1
} gm_plan_policy;

/* Gives each of `count` tensors an offset, so that no two overlap that live at once. `out_peak` is the size of the plan
 * in bytes: its highest end (with GM_PLAN_ENGINE that of the padded tensors). `services` may be NULL (malloc). The call
 * takes about 200 bytes of host memory for each tensor, and gives all of it back. `tensors` and `out_offsets` may be
 * NULL when `count` is 0. After a failure the outputs are undefined.
 *
 * OUT_OF_HOST_MEMORY. INVALID_ARGUMENT: a needed pointer is NULL, there is no such policy, or a tensor breaks the
 * rules of gm_plan_tensor. There are more than 2^31 tensors, or the plan is above GM_PLAN_MAX_BYTES. */
GM_API gm_status gm_plan_make(const gm_services *services, gm_plan_policy policy, const gm_plan_tensor *tensors,
                              uint64_t count, uint64_t *out_offsets, uint64_t *out_peak, gm_error *err);

/* Proves a plan, whoever made it. Offsets must be aligned. No two tensors that live at once may overlap, except where
 * one takes the other's place (gm_plan_tensor.take_over). `out_peak` (may be NULL) is the highest end. FORMAT: the plan
 * is wrong; the message names the tensors. Other errors are those of gm_plan_make. */
GM_API gm_status gm_plan_check(const gm_services *services, const gm_plan_tensor *tensors, uint64_t count,
                               const uint64_t *offsets, uint64_t *out_peak, gm_error *err);

/* Returns the most bytes that live at one operation. No plan needs less. Errors: those of gm_plan_make. */
GM_API gm_status gm_plan_peak_live(const gm_services *services, const gm_plan_tensor *tensors, uint64_t count,
                                   uint64_t *out_bytes, gm_error *err);

/* Runs the policy GM_PLAN_ENGINE step by step, for a caller that learns lifetimes as it walks its operations. A replay
 * is a range of memory from 0 up, with an open end. */
typedef struct gm_plan_replay gm_plan_replay;

/* Begins an empty range. Sizes are padded to `align`, a power of two. `services` may be NULL (malloc); gm copies them.
 * The caller closes *out. OUT_OF_HOST_MEMORY. INVALID_ARGUMENT: `align` is no power of two, or `out` is NULL. */
GM_API gm_status gm_plan_replay_open(const gm_services *services, uint64_t align, gm_plan_replay **out, gm_error *err);

/* Takes a block of `bytes`. 0 bytes take none, and the offset is 0. INVALID_ARGUMENT: an argument is NULL, or the range
 * would exceed GM_PLAN_MAX_BYTES. The range is then unchanged. */
GM_API gm_status gm_plan_replay_alloc(gm_plan_replay *replay, uint64_t bytes, uint64_t *out_offset, gm_error *err);

/* Gives back the block at `offset`, with the bytes that it was taken with. A result that is written in an operand's
 * place needs no call. Its block is the operand's, and is freed in its stead. OUT_OF_HOST_MEMORY. INVALID_ARGUMENT: a
 * part of the block is not taken, or `replay` is NULL. After a failure the range is unchanged. */
GM_API gm_status gm_plan_replay_free(gm_plan_replay *replay, uint64_t offset, uint64_t bytes, gm_error *err);

/* Returns the highest end so far, which is the size of a buffer for all blocks taken. 0 for NULL. */
GM_API uint64_t gm_plan_replay_peak(const gm_plan_replay *replay);

/* Closes a replay. NULL is allowed. */
GM_API void gm_plan_replay_close(gm_plan_replay *replay);

GM_END_DECLS

#endif
