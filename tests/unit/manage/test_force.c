/* The end of a pool whose blocks are still out: gm_pool_destroy_force. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <pthread.h>

#include "gm/batch.h"
#include "gm/buffer.h"
#include "gm/cleanup.h"
#include "gm/copy.h"
#include "gm/debug.h"
#include "gm/managed.h"
#include "gm/memory_info.h"
#include "gm/native_cpu.h"
#include "gm/pool_set.h"
#include "gm/pressure.h"
#include "gm/quota.h"
#include "gm/record.h"
#include "gm/scope.h"
#include "gm/share.h"
#include "gm/spans.h"
#include "gm/store_all.h"
#include "gm/tracker.h"
#include "gm/warm_up.h"
#include "support/host_upstream.h"
#include "support/pool_bench.h"
#include "support/temp_folder.h"

static gm_block take(gm_pool *pool, uint64_t bytes, uint32_t flags) {
  const gm_request request = {.bytes = bytes, .flags = flags};
  gm_block block;
  assert_true(gm_acquired(gm_alloc(pool, &request, &block)));
  return block;
}

/* Ends the pool, and the device and context behind it, of which nothing is left. Stale names are answered meanwhile. */
static void end_all(pool_bench *bench, const gm_block *stale, const char *words) {
  gm_error why = {.status = GM_ERR_BUSY};
  assert_int_equal(gm_pool_destroy_force(bench->pool, &why), GM_OK);
  assert_int_equal(why.status, GM_OK);
  assert_string_equal(why.op, "gm_pool_destroy_force");
  if (!strstr(why.message, words)) fail_msg("\"%s\" is not in: %s", words, why.message);
  if (stale) assert_int_equal(gm_free(bench->pool, stale, NULL), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_device_close(bench->device, err));
  if (stale) assert_int_equal(gm_free(bench->pool, stale, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_destroy_force(bench->pool, &why), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_pool_destroy(bench->pool, &why), GM_ERR_INVALID_ARGUMENT);
  pool_bench_ok(gm_context_destroy(bench->ctx, err));
  counted_services_check(&bench->host);
}

static void *take_many(void *pool) {
  for (uint64_t i = 0; i < 50; i++) take(pool, 100 + 997 * i, 0);
  return NULL;
}

/* Small and large blocks, of two threads, of each strategy, with and without pages. */
static void test_blocks_that_are_out(void **state) {
  (void)state;
  static const gm_strategy strategies[] = {GM_STRATEGY_BEST_FIT, GM_STRATEGY_BUCKET};
  static const char *const backends[] = {"cpu", "null"};
  for (int i = 0; i < 8; i++) {
    const gm_pool_params params = {
        .struct_size = sizeof params, .strategy = strategies[i % 2], .no_vmm = i & 4, .track = i & 1};
    pool_bench bench;
    pthread_t thread;
    pool_bench_open(&bench, backends[i / 2 % 2], "", &params);
    assert_int_equal(pthread_create(&thread, NULL, take_many, bench.pool), 0);
    take_many(bench.pool);
    const gm_block large = take(bench.pool, 40 << 20, 0), alone = take(bench.pool, 5000, GM_DEDICATED);
    const gm_block freed = take(bench.pool, 3000, 0);
    assert_int_equal(gm_free(bench.pool, &freed, NULL), GM_OK);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(gm_pool_destroy(bench.pool, NULL), GM_ERR_BUSY);
    end_all(&bench, i % 3 ? &large : &alone, "102 blocks of ");
    assert_non_null(strstr(bench.host.last_line, "102 blocks of "));
  }
}

static void test_a_pool_without_blocks(void **state) {
  (void)state;
  pool_bench bench;
  pool_bench_open(&bench, "cpu", "", NULL);
  const gm_block block = take(bench.pool, 3000, 0);
  assert_int_equal(gm_free(bench.pool, &block, NULL), GM_OK);
  end_all(&bench, &block, "0 blocks of 0 bytes of pool \"pool\" were still out, and 0 streams could not be asked");
  assert_int_equal(gm_pool_destroy_force(NULL, NULL), GM_OK);
}

/* The bytes of gm's that the device is known to hold go back to nothing. */
static void test_the_figures(void **state) {
  (void)state;
  pool_bench bench;
  gm_memory_info before = {.struct_size = sizeof before}, after = before;
  pool_bench_open(&bench, "null", "null:capacity=1G", NULL);
  gm_pool *other = NULL;
  pool_bench_ok(gm_pool_create(bench.device, NULL, &other, err));
  const gm_block kept = take(other, 1 << 20, 0);
  pool_bench_ok(gm_device_memory_info(bench.device, &before, err));
  take(bench.pool, 100 << 20, 0);
  take(bench.pool, 100, 0);
  pool_bench_ok(gm_pool_destroy_force(bench.pool, err));
  pool_bench_ok(gm_device_memory_info(bench.device, &after, err));
  assert_int_equal(after.used_by_us_bytes, before.used_by_us_bytes);
  assert_int_equal(after.free_bytes, before.free_bytes);
  gm_stats stats = {.struct_size = sizeof stats};
  pool_bench_ok(gm_context_stats(bench.ctx, &stats, err));
  assert_int_equal(stats.active, 1);
  assert_int_equal(gm_free(other, &kept, NULL), GM_OK);
  bench.pool = other;
  pool_bench_close(&bench);
}

/* ---- blocks of every sort ---- */

static void test_wrapped_imported_and_the_users_memory(void **state) {
  (void)state;
  pool_bench bench;
  static unsigned char own[4096];
  gm_cpu_memory native = {{sizeof native, GM_API_CPU}, own, sizeof own};
  const gm_pool_params lender = {.struct_size = sizeof lender, .share = GM_SHARE_FD};
  gm_pool *pool = NULL;
  gm_block wrapped, imported;
  gm_shared shared = {.struct_size = sizeof shared};
  pool_bench_open(&bench, "cpu", "", NULL);
  pool_bench_ok(gm_pool_create(bench.device, &lender, &pool, err));
  const gm_block lent = take(pool, 10000, GM_SHAREABLE);
  pool_bench_ok(gm_block_export(pool, &lent, &shared, err));
  pool_bench_ok(gm_block_import(bench.pool, &shared, &imported, err));
  gm_shared_close(&shared);
  pool_bench_ok(gm_block_wrap(bench.pool, &native.head, &wrapped, err));
  memset(own, 7, sizeof own);
  pool_bench_ok(gm_pool_destroy_force(pool, err));
  end_all(&bench, &wrapped, "2 blocks of ");
  assert_int_equal(own[4095], 7); /* it is not gm's */
  const gm_pool_params upstream = {.struct_size = sizeof upstream, .upstream = &host_upstream};
  pool_bench_open(&bench, "cpu", "", &upstream);
  const gm_block block = take(bench.pool, 10000, 0);
  end_all(&bench, &block, "1 blocks of ");
}

static void test_guards_spans_objects_quotas(void **state) {
  (void)state;
  pool_bench bench;
  const gm_pool_params guarded = {
      .struct_size = sizeof guarded, .red_zone_bytes = 64, .debug = GM_DEBUG_CHECK_FREED, .track = true};
  pool_bench_open(&bench, "cpu", "", &guarded);
  gm_stream *stream = NULL;
  pool_bench_ok(gm_stream_create(bench.device, &stream, err));
  const gm_block block = take(bench.pool, 3000, 0), freed = take(bench.pool, 3000, 0);
  pool_bench_ok(gm_pool_set_quota(bench.pool, gm_tag(bench.ctx, "kv"), 1 << 20, 0, 0, err));
  assert_int_equal(gm_free(bench.pool, &freed, stream), GM_OK);
  pool_bench_ok(gm_stream_close(stream, err));
  end_all(&bench, &block, "1 blocks of ");
  pool_bench_open(&bench, "null", "null:capacity=256M,max_alloc=16M", NULL);
  const gm_block several = take(bench.pool, 40 << 20, GM_ALLOW_SPANS);
  end_all(&bench, &several, " blocks of ");
}

static void test_mapped_blocks(void **state) {
  (void)state;
  pool_bench bench;
  void *mapped[3];
  pool_bench_open(&bench, "cpu", "", NULL);
  const gm_block small = take(bench.pool, 3000, GM_HOST_VISIBLE), alone = take(bench.pool, 5000, GM_DEDICATED);
  pool_bench_ok(gm_block_map(bench.pool, &small, 0, 10, GM_MAP_WRITE, NULL, &mapped[0], err));
  pool_bench_ok(gm_block_map(bench.pool, &small, 5, 10, GM_MAP_READ, NULL, &mapped[1], err));
  pool_bench_ok(gm_block_map(bench.pool, &alone, 0, 10, GM_MAP_READ | GM_MAP_NO_WAIT, NULL, &mapped[2], err));
  assert_int_equal(gm_free(bench.pool, &small, NULL), GM_ERR_BUSY);
  end_all(&bench, &small, "2 blocks of ");
}

/* ---- what is above a pool ---- */

static void test_objects_above_the_pool(void **state) {
  (void)state;
  pool_bench bench;
  gm_error err = {.status = GM_OK};
  gm_buffer *buffer = NULL, *inside = NULL;
  gm_scope *scope = NULL;
  gm_managed *managed = NULL;
  unsigned char byte = 0;
  pool_bench_open(&bench, "cpu", "", &(gm_pool_params){.struct_size = sizeof(gm_pool_params), .track = true});
  const gm_buffer_params params = {.struct_size = sizeof params, .request.bytes = 1000};
  const gm_managed_params for_both = {.struct_size = sizeof for_both, .bytes = 100000};
  assert_int_equal(gm_buffer_create(bench.pool, &params, &buffer, &err), GM_OK);
  assert_int_equal(gm_scope_create(bench.pool, &scope, &err), GM_OK);
  assert_int_equal(gm_scope_buffer(scope, &params, &inside, &err), GM_OK);
  assert_int_equal(gm_managed_create(bench.pool, &for_both, &managed, &err), GM_OK);
  assert_int_equal(gm_pool_destroy_force(bench.pool, &err), GM_OK);
  assert_non_null(strstr(err.message, "3 blocks of "));
  assert_int_equal(gm_buffer_read(buffer, 0, &byte, 1, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_scope_buffer(scope, &params, &inside, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_managed_prefetch(managed, GM_MANAGED_ON_DEVICE, 0, 1, NULL, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_device_close(bench.device, &err), GM_OK);
  bench.host.last_line[0] = 0;
  gm_buffer_release(buffer, NULL);
  gm_scope_end(scope, NULL);
  assert_int_equal(gm_managed_destroy(managed, NULL, &err), GM_OK);
  assert_string_equal(bench.host.last_line, ""); /* nothing went wrong */
  assert_int_equal(gm_context_destroy(bench.ctx, &err), GM_OK);
  counted_services_check(&bench.host);
}

static void note_event(void *user, const gm_pressure_event *event) {
  (void)event;
  ++*(int *)user;
}

/* A watch of the pool sees nothing any more, and a store of it can be ended. */
static void test_watches_and_stores(void **state) {
  (void)state;
  pool_bench bench;
  gm_pressure_watch *watch = NULL;
  gm_store *store = NULL;
  gm_value *value = NULL;
  gm_error err = {.status = GM_OK};
  int events = 0;
  const float data[64] = {1};
  const gm_tensor_desc desc = {.struct_size = sizeof desc, .dtype = GM_DTYPE_F32, .rank = 1, .shape = {64}};
  pool_bench_open(&bench, "cpu", "", &(gm_pool_params){.struct_size = sizeof(gm_pool_params), .max_bytes = 1 << 20});
  assert_int_equal(gm_pressure_watch_pool(bench.pool, note_event, &events, &watch, &err), GM_OK);
  const gm_store_params params = {.struct_size = sizeof params, .pool = bench.pool};
  assert_int_equal(gm_store_create(&params, &store, &err), GM_OK);
  assert_int_equal(gm_value_tensor(bench.pool, &desc, data, GM_FALLBACK_REFUSE, NULL, &value, &err), GM_OK);
  assert_int_equal(gm_store_put(store, "held", value, &err), GM_OK);
  assert_int_equal(gm_store_put_tensor(store, "stored", &desc, data, &err), GM_OK);
  take(bench.pool, 1000000, 0);
  assert_int_equal(gm_context_poll(bench.ctx, &err), GM_OK);
  const int before = events;
  assert_true(before > 0);
  assert_int_equal(gm_pool_destroy_force(bench.pool, &err), GM_OK);
  assert_int_equal(gm_context_poll(bench.ctx, &err), GM_OK);
  assert_int_equal(events, before);
  gm_value *got = NULL;
  uint64_t moved = 0;
  if (gm_store_get(store, "stored", &got, &err) == GM_OK) { /* the name of it, that is: nothing is behind it */
    float back[64];
    assert_int_equal(gm_value_read(got, 0, back, sizeof back, NULL, &err), GM_ERR_INVALID_ARGUMENT);
    gm_value_release(got, NULL);
  }
  assert_int_equal(gm_store_put_tensor(store, "more", &desc, data, &err), GM_ERR_INVALID_ARGUMENT);
  gm_store_demote(store, GM_NO_LIMIT, &moved, &err);
  assert_int_equal(moved, 0);
  gm_value_release(value, NULL);
  assert_int_equal(gm_store_destroy(store, &err), GM_OK);
  assert_int_equal(gm_device_close(bench.device, &err), GM_OK);
  assert_int_equal(gm_pressure_watch_end(watch, &err), GM_OK);
  assert_int_equal(gm_context_destroy(bench.ctx, &err), GM_OK);
  counted_services_check(&bench.host);
}

/* A buffer in plain host memory, which the device had no room for. */
static void test_a_buffer_that_fell_back(void **state) {
  (void)state;
  pool_bench bench;
  gm_buffer *buffer = NULL;
  const gm_pool_params small = {.struct_size = sizeof small, .max_bytes = GM_NO_BYTES, .track = true};
  pool_bench_open(&bench, "null", "", &small);
  const gm_buffer_params params = {.struct_size = sizeof params, .request.bytes = 1000, .fallback = GM_FALLBACK_HOST};
  pool_bench_ok(gm_buffer_create(bench.pool, &params, &buffer, err));
  assert_int_equal(gm_buffer_location(buffer), GM_LOCATION_HOST);
  pool_bench_ok(gm_pool_destroy_force(bench.pool, err));
  pool_bench_ok(gm_device_close(bench.device, err));
  gm_buffer_release(buffer, NULL);
  pool_bench_ok(gm_context_destroy(bench.ctx, err));
  counted_services_check(&bench.host);
}

static void test_a_pool_of_a_set(void **state) {
  (void)state;
  pool_bench bench;
  gm_pool_set *set = NULL;
  pool_bench_open_device(&bench, "cpu", "");
  pool_bench_ok(gm_pool_set_create(&bench.device, 1, NULL, &set, err));
  take(gm_pool_set_pool(set, 0), 100, 0);
  assert_int_equal(gm_pool_set_destroy(set, NULL), GM_ERR_BUSY);
  pool_bench_ok(gm_pool_destroy_force(gm_pool_set_pool(set, 0), err));
  pool_bench_ok(gm_pool_set_destroy(set, err));
  pool_bench_ok(gm_device_close(bench.device, err));
  pool_bench_ok(gm_context_destroy(bench.ctx, err));
  counted_services_check(&bench.host);
}

static void test_a_recording_is_finished(void **state) {
  (void)state;
  temp_folder folder;
  pool_bench bench;
  char line[256] = "";
  temp_folder_make(&folder);
  pool_bench_open(&bench, "cpu", "", NULL);
  char *path = strdup(temp_folder_join(&folder, "trace"));
  pool_bench_ok(gm_pool_record_begin(bench.pool, path, err));
  const gm_block block = take(bench.pool, 3000, 0);
  end_all(&bench, &block, "1 blocks of ");
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_non_null(fgets(line, sizeof line, file));
  fclose(file);
  free(path);
  temp_folder_remove(&folder);
}

/* ---- streams ---- */

static bool is_done(gm_device *device, const gm_point *point) {
  bool done = false;
  pool_bench_ok(gm_point_done(device, point, &done, err));
  return done;
}

/* Work on a block of the pool, on a stream that the pool has never heard of, is over when the pool is. */
static void test_streams_are_waited_for(void **state) {
  (void)state;
  pool_bench bench;
  gm_stream *streams[3];
  gm_point points[3];
  pool_bench_open(&bench, "null", "null:latency=20000000", NULL); /* 20 ms for each submission */
  const gm_block block = take(bench.pool, 1 << 20, 0);
  for (int i = 0; i < 3; i++) {
    pool_bench_ok(gm_stream_create(bench.device, &streams[i], err));
    pool_bench_ok(gm_block_fill(bench.pool, &block, 0, 1 << 20, "x", 1, streams[i], &points[i], err));
    assert_false(is_done(bench.device, &points[i]));
  }
  pool_bench_ok(gm_pool_destroy_force(bench.pool, err));
  for (int i = 0; i < 3; i++) {
    assert_true(is_done(bench.device, &points[i]));
    gm_point_release(bench.device, &points[i]);
    assert_int_equal(gm_free(bench.pool, &block, streams[i]), GM_ERR_INVALID_ARGUMENT);
    pool_bench_ok(gm_stream_close(streams[i], err)); /* the pool does not listen any more */
  }
  pool_bench_ok(gm_device_close(bench.device, err));
  pool_bench_ok(gm_context_destroy(bench.ctx, err));
  counted_services_check(&bench.host);
}

/* ---- every call on the name ---- */

#define REFUSED(call) assert_int_equal(call, GM_ERR_INVALID_ARGUMENT)

static void refuse_memory(gm_pool *pool, gm_block block, gm_stream *stream) {
  gm_request request = {.bytes = 100};
  gm_part part = {.block = block};
  gm_point point = {0};
  gm_batch_params batch = {.struct_size = sizeof batch};
  size_t failed;
  void *pointer = (void *)(uintptr_t)block.address;
  assert_int_equal(gm_alloc(pool, &request, &block), GM_ACQUIRE_INVALID);
  assert_null(gm_malloc(pool, 100, NULL));
  assert_null(gm_malloc(pool, 100, stream));
  assert_null(gm_malloc_request(pool, &request));
  REFUSED(gm_alloc_batch(pool, &batch, &part, &failed, NULL));
  REFUSED(gm_free_batch(pool, &part, 1, NULL, NULL));
  REFUSED(gm_free(pool, &block, stream));
  REFUSED(gm_free_ptr(pool, pointer, 0, NULL));
  REFUSED(gm_free_ptr(pool, pointer, 0, stream));
  REFUSED(gm_free_at(pool, &block, &point, NULL));
  REFUSED(gm_use_on(pool, &block, stream));
  REFUSED(gm_use_on_ptr(pool, pointer, stream));
  REFUSED(gm_use_on_all(pool, &block));
  REFUSED(gm_block_of(pool, pointer, &block));
  assert_int_equal(gm_block_point(pool, &block).handle, 0);
}

static void refuse_contents(gm_pool *pool, const gm_block *block) {
  gm_cpu_memory native = {.head = {sizeof native, GM_API_CPU}};
  gm_memory memory;
  gm_block out;
  gm_block_span span;
  gm_shared shared = {.struct_size = sizeof shared};
  gm_rect rect = {.row_bytes = 1, .rows = 1, .slices = 1};
  uint64_t offset, view;
  uint32_t count;
  char bytes[8] = "";
  void *host = bytes;
  REFUSED(gm_block_write(pool, block, 0, bytes, 8, NULL, NULL, NULL));
  REFUSED(gm_block_read(pool, block, 0, bytes, 8, NULL, NULL, NULL));
  REFUSED(gm_block_copy(pool, block, 0, pool, block, 8, 8, NULL, NULL, NULL));
  REFUSED(gm_block_fill(pool, block, 0, 8, "x", 1, NULL, NULL, NULL));
  REFUSED(gm_block_write_rect(pool, block, bytes, &rect, NULL, NULL, NULL));
  REFUSED(gm_block_map(pool, block, 0, 8, GM_MAP_READ, NULL, &host, NULL));
  REFUSED(gm_block_unmap(pool, block, host, NULL, NULL));
  REFUSED(gm_block_host(pool, block, &host, NULL));
  REFUSED(gm_block_flush(pool, block, 0, 8, NULL));
  REFUSED(gm_block_native(pool, block, &native.head, NULL));
  REFUSED(gm_block_object(pool, block, 0, 8, &native.head, NULL));
  REFUSED(gm_block_view_create(pool, block, 0, 8, &view, NULL));
  REFUSED(gm_block_view_destroy(pool, 1, NULL));
  REFUSED(gm_block_memory(pool, block, &memory, &offset));
  REFUSED(gm_block_wrap(pool, &native.head, &out, NULL));
  REFUSED(gm_block_export(pool, block, &shared, NULL));
  REFUSED(gm_block_import(pool, &shared, &out, NULL));
  REFUSED(gm_block_spans(pool, block, 0, 1, &span, &count, NULL));
}

static void refuse_housekeeping(gm_pool *pool) {
  gm_stats stats = {.struct_size = sizeof stats};
  gm_explanation why = {.struct_size = sizeof why};
  gm_pressure pressure = {.struct_size = sizeof pressure};
  gm_quota quota = {.struct_size = sizeof quota};
  gm_check_report report = {.struct_size = sizeof report};
  const gm_warm_up warm = {.count = 1, .bytes = 100};
  const gm_buffer_params buffers = {.struct_size = sizeof buffers, .request.bytes = 1};
  const gm_managed_params managed = {.struct_size = sizeof managed, .bytes = 1};
  gm_request request = {.bytes = 100};
  gm_buffer *buffer;
  gm_scope *scope;
  gm_managed *both;
  uint64_t bytes;
  assert_int_equal(gm_pool_trim(pool, 0), 0);
  assert_int_equal(gm_pool_clear(pool), 0);
  assert_int_equal(gm_pool_shrink(pool, 0), 0);
  assert_int_equal(gm_pool_collect(pool), 0);
  assert_int_equal(gm_pool_coalesce(pool, true), 0);
  assert_null(gm_pool_device(pool));
  assert_null(gm_pool_tracker(pool));
  assert_string_equal(gm_pool_name(pool), "");
  assert_int_equal(gm_pool_strategy(pool), GM_STRATEGY_AUTO);
  REFUSED(gm_pool_cleanup(pool, 0.5, true, &bytes, NULL));
  REFUSED(gm_pool_set_max_bytes(pool, 1, NULL));
  REFUSED(gm_pool_record_allocation(pool, 1, NULL));
  REFUSED(gm_pool_stats(pool, &stats));
  REFUSED(gm_pool_check(pool, &report, NULL));
  REFUSED(gm_explain(pool, &request, &why, NULL));
  REFUSED(gm_pool_pressure(pool, &pressure, NULL));
  REFUSED(gm_pool_set_quota(pool, 1, 1, 0, 0, NULL));
  REFUSED(gm_pool_quota(pool, 1, &quota, NULL));
  REFUSED(gm_pool_record_begin(pool, "/nowhere/trace", NULL));
  REFUSED(gm_pool_record_mark(pool, "x", NULL));
  REFUSED(gm_pool_record_end(pool, NULL, NULL));
  REFUSED(gm_pool_set_tracking(pool, true, NULL));
  REFUSED(gm_pool_warm_up(pool, &warm, 1, NULL, NULL, NULL));
  REFUSED(gm_buffer_create(pool, &buffers, &buffer, NULL));
  REFUSED(gm_scope_create(pool, &scope, NULL));
  REFUSED(gm_managed_create(pool, &managed, &both, NULL));
}

/* The device is there, and then it is gone, too: the name is answered alike. */
static void test_every_call_is_refused(void **state) {
  (void)state;
  pool_bench bench;
  gm_stream *stream = NULL;
  gm_device *other = NULL;
  pool_bench_open(&bench, "cpu", "", NULL);
  pool_bench_ok(gm_device_open_index(bench.ctx, "cpu", 0, &other, err));
  pool_bench_ok(gm_stream_create(other, &stream, err));
  const gm_block block = take(bench.pool, 3000, 0);
  pool_bench_ok(gm_pool_destroy_force(bench.pool, err));
  for (int i = 0; i < 2; i++) {
    refuse_memory(bench.pool, block, stream);
    refuse_contents(bench.pool, &block);
    refuse_housekeeping(bench.pool);
    if (i == 0) pool_bench_ok(gm_device_close(bench.device, err));
  }
  pool_bench_ok(gm_stream_close(stream, err));
  pool_bench_ok(gm_device_close(other, err));
  pool_bench_ok(gm_context_destroy(bench.ctx, err));
  counted_services_check(&bench.host);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_blocks_that_are_out),
      cmocka_unit_test(test_a_pool_without_blocks),
      cmocka_unit_test(test_the_figures),
      cmocka_unit_test(test_wrapped_imported_and_the_users_memory),
      cmocka_unit_test(test_guards_spans_objects_quotas),
      cmocka_unit_test(test_mapped_blocks),
      cmocka_unit_test(test_objects_above_the_pool),
      cmocka_unit_test(test_watches_and_stores),
      cmocka_unit_test(test_a_buffer_that_fell_back),
      cmocka_unit_test(test_a_pool_of_a_set),
      cmocka_unit_test(test_a_recording_is_finished),
      cmocka_unit_test(test_streams_are_waited_for),
      cmocka_unit_test(test_every_call_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
