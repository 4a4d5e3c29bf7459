/* Tensors are handed out while their load goes on, and loads go on where another one ended. Every byte is there, and
 * is read once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "gm/save.h"
#include "support/load_scene.h"
#include "support/played_reads.h"
#include "support/random.h"

enum { MANY = 24, EACH = 30001, LARGE = 12 * EACH, ALL = MANY * EACH + LARGE, PIECE = 4096, FIRST = 7 };

static gm_model *many; /* its last tensor is large: a matrix of 12 rows */

static gm_model *open_many(void) {
  gm_model *model = NULL;
  assert_int_equal(gm_model_open(&f.host.services, temp_folder_join(&f.folder, "many"), &model, NULL), GM_OK);
  return model;
}

static void write_many(void) {
  static char header[(MANY + 1) * 100];
  size_t length = 0;
  for (int i = 0; i < MANY; i++) {
    length += (size_t)snprintf(header + length, sizeof header - length,
                               "%s\"t%02d\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[%d,%d]}", i ? "," : "{",
                               i, EACH, i * EACH, (i + 1) * EACH);
  }
  snprintf(header + length, sizeof header - length,
           ",\"w\":{\"dtype\":\"U8\",\"shape\":[12,%d],\"data_offsets\":[%d,%d]}}", EACH, MANY * EACH, ALL);
  write_shard("many", header, ALL, 5);
}

static int many_setup(void **state) {
  setup(state);
  write_many();
  many = open_many();
  played_reads_begin();
  return 0;
}

static int many_teardown(void **state) {
  played_reads_end();
  gm_model_close(many);
  return teardown(state);
}

/* The parameters of one load, or of several that make one. */
typedef struct loading {
  bool slices; /* columns of the large tensor */
  gm_stream *stream;
  int arrivals[MANY + 1];
  uint64_t calls, stop_at; /* of progress; 0: it never stops */
  uint64_t read;           /* bytes, as progress tells them */
} loading;

static loading now;

static uint64_t bytes_of(uint64_t index) { return index < MANY ? EACH : now.slices ? 12 * 1000 : LARGE; }

static uint64_t bytes_of_all(void) { return (uint64_t)MANY * EACH + bytes_of(MANY); }

/* The byte `at` of the block of a tensor. */
static unsigned char wanted(uint64_t index, uint64_t at) {
  if (index == MANY && now.slices) at = at / 1000 * EACH + FIRST + at % 1000;
  return safetensors_bytes_at(index * EACH + at, 5);
}

static void check_block(gm_block block, uint64_t index) {
  static unsigned char found[LARGE];
  const uint64_t bytes = bytes_of(index);
  assert_int_equal(gm_block_read(f.pool, &block, 0, found, bytes, now.stream, NULL, NULL), GM_OK);
  for (uint64_t i = 0; i < bytes; i++) {
    if (found[i] != wanted(index, i)) fail_msg("byte %d of tensor %d", (int)i, (int)index);
  }
}

static void arrived(void *user, const gm_load_arrival *arrival) {
  assert_ptr_equal(user, &now);
  assert_ptr_equal(arrival->pool, f.pool);
  assert_ptr_equal(arrival->stream, now.stream);
  now.arrivals[arrival->index]++;
  check_block(arrival->block, arrival->index);
}

static bool progress(void *user, const gm_load_progress *p) {
  loading *self = user;
  if (!p->verifying) self->read = p->done_bytes;
  return ++self->calls != self->stop_at;
}

static void place(void *user, uint64_t index, const gm_tensor_info *tensor, gm_load_place *out) {
  (void)user;
  (void)tensor;
  if (index == MANY && now.slices) out->slice = (gm_tensor_slice){.first = FIRST, .count = 1000, .dim = 1};
}

static gm_load_params params_of(gm_load_path path, uint64_t chunk, uint64_t threads) {
  gm_load_params params = {.struct_size = sizeof params, .path = path, .chunk_bytes = chunk, .threads = threads};
  params.progress = progress;
  params.place = place;
  params.arrived = arrived;
  params.user = &now;
  params.keep = 1;
  params.request.stream = now.stream;
  return params;
}

static void check_whole(const gm_loaded_model *loaded) {
  assert_int_equal(gm_loaded_model_left(loaded), 0);
  for (uint64_t i = 0; i <= MANY; i++) {
    gm_block block;
    assert_int_equal(gm_loaded_model_block(loaded, i, &block, NULL), GM_OK);
    check_block(block, i);
    assert_int_equal(now.arrivals[i], 1);
  }
}

