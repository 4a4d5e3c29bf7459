/* Loads that are held against checksum files. Each byte that the disk or a copy made wrong is found, whatever the
 * path, the memory, and the other tensors that are loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <fcntl.h>

#include "gm/save.h"
#include "support/load_scene.h"
#include "support/random.h"

enum { A = 100, B = (2 << 20) + 12345, C = 5000, D = 300001, SUMMED = A + B + C + D, COUNT = 4 };

static const uint64_t sizes[COUNT] = {A, B, C, D};
static char path[512], sums[512];
static gm_stream *stream;

static int sums_setup(void **state) {
  char header[512];
  gm_model *model = NULL;
  gm_error err = {0};
  setup(state);
  snprintf(header, sizeof header,
           "{\"a\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[0,%d]},"
           "\"b\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[%d,%d]},"
           "\"c\":{\"dtype\":\"U8\",\"shape\":[50,100],\"data_offsets\":[%d,%d]},"
           "\"d\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[%d,%d]}}",
           A, A, B, A, A + B, A + B, A + B + C, D, A + B + C, SUMMED);
  write_shard("in", header, SUMMED, 5);
  assert_int_equal(gm_model_open(NULL, temp_folder_join(&f.folder, "in"), &model, NULL), GM_OK);
  snprintf(path, sizeof path, "%s", temp_folder_join(&f.folder, "out.safetensors"));
  snprintf(sums, sizeof sums, "%s.gmsum", path);
  const gm_save_params params = {.struct_size = sizeof params, .checksums = true};
  if (gm_model_save(model, NULL, path, &params, NULL, &err) != GM_OK) fail_msg("%s", err.message);
  gm_model_close(model);
  assert_int_equal(gm_stream_create(f.device, &stream, NULL), GM_OK);
  return 0;
}

static int sums_teardown(void **state) {
  assert_int_equal(gm_stream_close(stream, NULL), GM_OK);
  return teardown(state);
}

/* The choices of a load: which tensors it takes, and what is done to a block when the bytes have arrived. */
typedef struct looker {
  uint32_t taken;  /* a bit for each tensor */
  bool slice;      /* a few columns of "c" */
  uint64_t tensor; /* its byte `at` changes */
  uint64_t at;     /* UINT64_MAX: none does */
} looker;

static void choose(void *user, uint64_t index, const gm_tensor_info *tensor, gm_load_place *place) {
  const looker *self = user;
  (void)tensor;
  if (!(self->taken >> index & 1)) place->pool = NULL;
  if (index == 2 && self->slice) place->slice = (gm_tensor_slice){.first = 10, .count = 30, .dim = 1};
}

static void change(void *user, const gm_load_arrival *arrival) {
  const looker *self = user;
  unsigned char byte;
  if (arrival->index != self->tensor || self->at == UINT64_MAX) return;
  assert_int_equal(gm_block_read(f.pool, &arrival->block, self->at, &byte, 1, arrival->stream, NULL, NULL), GM_OK);
  byte ^= 1;
  assert_int_equal(gm_block_write(f.pool, &arrival->block, self->at, &byte, 1, arrival->stream, NULL, NULL), GM_OK);
}

static gm_status load(looker *self, const gm_load_params *like, gm_load_result *result, gm_error *err) {
  gm_load_params params = *like;
  gm_model *model = NULL;
  gm_loaded_model *loaded = NULL;
  params.struct_size = sizeof params;
  params.verify = true;
  params.place = choose;
  params.arrived = change;
  params.user = self;
  result->struct_size = sizeof *result;
  gm_status status = gm_model_open(&f.host.services, path, &model, err);
  if (status == GM_OK) status = gm_model_load(model, f.pool, &params, &loaded, result, err);
  if (status == GM_OK) assert_true(result->verified);
  assert_int_equal(gm_loaded_model_release(loaded, params.request.stream), GM_OK);
  gm_model_close(model);
  assert_int_equal(in_use(), 0);
  return status;
}

static uint64_t bytes_of(uint32_t taken) {
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < COUNT; i++) bytes += taken >> i & 1 ? sizes[i] : 0;
  return bytes;
}

