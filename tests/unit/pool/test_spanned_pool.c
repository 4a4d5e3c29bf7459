/* Blocks of several memories in pools with quotas, limits, trackers, upstreams and guards; in batches and buffers. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "gm/batch.h"
#include "gm/buffer.h"
#include "gm/debug.h"
#include "gm/load.h"
#include "gm/native_cpu.h"
#include "gm/quota.h"
#include "gm/spans.h"
#include "gm/tracker.h"
#include "support/explained.h"
#include "support/fail_each.h"
#include "support/narrow_card.h"
#include "support/safetensors_bytes.h"
#include "support/temp_folder.h"

enum { WANTED = 10, SPANS = 3 }; /* MiB, memories */

static const gm_strategy strategies[] = {GM_STRATEGY_BUCKET, GM_STRATEGY_BEST_FIT};

static const gm_request wanted = {.bytes = WANTED * MIB, .flags = GM_ALLOW_SPANS};

static void test_limits(void **state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    pool_bench bench;
    gm_block block, other;
    narrow_card_open(&bench, 64 * MIB, strategies[s], (gm_pool_params){.max_bytes = 16 * MIB});
    assert_int_equal(explained_alloc(bench.pool, &wanted, &block), GM_ACQUIRE_FRESH);
    const gm_stats before = pool_bench_stats(&bench);
    assert_int_equal(explained_alloc(bench.pool, &wanted, &other), GM_ACQUIRE_OVER_LIMIT);
    gm_stats after = pool_bench_stats(&bench);
    assert_int_equal(after.over_limit, 1);
    assert_int_equal(after.peak_requested_bytes, before.peak_requested_bytes); /* nothing was tried */
    assert_int_equal(after.reserved_bytes, before.reserved_bytes);
    assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
    const gm_request huge = {.bytes = UINT64_MAX - 5, .flags = GM_ALLOW_SPANS};
    assert_true(gm_alloc(bench.pool, &huge, &other) > GM_ACQUIRE_NEEDS_BARRIER);
    narrow_card_check_quiet(&bench);
    pool_bench_close(&bench);
  }
}

/* The device fails in the middle: what was served goes back. */
static void test_a_device_that_is_full(void **state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    pool_bench bench;
    gm_block block;
    narrow_card_open(&bench, 9 * MIB, strategies[s], (gm_pool_params){.track = true});
    assert_int_equal(gm_alloc(bench.pool, &wanted, &block), GM_ACQUIRE_EXHAUSTED);
    const gm_stats stats = pool_bench_stats(&bench);
    assert_int_equal(stats.failures, 1);
    assert_int_equal(stats.reserved_bytes, 0);
    assert_int_equal(narrow_card_left, 9 * MIB);
    assert_int_equal(gm_tracker_count(gm_pool_tracker(bench.pool)), 0);
    narrow_card_check_quiet(&bench);
    pool_bench_close(&bench);
  }
}

static void test_quota_of_a_tag(void **state) {
  (void)state;
  for (int before = 0; before < 2; before++) {
    pool_bench bench;
    gm_block block, other;
    gm_quota quota = {.struct_size = sizeof quota};
    narrow_card_open(&bench, 64 * MIB, GM_STRATEGY_BEST_FIT, (gm_pool_params){0});
    gm_request request = wanted;
    request.tag = gm_tag(bench.ctx, "kv");
    if (before) pool_bench_ok(gm_pool_set_quota(bench.pool, request.tag, 15 * MIB, 0, 0, err));
    assert_int_equal(gm_alloc(bench.pool, &request, &block), GM_ACQUIRE_FRESH);
    if (!before) pool_bench_ok(gm_pool_set_quota(bench.pool, request.tag, 15 * MIB, 0, 0, err));
    pool_bench_ok(gm_pool_quota(bench.pool, request.tag, &quota, err));
    assert_int_equal(quota.used_bytes, WANTED * MIB);
    const uint64_t frees = pool_bench_stats(&bench).frees;
    assert_int_equal(gm_alloc(bench.pool, &request, &other), GM_ACQUIRE_OVER_LIMIT);
    assert_int_equal(pool_bench_stats(&bench).frees, frees); /* nothing was tried */
    assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
    pool_bench_ok(gm_pool_quota(bench.pool, request.tag, &quota, err));
    assert_int_equal(quota.used_bytes, 0);
    pool_bench_close(&bench);
  }
}