static void release(gm_loaded_model *loaded) {
  assert_int_equal(gm_loaded_model_release(loaded, now.stream), GM_OK);
  assert_int_equal(in_use(), 0);
}

/* ---- tensors that come while others are on their way ---- */

static void test_each_tensor_is_handed_out_once_and_whole(void **state) {
  (void)state;
  gm_stream *stream = NULL;
  assert_int_equal(gm_stream_create(f.device, &stream, NULL), GM_OK);
  for (uint64_t i = 0; i < 24; i++) {
    gm_loaded_model *loaded = NULL;
    gm_error err = {0};
    now = (loading){.slices = i % 2, .stream = i / 2 % 2 ? stream : NULL};
    gm_load_params params = params_of(i % 3 ? GM_LOAD_PATH_DIRECT : GM_LOAD_PATH_MMAP, i % 5 ? 300000 : PIECE, i % 7);
    params.keep = i % 4 == 0;
    params.verify = i % 3 == 0;
    if (gm_model_load(many, f.pool, &params, &loaded, NULL, &err) != GM_OK) fail_msg("%s", err.message);
    check_whole(loaded);
    release(loaded);
  }
  now.stream = NULL;
  assert_int_equal(gm_stream_close(stream, NULL), GM_OK);
}

/* The first one is there before the last byte is read. */
static uint64_t read_when_first;
static void first_arrived(void *user, const gm_load_arrival *arrival) {
  (void)user;
  (void)arrival;
  if (!read_when_first) read_when_first = (uint64_t)(played_reads.cached_bytes + played_reads.direct_bytes);
}

static void test_the_first_tensor_comes_long_before_the_last_byte(void **state) {
  (void)state;
  const gm_load_params params = {
      .struct_size = sizeof params, .path = GM_LOAD_PATH_READ, .chunk_bytes = PIECE, .arrived = first_arrived};
  gm_loaded_model *loaded = NULL;
  now = (loading){.slices = false};
  read_when_first = 0;
  assert_int_equal(gm_model_load(many, f.pool, &params, &loaded, NULL, NULL), GM_OK);
  assert_in_range(read_when_first, EACH, EACH + 17 * PIECE);
  release(loaded);
}

/* ---- what is there stays ---- */

/* Cancels again and again, each time after some more calls of progress. The number of loads that made it. */
static int load_in_parts(gm_load_path path, uint64_t chunk, uint64_t threads, uint64_t step) {
  gm_loaded_model *loaded = NULL;
  gm_error err = {0};
  int loads = 1;
  gm_load_params params = params_of(path, chunk, threads);
  now.stop_at = MANY + 1 + step; /* one call before each tensor's block */
  gm_status status = gm_model_load(many, f.pool, &params, &loaded, NULL, &err);
  uint64_t left = bytes_of_all();
  for (; status == GM_ERR_CANCELLED; loads++) {
    assert_non_null(loaded);
    assert_true(gm_loaded_model_left(loaded) <= left);
    left = gm_loaded_model_left(loaded);
    params.request.stream = NULL; /* the first load says which */
    params.path = params.path == path ? GM_LOAD_PATH_READ : path;
    params.threads = (params.threads + 1) % 4;
    now.stop_at = now.calls + MANY + 1 + step;
    status = gm_loaded_model_resume(loaded, many, &params, NULL, &err);
  }
  if (status != GM_OK) fail_msg("%s", err.message);
  check_whole(loaded);
  release(loaded);
  return loads;
}

static void test_a_cancelled_load_goes_on(void **state) {
  (void)state;
  static const gm_load_path paths[] = {GM_LOAD_PATH_AUTO, GM_LOAD_PATH_MMAP, GM_LOAD_PATH_READ, GM_LOAD_PATH_DIRECT};
  gm_stream *stream = NULL;
  assert_int_equal(gm_stream_create(f.device, &stream, NULL), GM_OK);
  for (int i = 0; i < 16; i++) {
    played_reads_begin();
    played_reads.short_reads = i % 5 == 1;
    played_reads.resident = i % 3 ? 1000 : 0;
    now = (loading){.slices = i % 2, .stream = i / 4 % 2 ? stream : NULL};
    assert_true(load_in_parts(paths[i % 4], i / 8 ? 300000 : PIECE, (uint64_t)i % 3, i / 8 ? 12 : 40) > 3);
  }
  now.stream = NULL;
  assert_int_equal(gm_stream_close(stream, NULL), GM_OK);
}