static gm_load_params params_of(uint64_t number) {
  static const gm_load_path paths[] = {GM_LOAD_PATH_AUTO, GM_LOAD_PATH_MMAP, GM_LOAD_PATH_READ, GM_LOAD_PATH_DIRECT};
  static const uint64_t chunks[] = {0, 4096, 300000};
  gm_load_params params = {.path = paths[number % 4], .chunk_bytes = chunks[number / 4 % 3], .threads = number % 5 % 3};
  params.request.stream = number / 12 % 2 ? stream : NULL;
  return params;
}

static void test_what_is_as_it_was_saved(void **state) {
  (void)state;
  for (uint32_t i = 0; i < 48; i++) {
    looker self = {.taken = i % 15 + 1, .at = UINT64_MAX, .slice = i % 3 == 0};
    const gm_load_params params = params_of(i);
    gm_load_result result = {0};
    gm_error err = {0};
    if (load(&self, &params, &result, &err) != GM_OK) fail_msg("%s", err.message);
    const bool part = self.slice && self.taken & 4;
    assert_int_equal(result.bytes, bytes_of(self.taken) - (part ? C - 50 * 30 : 0));
    assert_int_equal(result.summed_bytes, bytes_of(self.taken) - (part ? C : 0)); /* not the slice */
    assert_int_equal(result.files, 1);
    assert_int_equal(result.summed_files, result.summed_bytes > 0);
  }
}

static void flip(const char *name, uint64_t at) {
  unsigned char byte = 0;
  const int fd = open(name, O_RDWR | O_CLOEXEC);
  assert_true(fd >= 0 && pread(fd, &byte, 1, (off_t)at) == 1);
  byte ^= 0x10;
  assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
  close(fd);
}

/* A letter of the header's text becomes another one, and back. */
static void flip_letter(const char *name, uint64_t at) {
  unsigned char byte = 0;
  const int fd = open(name, O_RDWR | O_CLOEXEC);
  assert_true(fd >= 0 && pread(fd, &byte, 1, (off_t)at) == 1);
  assert_true(byte == 'x' || byte == 'y');
  byte ^= 'x' ^ 'y';
  assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
  close(fd);
}

/* A header of more than 2 MiB, most of it one value. */
static void write_long_header(void) {
  const size_t length = (2 << 20) + 5000;
  char *header = malloc(length + 512);
  assert_non_null(header);
  size_t at = (size_t)snprintf(header, 64, "{\"__metadata__\":{\"k\":\"");
  memset(header + at, 'x', length);
  at += length;
  snprintf(header + at, 400, "\"},\"a\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[0,%d]}}", A, A);
  write_shard("in", header, A, 5);
  free(header);
}

static uint64_t data_begins(void) {
  gm_model *model = NULL;
  gm_tensor_info info = {.struct_size = sizeof info};
  assert_int_equal(gm_model_open(NULL, path, &model, NULL), GM_OK);
  assert_int_equal(gm_model_tensor(model, 0, &info, NULL), GM_OK);
  gm_model_close(model);
  return info.file_offset;
}

/* The file has another byte than when it was saved. Without its checksum file nobody can know. */
static void test_a_byte_of_the_file_that_changed(void **state) {
  (void)state;
  static const uint64_t places[] = {0, A - 1, A, A + 4096, A + (1 << 20), A + B - 1, A + B, A + B + C + 5, SUMMED - 1};
  const uint64_t begin = data_begins();
  for (uint64_t i = 0; i < sizeof places / sizeof *places * 4; i++) {
    looker self = {.taken = 15, .at = UINT64_MAX};
    const uint64_t at = begin + places[i / 4];
    const gm_load_params params = params_of(i * 7);
    gm_load_result result = {0};
    gm_error err = {0};
    char words[200];
    flip(path, at);
    assert_int_equal(load(&self, &params, &result, &err), GM_ERR_IO);
    snprintf(words, sizeof words, "out.safetensors: bytes %llu to ", (unsigned long long)(at >> 20 << 20));
    if (!strstr(err.message, words) || !strstr(err.message, "tensor \"")) fail_msg("%s, not %s", err.message, words);
    flip(path, at);
  }
  looker self = {.taken = 15, .at = UINT64_MAX};
  gm_load_result result = {0};
  gm_error err = {0};
  flip(path, begin + A + 5000);
  assert_int_equal(unlink(sums), 0);
  assert_int_equal(load(&self, &(gm_load_params){.path = GM_LOAD_PATH_READ}, &result, &err), GM_OK);
  assert_int_equal(result.summed_bytes, 0);
}

