/* Loads whose blocks are parts of the mapped file: nothing is copied, the file stays as it is, and what cannot lie
 * there is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>

#include "gm/copy.h"
#include "gm/save.h"
#include "support/file_bytes.h"
#include "support/load_scene.h"

/* "d" begins at an odd byte. */
enum { A = 104, B = (2 << 20) + 12344, C = 5001, D = 300000, ALL = A + B + C + D, COUNT = 4, MAPPED = A + B + C };

static const uint64_t sizes[COUNT] = {A, B, C, D}, places[COUNT] = {0, A, A + B, A + B + C};
static char path[512], sums[520];
static gm_model *model;
static gm_load_params params;
static gm_load_result result;
static gm_error err;
static uint64_t data_at;

static int begin(void **state) {
  char header[512];
  unsigned char *bytes = malloc(ALL);
  gm_model *in = NULL;
  gm_tensor_info info = {.struct_size = sizeof info};
  setup(state);
  const int length = snprintf(header, sizeof header,
                              "{\"a\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[0,%d]},"
                              "\"b\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[%d,%d]},"
                              "\"c\":{\"dtype\":\"U8\",\"shape\":[3,1667],\"data_offsets\":[%d,%d]},"
                              "\"d\":{\"dtype\":\"U8\",\"shape\":[300,1000],\"data_offsets\":[%d,%d]}}",
                              A, A, B, A, A + B, A + B, A + B + C, A + B + C, ALL);
  assert_non_null(bytes);
  for (uint64_t i = 0; i < ALL; i++) bytes[i] = file_byte(4, i);
  FILE *file = fopen(temp_folder_join(&f.folder, "in"), "wb");
  assert_non_null(file);
  for (int i = 0; i < 8; i++) fputc((int)((uint64_t)length >> 8 * i & 255), file);
  assert_int_equal(fwrite(header, 1, (size_t)length, file), length);
  assert_int_equal(fwrite(bytes, 1, ALL, file), ALL);
  assert_int_equal(fclose(file), 0);
  free(bytes);
  assert_int_equal(gm_model_open(NULL, temp_folder_join(&f.folder, "in"), &in, NULL), GM_OK);
  snprintf(path, sizeof path, "%s", temp_folder_join(&f.folder, "out.safetensors"));
  snprintf(sums, sizeof sums, "%s.gmsum", path);
  const gm_save_params save = {.struct_size = sizeof save, .checksums = true};
  assert_int_equal(gm_model_save(in, NULL, path, &save, NULL, &err), GM_OK);
  gm_model_close(in);
  assert_int_equal(gm_model_open(&f.host.services, path, &model, NULL), GM_OK);
  assert_int_equal(gm_model_tensor(model, 0, &info, NULL), GM_OK);
  data_at = info.file_offset;
  params = (gm_load_params){.struct_size = sizeof params, .path = GM_LOAD_PATH_IN_PLACE};
  result = (gm_load_result){.struct_size = sizeof result};
  return 0;
}

static int end(void **state) {
  gm_model_close(model);
  return teardown(state);
}

static gm_loaded_model *load(void) {
  gm_loaded_model *loaded = NULL;
  const gm_status status = gm_model_load(model, f.pool, &params, &loaded, &result, &err);
  if (status != GM_OK) fail_msg("%s", err.message);
  return loaded;
}

static unsigned char *tensor(const gm_loaded_model *loaded, uint64_t index) {
  gm_block block;
  assert_int_equal(gm_loaded_model_block(loaded, index, &block, NULL), GM_OK);
  return (unsigned char *)(uintptr_t)block.address;  // NOLINT(performance-no-int-to-ptr): the backend cpu
}

static void check_bytes(const gm_loaded_model *loaded) {
  for (uint64_t i = 0; i < COUNT; i++) {
    const unsigned char *at = tensor(loaded, i);
    for (uint64_t k = 0; k < sizes[i]; k++) assert_int_equal(at[k], file_byte(4, places[i] + k));
  }
}