/* Where one thread reads, no byte is read twice, but those of a run that was cut. */
static void test_nothing_is_read_twice(void **state) {
  (void)state;
  for (int slices = 0; slices < 2; slices++) {
    gm_loaded_model *loaded = NULL;
    now = (loading){.slices = slices, .stop_at = MANY + 1 + 30};
    gm_load_params params = params_of(GM_LOAD_PATH_READ, PIECE, 1);
    played_reads_begin();
    gm_status status = gm_model_load(many, f.pool, &params, &loaded, NULL, NULL);
    int loads = 1;
    for (; status == GM_ERR_CANCELLED; loads++) {
      assert_int_equal((uint64_t)played_reads.cached_bytes / PIECE,
                       (bytes_of_all() - gm_loaded_model_left(loaded)) / PIECE);
      now.stop_at = now.calls + MANY + 1 + 30;
      status = gm_loaded_model_resume(loaded, many, &params, NULL, NULL);
    }
    assert_int_equal(status, GM_OK);
    assert_true(loads > 3);
    assert_true((uint64_t)played_reads.cached_bytes - bytes_of_all() <= (slices ? (uint64_t)loads * 1000 : 0));
    check_whole(loaded);
    release(loaded);
  }
}

/* Threads read further than the byte that failed. The bytes that follow it in the same tensor are read again. */
static void test_a_disk_that_fails_and_recovers(void **state) {
  (void)state;
  for (int i = 0; i < 4; i++) {
    gm_loaded_model *loaded = NULL;
    gm_error err = {0};
    now = (loading){.slices = false};
    gm_load_params params = params_of(i % 2 ? GM_LOAD_PATH_READ : GM_LOAD_PATH_DIRECT, PIECE, i / 2 ? 4 : 1);
    params.verify = true;
    played_reads_begin();
    played_reads.broken_at = 17 * EACH + 20000;
    assert_int_equal(gm_model_load(many, f.pool, &params, &loaded, NULL, &err), GM_ERR_IO);
    assert_non_null(strstr(err.message, "tensor \"t17\""));
    assert_int_equal(gm_loaded_model_resume(loaded, many, &params, NULL, &err), GM_ERR_IO); /* it is still broken */
    assert_string_equal(err.op, "pread");
    played_reads.broken_at = PLAYED_NOTHING;
    gm_load_result result = {.struct_size = sizeof result};
    assert_int_equal(gm_loaded_model_resume(loaded, many, &params, &result, &err), GM_OK);
    assert_int_equal(result.bytes, ALL);
    assert_true(result.verified);
    assert_true(now.read < (i / 2 ? ALL : ALL - 16 * EACH)); /* not from the beginning */
    check_whole(loaded);
    release(loaded);
  }
}

static int small_arrivals[TENSORS];

static void small_arrived(void *user, const gm_load_arrival *arrival) {
  (void)user;
  small_arrivals[arrival->index]++;
}

/* A piece has several tensors: all of them have arrived, though the load was cancelled after the first. */
static void test_every_call_of_progress_may_be_the_last_one(void **state) {
  (void)state;
  for (uint64_t stop_at = TENSORS + 1; stop_at < 2 * TENSORS; stop_at++) {
    gm_loaded_model *loaded = NULL;
    now = (loading){.stop_at = stop_at};
    memset(small_arrivals, 0, sizeof small_arrivals);
    gm_load_params params = {.struct_size = sizeof params, .progress = progress, .keep = 1, .threads = 1};
    params.arrived = small_arrived;
    params.user = &now;
    assert_int_equal(gm_model_load(f.model, f.pool, &params, &loaded, NULL, NULL), GM_ERR_CANCELLED);
    assert_int_equal(gm_loaded_model_resume(loaded, f.model, &params, NULL, NULL), GM_OK);
    for (uint64_t i = 0; i < TENSORS; i++) {
      check_tensor(loaded, i);
      assert_int_equal(small_arrivals[i], i != 2); /* that one has no bytes */
    }
    assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
  }
}

/* ---- what does not go on ---- */

static gm_loaded_model *cancelled(void) {
  gm_loaded_model *loaded = NULL;
  now = (loading){.stop_at = MANY + 1 + 40};
  const gm_load_params params = params_of(GM_LOAD_PATH_READ, PIECE, 1);
  assert_int_equal(gm_model_load(many, f.pool, &params, &loaded, NULL, NULL), GM_ERR_CANCELLED);
  assert_non_null(loaded);
  return loaded;
}

static void test_a_load_that_keeps_nothing(void **state) {
  (void)state;
  for (uint64_t stop_at = 1; stop_at < MANY + 10; stop_at++) {
    gm_loaded_model *loaded = NULL;
    now = (loading){.stop_at = stop_at};
    gm_load_params params = params_of(GM_LOAD_PATH_READ, PIECE, 1);
    params.keep = stop_at <= MANY + 1; /* while blocks are taken there is nothing to keep */
    assert_int_equal(gm_model_load(many, f.pool, &params, &loaded, NULL, NULL), GM_ERR_CANCELLED);
    assert_null(loaded);
    assert_int_equal(in_use(), 0);
  }
}

