/* Transfers on the devices that are there, and on the simulated drivers: bytes, threads, a device without streams, and
 * no host memory. The first argument names the only backend to try. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "backends/cpu/cpu_backend.h"
#include "gm/transfer.h"
#include "support/random.h"
#include "transfer/transfer_world.h"

enum { MOST = 3000 };

static const char *only;
static const char *const backends[] = {"cpu", "opencl", "vulkan"};
static gm_copy copies[MOST];

static bool open_world(transfer_world *w, const char *backend) {
  world_begin(w);
  if (world_add(w, backend, 0)) return true;
  world_finish(w);
  return false;
}

/* Each byte of the block once, in pieces of any size. */
static uint64_t cut_copies(const world_end *end, bool up, uint64_t seed) {
  uint64_t count = 0;
  for (uint64_t at = 0; at < WORLD_BYTES; count++) {
    const gm_end block = {.pool = end->pool, .block = &end->block, .offset = at};
    const gm_end host = {.host = up ? world_sent : world_got, .offset = at};
    uint64_t bytes = test_log_uniform(&seed, 1 << 16);
    if (bytes > WORLD_BYTES - at || count == MOST - 1) bytes = WORLD_BYTES - at;
    copies[count] =
        (gm_copy){.struct_size = sizeof(gm_copy), .to = up ? block : host, .from = up ? host : block, .bytes = bytes};
    at += bytes;
  }
  return count;
}

static gm_transfer_stats run(const world_end *end, uint64_t count, gm_stream *stream, bool polls) {
  gm_transfer_stats stats = {.struct_size = sizeof stats};
  const gm_transfer_params params = {.struct_size = sizeof params, .no_wait = polls, .stream = stream};
  gm_transfer *t = NULL;
  bool done = !polls;
  world_ok(gm_transfer_start(end->device, copies, count, &params, &t, err));
  while (!done) world_ok(gm_transfer_poll(t, NULL, &done, err));
  world_ok(gm_transfer_wait(t, UINT64_MAX, &stats, err));
  world_ok(gm_transfer_release(t, err));
  assert_int_equal(stats.useful_bytes, WORLD_BYTES);
  if (only) assert_int_equal(stats.link_bytes, WORLD_BYTES); /* elsewhere the host copies a part */
  return stats;
}

static void check_device(const char *backend) {
  transfer_world w;
  if (!open_world(&w, backend)) return;
  for (unsigned round = 0; round < 4; round++) {
    gm_stream *stream = round % 2 ? w.ends[0].stream : NULL;
    world_fill_sent(round);
    run(&w.ends[0], cut_copies(&w.ends[0], true, round), stream, round > 1);
    run(&w.ends[0], cut_copies(&w.ends[0], false, round + 9), stream, round > 1);
    assert_memory_equal(world_sent, world_got, WORLD_BYTES);
  }
  world_finish(&w);
}

static void all_bytes_arrive_on_every_device(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
    if (!only) check_device(backends[i]);
  }
  if (only) check_device(only);
}

static gm_status info_without_streams(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err) {
  const gm_status status = gm__cpu_backend.device_info(driver, index, device, out, err);
  out->capabilities &= ~(uint64_t)GM_CAP_STREAMS;
  return status;
}

static void the_host_copies_where_there_is_no_stream(void **state) {
  (void)state;
  transfer_world w;
  gm_backend_ops ops = gm__cpu_backend;
  world_end *end = &w.ends[0];
  world_begin(&w);
  ops.name = "streamless";
  ops.api = GM_API_OTHER;
  ops.device_info = info_without_streams;
  world_ok(gm_backend_register(w.ctx, &ops, err));
  world_ok(gm_device_open_index(w.ctx, "streamless", 0, &end->device, err));
  world_ok(gm_pool_create(end->device, NULL, &end->pool, err));
  const gm_request request = {.bytes = WORLD_BYTES};
  assert_true(gm_acquired(gm_alloc(end->pool, &request, &end->block)));
  world_fill_sent(7);
  run(end, cut_copies(end, true, 1), NULL, false);
  assert_int_equal(run(end, cut_copies(end, false, 2), NULL, true).staged_bytes, 0);
  assert_memory_equal(world_sent, world_got, WORLD_BYTES);
  gm_transfer *t = NULL;
  const gm_copy inside = {.struct_size = sizeof inside,
                          .to = {.pool = end->pool, .block = &end->block},
                          .from = {.pool = end->pool, .block = &end->block, .offset = 100},
                          .bytes = 100};
  assert_int_equal(gm_transfer_start(end->device, &inside, 1, NULL, &t, NULL), GM_ERR_NOT_SUPPORTED);
  assert_null(t);
  assert_int_equal(gm_free(end->pool, &end->block, NULL), GM_OK);
  world_ok(gm_pool_destroy(end->pool, err));
  world_ok(gm_device_close(end->device, err));
  world_finish(&w);
}

