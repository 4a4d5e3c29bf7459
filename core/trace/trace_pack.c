#include "core/trace/trace_output.h"

#include "core/base/error.h"

#ifdef GM_HAVE_ZLIB

#include <limits.h>

#include "core/trace/zlib_memory.h"

struct gm__trace_pack {
  gm_services services;
  const gm__zlib *zlib;
  z_stream stream;
};

enum { PACK_GZIP = 16 + MAX_WBITS, PACK_MEMORY = 8 /* zlib's default */ };

gm_status gm__trace_pack_create(const gm_services *services, const char *path, gm__trace_pack **out, gm_error *err) {
  const gm__zlib *zlib = gm__zlib_open(err);
  if (!zlib) return GM_ERR_NOT_SUPPORTED;
  gm__trace_pack *pack = gm__alloc(services, sizeof *pack);
  if (pack) {
    pack->zlib = zlib;
    pack->services = services ? *services : *gm__default_services();
    pack->stream.zalloc = gm__zlib_alloc;
    pack->stream.zfree = gm__zlib_release;
    pack->stream.opaque = &pack->services;
    if (zlib->deflate_init(&pack->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, PACK_GZIP, PACK_MEMORY, Z_DEFAULT_STRATEGY,
                           ZLIB_VERSION, (int)sizeof(z_stream)) == Z_OK) {
      *out = pack;
      return GM_OK;
    }
    gm__release(services, pack, sizeof *pack);
  }
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "deflateInit2", "%.300s: no host memory to pack it", path);
}

void gm__trace_pack_feed(gm__trace_pack *pack, const void *bytes, size_t count) {
  pack->stream.next_in = (Bytef *)(uintptr_t)bytes; /* zlib's type lacks the const; it only reads */
  pack->stream.avail_in = (uInt)count;
}

size_t gm__trace_pack_take(gm__trace_pack *pack, void *out, size_t capacity, bool last) {
  pack->stream.next_out = out;
  pack->stream.avail_out = (uInt)capacity;
  pack->zlib->deflate(&pack->stream, last ? Z_FINISH : Z_NO_FLUSH); /* fails only where there is nothing to do */
  return capacity - pack->stream.avail_out;
}

void gm__trace_pack_destroy(gm__trace_pack *pack) {
  if (!pack) return;
  pack->zlib->deflate_end(&pack->stream);
  gm_services services = pack->services;
  gm__release(&services, pack, sizeof *pack);
}

#else

gm_status gm__trace_pack_create(const gm_services *services, const char *path, gm__trace_pack **out, gm_error *err) {
  (void)services;
  (void)out;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_pool_record_end", "%.300s: no zlib in this build", path);
}

void gm__trace_pack_feed(gm__trace_pack *pack, const void *bytes, size_t count) {
  (void)pack;
  (void)bytes;
  (void)count;
}

size_t gm__trace_pack_take(gm__trace_pack *pack, void *out, size_t capacity, bool last) {
  (void)pack;
  (void)out;
  (void)capacity;
  (void)last;
  return 0;
}

void gm__trace_pack_destroy(gm__trace_pack *pack) { (void)pack; }

#endif
