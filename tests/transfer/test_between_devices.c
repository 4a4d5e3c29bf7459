/* Copies between devices that share nothing: staged through the host, and never silently. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants the four above before it */
#include <cmocka.h>

#include "gm/peer.h"
#include "transfer/transfer_world.h"

static const char *const pairs[][2] = {{"cpu", "opencl"},    {"opencl", "cpu"},    {"cpu", "vulkan"}, {"vulkan", "cpu"},
                                       {"opencl", "vulkan"}, {"vulkan", "opencl"}, {"cpu", "cpu"}};

static void copy_staged(transfer_world *w, gm_stream *stream, gm_point *out, gm_peer_result *result) {
  const world_end *to = &w->ends[1], *from = &w->ends[0];
  *result = (gm_peer_result){.struct_size = sizeof *result};
  world_ok(gm_block_copy_peer(to->pool, &to->block, 5, from->pool, &from->block, 2, WORLD_BYTES - 8, stream, out,
                              result, err));
  assert_int_equal(result->route, GM_PEER_STAGED_BY_GM);
  assert_in_range(result->staging_bytes, 1, 16 << 20);
  assert_true(result->why[0] != 0);
}

static void check_pair(transfer_world *w) {
  gm_peer_result result;
  gm_point point = {1, 2, 3};
  const world_end *to = &w->ends[1], *from = &w->ends[0];
  world_fill_sent(1);
  world_write(from, world_sent);
  world_ok(gm_block_fill(to->pool, &to->block, 0, WORLD_BYTES, "z", 1, NULL, NULL, err));
  const size_t lines = atomic_load(&w->host.lines);
  copy_staged(w, to->stream, &point, &result);
  assert_int_equal(point.stream, 0); /* the bytes are there */
  world_read(to);
  assert_memory_equal(world_got + 5, world_sent + 2, WORLD_BYTES - 8);
  for (unsigned i = 0; i < 5; i++) assert_int_equal(world_got[i], 'z');
  for (unsigned i = WORLD_BYTES - 3; i < WORLD_BYTES; i++) assert_int_equal(world_got[i], 'z');
  copy_staged(w, NULL, NULL, &result);
  assert_int_equal(atomic_load(&w->host.lines), lines + 1); /* reported once */
  assert_int_equal(w->host.last_level, GM_LOG_WARN);
  assert_non_null(strstr(w->host.last_line, "go through host memory, staged by gm"));
  assert_int_equal(world_stats(to).peer_copies, 2);
  assert_int_equal(world_stats(to).peer_staged_copies, 2);
  assert_int_equal(world_stats(to).peer_staged_bytes, 2 * (WORLD_BYTES - 8));
  assert_int_equal(world_stats(from).peer_copies, 0);
}

/* Work that the streams of both ends were given before is part of it. */
static void check_order(transfer_world *w) {
  gm_peer_result result;
  const world_end *to = &w->ends[1], *from = &w->ends[0];
  gm_point written = {0, 0, 0};
  world_fill_sent(2);
  world_ok(gm_block_write(from->pool, &from->block, 0, world_sent, WORLD_BYTES, from->stream, &written, err));
  copy_staged(w, from->stream, NULL, &result); /* in the order of the sending stream */
  world_read(to);
  assert_memory_equal(world_got + 5, world_sent + 2, WORLD_BYTES - 8);
  gm_point_release(from->device, &written);
  world_fill_sent(3);
  world_ok(gm_block_write(from->pool, &from->block, 0, world_sent, WORLD_BYTES, from->stream, &written, err));
  world_ok(gm_peer_wait(to->stream, from->device, &written, err));
  copy_staged(w, to->stream, NULL, &result);
  world_read(to);
  assert_memory_equal(world_got + 5, world_sent + 2, WORLD_BYTES - 8);
  gm_point_release(from->device, &written);
}

static void test_bytes_arrive_between_any_two(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
    transfer_world w;
    world_begin(&w);
    if (world_add(&w, pairs[i][0], 0) && world_add(&w, pairs[i][1], 0)) {
      check_pair(&w);
      check_order(&w);
    }
    world_finish(&w);
  }
}

