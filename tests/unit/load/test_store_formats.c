/* From a store into files of NumPy and GGUF, and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gm/model.h"
#include "support/store_file_scene.h"

/* The keys below "m" whose types NumPy has, as odd_keys has them. */
static const char *const numpy_keys[] = {"w",        "b/c",    "a \"quoted\"", "back\\slash", "line\nend\x01",
                                         "\xc3\xa4", "scalar", "empty",        "deep"};
enum { NUMPY_KEYS = sizeof numpy_keys / sizeof numpy_keys[0] };

static void put_numpy_keys(gm_store *store) {
  static const gm_dtype types[] = {GM_DTYPE_U8, GM_DTYPE_F64, GM_DTYPE_C64, GM_DTYPE_I64, GM_DTYPE_F16,
                                   GM_DTYPE_I8, GM_DTYPE_F32, GM_DTYPE_U16, GM_DTYPE_BOOL};
  static const uint32_t ranks[] = {1, 2, 3, 1, 1, 1, 0, 2, 16};
  static const uint64_t shape[16] = {3, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, none[] = {4, 0};
  for (int i = 0; i < NUMPY_KEYS; i++) {
    char key[64];
    snprintf(key, sizeof key, "m/%s", numpy_keys[i]);
    put(store, key, types[i], ranks[i], strcmp(numpy_keys[i], "empty") ? shape : none);
  }
}

/* The keys below `prefix` go into a file of NumPy, and from there to keys below "again". */
static void through_numpy(scene *s, const char *prefix, const char *name) {
  put_numpy_keys(s->store);
  snprintf(s->path, sizeof s->path, "%s", temp_folder_join(&s->folder, name));
  pool_bench_ok(gm_store_save(s->store, prefix, s->path, err));
  pool_bench_ok(gm_store_load_file(s->store, "again", s->path, err));
}

static void test_archives_of_arrays(void **state) {
  (void)state;
  scene s;
  scene_open(&s, 16 * MIB);
  through_numpy(&s, "m", "saved.npz");
  assert_int_equal(store_stats(s.store).keys, 2 * NUMPY_KEYS);
  for (int i = 0; i < NUMPY_KEYS; i++) expect_again(&s, "again", numpy_keys[i]);
  gm_model *model = NULL;
  pool_bench_ok(gm_model_open(NULL, s.path, &model, err));
  for (uint64_t i = 0; i < gm_model_tensor_count(model); i++) {
    gm_tensor_info info = {.struct_size = sizeof info};
    pool_bench_ok(gm_model_tensor(model, i, &info, err));
    assert_int_equal(info.file_offset % 64, 0);
  }
  gm_model_close(model);
  scene_close(&s);
}

static void test_one_array(void **state) {
  (void)state;
  scene s;
  gm_error why;
  scene_open(&s, 16 * MIB);
  through_numpy(&s, "m/b", "c.npy");
  expect_same(s.store, "m/b/c", "again/c");
  assert_int_equal(gm_store_save(s.store, "m", s.path, &why), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(why.message, "an .npy file holds one tensor, here are 9"));
  assert_int_equal(files_of(&s), 1);
  pool_bench_ok(gm_store_load_file(s.store, "again", s.path, err)); /* the earlier file is there */
  scene_close(&s);
}

static void test_gguf_files(void **state) {
  (void)state;
  static const uint64_t rows[] = {3, 64}, four[] = {2, 1, 3, 2}, five[] = {1, 1, 1, 1, 4};
  static const char *const keys[] = {"quant", "deep", "scalar", "a/b c"};
  scene s;
  gm_error why;
  scene_open(&s, 16 * MIB);
  put(s.store, "m/quant", GM_DTYPE_Q4_0, 2, rows);
  put(s.store, "m/deep", GM_DTYPE_BF16, 4, four);
  put(s.store, "m/scalar", GM_DTYPE_F64, 0, NULL);
  put(s.store, "m/a/b c", GM_DTYPE_I8, 1, rows);
  snprintf(s.path, sizeof s.path, "%s", temp_folder_join(&s.folder, "saved.gguf"));
  pool_bench_ok(gm_store_save(s.store, "m", s.path, err));
  pool_bench_ok(gm_store_load_file(s.store, "again", s.path, err));
  for (int i = 0; i < 4; i++) expect_again(&s, "again", keys[i]);
  put(s.store, "five/w", GM_DTYPE_F32, 5, five);
  assert_int_equal(gm_store_save(s.store, "five", s.path, &why), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(why.message, "key \"five/w\": it has more than the four dimensions of GGUF"));
  assert_int_equal(files_of(&s), 1);
  scene_close(&s);
}

static void test_what_numpy_cannot_hold(void **state) {
  (void)state;
  static const uint64_t shape[] = {4};
  static const char *const ends[] = {"a.npy", "a.npz"};
  scene s;
  gm_error why;
  scene_open(&s, 16 * MIB);
  put(s.store, "m/half", GM_DTYPE_BF16, 1, shape);
  store_put(s.store, "bytes/\xff\xfe", 1, 1, 1);
  for (int i = 0; i < 2; i++) {
    const char *path = temp_folder_join(&s.folder, ends[i]);
    assert_int_equal(gm_store_save(s.store, "m", path, &why), GM_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(why.message, "key \"m/half\": it has a type that NumPy does not know"));
  }
  assert_int_equal(gm_store_save(s.store, "bytes", temp_folder_join(&s.folder, "a.npz"), &why), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(why.message, "UTF-8"));
  assert_int_equal(files_of(&s), 0);
  scene_close(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_archives_of_arrays),
      cmocka_unit_test(test_one_array),
      cmocka_unit_test(test_gguf_files),
      cmocka_unit_test(test_what_numpy_cannot_hold),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