/* --- threads: several transfers of one ring; one transfer of several threads --- */

enum { THREADS = 3, ROUNDS = 10, EACH = WORLD_BYTES / THREADS };

typedef struct thread {
  pthread_t id;
  const world_end *end;
  gm_transfer *shared;
  uint64_t offset;
  gm_status status;
} thread;

static void *move_part(void *user) {
  thread *mine = user;
  for (int i = 0; i < ROUNDS && !mine->status; i++) {
    const gm_end block = {.pool = mine->end->pool, .block = &mine->end->block, .offset = mine->offset};
    const gm_copy up = {
        .struct_size = sizeof up, .to = block, .from = {.host = world_sent, .offset = mine->offset}, .bytes = EACH};
    const gm_copy down = {
        .struct_size = sizeof down, .to = {.host = world_got, .offset = mine->offset}, .from = block, .bytes = EACH};
    for (int way = 0; way < 2 && !mine->status; way++) {
      gm_transfer *t = NULL;
      mine->status = gm_transfer_start(mine->end->device, way ? &down : &up, 1, NULL, &t, NULL);
      if (!mine->status) mine->status = gm_transfer_wait(t, UINT64_MAX, NULL, NULL);
      gm_transfer_release(t, NULL);
    }
  }
  return NULL;
}

static void *share_one(void *user) {
  thread *mine = user;
  gm_transfer_stats stats = {.struct_size = sizeof stats};
  gm_transfer_poll(mine->shared, &stats, NULL, NULL);
  if (mine->offset) gm_transfer_cancel(mine->shared);
  mine->status = gm_transfer_wait(mine->shared, UINT64_MAX, &stats, NULL);
  return NULL;
}

static void run_threads(thread *threads, void *(*run_one)(void *)) {
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i].id, NULL, run_one, &threads[i]), 0);
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(threads[i].id, NULL), 0);
}

static void threads_share_a_ring_and_a_transfer(void **state) {
  (void)state;
  transfer_world w;
  thread threads[THREADS] = {{.status = GM_OK}};
  if (!open_world(&w, only ? only : "cpu")) return;
  world_fill_sent(5);
  for (int i = 0; i < THREADS; i++) threads[i] = (thread){.end = &w.ends[0], .offset = (uint64_t)i * EACH};
  run_threads(threads, move_part);
  for (int i = 0; i < THREADS; i++) assert_int_equal(threads[i].status, GM_OK);
  assert_memory_equal(world_sent, world_got, (size_t)EACH * THREADS);
  for (int round = 0; round < ROUNDS; round++) {
    const gm_transfer_params lazy = {.struct_size = sizeof lazy, .no_wait = true};
    gm_transfer *t = NULL;
    world_ok(gm_transfer_start(w.ends[0].device, copies, cut_copies(&w.ends[0], round % 2, 3), &lazy, &t, err));
    for (int i = 0; i < THREADS; i++) threads[i].shared = t;
    run_threads(threads, share_one);
    for (int i = 1; i < THREADS; i++) assert_int_equal(threads[i].status, threads[0].status);
    assert_true(threads[0].status == GM_OK || threads[0].status == GM_ERR_CANCELLED);
    world_ok(gm_transfer_release(t, err));
  }
  world_finish(&w);
}

/* --- no host memory --- */

static void each_request_for_host_memory_may_fail(void **state) {
  (void)state;
  for (size_t n = 1; n < 10000; n += 1 + n / 6) { /* the first one by one */
    transfer_world w;
    gm_error failure = {.message = ""};
    gm_transfer *t = NULL;
    if (!open_world(&w, only ? only : "cpu")) return;
    const uint64_t count = cut_copies(&w.ends[0], true, 4);
    w.host.fail_at = atomic_load(&w.host.calls) + n;
    const gm_status status = gm_transfer_start(w.ends[0].device, copies, count, NULL, &t, &failure);
    const bool reached = atomic_load(&w.host.calls) >= w.host.fail_at;
    w.host.fail_at = 0;
    assert_int_equal(status == GM_OK, t != NULL);
    if (status) assert_int_equal(status, GM_ERR_OUT_OF_HOST_MEMORY);
    world_ok(gm_transfer_release(t, err));
    world_finish(&w);
    if (!reached) return;
  }
  fail_msg("it never ends");
}

int main(int argc, char **argv) {
  only = argc > 1 ? argv[1] : NULL;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(all_bytes_arrive_on_every_device),
      cmocka_unit_test(the_host_copies_where_there_is_no_stream),
      cmocka_unit_test(threads_share_a_ring_and_a_transfer),
      cmocka_unit_test(each_request_for_host_memory_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