static void test_buffers(void **state) {
  (void)state;
  pool_bench bench;
  gm_buffer *buffer;
  gm_track_entry entries[8];
  narrow_card_open(&bench, 64 * MIB, GM_STRATEGY_BEST_FIT, (gm_pool_params){.track = true});
  const gm_buffer_params params = {
      .struct_size = sizeof params, .request = wanted, .fallback = GM_FALLBACK_REFUSE, .elements = 1000};
  pool_bench_ok(gm_buffer_create(bench.pool, &params, &buffer, err));
  assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_DEVICE);
  char seen[4000] = "", bytes[4000];
  memset(bytes, 'x', sizeof bytes);
  pool_bench_ok(gm_buffer_write(buffer, 4 * MIB - 2000, bytes, sizeof bytes, NULL, err));
  pool_bench_ok(gm_buffer_read(buffer, 4 * MIB - 2000, seen, sizeof seen, NULL, err));
  assert_memory_equal(seen, bytes, sizeof bytes);
  gm_tracker *tracker = gm_pool_tracker(bench.pool);
  assert_int_equal(gm_tracker_count(tracker), SPANS);
  assert_int_equal(gm_tracker_total_bytes(tracker), WANTED * MIB);
  const size_t count = gm_tracker_find_old(tracker, 0, entries, 8);
  uint64_t elements = 0;
  for (size_t i = 0; i < count; i++) elements += entries[i].elements;
  assert_int_equal(elements, 1000);
  gm_buffer_release(buffer, NULL);
  assert_int_equal(gm_tracker_count(tracker), 0);
  narrow_card_check_quiet(&bench);
  pool_bench_close(&bench);
}

/* One that fell back to the host moves into several memories. */
static void test_a_buffer_moves(void **state) {
  (void)state;
  pool_bench bench;
  gm_buffer *buffer;
  gm_block block;
  narrow_card_open(&bench, 64 * MIB, GM_STRATEGY_BEST_FIT, (gm_pool_params){.max_bytes = 12 * MIB});
  const gm_buffer_params params = {.struct_size = sizeof params, .request = wanted, .fallback = GM_FALLBACK_HOST};
  assert_int_equal(gm_alloc(bench.pool, &wanted, &block), GM_ACQUIRE_FRESH);
  pool_bench_ok(gm_buffer_create(bench.pool, &params, &buffer, err));
  assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_HOST);
  unsigned char *bytes = malloc(WANTED * MIB), *seen = calloc(WANTED, MIB);
  for (uint64_t i = 0; i < WANTED * MIB; i++) bytes[i] = (unsigned char)(i / 1000 + i);
  pool_bench_ok(gm_buffer_write(buffer, 0, bytes, WANTED * MIB, NULL, err));
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  pool_bench_ok(gm_buffer_promote(buffer, NULL, err));
  assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_DEVICE);
  pool_bench_ok(gm_buffer_read(buffer, 0, seen, WANTED * MIB, NULL, err));
  assert_memory_equal(seen, bytes, WANTED * MIB);
  free(seen);
  free(bytes);
  gm_buffer_release(buffer, NULL);
  narrow_card_check_quiet(&bench);
  pool_bench_close(&bench);
}

