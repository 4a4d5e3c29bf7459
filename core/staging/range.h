/* Work on a range of one memory: what is above the backends calls their copies here. Thread-safe, but for the range. */
#ifndef GM_CORE_STAGING_RANGE_H
#define GM_CORE_STAGING_RANGE_H

#include "core/base/inner.h"
#include "core/device/device.h"
#include "core/device/stream.h"

typedef struct gm__access {
  gm_device *device;
  gm_memory memory;
  uint64_t offset; /* in `memory` */
  uint64_t bytes;
} gm__access;

typedef enum gm__transfer_kind {
  GM__TRANSFER_WRITE, /* from `src` on the host */
  GM__TRANSFER_READ,  /* to `dst` on the host */
  GM__TRANSFER_COPY,  /* from `from`, of the same device and with as many bytes */
  GM__TRANSFER_FILL   /* with the `pattern_bytes` bytes at `src` */
} gm__transfer_kind;

typedef struct gm__transfer {
  gm__transfer_kind kind;
  const void *src;
  void *dst;
  const gm__access *from;
  uint32_t pattern_bytes;
  bool pageable; /* `src` or `dst` is memory of gm's own that no driver has locked */
} gm__transfer;

/* Chooses the stream for a call that was given `stream`. For NULL it is gm's own, and the call must wait. */
gm_status gm__access_stream(gm_device *device, gm_stream *stream, const char *op, gm_stream **out, gm_error *err);

/* A wait has failed, and work of the stream may be under way: waits again, and once more where that fails. NULL does
 * nothing. */
void gm__access_rest(gm_stream *stream);

/* Transfers the bytes of a range as one copy; by the host where gm has no stream for it. `out` NULL: the call returns
 * when they have arrived. 0 bytes: nothing is done. Errors: those of the backend; NOT_SUPPORTED: gm has no stream, and
 * the host no way. REQUIRES: host memory is not NULL. */
gm_status gm__range_move(const gm__access *access, const gm__transfer *what, gm_stream *stream, gm_point *out,
                         const char *op, gm_error *err);

/* Does what gm__range_move does. Large copies of `pageable` memory that wait go through slots of the device's ring, if
 * it has page-locked ones now (carry.h). INVALID_ARGUMENT, too: host memory is NULL. */
gm_status gm__range_run(const gm__access *access, const gm__transfer *what, gm_stream *stream, gm_point *out,
                        const char *op, gm_error *err);
gm_status gm__access_write(const gm__access *access, const void *src, gm_stream *stream, gm_point *out, const char *op,
                           gm_error *err);
gm_status gm__access_read(const gm__access *access, void *dst, gm_stream *stream, gm_point *out, const char *op,
                          gm_error *err);

#endif
