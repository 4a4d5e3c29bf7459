/* The pool by pointer, synthetic addresses, native objects, and a pool over the user's own allocator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "gm/copy.h"
#include "gm/native_cpu.h"
#include "support/pool_bench.h"
#include "support/random.h"

static void test_pointers_are_found_from_any_byte(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  enum { COUNT = 300 };
  char *pointers[COUNT];
  uint64_t random = 7;
  for (int i = 0; i < COUNT; i++) {
    pointers[i] = gm_malloc(bench.pool, 4000, NULL);
    assert_non_null(pointers[i]);
  }
  for (int i = 0; i < COUNT; i++) {
    gm_block block;
    uint64_t at = test_random(&random) % 4096;
    assert_int_equal(gm_block_of(bench.pool, pointers[i] + at, &block), GM_OK);
    assert_int_equal(block.address, (uintptr_t)pointers[i]);
    assert_int_equal(block.bytes, 4096);
  }
  for (int i = 0; i < COUNT; i += 2) assert_int_equal(gm_free_ptr(bench.pool, pointers[i], 4000, NULL), GM_OK);
  gm_block block;
  for (int i = 0; i < COUNT; i++) {
    assert_int_equal(gm_block_of(bench.pool, pointers[i] + 1, &block), i % 2 ? GM_OK : GM_ERR_NOT_FOUND);
  }
  for (int i = 1; i < COUNT; i += 2) assert_int_equal(gm_free_ptr(bench.pool, pointers[i], 0, NULL), GM_OK);
  pool_bench_close(&bench);
}

static void test_a_pointer_with_alignment_and_a_tag(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  const gm_request request = {.bytes = 5000,
                              .align = 1 << 16,
                              .tag = gm_tag(bench.ctx, "kv"),
                              .flags = GM_ALLOW_SPANS}; /* which has no effect */
  gm_pointer_info info = {.struct_size = sizeof info};
  char *pointers[8];
  for (int i = 0; i < 8; i++) {
    pointers[i] = gm_malloc_request(bench.pool, &request);
    assert_non_null(pointers[i]);
    assert_int_equal((uintptr_t)pointers[i] % request.align, 0);
    assert_int_equal(gm_pointer_find(bench.device, pointers[i] + 4999, &info), GM_OK);
    assert_int_equal(info.tag, request.tag);
  }
  for (int i = 0; i < 8; i++) assert_int_equal(gm_free_ptr(bench.pool, pointers[i], 5000, NULL), GM_OK);
  assert_null(gm_malloc_request(bench.pool, &(gm_request){.bytes = 0}));
  assert_null(gm_malloc_request(bench.pool, &(gm_request){.bytes = 1, .align = 3}));
  assert_null(gm_malloc_request(bench.pool, &(gm_request){.bytes = 1 << 30, .flags = GM_ALLOW_SPANS}));
  assert_null(gm_malloc_request(bench.pool, NULL));
  assert_null(gm_malloc_request(NULL, &request));
  assert_int_equal(pool_bench_stats(&bench).active, 0);
  pool_bench_close(&bench);
}