static void release(gm_loaded_model *loaded) {
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
  assert_int_equal(in_use(), 0);
}

/* How many mappings of the file the process has. */
static int mappings(void) {
  char line[1024];
  int count = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  assert_non_null(maps);
  while (fgets(line, sizeof line, maps)) count += strstr(line, "out.safetensors") != NULL;
  fclose(maps);
  return count;
}

static void test_blocks_are_the_file(void **state) {
  (void)state;
  for (int verify = 0; verify < 3; verify++) { /* not, by the checksum file, without one */
    if (verify == 2) assert_int_equal(unlink(sums), 0);
    params.verify = verify != 0;
    gm_loaded_model *loaded = load();
    assert_int_equal(result.mapped_bytes, MAPPED);
    assert_int_equal(result.bytes, ALL);
    assert_int_equal(result.path, GM_LOAD_PATH_IN_PLACE);
    assert_int_equal(result.summed_bytes, verify == 1 ? ALL : 0);
    assert_int_equal(result.verified, verify != 0);
    assert_non_null(strstr(result.why, "multiple of their alignment"));
    assert_int_equal(mappings(), 1);
    assert_int_equal(tensor(loaded, 1) - tensor(loaded, 0), A); /* as they lie there */
    check_bytes(loaded);
    release(loaded);
    assert_int_equal(mappings(), 0);
  }
}

static void test_what_is_written_stays_here(void **state) {
  (void)state;
  gm_loaded_model *loaded = load(), *again;
  memset(tensor(loaded, 0), 0xee, A);
  memset(tensor(loaded, 1) + 70000, 0xee, 9000);
  again = load();
  check_bytes(again);
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
  check_bytes(again);
  assert_int_equal(gm_model_save(model, again, path, NULL, NULL, &err), GM_OK); /* over the file that is mapped */
  check_bytes(again);
  release(again);
}

static void choose(void *user, uint64_t index, const gm_tensor_info *info, gm_load_place *place) {
  const int *what = user;
  (void)info;
  if (*what == 0 && index != 1) place->pool = NULL;
  if (*what == 1 && index == 2) place->slice = (gm_tensor_slice){.first = 0, .count = 1000, .dim = 1};
  if (*what == 2) place->request.align = 4096;
}

static void test_some_tensors_and_parts(void **state) {
  (void)state;
  static const uint64_t mapped[] = {B, A + B, A};
  for (int what = 0; what < 3; what++) {
    params.place = choose;
    params.user = &what;
    params.verify = true;
    gm_loaded_model *loaded = load();
    assert_int_equal(result.mapped_bytes, mapped[what]);
    assert_true(result.verified);
    const unsigned char *b = tensor(loaded, 1);
    for (uint64_t k = 0; k < B; k++) assert_int_equal(b[k], file_byte(4, A + k));
    if (what == 1) {
      for (int k = 0; k < 3000; k++) {
        assert_int_equal(tensor(loaded, 2)[k], file_byte(4, (uint64_t)(A + B + k / 1000 * 1667 + k % 1000)));
      }
    }
    release(loaded);
  }
}

static void test_a_load_that_may_go_on_reads(void **state) {
  (void)state;
  params.keep = 1;
  gm_loaded_model *loaded = load();
  assert_int_equal(result.mapped_bytes, 0);
  assert_non_null(strstr(result.why, "keep"));
  check_bytes(loaded);
  release(loaded);
}

static void test_a_device_with_memory_of_its_own(void **state) {
  (void)state;
  gm_device *null = NULL;
  gm_pool *pool = NULL;
  gm_loaded_model *loaded = NULL;
  assert_int_equal(gm_device_open_index(f.context, "null", 0, &null, NULL), GM_OK);
  assert_int_equal(gm_pool_create(null, NULL, &pool, NULL), GM_OK);
  assert_int_equal(gm_model_load(model, pool, &params, &loaded, &result, &err), GM_OK);
  assert_int_equal(result.mapped_bytes, 0);
  assert_non_null(strstr(result.why, "memory of its own"));
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
  assert_int_equal(gm_pool_destroy(pool, NULL), GM_OK);
  assert_int_equal(gm_device_close(null, NULL), GM_OK);
}

