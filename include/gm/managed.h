/* Memory that the host and a device both use, each through its own end (F53): allocate, prefetch, advise. Where the
 * device has memory that migrates the driver moves it; where host and device share one memory nothing moves; elsewhere
 * gm keeps a copy on the host and moves bytes when it is told to. A program that prefetches before each side's turn
 * runs the same on all three. */
#ifndef GM_MANAGED_H
#define GM_MANAGED_H

#include "gm/pool.h"

GM_BEGIN_DECLS

typedef struct gm_managed gm_managed; /* Thread-safe, except destroy. Borrows its pool. */

typedef enum gm_managed_kind {
  GM_MANAGED_NATIVE = 0,  /* the driver migrates it, also without a prefetch */
  GM_MANAGED_UNIFIED = 1, /* one memory for both: nothing migrates */
  GM_MANAGED_COPIED = 2   /* host memory and a block of the device; gm copies, and only at a prefetch */
} gm_managed_kind;

/* Zero-initialised but for struct_size and bytes it is good. */
typedef struct gm_managed_params {
  uint32_t struct_size;
  bool zero;      /* zero-filled; else the contents are anything */
  uint32_t align; /* of the device's end, power of two; 0: the device's */
  uint64_t bytes; /* > 0 */
  uint32_t usage; /* gm_usage; 0: transfer and storage */
  uint32_t tag;   /* gm_tag(ctx, "kv"); 0: none */
} gm_managed_params;

typedef struct gm_managed_info {
  uint32_t struct_size;
  gm_managed_kind kind;
  bool advice; /* gm_managed_advise has an effect */
  uint64_t bytes;
  uint64_t unit_bytes;   /* COPIED: what moves at a time; else 0 */
  uint64_t device_bytes; /* COPIED: bytes that the device's end holds; else 0 */
} gm_managed_info;

/* The block counts in the pool's statistics and limits; NATIVE is bounded by gm_device_managed_memory_info, is never
 * pooled, and is not had from a pool with an upstream (COPIED there). The bytes are on the host at first.
 * INVALID_ARGUMENT, OVER_LIMIT, OUT_OF_DEVICE_MEMORY, ALLOCATION_TOO_LARGE, OUT_OF_HOST_MEMORY, DRIVER, DEVICE_LOST,
 * FORKED. The caller destroys *out. */
GM_API gm_status gm_managed_create(gm_pool *pool, const gm_managed_params *params, gm_managed **out, gm_error *err);

/* Waits for the earlier work of `stream` (NULL: there is none), then gives everything back. Work of other streams is
 * the caller's to have waited for. A failure other than DEVICE_LOST leaves the object, to be tried again. NULL is
 * GM_OK. */
GM_API gm_status gm_managed_destroy(gm_managed *managed, gm_stream *stream, gm_error *err);

GM_API void *gm_managed_host(const gm_managed *managed);            /* the host's end; valid until destroyed */
GM_API const gm_block *gm_managed_block(const gm_managed *managed); /* the device's end, of the pool; do not free it */
/* Whether the driver moves the bytes itself (NATIVE); false where gm copies or nothing has to move, and for NULL. */
GM_API bool gm_managed_is_native(const gm_managed *managed);
/* Its kind, and which side holds how much of it. INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_managed_get_info(gm_managed *managed, gm_managed_info *out, gm_error *err);

/* Bring [offset, offset + bytes) to `place`, in the order of `stream`. With `out` the call returns at once, and that
 * side may use the bytes when *out has passed, the device also in that stream's later work; the caller releases *out.
 * With `out` or `stream` NULL it waits.
 * COPIED: each unit of unit_bytes is held by one side, by the host at first. A prefetch copies those units of the range
 * that the other side holds, whole, and from then on `place` holds them; units already at `place` are skipped, so
 * a repeated prefetch is harmless. Only the side that holds a unit may read or write it, and gm does
 * not see what either writes: what the other side writes is lost. Prefetches of the same unit on two streams are the
 * caller's to order. A failure leaves the units that were not copied with the side that held them.
 * INVALID_ARGUMENT, NOT_SUPPORTED (no memory behind the device), DRIVER, DEVICE_LOST, FORKED. */
GM_API gm_status gm_managed_prefetch(gm_managed *managed, gm_managed_place place, uint64_t offset, uint64_t bytes,
                                     gm_stream *stream, gm_point *out, gm_error *err);

/* Tell the driver how the range will be used; `give` false takes the advice back. Accepted without effect where the
 * memory is not NATIVE. INVALID_ARGUMENT, DRIVER, DEVICE_LOST, FORKED. */
GM_API gm_status gm_managed_advise(gm_managed *managed, gm_managed_advice advice, gm_managed_place place,
                                   uint64_t offset, uint64_t bytes, bool give, gm_error *err);

GM_END_DECLS

#endif
