#include "core/base/zstd.h"

#include "core/base/optional.h"

static gm__zstd zstd_calls;
static void zstd_load(void);
static const gm__symbol zstd_symbols[] = {{"ZSTD_createCCtx", offsetof(gm__zstd, encoder_new), true},
                                          {"ZSTD_freeCCtx", offsetof(gm__zstd, encoder_free), true},
                                          {"ZSTD_CCtx_setParameter", offsetof(gm__zstd, encoder_set), true},
                                          {"ZSTD_compress2", offsetof(gm__zstd, encode), true},
                                          {"ZSTD_createDCtx", offsetof(gm__zstd, decoder_new), true},
                                          {"ZSTD_freeDCtx", offsetof(gm__zstd, decoder_free), true},
                                          {"ZSTD_decompressDCtx", offsetof(gm__zstd, decode), true},
                                          {"ZSTD_isError", offsetof(gm__zstd, is_error), true}};
static gm__optional zstd_library = GM__OPTIONAL("zstd", "libzstd.so.1", "GM_ZSTD_LIBRARY",
                                                "install libzstd 1.4 or newer", zstd_symbols, &zstd_calls, zstd_load);

static void zstd_load(void) { gm__optional_load(&zstd_library); }

const gm__zstd *gm__zstd_open(gm_error *err) { return gm__optional_open(&zstd_library, err); }
