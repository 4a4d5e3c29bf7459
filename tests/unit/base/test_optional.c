/* Libraries that gm opens where they are: gm goes on without them, and says why it does less. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/checksum.h"
#include "core/base/crc32.h"
#include "core/base/optional.h"
#include "core/base/zlib.h"
#include "support/child_part.h"

typedef struct maths {
  double (*cos)(double);
  double (*no_such)(double);
} maths;

static maths maths_calls;
static void maths_load(void);
static const gm__symbol maths_symbols[] = {{"cos", offsetof(maths, cos), true},
                                           {"gm_no_such", offsetof(maths, no_such), false}};
static gm__optional maths_library =
    GM__OPTIONAL("maths", "libm.so.6", "GM_MATHS_LIBRARY", "install maths", maths_symbols, &maths_calls, maths_load);
static void maths_load(void) { gm__optional_load(&maths_library); }

static void the_file_is_missing(temp_folder *root) {
  gm_error err = {.status = GM_OK};
  (void)root;
  setenv("GM_MATHS_LIBRARY", "/nowhere/libmaths.so", 1);
  if (gm__optional_open(&maths_library, &err) || err.status != GM_ERR_NOT_SUPPORTED) _exit(1);
  if (!strstr(err.message, "/nowhere/libmaths.so") || !strstr(err.message, "install maths")) _exit(2);
  unsetenv("GM_MATHS_LIBRARY"); /* it was asked for once */
  if (gm__optional_open(&maths_library, NULL)) _exit(3);
}

static void a_symbol_is_missing(temp_folder *root) {
  static const gm__symbol none = {"gm_no_such", offsetof(maths, no_such), true};
  gm_error err = {.status = GM_OK};
  (void)root;
  maths_library.symbols = &none;
  maths_library.count = 1;
  if (gm__optional_open(&maths_library, &err) || err.status != GM_ERR_NOT_SUPPORTED) _exit(1);
  if (!strstr(err.message, "gm_no_such")) _exit(2);
}

static void test_what_is_missing_is_told(void **state) {
  (void)state;
  in_child(the_file_is_missing, NULL);
  in_child(a_symbol_is_missing, NULL);
}

static void test_a_library_is_opened_once(void **state) {
  (void)state;
  const maths *calls = gm__optional_open(&maths_library, NULL);
  assert_non_null(calls);
  assert_true(calls->cos(0) == 1);
  assert_null(calls->no_such);
  assert_ptr_equal(gm__optional_open(&maths_library, NULL), calls);
}

/* Checksums are of gm's other kind then, and a CRC is what it always is. */
static void sums_without_libraries(temp_folder *root) {
  gm_error err = {.status = GM_OK};
  (void)root;
  setenv("GM_XXHASH_LIBRARY", "/nowhere/libxxhash.so", 1);
  setenv("GM_ZLIB_LIBRARY", "/nowhere/libz.so", 1);
  if (gm__checksum_kind_here() != GM__CHECKSUM_MIX) _exit(1);
  if (gm__checksum("gm", 2, 0) == gm__checksum("gn", 2, 0)) _exit(2);
  if (gm__zlib_open(&err) || err.status != GM_ERR_NOT_SUPPORTED) _exit(3);
  if (gm__crc32(0, "123456789", 9) != 0xcbf43926) _exit(4);
}

static void test_sums_need_no_library(void **state) {
  (void)state;
  in_child(sums_without_libraries, NULL);
  assert_int_equal(gm__crc32(0, "123456789", 9), 0xcbf43926);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_is_missing_is_told), /* before anything opens a library */
      cmocka_unit_test(test_sums_need_no_library),
      cmocka_unit_test(test_a_library_is_opened_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