static void test_batches(void **state) {
  (void)state;
  for (uint32_t flags = 0; flags <= GM_BATCH_GROUPED; flags++) {
    pool_bench bench;
    gm_part parts[2];
    gm_stream *stream;
    unsigned char *bytes = malloc(WANTED * MIB), *seen = calloc(WANTED, MIB);
    memset(bytes, 77, WANTED * MIB);
    narrow_card_open(&bench, 64 * MIB, GM_STRATEGY_BEST_FIT, (gm_pool_params){0});
    pool_bench_ok(gm_stream_create(bench.device, &stream, err));
    gm_request requests[2] = {wanted, wanted};
    requests[0].stream = requests[1].stream = stream;
    const void *const contents[2] = {NULL, bytes};
    const gm_batch_params params = {
        .struct_size = sizeof params, .flags = flags, .requests = requests, .count = 2, .contents = contents};
    pool_bench_ok(gm_alloc_batch(bench.pool, &params, parts, NULL, err));
    pool_bench_ok(gm_block_read(bench.pool, &parts[1].block, parts[1].offset, seen, WANTED * MIB, stream, NULL, err));
    assert_memory_equal(seen, bytes, WANTED * MIB);
    pool_bench_ok(gm_free_batch(bench.pool, parts, 2, stream, err));
    free(seen);
    free(bytes);
    pool_bench_ok(gm_stream_sync(stream, err));
    narrow_card_check_quiet(&bench);
    pool_bench_ok(gm_stream_close(stream, err));
    pool_bench_close(&bench);
  }
}

/* An engine's allocator that has no piece above 4 MiB, on a device without addresses of its own to tell. */
static gm_status upstream_allocate(void *user, uint64_t bytes, uint32_t align, gm_native_memory *out, void **token) {
  atomic_int *live = user;
  gm_cpu_memory *memory = (gm_cpu_memory *)out;
  if (bytes > NARROW_CARD_LARGEST * MIB) return GM_ERR_OUT_OF_DEVICE_MEMORY;
  memory->pointer = aligned_alloc(align < 4096 ? 4096 : align, (bytes + 4095) / 4096 * 4096);
  memory->bytes = bytes;
  *token = memory->pointer;
  if (!memory->pointer) return GM_ERR_OUT_OF_DEVICE_MEMORY;
  atomic_fetch_add(live, 1);
  return GM_OK;
}

static void upstream_release(void *user, void *token) {
  atomic_int *live = user;
  atomic_fetch_sub(live, 1);
  free(token);
}

static void test_upstream(void **state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    atomic_int live = 0;
    const gm_upstream upstream = {.allocate = upstream_allocate, .release = upstream_release, .user = &live};
    const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategies[s], .upstream = &upstream};
    pool_bench bench;
    gm_block block;
    pool_bench_open(&bench, "cpu", NULL, &params);
    assert_true(gm_alloc(bench.pool, &wanted, &block) <= GM_ACQUIRE_FRESH);
    assert_true(live >= SPANS);
    pool_bench_ok(gm_block_fill(bench.pool, &block, 0, WANTED * MIB, "ab", 2, NULL, NULL, err));
    assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
    narrow_card_check_quiet(&bench);
    assert_int_equal(live, 0);
    pool_bench_close(&bench);
  }
}

/* Mapped pages are one piece where there is any. */
static void test_mapped_pages(void **state) {
  (void)state;
  const gm_pool_params params = {.struct_size = sizeof params, .checked = true};
  pool_bench bench;
  gm_block block, rest;
  uint32_t count = 0;
  pool_bench_open(&bench, "null", "null:capacity=64M", &params);
  assert_true(gm_alloc(bench.pool, &wanted, &block) <= GM_ACQUIRE_FRESH);
  pool_bench_ok(gm_block_spans(bench.pool, &block, 0, 0, NULL, &count, err));
  assert_int_equal(count, 1);
  const gm_request more = {.bytes = 60 * MIB, .flags = GM_ALLOW_SPANS};
  assert_true(gm_alloc(bench.pool, &more, &rest) > GM_ACQUIRE_NEEDS_BARRIER);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  narrow_card_check_quiet(&bench);
  pool_bench_close(&bench);
}