/* Every MiB of the header is read again, also where no tensor reaches. */
static void test_a_byte_of_the_header_that_changed(void **state) {
  (void)state;
  const gm_save_params save = {.struct_size = sizeof save, .checksums = true};
  looker self = {.taken = 1, .at = UINT64_MAX};
  gm_load_result result = {0};
  gm_error err = {0};
  gm_model *model = NULL;
  write_long_header();
  assert_int_equal(gm_model_open(NULL, temp_folder_join(&f.folder, "in"), &model, NULL), GM_OK);
  assert_int_equal(gm_model_save(model, NULL, path, &save, NULL, &err), GM_OK);
  gm_model_close(model);
  assert_true(data_begins() > UINT64_C(2) << 20);
  assert_int_equal(load(&self, &(gm_load_params){.path = GM_LOAD_PATH_AUTO}, &result, &err), GM_OK);
  assert_int_equal(result.summed_files, 1);
  for (uint64_t at = 5000; at < UINT64_C(2) << 20; at += 700000) {
    char words[200];
    flip_letter(path, at);
    assert_int_equal(load(&self, &(gm_load_params){.path = GM_LOAD_PATH_AUTO}, &result, &err), GM_ERR_IO);
    snprintf(words, sizeof words, "out.safetensors: bytes %llu to ", (unsigned long long)(at >> 20 << 20));
    if (!strstr(err.message, words)) fail_msg("%s, not %s", err.message, words);
    flip_letter(path, at);
  }
}

/* Only what lies in the same MiB as something that is loaded counts. */
static void test_a_changed_byte_of_what_is_left_out(void **state) {
  (void)state;
  looker self = {.taken = 1, .at = UINT64_MAX};
  gm_load_result result = {0};
  gm_error err = {0};
  const gm_load_params params = {.path = GM_LOAD_PATH_READ};
  const uint64_t begin = data_begins();
  flip(path, begin + A + (1 << 20) + 5000);
  assert_int_equal(load(&self, &params, &result, &err), GM_OK);
  assert_int_equal(result.summed_bytes, A);
  flip(path, begin + A + 50000);
  assert_int_equal(load(&self, &params, &result, &err), GM_ERR_IO);
}

/* A copy that brought a wrong byte: in a page that two tensors share, and anywhere in memory that is read back. */
static void test_a_byte_that_changed_on_its_way(void **state) {
  (void)state;
  static const struct { uint64_t tensor, at; } wrong[] = {{0, 5}, {1, 0}, {1, B - 1}, {2, C - 1}, {3, 0}};
  for (uint64_t i = 0; i < sizeof wrong / sizeof *wrong * 2; i++) {
    looker self = {.taken = 15, .tensor = wrong[i / 2].tensor, .at = wrong[i / 2].at};
    gm_load_params params = {.path = GM_LOAD_PATH_READ};
    gm_load_result result = {0};
    gm_error err = {0};
    params.request.stream = i % 2 ? stream : NULL;
    assert_int_equal(load(&self, &params, &result, &err), GM_ERR_IO);
    if (!strstr(err.message, "differs from its file") && !strstr(err.message, "are not those of")) {
      fail_msg("%s", err.message);
    }
  }
  looker self = {.taken = 15, .tensor = 1, .at = 1 << 20}; /* a page of one tensor */
  gm_load_params params = {.path = GM_LOAD_PATH_READ};
  gm_load_result result = {0};
  gm_error err = {0};
  params.request.stream = stream;
  assert_int_equal(load(&self, &params, &result, &err), GM_ERR_IO);
}

