/* From files into a store and back: names, types, places, what fails, and what is left then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <unistd.h>

#include "gm/model.h"
#include "support/fail_each.h"
#include "support/safetensors_bytes.h"
#include "support/store_file_scene.h"

/* The keys have names that a JSON text has to write in another way, and types whose order in the file counts. */
static const char *const odd_keys[] = {"w",        "b/c",       "a \"quoted\"", "back\\slash", "line\nend\x01",
                                       "\xc3\xa4", "b/c/inner", "{}[],:",       "scalar",      "empty",
                                       "wide",     "deep",      "nibbles"};
enum { ODD_KEYS = sizeof odd_keys / sizeof odd_keys[0] };

static void put_odd_keys(gm_store *store) {
  static const gm_dtype types[] = {GM_DTYPE_U8,  GM_DTYPE_F64, GM_DTYPE_F32, GM_DTYPE_BF16, GM_DTYPE_BOOL,
                                   GM_DTYPE_I64, GM_DTYPE_F16, GM_DTYPE_I8,  GM_DTYPE_F32,  GM_DTYPE_U16,
                                   GM_DTYPE_C64, GM_DTYPE_I16, GM_DTYPE_F4};
  static const uint64_t shape[16] = {3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  static const uint64_t none[] = {4, 0}, pair[] = {3, 2};
  for (int i = 0; i < ODD_KEYS; i++) {
    char key[64];
    snprintf(key, sizeof key, "m/%s", odd_keys[i]);
    const bool scalar = !strcmp(odd_keys[i], "scalar"), empty = !strcmp(odd_keys[i], "empty");
    const bool deep = !strcmp(odd_keys[i], "deep"), nibbles = types[i] == GM_DTYPE_F4;
    const uint64_t *dims = nibbles ? pair : empty ? none : shape;
    put(store, key, types[i], scalar ? 0 : deep ? 16 : empty || nibbles ? 2 : 1, dims);
  }
}

static void test_what_is_saved_is_loaded(void **state) {
  (void)state;
  scene s;
  scene_open(&s, 16 * MIB);
  put_odd_keys(s.store);
  store_put(s.store, "mm", 9, 9, 9); /* beside the prefix, not below it */
  pool_bench_ok(gm_store_save(s.store, "/m/", s.path, err));
  assert_int_equal(files_of(&s), 1);
  pool_bench_ok(gm_store_load_file(s.store, "again/deeper", s.path, err));
  assert_int_equal(store_stats(s.store).keys, 2 * ODD_KEYS + 1);
  for (int i = 0; i < ODD_KEYS; i++) expect_again(&s, "again/deeper", odd_keys[i]);
  scene_close(&s);
}

static void test_the_whole_store_is_a_prefix(void **state) {
  (void)state;
  static const char *const roots[] = {NULL, "", "/"};
  scene s;
  scene_open(&s, 16 * MIB);
  store_put(s.store, "a/b", 1, 1, 100);
  store_put(s.store, "c", 2, 1, 9 * MIB); /* in several pieces */
  for (int i = 0; i < 3; i++) {
    pool_bench_ok(gm_store_save(s.store, roots[i], s.path, err));
    pool_bench_ok(gm_store_clear(s.store, NULL, err));
    pool_bench_ok(gm_store_load_file(s.store, roots[i], s.path, err));
    store_expect(s.store, "a/b", 1, 1, 100);
    store_expect(s.store, "c", 2, 1, 9 * MIB);
  }
  pool_bench_ok(gm_store_save(s.store, "a", s.path, err)); /* a shorter file takes the place of a longer one */
  pool_bench_ok(gm_store_clear(s.store, NULL, err));
  pool_bench_ok(gm_store_load_file(s.store, NULL, s.path, err));
  store_expect(s.store, "b", 1, 1, 100);
  assert_int_equal(store_stats(s.store).keys, 1);
  scene_close(&s);
}

static void test_values_are_saved_where_they_lie(void **state) {
  (void)state;
  scene s;
  scene_open(&s, 4 * MIB);
  store_close(s.store);
  gm_tier *tier = store_open_tier(&s.bench, "host", "", 0);
  const gm_store_params params = {.tiers = &tier, .tier_count = 1, .max_host_bytes = 3 * MIB / 2};
  s.store = store_open(s.bench.pool, &params);
  for (uint64_t i = 0; i < 9; i++) {
    char key[16];
    snprintf(key, sizeof key, "m/%d", (int)i);
    store_put(s.store, key, i, 1, MIB - 4096);
  }
  const gm_store_stats before = store_stats(s.store);
  assert_true(before.device_bytes && before.host_bytes && store_tier_values(tier));
  pool_bench_ok(gm_store_save(s.store, "m", s.path, err));
  const gm_store_stats after = store_stats(s.store);
  assert_int_equal(after.device_bytes, before.device_bytes);
  assert_int_equal(after.host_bytes, before.host_bytes);
  assert_int_equal(after.came_back + after.went_down + after.gets, before.came_back + before.went_down + before.gets);
  pool_bench_ok(gm_store_load_file(s.store, "n", s.path, err)); /* more than the device can hold */
  for (uint64_t i = 0; i < 9; i++) {
    char key[16];
    snprintf(key, sizeof key, "n/%d", (int)i);
    store_expect(s.store, key, i, 1, MIB - 4096);
  }
  store_close(s.store);
  pool_bench_ok(gm_tier_close(tier, err));
  s.store = store_open(s.bench.pool, NULL);
  scene_close(&s);
}

/* ---- files that do not suit ---- */

static const char *write_model(scene *s, const char *header, uint64_t data) {
  const safetensors_bytes file = safetensors_bytes_make(header, strlen(header), data, 1);
  const char *path = temp_folder_write(&s->folder, "in.safetensors", file.bytes, file.length);
  safetensors_bytes_free((safetensors_bytes *)(uintptr_t)&file);
  return path;
}

static void test_names_that_are_no_keys(void **state) {
  (void)state;
  static const char *const names[] = {
      "", "/a", "a/", "a//b", "./a", "../a", "..", "a/..", "a/.b/..", ".", "/", "b/../../../../etc", NULL};
  scene s;
  gm_error why;
  scene_open(&s, 16 * MIB);
  store_put(s.store, "p/good", 1, 1, 10);
  for (int i = 0; i < 12; i++) {
    char header[256];
    snprintf(header, sizeof header,
             "{\"good\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
             "\"%s\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[8,16]}}",
             names[i]);
    assert_int_equal(gm_store_load_file(s.store, "p", write_model(&s, header, 16), &why), GM_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(why.message, "in.safetensors"));
    store_expect(s.store, "p/good", 1, 1, 10); /* nothing was put */
  }
  assert_int_equal(store_stats(s.store).keys, 1);
  static char longest[GM_STORE_KEY_MOST + 2];
  memset(longest, 'k', GM_STORE_KEY_MOST + 1);
  const char *model = write_model(&s, "{\"good\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}", 8);
  for (size_t bytes = GM_STORE_KEY_MOST + 1; bytes > GM_STORE_KEY_MOST - 8; bytes--) {
    longest[bytes] = '\0';
    const gm_status wanted = bytes >= GM_STORE_KEY_MOST      ? GM_ERR_INVALID_ARGUMENT
                             : bytes + 5 > GM_STORE_KEY_MOST ? GM_ERR_NOT_SUPPORTED
                                                             : GM_OK;
    assert_int_equal(gm_store_load_file(s.store, longest, model, NULL), wanted);
  }
  scene_close(&s);
}

static void test_a_file_that_is_cut_off(void **state) {
  (void)state;
  static const char header[] =
      "{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]},"
      "\"b\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[8,16]}}";
  scene s;
  gm_model *model = NULL;
  gm_error why;
  scene_open(&s, 16 * MIB);
  store_put(s.store, "p/a", 1, 1, 10);
  store_put(s.store, "p/b", 2, 1, 10);
  const char *path = write_model(&s, header, 16);
  pool_bench_ok(gm_model_open(NULL, path, &model, err));
  const off_t whole = (off_t)(8 + strlen(header) + 16);
  for (off_t bytes = whole - 1; bytes >= 0; bytes--) {
    assert_int_equal(truncate(path, bytes), 0);
    const gm_status status = gm_store_load_file(s.store, "p", path, &why);
    assert_true(status == GM_ERR_FORMAT);
    assert_int_equal(gm_store_load(s.store, "p", model, &why), GM_ERR_IO);
    assert_non_null(strstr(why.message, "in.safetensors"));
  }
  gm_model_close(model);
  store_expect(s.store, "p/a", 1, 1, 10);
  store_expect(s.store, "p/b", 2, 1, 10);
  assert_int_equal(gm_store_load_file(s.store, "p", "/nobody/here", NULL), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_store_load_file(s.store, "p", "/dev/zero", NULL), GM_ERR_IO);
  pool_bench_ok(gm_model_open_header(NULL, write_model(&s, header, 16), &model, err));
  assert_int_equal(gm_store_load(s.store, "p", model, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_store_load(s.store, "p", NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_store_load(NULL, "p", model, NULL), GM_ERR_INVALID_ARGUMENT);
  gm_model_close(model);
  scene_close(&s);
}

/* ---- values that do not suit ---- */

static void expect_refused(scene *s, const char *prefix, gm_status wanted, const char *says) {
  gm_error why;
  assert_int_equal(gm_store_save(s->store, prefix, s->path, &why), wanted);
  if (!strstr(why.message, says)) fail_msg("%s", why.message);
  assert_int_equal(files_of(s), 1);
  pool_bench_ok(gm_store_load_file(s->store, "check", s->path, err));
  store_expect(s->store, "check/old", 5, 5, 55);
}

static void test_what_the_format_cannot_hold(void **state) {
  (void)state;
  static const uint64_t row[] = {32};
  scene s;
  gm_value *list = NULL;
  scene_open(&s, 16 * MIB);
  store_put(s.store, "first/old", 5, 5, 55);
  pool_bench_ok(gm_store_save(s.store, "first", s.path, err));
  pool_bench_ok(gm_value_list(s.bench.ctx, NULL, 0, &list, err));
  pool_bench_ok(gm_store_put(s.store, "list/of", list, err));
  gm_value_release(list, NULL);
  expect_refused(&s, "list", GM_ERR_NOT_SUPPORTED, "list/of");
  put(s.store, "quant/w", GM_DTYPE_Q4_0, 1, row);
  expect_refused(&s, "quant", GM_ERR_NOT_SUPPORTED, "quant/w");
  store_put(s.store, "meta/__metadata__", 1, 1, 1);
  expect_refused(&s, "meta", GM_ERR_NOT_SUPPORTED, "__metadata__");
  store_put(s.store, "bytes/\xff\xfe", 1, 1, 1);
  expect_refused(&s, "bytes", GM_ERR_NOT_SUPPORTED, "UTF-8");
  store_put(s.store, "self", 1, 1, 1);
  store_put(s.store, "self/below", 1, 1, 1);
  expect_refused(&s, "self", GM_ERR_NOT_SUPPORTED, "is a key itself");
  expect_refused(&s, "nobody", GM_ERR_NOT_FOUND, "nobody");
  expect_refused(&s, "../up", GM_ERR_INVALID_ARGUMENT, "");
  assert_int_equal(gm_store_save(s.store, "first", NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_store_save(s.store, "first", "", NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_store_save(NULL, "first", s.path, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_store_save(s.store, "first", s.folder.path, NULL), GM_ERR_IO);
  assert_int_equal(gm_store_save(s.store, "first", "/dev/null", NULL), GM_ERR_IO);
  assert_int_equal(gm_store_save(s.store, "first", "/nobody/here", NULL), GM_ERR_NOT_FOUND);
  char name[300];
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = '\0';
  assert_int_equal(gm_store_save(s.store, "first", temp_folder_join(&s.folder, name), NULL), GM_ERR_IO);
  name[255] = '\0'; /* as long as a name can be: the side file's is shorter than with all of it */
  pool_bench_ok(gm_store_save(s.store, "first", temp_folder_join(&s.folder, name), err));
  assert_int_equal(files_of(&s), 2);
  scene_close(&s);
}

static void test_a_full_disk_leaves_the_earlier_file(void **state) {
  (void)state;
  scene s;
  struct rlimit was, small;
  scene_open(&s, 16 * MIB);
  store_put(s.store, "first/old", 5, 5, 55);
  pool_bench_ok(gm_store_save(s.store, "first", s.path, err));
  store_put(s.store, "big/new", 6, 6, 6 * MIB);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
  small = was;
  for (rlim_t bytes = 0; bytes <= 5 * MIB; bytes += MIB) {
    small.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const gm_status status = gm_store_save(s.store, "big", s.path, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
    assert_int_equal(status, GM_ERR_IO);
    assert_int_equal(files_of(&s), 1);
    pool_bench_ok(gm_store_load_file(s.store, "check", s.path, err));
    store_expect(s.store, "check/old", 5, 5, 55);
  }
  pool_bench_ok(gm_store_save(s.store, "big", s.path, err));
  pool_bench_ok(gm_store_load_file(s.store, "check", s.path, err));
  store_expect(s.store, "check/new", 6, 6, 6 * MIB);
  scene_close(&s);
}

static void test_one_saves_at_a_time(void **state) {
  (void)state;
  scene s;
  scene_open(&s, 16 * MIB);
  store_put(s.store, "first/old", 5, 5, 55);
  pool_bench_ok(gm_store_save(s.store, "first", s.path, err));
  assert_int_equal(chmod(s.path, 0640), 0);
  const int other = open(s.path, O_RDWR | O_CLOEXEC);
  assert_true(other >= 0 && flock(other, LOCK_EX) == 0);
  expect_refused(&s, "first", GM_ERR_BUSY, "saved.safetensors");
  close(other);
  /* Files that ended processes left: the next save takes them away. A file that only looks so, or is used, stays. */
  temp_folder_write(&s.folder, "saved.safetensors.0123456789abcdef.gm-save", "x", 1);
  temp_folder_write(&s.folder, "saved.safetensors.0123456789abcdef.gm-saved", "x", 1);
  const char *used = temp_folder_write(&s.folder, "saved.safetensors.00000000000000aa.gm-save", "x", 1);
  const int maker = open(used, O_RDWR | O_CLOEXEC);
  assert_true(maker >= 0 && flock(maker, LOCK_EX) == 0);
  pool_bench_ok(gm_store_save(s.store, "first", s.path, err));
  assert_int_equal(files_of(&s), 3);
  close(maker);
  struct stat now;
  assert_int_equal(stat(s.path, &now), 0);
  assert_int_equal(now.st_mode & 0777, 0640);
  scene_close(&s);
}

/* ---- host memory ---- */

static gm_status road_with(const gm_services *services) {
  temp_folder folder;
  gm_context *ctx = NULL;
  gm_device *device = NULL;
  gm_pool *pool = NULL;
  gm_store *store = NULL;
  const gm_context_params context = {.struct_size = sizeof context, .services = services, .ignore_environment = true};
  const unsigned char data[100] = {1};
  const gm_tensor_desc desc = store_bytes_desc(sizeof data);
  temp_folder_make(&folder);
  gm_status status = gm_context_create(&context, &ctx, NULL);
  if (!status) status = gm_device_open_index(ctx, "cpu", 0, &device, NULL);
  if (!status) status = gm_pool_create(device, NULL, &pool, NULL);
  const gm_store_params params = {.struct_size = sizeof params, .pool = pool};
  if (!status) status = gm_store_create(&params, &store, NULL);
  if (!status) status = gm_store_put_tensor(store, "a/b", &desc, data, NULL);
  if (!status) status = gm_store_put_tensor(store, "a/c", &desc, data, NULL);
  if (!status) status = gm_store_save(store, "a", temp_folder_join(&folder, "f"), NULL);
  if (!status) status = gm_store_load_file(store, "d", temp_folder_join(&folder, "f"), NULL);
  (void)gm_store_destroy(store, NULL);
  (void)gm_pool_destroy(pool, NULL);
  (void)gm_device_close(device, NULL);
  (void)gm_context_destroy(ctx, NULL);
  temp_folder_remove(&folder);
  return status;
}

static void test_host_memory_that_is_missing(void **state) {
  (void)state;
  fail_each_allocation(road_with, 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_is_saved_is_loaded),
      cmocka_unit_test(test_the_whole_store_is_a_prefix),
      cmocka_unit_test(test_values_are_saved_where_they_lie),
      cmocka_unit_test(test_names_that_are_no_keys),
      cmocka_unit_test(test_a_file_that_is_cut_off),
      cmocka_unit_test(test_what_the_format_cannot_hold),
      cmocka_unit_test(test_a_full_disk_leaves_the_earlier_file),
      cmocka_unit_test(test_one_saves_at_a_time),
      cmocka_unit_test(test_host_memory_that_is_missing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
