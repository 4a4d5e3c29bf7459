#include "core/tier/remote/hiredis.h"

#include <stddef.h>

#include "core/base/optional.h"

/* The reader's struct differs between versions, which have names of their own. */
#define HIREDIS_TEXT(version) #version
#define HIREDIS_FILE(version) "libhiredis.so." HIREDIS_TEXT(version)

static gm__hiredis hiredis_calls;
static void hiredis_load(void);
static const gm__symbol hiredis_symbols[] = {
    {"redisReaderCreateWithFunctions", offsetof(gm__hiredis, reader_new), true},
    {"redisReaderFree", offsetof(gm__hiredis, reader_free), true},
    {"redisReaderFeed", offsetof(gm__hiredis, reader_feed), true},
    {"redisReaderGetReply", offsetof(gm__hiredis, reader_next), true}};
static gm__optional hiredis_library = GM__OPTIONAL("hiredis", HIREDIS_FILE(HIREDIS_SONAME), "GM_HIREDIS_LIBRARY",
                                                   "install libhiredis", hiredis_symbols, &hiredis_calls, hiredis_load);

static void hiredis_load(void) { gm__optional_load(&hiredis_library); }

const gm__hiredis *gm__hiredis_open(gm_error *err) { return gm__optional_open(&hiredis_library, err); }