static void test_a_changed_byte_is_found(void **state) {
  (void)state;
  static const uint64_t wrong[] = {0, A, A + 100000, A + B - 1, A + B, A + B + C + 7};
  params.verify = true;
  for (uint64_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    gm_loaded_model *loaded = NULL;
    unsigned char byte = (unsigned char)(file_byte(4, wrong[i]) ^ 4);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)(data_at + wrong[i])), 1);
    gm_model_close(model);
    assert_int_equal(gm_model_open(&f.host.services, path, &model, NULL), GM_OK);
    assert_int_equal(gm_model_load(model, f.pool, &params, &loaded, &result, &err), GM_ERR_IO);
    assert_non_null(strstr(err.message, "are not those of its checksum file"));
    assert_int_equal(in_use(), 0);
    assert_int_equal(mappings(), 0);
    byte ^= 4;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)(data_at + wrong[i])), 1);
    close(fd);
  }
}

static uint64_t calls, stop_at, told;

static bool count(void *user, const gm_load_progress *progress) {
  (void)user;
  assert_int_equal(progress->total_bytes, ALL);
  told = progress->done_bytes;
  return ++calls != stop_at;
}

static void take(void *user, const gm_load_arrival *arrival) {
  (void)user;
  const unsigned char *at =
      (const unsigned char *)(uintptr_t)arrival->block.address;  // NOLINT(performance-no-int-to-ptr)
  assert_null(arrival->stream);
  assert_int_equal(at[0], file_byte(4, places[arrival->index]));
  told |= UINT64_C(1) << (60 + arrival->index);
}

static void test_every_call_of_progress_can_cancel(void **state) {
  (void)state;
  params.progress = count;
  params.arrived = take;
  gm_status status = GM_ERR_CANCELLED;
  for (stop_at = 1; status != GM_OK; stop_at++) {
    gm_loaded_model *loaded = NULL;
    calls = told = 0;
    status = gm_model_load(model, f.pool, &params, &loaded, &result, &err);
    assert_true(status == GM_OK || status == GM_ERR_CANCELLED);
    if (status == GM_OK) release(loaded);
    assert_int_equal(in_use(), 0);
    assert_int_equal(mappings(), 0);
  }
  assert_true(stop_at > 8);
}

static void test_each_host_allocation_failed(void **state) {
  (void)state;
  gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
  params.verify = true;
  for (size_t n = 1; status != GM_OK; n++) {
    gm_loaded_model *loaded = NULL;
    gm_pool_trim(f.pool, 0);
    f.host.fail_at = atomic_load(&f.host.calls) + n;
    f.host.fail_count = 1;
    status = gm_model_load(model, f.pool, &params, &loaded, &result, &err);
    f.host.fail_at = 0;
    assert_true(status == GM_OK || status == GM_ERR_OUT_OF_HOST_MEMORY);
    assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
    assert_int_equal(in_use(), 0);
    assert_int_equal(mappings(), 0);
  }
}

static void test_a_file_that_shrank_before(void **state) {
  (void)state;
  gm_loaded_model *loaded = NULL;
  assert_int_equal(truncate(path, (off_t)data_at + A + 5000), 0);
  assert_int_equal(gm_model_load(model, f.pool, &params, &loaded, &result, &err), GM_ERR_IO);
  assert_null(loaded);
  assert_int_equal(mappings(), 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      TEST(test_blocks_are_the_file),
      TEST(test_what_is_written_stays_here),
      TEST(test_some_tensors_and_parts),
      TEST(test_a_load_that_may_go_on_reads),
      TEST(test_a_device_with_memory_of_its_own),
      TEST(test_a_changed_byte_is_found),
      TEST(test_every_call_of_progress_can_cancel),
      TEST(test_each_host_allocation_failed),
      TEST(test_a_file_that_shrank_before),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