static void test_wrong_pointers_are_refused(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  char *pointer = gm_malloc(bench.pool, 100, NULL);
  gm_block block;
  assert_int_equal(gm_free_ptr(bench.pool, pointer + 1, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free_ptr(bench.pool, pointer, 1 << 20, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free_ptr(bench.pool, &bench, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free_ptr(bench.pool, NULL, 0, NULL), GM_OK);
  assert_int_equal(gm_free_ptr(NULL, pointer, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_of(bench.pool, NULL, &block), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_of(bench.pool, (void *)1, &block), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_block_of(bench.pool, (void *)UINTPTR_MAX, &block), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_free_ptr(bench.pool, pointer, 100, NULL), GM_OK);
  assert_int_equal(gm_free_ptr(bench.pool, pointer, 100, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_null(gm_malloc(bench.pool, 0, NULL));
  assert_null(gm_malloc(bench.pool, UINT64_MAX, NULL));
  assert_null(gm_malloc(NULL, 8, NULL));
  pool_bench_close(&bench);
}

#ifndef NDEBUG
/* The caller's bug, which debug builds answer. */
static void test_a_destroyed_pool_is_refused(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  gm_pool *pool = bench.pool;
  char *pointer = gm_malloc(pool, 100, NULL);
  assert_int_equal(gm_block_of(pool, pointer, &block), GM_OK);
  assert_int_equal(gm_free_ptr(pool, pointer, 0, NULL), GM_OK);
  pool_bench_ok(gm_pool_destroy(pool, err));
  assert_int_equal(gm_block_of(pool, pointer, &block), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free_ptr(pool, pointer, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(pool, &block, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_null(gm_malloc(pool, 100, NULL));
  bench.pool = NULL;
  pool_bench_close(&bench);
}
#endif

typedef struct other_thread {
  pool_bench *bench;
  char *pointer;
  gm_stream *foreign; /* of another device */
  gm_status begins, whole, foreign_stream, right, again;
} other_thread;

static void *free_from_another_thread(void *user) {
  other_thread *self = user;
  gm_pool *pool = self->bench->pool;
  self->begins = gm_free_ptr(pool, self->pointer + 1, 0, NULL);
  self->whole = gm_free_ptr(pool, self->pointer, 1 << 20, NULL);
  self->foreign_stream = gm_free_ptr(pool, self->pointer, 0, self->foreign);
  self->right = gm_free_ptr(pool, self->pointer, 100, NULL);
  self->again = gm_free_ptr(pool, self->pointer, 100, NULL);
  return NULL;
}

/* Whose arena the memory is of makes no difference. */
static void test_another_thread_frees_pointers(void **state) {
  (void)state;
  pool_bench bench, other;
  pool_bench_open(&bench, "null", "null:capacity=64M", NULL);
  pool_bench_open(&other, "null", "null:capacity=64M", NULL);
  other_thread work = {.bench = &bench, .pointer = gm_malloc(bench.pool, 100, NULL)};
  pool_bench_ok(gm_stream_create(other.device, &work.foreign, err));
  assert_int_equal(gm_free_ptr(bench.pool, work.pointer, 0, work.foreign), GM_ERR_INVALID_ARGUMENT);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, free_from_another_thread, &work), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(work.begins, GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(work.whole, GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(work.foreign_stream, GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(work.right, GM_OK);
  assert_int_equal(work.again, GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_stream_close(work.foreign, err));
  pool_bench_close(&other);
  pool_bench_close(&bench);
}

static void test_native_objects_and_memory_of_a_block(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "cpu", NULL, NULL);
  gm_request request = {.bytes = 1000};
  gm_block block;
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_FRESH);
  gm_cpu_memory native = {.head = {sizeof native, GM_API_CPU}};
  pool_bench_ok(gm_block_native(bench.pool, &block, &native.head, err));
  assert_int_equal((uintptr_t)native.pointer, block.address);
  gm_memory memory;
  uint64_t offset = 1;
  assert_int_equal(gm_block_memory(bench.pool, &block, &memory, &offset), GM_OK);
  assert_int_equal(memory.address + offset, block.address);
  gm_block wrong = block;
  wrong.check++;
  gm_error failure;
  assert_int_equal(gm_block_memory(bench.pool, &wrong, &memory, &offset), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_memory(bench.pool, &block, NULL, &offset), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_native(bench.pool, &wrong, &native.head, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_native(bench.pool, &block, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  uint64_t view = 0;
  assert_int_equal(gm_block_view_create(bench.pool, &block, 1, 8, &view, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_view_create(bench.pool, &block, 0, 0, &view, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_view_create(bench.pool, &block, 0, 4096, &view, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_view_create(bench.pool, &block, 0, 8, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_view_destroy(bench.pool, 0, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_view_destroy(NULL, 1, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_close(&bench);
}

/* An engine's allocator: malloc, given to gm as native memory of the CPU. */
typedef struct engine {
  uint64_t live, calls, fail_at, fail_count;
  gm_status fail_with;
  bool short_of, without_memory, crooked;
} engine;

static gm_status engine_allocate(void *user, uint64_t bytes, uint32_t align, gm_native_memory *out, void **out_token) {
  engine *e = user;
  e->calls++;
  if (e->fail_at && e->calls >= e->fail_at && e->calls <= e->fail_at + e->fail_count) return e->fail_with;
  assert_int_equal(out->api, GM_API_CPU);
  assert_int_equal(out->struct_size, sizeof(gm_cpu_memory));
  void *memory = NULL;
  if (posix_memalign(&memory, align < sizeof(void *) ? sizeof(void *) : align, bytes)) {
    return GM_ERR_OUT_OF_DEVICE_MEMORY;
  }
  gm_cpu_memory *native = (gm_cpu_memory *)(void *)out;
  native->pointer = e->without_memory ? NULL : (char *)memory + e->crooked;
  native->bytes = e->short_of ? bytes - 1 : bytes;
  *out_token = memory;
  e->live++;
  return GM_OK;
}

static void engine_release(void *user, void *token) {
  ((engine *)user)->live--;
  free(token);
}

static void test_a_pool_over_the_users_allocator(void **state) {
  (void)state;
  pool_bench bench;
  engine e = {0};
  gm_upstream upstream = {.allocate = engine_allocate, .release = engine_release, .user = &e};
  gm_pool_params params = {.struct_size = sizeof params, .upstream = &upstream, .max_bytes = 1 << 20};
  pool_bench_open(&bench, "cpu", NULL, &params);
  memset(&upstream, 0, sizeof upstream); /* it was copied */
  gm_block blocks[4];
  for (int i = 0; i < 4; i++) {
    gm_request request = {.bytes = 1000, .align = 512, .flags = i == 3 ? GM_ZERO : 0};
    assert_int_equal(gm_alloc(bench.pool, &request, &blocks[i]), GM_ACQUIRE_FRESH);
    assert_int_equal(blocks[i].address % 512, 0);
    for (int j = 0; j < i; j++) assert_int_not_equal(blocks[i].address, blocks[j].address);
  }
  const unsigned char *zeroed = (const unsigned char *)(uintptr_t)blocks[3].address;
  for (int i = 0; i < 1024; i++) assert_int_equal(zeroed[i], 0);
  assert_int_equal(e.live, 4);
  for (int i = 0; i < 4; i++) assert_int_equal(gm_free(bench.pool, &blocks[i], NULL), GM_OK);
  assert_int_equal(pool_bench_stats(&bench).pooled_bytes, 4096);
  assert_int_equal(gm_pool_trim(bench.pool, 2048), 2048);
  assert_int_equal(e.live, 2);
  gm_block more;
  gm_request request = {.bytes = 2 << 20};
  assert_int_equal(gm_alloc(bench.pool, &request, &more), GM_ACQUIRE_OVER_LIMIT);
  assert_int_equal(e.calls, 4); /* a refusal by the cap asks nobody */
  pool_bench_close(&bench);
  assert_int_equal(e.live, 0);
}

static void test_a_failing_upstream(void **state) {
  (void)state;
  static const struct {
    gm_status status;
    gm_acquire acquire;
  } cases[] = {{GM_ERR_OUT_OF_DEVICE_MEMORY, GM_ACQUIRE_EXHAUSTED}, {GM_ERR_IO, GM_ACQUIRE_FAILED}};
  for (size_t i = 0; i < 2; i++) {
    pool_bench bench;
    engine e = {.fail_at = 2, .fail_with = cases[i].status};
    gm_upstream upstream = {.allocate = engine_allocate, .release = engine_release, .user = &e};
    gm_pool_params params = {.struct_size = sizeof params, .strategy = GM_STRATEGY_BUCKET, .upstream = &upstream};
    pool_bench_open(&bench, "cpu", NULL, &params);
    gm_block block, other;
    gm_request request = {.bytes = 1024};
    assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_FRESH);
    assert_int_equal(gm_alloc(bench.pool, &request, &other), cases[i].acquire);
    assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 1024);
    assert_int_equal(gm_alloc(bench.pool, &request, &other), GM_ACQUIRE_FRESH);
    gm_explanation why = {.struct_size = sizeof why};
    pool_bench_ok(gm_explain(bench.pool, &request, &why, err));
    assert_int_equal(why.last_failure.status, cases[i].status);
    assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
    assert_int_equal(gm_free(bench.pool, &other, NULL), GM_OK);
    pool_bench_close(&bench);
    assert_int_equal(e.live, 0);
  }
}

static void test_a_lying_upstream(void **state) {
  (void)state;
  for (int lie = 0; lie < 3; lie++) {
    pool_bench bench;
    engine e = {.short_of = lie == 0, .without_memory = lie == 1, .crooked = lie == 2};
    gm_upstream upstream = {.allocate = engine_allocate, .release = engine_release, .user = &e};
    gm_pool_params params = {.struct_size = sizeof params, .upstream = &upstream};
    pool_bench_open(&bench, "cpu", NULL, &params);
    gm_block block;
    gm_request request = {.bytes = 1024};
    assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_FAILED);
    assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0);
    pool_bench_close(&bench);
    assert_int_equal(e.live, 0);
  }
}

static void test_a_backend_that_cannot_wrap(void **state) {
  (void)state;
  pool_bench bench;
  engine e = {0};
  gm_upstream upstream = {.allocate = engine_allocate, .release = engine_release, .user = &e};
  gm_pool_params params = {.struct_size = sizeof params, .upstream = &upstream};
  pool_bench_open(&bench, "null", "null:capacity=64M", &params);
  e.fail_at = 1, e.fail_count = 9,
  e.fail_with = GM_ERR_OUT_OF_DEVICE_MEMORY; /* malloc is no memory of the null backend */
  gm_block block;
  gm_request request = {.bytes = 1024};
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_EXHAUSTED);
  gm_cpu_memory native = {{sizeof native, GM_API_CPU}, &e, sizeof e};
  assert_int_equal(gm_block_wrap(bench.pool, &native.head, &block, NULL), GM_ERR_NOT_SUPPORTED);
  pool_bench_close(&bench);
}

static void test_the_engines_own_memory_as_a_block(void **state) {
  (void)state;
  static unsigned char data[5000];
  pool_bench bench;
  gm_pool_params params = {.struct_size = sizeof params, .max_bytes = 6000};
  pool_bench_open(&bench, "cpu", NULL, &params);
  gm_cpu_memory native = {{sizeof native, GM_API_CPU}, data, sizeof data}, seen = {{sizeof seen, GM_API_CPU}, NULL, 0};
  gm_block block, again;
  gm_error why = {.status = GM_OK};
  assert_int_equal(gm_block_wrap(bench.pool, NULL, &block, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_wrap(bench.pool, &native.head, NULL, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_wrap(NULL, &native.head, &block, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_wrap(bench.pool, &native.head, &block, &why), GM_OK);
  assert_ptr_equal((void *)(uintptr_t)block.address, data);
  assert_int_equal(block.bytes, sizeof data);
  gm_stats stats = pool_bench_stats(&bench);
  assert_int_equal(stats.in_use_bytes, sizeof data);
  assert_int_equal(stats.reserved_bytes, sizeof data);
  assert_int_equal(gm_block_wrap(bench.pool, &native.head, &again, &why), GM_ERR_OVER_LIMIT); /* the cap */
  pool_bench_ok(gm_block_fill(bench.pool, &block, 4999, 1, "x", 1, NULL, NULL, err));
  assert_int_equal(data[4999], 'x');
  pool_bench_ok(gm_block_native(bench.pool, &block, &seen.head, err));
  assert_ptr_equal(seen.pointer, data);
  assert_int_equal(gm_pool_destroy(bench.pool, &why), GM_ERR_BUSY);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_ERR_INVALID_ARGUMENT);
  stats = pool_bench_stats(&bench);
  assert_int_equal(stats.reserved_bytes, 0);
  assert_int_equal(stats.pooled_bytes, 0);
  native.pointer = NULL;
  assert_int_equal(gm_block_wrap(bench.pool, &native.head, &block, &why), GM_ERR_INVALID_ARGUMENT);
  pool_bench_close(&bench);
}

/* The caller's mistake, not the driver's. */
static void test_wrapping_what_the_pool_has_is_refused(void **state) {
  (void)state;
  static unsigned char data[8192];
  pool_bench bench;
  pool_bench_open(&bench, "cpu", NULL, NULL);
  gm_cpu_memory native = {{sizeof native, GM_API_CPU}, data, sizeof data};
  gm_block wrapped, block, again;
  gm_error why = {.status = GM_OK};
  const gm_request request = {.bytes = 65536};
  assert_int_equal(gm_block_wrap(bench.pool, &native.head, &wrapped, &why), GM_OK);
  assert_int_equal(gm_block_wrap(bench.pool, &native.head, &again, &why), GM_ERR_INVALID_ARGUMENT);
  assert_string_equal(why.op, "gm_block_wrap");
  assert_non_null(strstr(why.message, "overlaps"));
  assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_FRESH);
  native = (gm_cpu_memory){{sizeof native, GM_API_CPU}, (void *)(uintptr_t)(block.address + 256), 256};
  assert_int_equal(gm_block_wrap(bench.pool, &native.head, &again, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(pool_bench_stats(&bench).active, 2);
  assert_int_equal(gm_free(bench.pool, &wrapped, NULL), GM_OK);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_pointers_are_found_from_any_byte),
      cmocka_unit_test(test_a_pointer_with_alignment_and_a_tag),
      cmocka_unit_test(test_wrong_pointers_are_refused),
      cmocka_unit_test(test_another_thread_frees_pointers),
#ifndef NDEBUG
      cmocka_unit_test(test_a_destroyed_pool_is_refused),
#endif
      cmocka_unit_test(test_native_objects_and_memory_of_a_block),
      cmocka_unit_test(test_a_pool_over_the_users_allocator),
      cmocka_unit_test(test_a_failing_upstream),
      cmocka_unit_test(test_a_lying_upstream),
      cmocka_unit_test(test_a_backend_that_cannot_wrap),
      cmocka_unit_test(test_the_engines_own_memory_as_a_block),
      cmocka_unit_test(test_wrapping_what_the_pool_has_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
