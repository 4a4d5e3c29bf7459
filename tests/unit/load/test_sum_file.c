/* Checksum files beside models: made while saving, whatever the format, and held against the file later. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <unistd.h>

#include "gm/save.h"
#include "support/counted_services.h"
#include "support/safetensors_bytes.h"
#include "support/temp_folder.h"

enum { BYTES = (3 << 20) + 12345, SMALL = 100 };

static temp_folder folder;
static gm_model *model;
static char path[512], sums[512];

static int setup(void **state) {
  (void)state;
  char header[256];
  snprintf(header, sizeof header,
           "{\"a\":{\"dtype\":\"I8\",\"shape\":[%d],\"data_offsets\":[0,%d]},"
           "\"b\":{\"dtype\":\"I8\",\"shape\":[%d],\"data_offsets\":[%d,%d]}}",
           SMALL, SMALL, BYTES, SMALL, SMALL + BYTES);
  temp_folder_make(&folder);
  safetensors_bytes file = safetensors_bytes_make(header, strlen(header), SMALL + BYTES, 1);
  assert_int_equal(gm_model_open(NULL, temp_folder_write(&folder, "in", file.bytes, file.length), &model, NULL), GM_OK);
  safetensors_bytes_free(&file);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  gm_model_close(model);
  temp_folder_remove(&folder);
  return 0;
}

static void save(const char *name, bool checksums, uint64_t chunk_bytes) {
  const gm_save_params params = {.struct_size = sizeof params, .checksums = checksums, .chunk_bytes = chunk_bytes};
  gm_error err = {0};
  snprintf(path, sizeof path, "%s", temp_folder_join(&folder, name));
  snprintf(sums, sizeof sums, "%s.gmsum", path);
  if (gm_model_save(model, NULL, path, &params, NULL, &err)) fail_msg("%s", err.message);
}

static gm_status check_with(const gm_services *services, gm_sums_result *result, gm_error *err) {
  gm_model *saved = NULL;
  gm_status status = gm_model_open(services, path, &saved, err);
  if (!status) status = gm_model_check_sums(saved, NULL, NULL, result, err);
  gm_model_close(saved);
  return status;
}

static void expect(gm_status wanted, const char *words) {
  gm_error err = {0};
  const gm_status status = check_with(NULL, NULL, &err);
  if (status != wanted || !strstr(err.message, words)) fail_msg("%s \"%s\"", gm_status_name(status), err.message);
}

static void flip(const char *name, off_t at) {
  unsigned char byte = 0;
  const int fd = open(name, O_RDWR | O_CLOEXEC);
  assert_true(fd >= 0 && pread(fd, &byte, 1, at) == 1);
  byte ^= 0x10;
  assert_int_equal(pwrite(fd, &byte, 1, at), 1);
  close(fd);
}

static off_t size_of(const char *name) {
  struct stat st;
  assert_int_equal(stat(name, &st), 0);
  return st.st_size;
}

/* Archives write some bytes twice. Pieces of every size give the same checksums. */
static void test_every_format(void **state) {
  (void)state;
  static const char *const names[] = {"m.safetensors", "m.gguf", "m.npz"};
  static const uint64_t chunks[] = {0, 4096, 12288, 1 << 20};
  for (int i = 0; i < 12; i++) {
    gm_sums_result result = {.struct_size = sizeof result};
    gm_error err = {0};
    save(names[i % 3], true, chunks[i / 3]);
    if (check_with(NULL, &result, &err)) fail_msg("%s: %s", names[i % 3], err.message);
    assert_int_equal(result.files, 1);
    assert_int_equal(result.files_without, 0);
    assert_int_equal(result.bytes, size_of(path));
    assert_int_equal(size_of(sums), 32 + 8 * ((size_of(path) + (1 << 20) - 1) >> 20));
  }
}