static void test_checksum_files_that_are_none(void **state) {
  (void)state;
  looker self = {.taken = 15, .at = UINT64_MAX};
  const gm_load_params params = {.path = GM_LOAD_PATH_READ};
  gm_load_result result = {0};
  gm_error err = {0};
  flip(sums, 40);
  assert_int_equal(load(&self, &params, &result, &err), GM_ERR_FORMAT);
  assert_non_null(strstr(err.message, ".gmsum: is damaged"));
  flip(sums, 40);
  flip(sums, 8); /* the kind of checksum */
  assert_int_equal(load(&self, &params, &result, &err), GM_OK);
  assert_int_equal(result.summed_bytes, 0); /* compared without it */
  flip(sums, 8);
  assert_int_equal(truncate(path, (off_t)(data_begins() + SUMMED)), 0);
  assert_int_equal(load(&self, &params, &result, &err), GM_OK);
  assert_int_equal(result.summed_bytes, SUMMED);
}

static void test_each_host_allocation_failed(void **state) {
  (void)state;
  gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
  for (size_t n = 1; status != GM_OK; n++) {
    looker self = {.taken = 15, .at = UINT64_MAX};
    gm_load_result result = {0};
    gm_pool_trim(f.pool, 0);
    f.host.fail_at = atomic_load(&f.host.calls) + n;
    f.host.fail_count = 1;
    status = load(&self, &(gm_load_params){.path = GM_LOAD_PATH_READ}, &result, NULL);
    f.host.fail_at = 0;
    assert_true(status == GM_OK || status == GM_ERR_OUT_OF_HOST_MEMORY);
  }
}

/* The last call shortens the file, which was written from where the page cache has it. */
static bool shortens(void *user, const gm_save_progress *progress) {
  (void)user;
  return progress->done_bytes < SUMMED || truncate(path, 9000) == 0;
}

static void test_a_file_is_saved_from_the_page_cache(void **state) {
  (void)state;
  char copy[512], copy_sums[600];
  gm_error err = {0};
  gm_model *model = NULL, *copied = NULL;
  gm_save_params params = {.struct_size = sizeof params};
  snprintf(copy, sizeof copy, "%s", temp_folder_join(&f.folder, "copy.safetensors"));
  snprintf(copy_sums, sizeof copy_sums, "%s.gmsum", copy);
  assert_int_equal(gm_model_open(NULL, path, &model, NULL), GM_OK);
  assert_int_equal(gm_model_check_sums(model, NULL, NULL, NULL, &err), GM_OK); /* now it is in the page cache */
  assert_int_equal(gm_model_save(model, NULL, copy, &params, NULL, &err), GM_OK);
  assert_int_equal(rename(sums, copy_sums), 0); /* the two files are equal */
  assert_int_equal(gm_model_open(NULL, copy, &copied, NULL), GM_OK);
  gm_sums_result result = {.struct_size = sizeof result};
  assert_int_equal(gm_model_check_sums(copied, NULL, NULL, &result, &err), GM_OK);
  assert_int_equal(result.files, 1);
  gm_model_close(copied);
  params.progress = shortens;
  assert_int_equal(gm_model_save(model, NULL, copy, &params, NULL, &err), GM_ERR_IO);
  assert_non_null(strstr(err.message, path));
  assert_int_equal(gm_model_open(NULL, copy, &copied, NULL), GM_OK); /* the earlier file */
  assert_int_equal(gm_model_check_sums(copied, NULL, NULL, NULL, &err), GM_OK);
  gm_model_close(copied);
  gm_model_close(model);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, sums_setup, sums_teardown)
  const struct CMUnitTest tests[] = {
      TEST(test_what_is_as_it_was_saved),           TEST(test_a_byte_of_the_file_that_changed),
      TEST(test_a_byte_of_the_header_that_changed), TEST(test_a_changed_byte_of_what_is_left_out),
      TEST(test_a_byte_that_changed_on_its_way),    TEST(test_checksum_files_that_are_none),
      TEST(test_each_host_allocation_failed),       TEST(test_a_file_is_saved_from_the_page_cache),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
