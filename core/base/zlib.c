#include "core/base/zlib.h"

#ifdef GM_HAVE_ZLIB

#include "core/base/optional.h"

static gm__zlib zlib_calls;
static void zlib_load(void);
static const gm__symbol zlib_symbols[] = {
    {"inflateInit2_", offsetof(gm__zlib, inflate_init), true}, {"inflate", offsetof(gm__zlib, inflate), true},
    {"inflateReset", offsetof(gm__zlib, inflate_reset), true}, {"inflateEnd", offsetof(gm__zlib, inflate_end), true},
    {"deflateInit2_", offsetof(gm__zlib, deflate_init), true}, {"deflate", offsetof(gm__zlib, deflate), true},
    {"deflateEnd", offsetof(gm__zlib, deflate_end), true},     {"crc32_z", offsetof(gm__zlib, crc32), true}};
static gm__optional zlib_library = GM__OPTIONAL("zlib", "libz.so.1", "GM_ZLIB_LIBRARY", "install zlib 1.2.9 or newer",
                                                zlib_symbols, &zlib_calls, zlib_load);

static void zlib_load(void) { gm__optional_load(&zlib_library); }

const gm__zlib *gm__zlib_open(gm_error *err) { return gm__optional_open(&zlib_library, err); }

#else

#include <stddef.h>

#include "core/base/error.h"

const gm__zlib *gm__zlib_open(gm_error *err) {
  gm__fail(err, GM_ERR_NOT_SUPPORTED, "zlib", "this build of gm has no zlib (GM_WITH_ZLIB)");
  return NULL;
}

#endif
