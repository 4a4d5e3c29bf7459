#ifdef GM_HAVE_ZLIB

#include "core/base/zlib.h"

#include "core/base/dynlib.h"
#include "core/base/env.h"
#include "core/base/error.h"
#include "core/base/thread.h"

static gm__zlib zlib_calls;
static gm_error zlib_why; /* status GM_OK: the calls are there */
static gm__once zlib_once = GM__ONCE_INIT;

static void zlib_load(void) {
  static const char *const names[] = {"libz.so.1", NULL};
  static const gm__symbol symbols[] = {
      {"inflateInit2_", offsetof(gm__zlib, inflate_init), true}, {"inflate", offsetof(gm__zlib, inflate), true},
      {"inflateReset", offsetof(gm__zlib, inflate_reset), true}, {"inflateEnd", offsetof(gm__zlib, inflate_end), true},
      {"deflateInit2_", offsetof(gm__zlib, deflate_init), true}, {"deflate", offsetof(gm__zlib, deflate), true},
      {"deflateEnd", offsetof(gm__zlib, deflate_end), true},     {"crc32_z", offsetof(gm__zlib, crc32), true}};
  zlib_why.status = gm__dynlib_table(&(gm__dynlib_spec){.backend = "zlib",
                                                        .names = names,
                                                        .path = gm__env("GM_ZLIB_LIBRARY"),
                                                        .advice = "install zlib 1.2.9 or newer"},
                                     symbols, sizeof symbols / sizeof *symbols, &zlib_calls, &zlib_why);
}

const gm__zlib *gm__zlib_open(gm_error *err) {
  gm__once_run(&zlib_once, zlib_load);
  if (!zlib_why.status) return &zlib_calls;
  gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, zlib_why.op, "%s", zlib_why.message);
  return NULL;
}

#else

typedef int gm__no_zlib; /* a file of C has a declaration */

#endif