static void test_zeros_and_patterns(void **state) {
  (void)state;
  for (uint32_t debug = 0; debug <= GM_DEBUG_CHECK_FREED; debug++) {
    pool_bench bench;
    gm_block block;
    gm_stream *stream;
    unsigned char *seen = malloc(WANTED * MIB);
    narrow_card_open(&bench, 64 * MIB, GM_STRATEGY_BEST_FIT,
                     (gm_pool_params){.debug = debug, .red_zone_bytes = debug ? 100 : 0});
    pool_bench_ok(gm_stream_create(bench.device, &stream, err));
    gm_request request = wanted;
    request.flags |= GM_ZERO;
    request.stream = stream;
    for (int round = 0; round < 2; round++) {
      assert_true(gm_alloc(bench.pool, &request, &block) <= GM_ACQUIRE_FRESH);
      memset(seen, 1, WANTED * MIB);
      pool_bench_ok(gm_block_read(bench.pool, &block, 0, seen, WANTED * MIB, stream, NULL, err));
      for (uint64_t i = 0; i < WANTED * MIB; i++) assert_int_equal(seen[i], 0);
      pool_bench_ok(gm_block_fill(bench.pool, &block, 0, WANTED * MIB, "x", 1, stream, NULL, err));
      assert_int_equal(gm_free(bench.pool, &block, stream), GM_OK);
    }
    pool_bench_ok(gm_pool_check(bench.pool, NULL, err));
    free(seen);
    pool_bench_ok(gm_stream_close(stream, err));
    narrow_card_check_quiet(&bench);
    pool_bench_close(&bench);
  }
}

/* A tensor that is larger than the largest allocation. */
static void test_a_model(void **state) {
  (void)state;
  static const char header[] = "{\"large\":{\"dtype\":\"U8\",\"shape\":[10485760],\"data_offsets\":[0,10485760]}}";
  const gm_load_params params = {
      .struct_size = sizeof params, .request = {.flags = GM_ALLOW_SPANS}, .chunk_bytes = 1000000, .verify = true};
  pool_bench bench;
  temp_folder folder;
  gm_model *model;
  gm_loaded_model *loaded;
  gm_load_result result = {.struct_size = sizeof result};
  temp_folder_make(&folder);
  safetensors_bytes file = safetensors_bytes_make(header, strlen(header), WANTED * MIB, 1);
  const char *path = temp_folder_write(&folder, "m.safetensors", file.bytes, file.length);
  narrow_card_open(&bench, 64 * MIB, GM_STRATEGY_BEST_FIT, (gm_pool_params){0});
  pool_bench_ok(gm_model_open(&bench.host.services, path, &model, err));
  pool_bench_ok(gm_model_load(model, bench.pool, &params, &loaded, &result, err));
  temp_folder_remove(&folder);
  assert_int_equal(result.fallback_bytes, 0);
  assert_int_equal(pool_bench_stats(&bench).active, SPANS);
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
  gm_model_close(model);
  safetensors_bytes_free(&file);
  narrow_card_check_quiet(&bench);
  pool_bench_close(&bench);
}

/* The child refuses, and its copy of the pool gives back all host memory. */
static void test_a_forked_child(void **state) {
  (void)state;
  pool_bench bench;
  gm_block block;
  uint32_t count;
  int status = 0;
  pool_bench_open(&bench, "null", "null:capacity=64M,max_alloc=4M",
                  &(gm_pool_params){.struct_size = sizeof(gm_pool_params), .no_vmm = true});
  assert_true(gm_alloc(bench.pool, &wanted, &block) <= GM_ACQUIRE_FRESH);
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = gm_free(bench.pool, &block, NULL) == GM_ERR_FORKED &&
                         gm_block_spans(bench.pool, &block, 0, 0, NULL, &count, NULL) == GM_ERR_FORKED &&
                         gm_block_fill(bench.pool, &block, 0, 1, "a", 1, NULL, NULL, NULL) == GM_ERR_FORKED;
    const bool closed = gm_pool_destroy(bench.pool, NULL) == GM_OK && gm_device_close(bench.device, NULL) == GM_OK &&
                        gm_context_destroy(bench.ctx, NULL) == GM_OK;
    _exit(refused && closed && atomic_load(&bench.host.live_bytes) == 0 ? 0 : 1);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  narrow_card_check_quiet(&bench);
  pool_bench_close(&bench);
}

