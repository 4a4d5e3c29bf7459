/* Transfers on the devices that are there, and on the simulated drivers: bytes, threads, a device without streams, and
 * no host memory. The first argument names the only backend to try. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
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

/* --- strided copies --- */

enum { BOX_ROW = 33, BOX_ROWS = 20, BOX_SLICES = 3, BOX_BYTES = BOX_ROW * BOX_ROWS * BOX_SLICES };

static gm_rect box_between(uint64_t src_row, uint64_t src_slice, uint64_t dst_row, uint64_t dst_slice) {
  return (gm_rect){.row_bytes = BOX_ROW,
                   .rows = BOX_ROWS,
                   .slices = BOX_SLICES,
                   .src_offset = 5,
                   .src_row_pitch = src_row,
                   .src_slice_pitch = src_slice,
                   .dst_offset = 11,
                   .dst_row_pitch = dst_row,
                   .dst_slice_pitch = dst_slice};
}

static void run_all(const world_end *end, const gm_copy *all, uint64_t count, gm_stream *stream, uint64_t bytes) {
  const gm_transfer_params params = {.struct_size = sizeof params, .stream = stream};
  gm_transfer_stats stats = {.struct_size = sizeof stats};
  gm_transfer *t = NULL;
  world_ok(gm_transfer_start(end->device, all, count, &params, &t, err));
  world_ok(gm_transfer_wait(t, UINT64_MAX, &stats, err));
  world_ok(gm_transfer_release(t, err));
  assert_int_equal(stats.useful_bytes, bytes);
}

/* A box goes up beside a plain copy, to another place on the device, and down; each time with other pitches. */
static void check_boxes(const char *backend) {
  enum { THERE = 20000, PLAIN = 40000, FURTHER = 100 };
  transfer_world w;
  if (!open_world(&w, backend)) return;
  const world_end *end = &w.ends[0];
  const gm_end block = {.pool = end->pool, .block = &end->block}, moved = {block.pool, block.block, .offset = THERE};
  const gm_end plain = {block.pool, block.block, .offset = PLAIN};
  for (int turn = 0; turn < 2; turn++) {
    gm_stream *stream = turn ? end->stream : NULL;
    world_fill_sent((unsigned)turn + 3);
    memset(world_got, 0, WORLD_BYTES);
    const gm_rect up = box_between(40, 1000, 64, 1500), over = box_between(64, 1500, 33, 660),
                  back = box_between(33, 660, 70, 2000);
    gm_rect shifted = over, read = back;
    shifted.src_offset = up.dst_offset;
    read.src_offset = over.dst_offset;
    const gm_copy rise[] = {{.struct_size = sizeof *rise,
                             .to = block,
                             .from = {.host = world_sent, .offset = FURTHER},
                             .bytes = BOX_BYTES,
                             .rect = &up},
                            {.struct_size = sizeof *rise, .to = plain, .from = {.host = world_sent}, .bytes = 5000}};
    const gm_copy inside = {
        .struct_size = sizeof inside, .to = moved, .from = block, .bytes = BOX_BYTES, .rect = &shifted};
    const gm_copy down = {.struct_size = sizeof down,
                          .to = {.host = world_got, .offset = FURTHER},
                          .from = moved,
                          .bytes = BOX_BYTES,
                          .rect = &read};
    run_all(end, rise, 2, stream, BOX_BYTES + 5000);
    run_all(end, &inside, 1, stream, BOX_BYTES);
    run_all(end, &down, 1, stream, BOX_BYTES);
    for (uint64_t row = 0; row < BOX_ROWS * BOX_SLICES; row++) {
      const uint64_t slice = row / BOX_ROWS, in = row % BOX_ROWS;
      assert_memory_equal(world_got + FURTHER + read.dst_offset + slice * 2000 + in * 70,
                          world_sent + FURTHER + up.src_offset + slice * 1000 + in * 40, BOX_ROW);
    }
    assert_int_equal(world_got[FURTHER + read.dst_offset + BOX_ROW], 0); /* between two rows */
  }
  world_finish(&w);
}

static void boxes_arrive_on_every_device(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
    if (!only) check_boxes(backends[i]);
  }
  if (only) check_boxes(only);
}

static void refuse(const world_end *end, gm_copy copy, const char *says) {
  gm_transfer *t = NULL;
  gm_error err = {.message = ""};
  assert_int_equal(gm_transfer_start(end->device, &copy, 1, NULL, &t, &err), GM_ERR_INVALID_ARGUMENT);
  assert_null(t);
  if (!strstr(err.message, says)) fail_msg("\"%s\" does not say \"%s\"", err.message, says);
}

/* Before anything moves. A box of no bytes is done. */
static void wrong_boxes_are_refused(void **state) {
  (void)state;
  transfer_world w;
  if (!open_world(&w, only ? only : "cpu")) return;
  const world_end *end = &w.ends[0];
  const gm_end block = {.pool = end->pool, .block = &end->block}, host = {.host = world_sent};
  gm_rect rect = box_between(40, 1000, 64, 1500);
  gm_copy copy = {.struct_size = sizeof copy, .to = block, .from = host, .bytes = BOX_BYTES, .rect = &rect};
  copy.bytes--;
  refuse(end, copy, "not those of all rows");
  copy.bytes = BOX_BYTES;
  copy.codec = gm_codec_find("bf16");
  refuse(end, copy, "both set");
  copy.codec = NULL;
  copy.host_bytes = 1;
  refuse(end, copy, "needs `codec`");
  copy.host_bytes = 0;
  copy.from = block;
  refuse(end, copy, "overlap");
  copy.to = copy.from = host;
  refuse(end, copy, "no end is a block");
  copy.to = block;
  rect.dst_offset = end->block.bytes - 100;
  refuse(end, copy, "reach beyond");
  rect.dst_offset = UINT64_MAX;
  refuse(end, copy, "reach beyond");
  rect = box_between(40, 1000, 32, 1500);
  refuse(end, copy, "dst_row_pitch");
  rect = box_between(UINT64_MAX, UINT64_MAX, 64, 1500);
  refuse(end, copy, "last address");
  rect = (gm_rect){.row_bytes = 5};
  copy.bytes = 0;
  run_all(end, &copy, 1, NULL, 0);
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
      cmocka_unit_test(all_bytes_arrive_on_every_device),    cmocka_unit_test(the_host_copies_where_there_is_no_stream),
      cmocka_unit_test(boxes_arrive_on_every_device),        cmocka_unit_test(wrong_boxes_are_refused),
      cmocka_unit_test(threads_share_a_ring_and_a_transfer), cmocka_unit_test(each_request_for_host_memory_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
