/* Memory that the host and a device both use, each through its own end: allocate, prefetch, advise. Where the device's
 * memory migrates, the driver moves it. Where host and device share one memory, nothing moves. Elsewhere gm keeps a
 * copy on the host, and moves bytes when it is told to. A program that prefetches before each side's turn runs the same
 * on all three. */
#ifndef GM_MANAGED_H
#define GM_MANAGED_H

#include "gm/pool.h"

GM_BEGIN_DECLS

typedef struct gm_managed gm_managed; /* thread-safe, except gm_managed_destroy; it borrows its pool */

typedef enum gm_managed_kind {
  GM_MANAGED_NATIVE = 0,  /* the driver migrates it, also without a prefetch */
  GM_MANAGED_UNIFIED = 1, /* host and device share one memory: nothing migrates, and nothing is copied */
  GM_MANAGED_COPIED = 2   /* host memory and a block of the device; gm copies, at a prefetch only */
} gm_managed_kind;

/* How managed memory is made. Zero-initialised, with struct_size and `bytes` set, it is valid. */
typedef struct gm_managed_params {
  uint32_t struct_size;
  bool zero;      /* fill with zeros; else the contents are undefined */
  uint32_t align; /* of the device's end; a power of two; 0: the device's */
  uint64_t bytes; /* > 0 */
  uint32_t usage; /* gm_usage; 0: transfer and storage */
  uint32_t tag;   /* gm_tag(ctx, "kv"); 0: none */
} gm_managed_params;

typedef struct gm_managed_info {
  uint32_t struct_size;
  gm_managed_kind kind;
  bool advice; /* gm_managed_advise has an effect */
  uint64_t bytes;
  uint64_t unit_bytes;   /* COPIED: bytes that move together; else 0 */
  uint64_t device_bytes; /* COPIED: bytes that the device's end holds; else 0 */
} gm_managed_info;

/* Allocates managed memory. Its block counts in the pool's statistics and limits. NATIVE memory is bounded by
 * gm_device_managed_memory_info and is never pooled. A pool with an upstream has COPIED memory in its place. A driver
 * may refuse memory that both sides use: then the kind is COPIED, too. At first the bytes are on the host. The caller
 * destroys *out.
 *
 * Errors: INVALID_ARGUMENT, OVER_LIMIT, OUT_OF_DEVICE_MEMORY, ALLOCATION_TOO_LARGE, OUT_OF_HOST_MEMORY, DRIVER,
 * DEVICE_LOST, FORKED. */
GM_API gm_status gm_managed_create(gm_pool *pool, const gm_managed_params *params, gm_managed **out, gm_error *err);

/* Frees managed memory. It first waits for the earlier work of `stream`; NULL means that there is none. The caller must
 * have waited for the work of other streams. NULL for `managed` is GM_OK. After a failure other than DEVICE_LOST the
 * object remains, and the call can be repeated. */
GM_API gm_status gm_managed_destroy(gm_managed *managed, gm_stream *stream, gm_error *err);

/* Returns the host's end. It is valid until the memory is destroyed. */
GM_API void *gm_managed_host(const gm_managed *managed);
/* Returns the device's end, a block of the pool. Do not free it. */
GM_API const gm_block *gm_managed_block(const gm_managed *managed);
/* Tells whether the driver moves the bytes itself (NATIVE). False where gm copies or nothing has to move, and for NULL.
 */
GM_API bool gm_managed_is_native(const gm_managed *managed);
/* Returns the kind of managed memory, and how many bytes each side holds. Errors: INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_managed_get_info(gm_managed *managed, gm_managed_info *out, gm_error *err);

/* Brings the range [offset, offset + bytes) to `place`, in the order of `stream`. With `out` the call returns at once,
 * and the caller releases *out. That side may use the bytes when *out has passed; the device also in later work of
 * `stream`. With `out` or `stream` NULL the call waits.
 *
 * COPIED memory moves in units of unit_bytes. One side holds each unit, and at first that is the host. A prefetch
 * copies the units of the range that the other side holds, each as a whole. From then on `place` holds them. Units
 * already at `place` are skipped, so a repeated prefetch is harmless. Only the side that holds a unit may read or write
 * it. gm does not see the other side's writes, and they are lost. The caller orders prefetches of one unit on two
 * streams. After a failure the units that were not copied stay with their side.
 *
 * Errors: INVALID_ARGUMENT, DRIVER, DEVICE_LOST, FORKED. NOT_SUPPORTED: no memory is behind the device. */
GM_API gm_status gm_managed_prefetch(gm_managed *managed, gm_managed_place place, uint64_t offset, uint64_t bytes,
                                     gm_stream *stream, gm_point *out, gm_error *err);

/* Tells the driver how the range will be used. `give` false takes the advice back. Where the memory is not NATIVE the
 * call has no effect. Errors: INVALID_ARGUMENT, DRIVER, DEVICE_LOST, FORKED. */
GM_API gm_status gm_managed_advise(gm_managed *managed, gm_managed_advice advice, gm_managed_place place,
                                   uint64_t offset, uint64_t bytes, bool give, gm_error *err);

GM_END_DECLS

#endif