static void test_each_block_that_differs_is_found(void **state) {
  (void)state;
  static const char *const places[] = {"bytes 0 to 1048576", "bytes 1048576 to 2097152", "bytes 2097152 to 3145728",
                                       "bytes 3145728 to "};
  save("m.gguf", true, 0);
  for (int i = 0; i < 4; i++) {
    const off_t at = i ? (off_t)i << 20 : 8192; /* in a tensor, not in the header */
    flip(path, at);
    expect(GM_ERR_IO, places[i]);
    flip(path, at);
  }
  expect(GM_OK, "");
  assert_int_equal(truncate(path, size_of(path) + 1), 0);
  expect(GM_ERR_IO, "");
}

static void test_each_byte_of_a_checksum_file_counts(void **state) {
  (void)state;
  save("m.gguf", true, 0);
  const off_t bytes = size_of(sums);
  for (off_t at = 0; at < bytes; at++) {
    gm_error err = {0};
    flip(sums, at);
    const gm_status status = check_with(NULL, NULL, &err);
    const bool is_kind = at >= 8 && at < 12;
    assert_int_equal(status, is_kind ? GM_ERR_NOT_SUPPORTED : GM_ERR_FORMAT);
    assert_non_null(strstr(err.message, ".gmsum"));
    flip(sums, at);
  }
  for (off_t at = bytes - 1; at >= 0; at--) {
    assert_int_equal(truncate(sums, at), 0);
    expect(GM_ERR_FORMAT, ".gmsum");
  }
  assert_int_equal(truncate(sums, bytes + 8), 0);
  expect(GM_ERR_IO, "is of a longer file, or is damaged");
  assert_int_equal(unlink(sums), 0);
  assert_int_equal(mkfifo(sums, 0600), 0);
  expect(GM_ERR_IO, "");
}

static void test_a_later_save_takes_it_away(void **state) {
  (void)state;
  gm_sums_result result = {.struct_size = sizeof result};
  save("m.gguf", true, 0);
  assert_int_equal(access(sums, F_OK), 0);
  save("m.gguf", false, 0);
  assert_int_not_equal(access(sums, F_OK), 0);
  assert_int_equal(check_with(NULL, &result, NULL), GM_OK);
  assert_int_equal(result.files, 0);
  assert_int_equal(result.files_without, 1);
  assert_int_equal(result.bytes, 0);
}

static bool ends_at_once(void *user, uint64_t done, uint64_t total) {
  *(uint64_t *)user = done;
  assert_true(done <= total);
  return done < 2 << 20;
}

static void test_cancel_and_wrong_arguments(void **state) {
  (void)state;
  uint64_t done = 0;
  gm_model *saved = NULL;
  gm_sums_result result = {.struct_size = 1};
  save("m.gguf", true, 0);
  assert_int_equal(gm_model_open(NULL, path, &saved, NULL), GM_OK);
  assert_int_equal(gm_model_check_sums(saved, ends_at_once, &done, NULL, NULL), GM_ERR_CANCELLED);
  assert_int_equal(done, 2 << 20);
  assert_int_equal(gm_model_check_sums(NULL, NULL, NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_model_check_sums(saved, NULL, NULL, &result, NULL), GM_ERR_INVALID_ARGUMENT);
  save("m.gguf", true, 0);
  assert_int_equal(gm_model_check_sums(saved, NULL, NULL, NULL, NULL), GM_ERR_IO); /* it is another file */
  gm_model_close(saved);
}

static void test_host_memory_that_is_missing(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  save("m.npz", true, 0);
  gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
  for (size_t n = 1; status; n++) {
    host.fail_at = atomic_load(&host.calls) + n;
    host.fail_count = 1;
    status = check_with(&host.services, NULL, NULL);
    assert_true(status == GM_OK || status == GM_ERR_OUT_OF_HOST_MEMORY);
    assert_true(n < 100);
  }
  counted_services_check(&host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_every_format, setup, teardown),
      cmocka_unit_test_setup_teardown(test_each_block_that_differs_is_found, setup, teardown),
      cmocka_unit_test_setup_teardown(test_each_byte_of_a_checksum_file_counts, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_later_save_takes_it_away, setup, teardown),
      cmocka_unit_test_setup_teardown(test_cancel_and_wrong_arguments, setup, teardown),
      cmocka_unit_test_setup_teardown(test_host_memory_that_is_missing, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