/* ---- without host memory ---- */

static gm_strategy attempt_strategy;

static gm_status attempt_in_pool(gm_pool *pool) {
  gm_block block;
  gm_explanation why = {.struct_size = sizeof why};
  const gm_acquire answer = gm_alloc(pool, &wanted, &block);
  if (answer <= GM_ACQUIRE_FRESH) return gm_free(pool, &block, NULL);
  if (gm_explain(pool, &wanted, &why, NULL)) return GM_ERR_DRIVER;
  gm_stats stats = {.struct_size = sizeof stats};
  gm_pool_stats(pool, &stats);
  assert_int_equal(stats.active, 0);
  assert_int_equal(stats.requested_bytes, 0);
  return why.last_failure.status;
}

static gm_status attempt(const gm_services *services) {
  const gm_context_params context = {.struct_size = sizeof context,
                                     .services = services,
                                     .backend_options = "null:capacity=64M,max_alloc=4M",
                                     .ignore_environment = true};
  const gm_pool_params params = {
      .struct_size = sizeof params, .strategy = attempt_strategy, .no_vmm = true, .track = true, .checked = true};
  gm_context *ctx = NULL;
  gm_device *device = NULL;
  gm_pool *pool = NULL;
  gm_status status = gm_context_create(&context, &ctx, NULL);
  if (!status) status = gm_device_open_index(ctx, "null", 0, &device, NULL);
  if (!status) status = gm_pool_create(device, &params, &pool, NULL);
  if (!status) status = attempt_in_pool(pool);
  assert_int_equal(gm_pool_destroy(pool, NULL), GM_OK);
  assert_int_equal(gm_device_close(device, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  return status;
}

static void test_without_host_memory(void **state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    attempt_strategy = strategies[s];
    fail_each_allocation(attempt, 10);
  }
}

/* ---- by many threads ---- */

enum { THREADS = 4, TURNS = 200 };

static void *turns(void *user) {
  gm_pool *pool = user;
  gm_block block, found;
  gm_block_span span;
  uint32_t count;
  for (int i = 0; i < TURNS; i++) {
    if (gm_alloc(pool, &wanted, &block) > GM_ACQUIRE_FRESH) continue;
    if (gm_block_spans(pool, &block, 1, 1, &span, &count, NULL) || count != SPANS) return user;
    if (gm_free(pool, &span.block, NULL) != GM_ERR_INVALID_ARGUMENT) return user;
    if (gm_block_of(pool, (void *)(uintptr_t)span.block.address, &found) || found.check != block.check) return user;
    if (gm_free(pool, &block, NULL)) return user;
  }
  return NULL;
}

static void test_threads(void **state) {
  (void)state;
  for (size_t s = 0; s < 2; s++) {
    const gm_pool_params params = {.struct_size = sizeof params, .strategy = strategies[s], .no_vmm = true};
    pool_bench bench;
    pthread_t threads[THREADS];
    void *wrong = NULL;
    pool_bench_open(&bench, "null", "null:capacity=256M,max_alloc=4M", &params);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, turns, bench.pool), 0);
    for (int i = 0; i < THREADS; i++) {
      assert_int_equal(pthread_join(threads[i], &wrong), 0);
      assert_null(wrong);
    }
    narrow_card_check_quiet(&bench);
    pool_bench_close(&bench);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_limits),
    cmocka_unit_test(test_a_device_that_is_full),
    cmocka_unit_test(test_quota_of_a_tag),
    cmocka_unit_test(test_buffers),
    cmocka_unit_test(test_a_buffer_moves),
    cmocka_unit_test(test_batches),
    cmocka_unit_test(test_upstream),
    cmocka_unit_test(test_mapped_pages),
    cmocka_unit_test(test_zeros_and_patterns),
    cmocka_unit_test(test_a_model),
    cmocka_unit_test(test_a_forked_child),
    cmocka_unit_test(test_without_host_memory),
    cmocka_unit_test(test_threads),
};

int main(void) { return cmocka_run_group_tests(tests, NULL, NULL); }