static void test_what_is_no_rest_of_this_model(void **state) {
  (void)state;
  gm_error err = {0};
  gm_loaded_model *loaded = cancelled();
  assert_int_equal(gm_loaded_model_resume(NULL, many, NULL, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_loaded_model_resume(loaded, NULL, NULL, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_loaded_model_resume(loaded, f.model, NULL, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "`loaded` is of another model"));
  assert_string_equal(err.op, "gm_loaded_model_resume");
  assert_int_equal(gm_model_save(many, loaded, temp_folder_join(&f.folder, "n.gguf"), NULL, NULL, &err),
                   GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "was not loaded to its end"));
  assert_int_equal(gm_loaded_model_resume(loaded, many, NULL, NULL, &err), GM_OK);
  assert_int_equal(gm_loaded_model_left(loaded), 0);
  assert_int_equal(gm_loaded_model_resume(loaded, many, NULL, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "`loaded` is whole"));
  for (uint64_t i = 0; i <= MANY; i++) {
    gm_block block;
    assert_int_equal(gm_loaded_model_block(loaded, i, &block, NULL), GM_OK);
    check_block(block, i);
  }
  release(loaded);
  assert_int_equal(gm_loaded_model_left(NULL), 0);
}

/* The files opened again are the same files, unless somebody has written to them. */
static void test_files_that_have_changed(void **state) {
  (void)state;
  gm_error err = {0};
  gm_loaded_model *loaded = cancelled();
  gm_model *again = open_many();
  const uint64_t left = gm_loaded_model_left(loaded);
  now.stop_at = now.calls + MANY + 1 + 5;
  const gm_load_params params = params_of(GM_LOAD_PATH_READ, PIECE, 1);
  assert_int_equal(gm_loaded_model_resume(loaded, again, &params, NULL, &err), GM_ERR_CANCELLED);
  assert_true(gm_loaded_model_left(loaded) < left);
  gm_model_close(again);
  const int fd = open(temp_folder_join(&f.folder, "many"), O_WRONLY | O_CLOEXEC);
  assert_int_equal(write(fd, "\1", 1), 1);
  close(fd);
  assert_int_equal(gm_loaded_model_resume(loaded, many, &params, NULL, &err), GM_ERR_IO); /* while it is read */
  temp_folder_remove(&f.folder);
  temp_folder_make(&f.folder);
  write_many();
  again = open_many();
  assert_int_equal(gm_loaded_model_resume(loaded, again, &params, NULL, &err), GM_ERR_IO);
  assert_non_null(strstr(err.message, "is another file, or has changed"));
  gm_model_close(again);
  release(loaded);
}

/* ---- without memory ---- */

static void test_each_host_allocation_failed(void **state) {
  (void)state;
  gm_loaded_model *loaded = cancelled();
  gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
  for (size_t n = 1; status != GM_OK; n++) {
    gm_load_params params = params_of(GM_LOAD_PATH_DIRECT, PIECE, 1);
    params.verify = true;
    now.stop_at = 0;
    f.host.fail_at = atomic_load(&f.host.calls) + n;
    f.host.fail_count = 1;
    status = gm_loaded_model_resume(loaded, many, &params, NULL, NULL);
    f.host.fail_at = 0;
    assert_true(status == GM_OK || status == GM_ERR_OUT_OF_HOST_MEMORY);
    assert_true((status == GM_OK) == !gm_loaded_model_left(loaded));
  }
  check_whole(loaded);
  release(loaded);
  now = (loading){.slices = true};
  gm_load_params params = params_of(GM_LOAD_PATH_DIRECT, PIECE, 1);
  params.arrived = NULL;
  load_without_host_memory(&params, NULL, NULL);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, many_setup, many_teardown)
  const struct CMUnitTest tests[] = {
      TEST(test_each_tensor_is_handed_out_once_and_whole),
      TEST(test_the_first_tensor_comes_long_before_the_last_byte),
      TEST(test_a_cancelled_load_goes_on),
      TEST(test_nothing_is_read_twice),
      TEST(test_a_disk_that_fails_and_recovers),
      TEST(test_every_call_of_progress_may_be_the_last_one),
      TEST(test_a_load_that_keeps_nothing),
      TEST(test_what_is_no_rest_of_this_model),
      TEST(test_files_that_have_changed),
      TEST(test_each_host_allocation_failed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
