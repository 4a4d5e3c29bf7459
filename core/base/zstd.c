#include "core/base/zstd.h"

#include "core/base/dynlib.h"
#include "core/base/env.h"
#include "core/base/error.h"
#include "core/base/thread.h"

static gm__zstd zstd_calls;
static gm_error zstd_why; /* status GM_OK: the calls are there */
static gm__once zstd_once = GM__ONCE_INIT;

static void zstd_load(void) {
  static const char *const names[] = {"libzstd.so.1", NULL};
  static const gm__symbol symbols[] = {{"ZSTD_createCCtx", offsetof(gm__zstd, encoder_new), true},
                                       {"ZSTD_freeCCtx", offsetof(gm__zstd, encoder_free), true},
                                       {"ZSTD_CCtx_setParameter", offsetof(gm__zstd, encoder_set), true},
                                       {"ZSTD_compress2", offsetof(gm__zstd, encode), true},
                                       {"ZSTD_createDCtx", offsetof(gm__zstd, decoder_new), true},
                                       {"ZSTD_freeDCtx", offsetof(gm__zstd, decoder_free), true},
                                       {"ZSTD_decompressDCtx", offsetof(gm__zstd, decode), true},
                                       {"ZSTD_isError", offsetof(gm__zstd, is_error), true}};
  const gm__dynlib_spec spec = {
      .backend = "zstd", .names = names, .path = gm__env("GM_ZSTD_LIBRARY"), .advice = "install libzstd 1.4 or newer"};
  gm__dynlib *lib;
  zstd_why.status = gm__dynlib_open(NULL, &spec, &lib, &zstd_why);
  if (zstd_why.status) return;
  zstd_why.status =
      gm__dynlib_resolve(lib, symbols, sizeof symbols / sizeof *symbols, &zstd_calls, NULL, NULL, &zstd_why);
  if (!zstd_why.status) gm__dynlib_keep(lib);
  gm__dynlib_close(lib);
}

const gm__zstd *gm__zstd_open(gm_error *err) {
  gm__once_run(&zstd_once, zstd_load);
  if (!zstd_why.status) return &zstd_calls;
  gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, zstd_why.op, "%s", zstd_why.message);
  return NULL;
}
