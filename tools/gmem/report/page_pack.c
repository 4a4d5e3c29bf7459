#include "tools/gmem/report/page_pack.h"

#ifdef GMEM_WITH_ZLIB

#include <dlfcn.h>
#include <stdlib.h>

enum { PACK_DONE = 0, PACK_LEVEL = 6 };

/* The two calls of zlib.h that need none of its structs. */
typedef unsigned long (*pack_bound)(unsigned long count);
typedef int (*pack_compress)(unsigned char *out, unsigned long *out_count, const unsigned char *in, unsigned long count,
                             int level);

static void pack_by(void *libz, const page_bytes *in, page_bytes *out) {
  union {
    void *symbol;
    pack_bound call;
  } bound = {dlsym(libz, "compressBound")};
  union {
    void *symbol;
    pack_compress call;
  } compress = {dlsym(libz, "compress2")};
  if (!bound.symbol || !compress.symbol) return;
  unsigned long used = bound.call(in->used);
  out->data = malloc(used);
  if (out->data && compress.call(out->data, &used, in->data, in->used, PACK_LEVEL) == PACK_DONE) {
    out->used = out->room = used;
  } else {
    page_bytes_free(out);
  }
}

bool page_pack(const page_bytes *in, page_bytes *out) {
  const char *name = getenv("GM_ZLIB_LIBRARY");
  *out = (page_bytes){.data = NULL};
  void *libz = dlopen(name && name[0] ? name : "libz.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!libz) return false;
  pack_by(libz, in, out);
  dlclose(libz);
  return out->used > 0;
}

#else

bool page_pack(const page_bytes *in, page_bytes *out) {
  (void)in;
  *out = (page_bytes){.data = NULL};
  return false;
}

#endif