static void test_info_says_why(void **state) {
  (void)state;
  transfer_world w;
  gm_error failure;
  gm_peer_path path = {.struct_size = sizeof path};
  world_begin(&w);
  assert_true(world_add(&w, "cpu", 0) && world_add(&w, "null", 0));
  gm_device *cpu = w.ends[0].device, *null = w.ends[1].device;
  world_ok(gm_peer_get_info(cpu, null, &path, err));
  assert_false(path.direct || path.enabled);
  assert_int_equal(path.rank, -1);
  assert_non_null(strstr(path.why, "different backends"));
  world_ok(gm_peer_get_info(cpu, cpu, &path, err));
  assert_true(path.direct && path.enabled && path.link == GM_PEER_LINK_SAME);
  assert_string_equal(path.why, "");
  assert_int_equal(gm_peer_enable(cpu, null, &failure), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(failure.message, "different backends"));
  world_ok(gm_peer_enable(cpu, cpu, err));
  world_ok(gm_peer_disable(cpu, null, err)); /* nothing was enabled */
  path.struct_size = 1;
  assert_int_equal(gm_peer_get_info(cpu, null, &path, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_peer_get_info(cpu, NULL, &path, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_peer_enable(NULL, cpu, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_peer_disable(cpu, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  world_finish(&w);
}

static void test_arguments_are_checked(void **state) {
  (void)state;
  transfer_world w;
  gm_error failure;
  gm_peer_result result = {.struct_size = 3};
  world_begin(&w);
  assert_true(world_add(&w, "cpu", 0) && world_add(&w, "cpu", 0) && world_add(&w, "null", 0));
  const world_end *a = &w.ends[0], *b = &w.ends[1], *null = &w.ends[2];
#define COPY(at, bytes, stream, result) \
  gm_block_copy_peer(b->pool, &b->block, 0, a->pool, &a->block, at, bytes, stream, NULL, result, &failure)
  assert_int_equal(COPY(4, UINT64_MAX, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(COPY(UINT64_MAX, 4, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(COPY(0, 4, null->stream, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(COPY(0, 4, NULL, &result), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(COPY(0, 0, NULL, NULL), GM_OK);
  assert_int_equal(gm_block_copy_peer(NULL, &b->block, 0, a->pool, &a->block, 0, 4, NULL, NULL, NULL, &failure),
                   GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_copy_peer(b->pool, &b->block, 0, a->pool, NULL, 0, 4, NULL, NULL, NULL, &failure),
                   GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_block_copy_peer(a->pool, &a->block, 0, a->pool, &a->block, 2, 4, NULL, NULL, NULL, &failure),
                   GM_ERR_INVALID_ARGUMENT); /* of one device: gm_block_copy, which sees the overlap */
  world_ok(gm_block_copy_peer(a->pool, &a->block, 0, a->pool, &a->block, 4, 4, NULL, NULL, NULL, err));
  assert_int_equal(gm_peer_wait(NULL, a->device, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_peer_wait(a->stream, b->device, NULL, &failure), GM_ERR_INVALID_ARGUMENT);
  const gm_point foreign = {gm_stream_id(a->stream), 1, 1};
  assert_int_equal(gm_peer_wait(a->stream, b->device, &foreign, &failure), GM_ERR_INVALID_ARGUMENT);
  world_finish(&w);
}

/* Memory that does not exist has nothing to send and takes nothing. */
static void test_null_has_no_contents(void **state) {
  (void)state;
  transfer_world w;
  gm_error failure;
  world_begin(&w);
  assert_true(world_add(&w, "cpu", 0) && world_add(&w, "null", 0));
  const world_end *cpu = &w.ends[0], *null = &w.ends[1];
  assert_int_equal(
      gm_block_copy_peer(cpu->pool, &cpu->block, 0, null->pool, &null->block, 0, 9, NULL, NULL, NULL, &failure),
      GM_ERR_NOT_SUPPORTED);
  assert_int_equal(world_stats(cpu).peer_copies, 0); /* nor counts what did not happen */
  world_finish(&w);
}

static void test_contexts_may_differ(void **state) {
  (void)state;
  transfer_world a, b;
  gm_peer_result result = {.struct_size = sizeof result};
  world_begin(&a);
  world_begin(&b);
  assert_true(world_add(&a, "cpu", 0) && world_add(&b, "cpu", 0));
  const world_end *to = &a.ends[0], *from = &b.ends[0];
  world_fill_sent(4);
  world_write(from, world_sent);
  world_ok(gm_block_copy_peer(to->pool, &to->block, 0, from->pool, &from->block, 0, WORLD_BYTES, to->stream, NULL,
                              &result, err));
  assert_int_equal(result.route, GM_PEER_STAGED_BY_GM);
  assert_non_null(strstr(result.why, "different contexts"));
  world_read(to);
  assert_memory_equal(world_got, world_sent, WORLD_BYTES);
  world_finish(&b); /* the sender goes first */
  world_finish(&a);
}

static void test_without_host_memory(void **state) {
  (void)state;
  for (size_t n = 1; n < 20; n++) {
    transfer_world w;
    gm_error failure;
    world_begin(&w);
    assert_true(world_add(&w, "cpu", 0) && world_add(&w, "cpu", 0));
    const world_end *to = &w.ends[0], *from = &w.ends[1];
    w.host.fail_at = atomic_load(&w.host.calls) + n;
    w.host.fail_count = 1;
    const gm_status status = gm_block_copy_peer(to->pool, &to->block, 0, from->pool, &from->block, 0, WORLD_BYTES, NULL,
                                                NULL, NULL, &failure);
    const bool reached = atomic_load(&w.host.calls) >= w.host.fail_at;
    w.host.fail_at = 0;
    assert_true(status == GM_OK || status == GM_ERR_OUT_OF_HOST_MEMORY);
    assert_true(reached || status == GM_OK);
    if (n <= 2) assert_int_equal(status, GM_ERR_OUT_OF_HOST_MEMORY);
    world_finish(&w);
    if (!reached) return;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_bytes_arrive_between_any_two), cmocka_unit_test(test_info_says_why),
      cmocka_unit_test(test_arguments_are_checked),        cmocka_unit_test(test_null_has_no_contents),
      cmocka_unit_test(test_contexts_may_differ),          cmocka_unit_test(test_without_host_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
