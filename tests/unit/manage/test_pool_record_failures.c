/* Recordings that cannot be: wrong use, paths, a full disk, no host memory, a forked child. Each is told, none is lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "support/record_bench.h"

/* ---- wrong use ---- */

static void test_wrong_use_is_refused(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure;
  gm_recording recording = {.struct_size = 8};
  pool_bench_open(&bench, "null", NULL, &arenas);
  assert_int_equal(gm_pool_record_begin(NULL, plain, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_record_begin(bench.pool, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_record_begin(bench.pool, "", &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_record_end(bench.pool, NULL, &failure), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_pool_record_end(NULL, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_record_mark(bench.pool, "x", &failure), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_pool_record_mark(NULL, "x", &failure), GM_ERR_INVALID_ARGUMENT);
  begin(&bench, plain);
  assert_int_equal(gm_pool_record_begin(bench.pool, plain, &failure), GM_ERR_BUSY);
  assert_int_equal(gm_pool_destroy(bench.pool, &failure), GM_ERR_BUSY);
  assert_non_null(strstr(failure.message, "recorded"));
  assert_int_equal(gm_pool_record_end(bench.pool, &recording, &failure), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_pool_record_end(bench.pool, NULL, err));
  begin(&bench, plain);
  end(&bench);
  pool_bench_close(&bench);
}

static void test_paths_that_cannot_be_written(void **state) {
  (void)state;
  pool_bench bench;
  gm_error failure;
  char missing[80], pipe[80];
  pool_bench_open(&bench, "null", NULL, &arenas);
  snprintf(missing, sizeof missing, "%s/none/a", folder);
  snprintf(pipe, sizeof pipe, "%s/pipe", folder);
  assert_int_equal(gm_pool_record_begin(bench.pool, missing, &failure), GM_ERR_NOT_FOUND);
  assert_non_null(strstr(failure.message, missing));
  assert_int_equal(gm_pool_record_begin(bench.pool, folder, &failure), GM_ERR_IO);
  assert_int_equal(gm_pool_record_begin(bench.pool, "/dev/null", &failure), GM_ERR_IO);
  assert_int_equal(mkfifo(pipe, 0600), 0);
  assert_int_equal(gm_pool_record_begin(bench.pool, pipe, &failure), GM_ERR_IO);
  unlink(pipe);
  const gm_block block = take(&bench, 100, NULL);
  give(&bench, &block, NULL);
  pool_bench_close(&bench);
}

/* ---- no room ---- */

/* Files end here: a full disk, as far as a test can fill one. */
static void limit_files(rlim_t bytes) {
  struct rlimit limit;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
  limit.rlim_cur = bytes;
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void check_full_disk(const gm_pool_params *params, int events, rlim_t while_recording, rlim_t at_the_end) {
  pool_bench bench;
  gm_error failure;
  pool_bench_open(&bench, "null", NULL, params);
  begin(&bench, plain);
  limit_files(while_recording);
  for (int i = 0; i < events; i++) {
    const gm_block block = take(&bench, 4096, NULL);
    give(&bench, &block, NULL);
  }
  limit_files(at_the_end);
  const gm_status status = gm_pool_record_end(bench.pool, NULL, &failure);
  limit_files(RLIM_INFINITY);
  assert_int_equal(status, GM_ERR_IO);
  assert_non_null(strstr(failure.message, plain));
  assert_int_equal(file_bytes(plain), 0);
  assert_int_equal(gm_pool_record_end(bench.pool, NULL, &failure), GM_ERR_NOT_FOUND);
  begin(&bench, plain); /* it can be tried again */
  end(&bench);
  pool_bench_close(&bench);
}

static void test_a_full_disk_is_told_at_the_end(void **state) {
  (void)state;
  check_full_disk(&arenas, 20000, 100000, RLIM_INFINITY);
  check_full_disk(&buckets, 20000, 100000, RLIM_INFINITY);
  check_full_disk(&arenas, 3000, RLIM_INFINITY, 1000);
  check_full_disk(&arenas, 20000, RLIM_INFINITY, 1000);
}

/* ---- no host memory ---- */

typedef struct newcomer {
  const pool_bench *bench;
  gm_acquire answer;
  gm_block block;
} newcomer;

static void *newcomer_run(void *user) {
  newcomer *self = user;
  const gm_request request = {.bytes = 100};
  self->answer = gm_alloc(self->bench->pool, &request, &self->block);
  return NULL;
}

static void fail_host(pool_bench *bench, size_t n) {
  bench->host.fail_at = n ? atomic_load(&bench->host.calls) + n : 0;
  bench->host.fail_count = 1;
}

static void check_begin_failures(const gm_pool_params *params, const char *path) {
  pool_bench bench;
  gm_error failure;
  gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
  pool_bench_open(&bench, "null", NULL, params);
  gm_block block = take(&bench, 1000, NULL);
  for (size_t n = 1; status; n++) {
    fail_host(&bench, n);
    status = gm_pool_record_begin(bench.pool, path, &failure);
    fail_host(&bench, 0);
    if (status) assert_int_equal(status, GM_ERR_OUT_OF_HOST_MEMORY);
    if (status) assert_int_equal(gm_pool_record_end(bench.pool, NULL, &failure), GM_ERR_NOT_FOUND);
    give(&bench, &block, NULL);
    block = take(&bench, 1000, NULL);
  }
  assert_int_equal(end(&bench).allocs, 2);
  give(&bench, &block, NULL);
  pool_bench_close(&bench);
}

static void check_end_failures(const gm_pool_params *params, const char *path) {
  pool_bench bench;
  gm_error failure;
  gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
  gm_stream *stream;
  pool_bench_open(&bench, "null", NULL, params);
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  for (size_t n = 1; status; n++) {
    begin(&bench, path);
    const gm_block block = take(&bench, 1000, stream);
    fail_host(&bench, n);
    status = gm_pool_record_end(bench.pool, NULL, &failure);
    fail_host(&bench, 0);
    if (status) assert_int_equal(status, GM_ERR_OUT_OF_HOST_MEMORY);
    if (status) assert_int_equal(file_bytes(path), 0);
    give(&bench, &block, stream);
  }
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_close(&bench);
}

/* A new thread, for whose events there is no host memory. The end of the recording tells that; it is no failure of its
 * own. */
static void check_newcomer_failures(void) {
  pool_bench bench;
  gm_error failure;
  int told = 0;
  for (size_t n = 1; n < 12; n++) {
    pthread_t thread;
    newcomer self = {.bench = &bench};
    pool_bench_open(&bench, "null", NULL, &arenas);
    const gm_block first = take(&bench, 100, NULL);
    begin(&bench, plain);
    fail_host(&bench, n);
    assert_int_equal(pthread_create(&thread, NULL, newcomer_run, &self), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    fail_host(&bench, 0);
    const gm_status status = gm_pool_record_end(bench.pool, NULL, &failure);
    if (status) assert_int_equal(status, GM_ERR_OUT_OF_HOST_MEMORY);
    if (status) assert_int_equal(self.answer <= GM_ACQUIRE_FRESH, 1);
    told += status != GM_OK;
    if (self.answer <= GM_ACQUIRE_FRESH) give(&bench, &self.block, NULL);
    give(&bench, &first, NULL);
    pool_bench_close(&bench);
  }
  assert_int_equal(told, 1);
}

static void test_without_host_memory(void **state) {
  (void)state;
  check_begin_failures(&arenas, plain);
  check_begin_failures(&buckets, plain);
  check_end_failures(&arenas, plain);
  check_end_failures(&buckets, plain);
  check_newcomer_failures();
#ifdef GM_HAVE_ZLIB
  check_end_failures(&arenas, packed);
#endif
}

/* ---- fork ---- */

static void test_a_forked_child_can_only_destroy(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", NULL, &arenas);
  begin(&bench, plain);
  const gm_block block = take(&bench, 100, NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    gm_error failure;
    const bool refused = gm_pool_record_end(bench.pool, NULL, &failure) == GM_ERR_FORKED &&
                         gm_pool_record_mark(bench.pool, "x", &failure) == GM_ERR_FORKED;
    const bool ended = gm_pool_destroy(bench.pool, &failure) == GM_OK &&
                       gm_device_close(bench.device, &failure) == GM_OK &&
                       gm_context_destroy(bench.ctx, &failure) == GM_OK;
    counted_services_check(&bench.host);
    _exit(refused && ended ? 0 : 1);
  }
  int how = 0;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_int_equal(how, 0);
  give(&bench, &block, NULL);
  assert_int_equal(end(&bench).frees, 1);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_wrong_use_is_refused),
      cmocka_unit_test(test_paths_that_cannot_be_written),
      cmocka_unit_test(test_a_full_disk_is_told_at_the_end),
      cmocka_unit_test(test_without_host_memory),
      cmocka_unit_test(test_a_forked_child_can_only_destroy),
  };
  return cmocka_run_group_tests(tests, record_make_folder, record_drop_folder);
}
