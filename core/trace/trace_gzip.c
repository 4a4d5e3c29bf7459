/* Invariants: memory is bounded by zlib's window (about 40 KiB), whatever the file unpacks to. Every byte of the input
 * belongs to a complete member with a right checksum, or reading fails. */
#include "core/trace/trace_lines.h"

#include "core/base/error.h"

#ifdef GM_HAVE_ZLIB

#include <limits.h>

#include "core/trace/zlib_memory.h"

struct gm__trace_gzip {
  gm_services services;
  const gm__zlib *zlib;
  z_stream stream;
  bool started; /* inside a member */
};

gm_status gm__trace_gzip_create(const gm_services *services, const char *path, gm__trace_gzip **out, gm_error *err) {
  gm_error why = {.status = GM_OK};
  const gm__zlib *zlib = gm__zlib_open(&why);
  if (!zlib)
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_trace_open", "%.300s: is compressed: %.300s", path, why.message);
  gm__trace_gzip *gzip = gm__alloc(services, sizeof *gzip);
  if (gzip) {
    gzip->zlib = zlib;
    gzip->services = services ? *services : *gm__default_services();
    gzip->stream.zalloc = gm__zlib_alloc;
    gzip->stream.zfree = gm__zlib_release;
    gzip->stream.opaque = &gzip->services;
    if (zlib->inflate_init(&gzip->stream, 16 + MAX_WBITS, ZLIB_VERSION, (int)sizeof(z_stream)) == Z_OK) {
      *out = gzip;
      return GM_OK;
    }
    gm__release(services, gzip, sizeof *gzip);
  }
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "inflateInit2", "%.300s: no host memory to unpack it", path);
}

static gm_status gzip_fail(const gm__trace_gzip *gzip, const char *path, int code, gm_error *err) {
  if (code == Z_MEM_ERROR) {
    return gm__fail_native(err, GM_ERR_OUT_OF_HOST_MEMORY, code, "inflate", "%.300s: no host memory to unpack it",
                           path);
  }
  return gm__fail_native(err, GM_ERR_FORMAT, code, "inflate", "%.300s: damaged gzip: %.80s", path,
                         gzip->stream.msg ? gzip->stream.msg : "not understood");
}

static int gzip_inflate(gm__trace_gzip *gzip, gm__gzip_step *step) {
  z_stream *stream = &gzip->stream;
  size_t in = step->in_bytes < UINT_MAX ? step->in_bytes : UINT_MAX;
  size_t out = step->out_bytes < UINT_MAX ? step->out_bytes : UINT_MAX;
  stream->next_in = (Bytef *)(uintptr_t)step->in; /* zlib's type lacks the const; it only reads */
  stream->avail_in = (uInt)in;
  stream->next_out = step->out;
  stream->avail_out = (uInt)out;
  int code = gzip->zlib->inflate(stream, Z_NO_FLUSH);
  step->taken = in - stream->avail_in;
  step->given = out - stream->avail_out;
  return code;
}

gm_status gm__trace_gzip_step(gm__trace_gzip *gzip, const char *path, gm__gzip_step *step, gm_error *err) {
  int code = gzip_inflate(gzip, step);
  if (step->taken) gzip->started = true;
  if (code == Z_STREAM_END) {
    gzip->started = false;
    code = gzip->zlib->inflate_reset(&gzip->stream);
  }
  step->at_end = !gzip->started;
  return code == Z_OK || code == Z_BUF_ERROR ? GM_OK : gzip_fail(gzip, path, code, err);
}

void gm__trace_gzip_destroy(gm__trace_gzip *gzip) {
  if (!gzip) return;
  gzip->zlib->inflate_end(&gzip->stream);
  gm_services services = gzip->services;
  gm__release(&services, gzip, sizeof *gzip);
}

#else

gm_status gm__trace_gzip_create(const gm_services *services, const char *path, gm__trace_gzip **out, gm_error *err) {
  (void)services;
  (void)out;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_trace_open",
                  "%.300s: is compressed, and this build of gm has no zlib (GM_WITH_ZLIB)", path);
}

gm_status gm__trace_gzip_step(gm__trace_gzip *gzip, const char *path, gm__gzip_step *step, gm_error *err) {
  (void)gzip;
  (void)step;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_trace_next", "%.300s: no zlib in this build", path);
}

void gm__trace_gzip_destroy(gm__trace_gzip *gzip) { (void)gzip; }

#endif
