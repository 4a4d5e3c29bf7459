/* Copies between two simulated CUDA cards that gm stages: the journal of the link model tells how long they take. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "core/staging/staging.h"
#include "gm/copy.h"
#include "gm/peer.h"
#include "gm/pool.h"
#include "gm/transfer.h"
#include "support/adopt_scene.h"
#include "support/cuda_fixture.h"
#include "support/link_model.h"

enum { BYTES = 16 << 20, CARDS = 2 };

static gm_context *ctx;
static gm_device *devices[CARDS];
static gm_pool *pools[CARDS];
static gm_block blocks[CARDS];
static unsigned char *want, *got;
static link_journal journal;
static link_journal_copy *journal_copy;

static int begin(void **state) {
  (void)state;
  gm_error err;
  const gm_request request = {.bytes = BYTES};
  cuda_say("reload");
  cuda_say("set DEVICES 2");
  cuda_say("set LATENCY_US 0");
  cuda_say("set PEER silent"); /* the driver's copies bring nothing: gm stages */
  ctx = adopt_scene_context("cuda", getenv("GM_CUDA_LIBRARY"));
  for (uint32_t i = 0; i < CARDS; i++) {
    adopt_scene_ok(gm_device_open_index(ctx, "cuda", i, &devices[i], &err), &err);
    adopt_scene_ok(gm_pool_create(devices[i], NULL, &pools[i], &err), &err);
    assert_true(gm_acquired(gm_alloc(pools[i], &request, &blocks[i])));
  }
  want = malloc(BYTES);
  got = calloc(1, BYTES);
  assert_true(want && got);
  for (uint32_t i = 0; i < BYTES; i++) want[i] = (unsigned char)(i * 7 + i / 251);
  adopt_scene_ok(gm_block_write(pools[0], &blocks[0], 0, want, BYTES, NULL, NULL, &err), &err);
  cuda_entry("simCudaJournal", &journal_copy);
  return 0;
}

static int end(void **state) {
  char left[1024];
  gm_error err;
  (void)state;
  for (int i = 0; i < CARDS; i++) {
    assert_int_equal(gm_free(pools[i], &blocks[i], NULL), GM_OK);
    adopt_scene_ok(gm_pool_destroy(pools[i], &err), &err);
  }
  for (int i = 0; i < CARDS; i++) adopt_scene_ok(gm_device_close(devices[i], &err), &err);
  adopt_scene_ok(gm_context_destroy(ctx, &err), &err);
  if (cuda_script("leaks", left, sizeof left)) fail_msg("left at the driver:\n%s", left);
  free(want);
  free(got);
  return 0;
}

static gm_peer_result copy(void) {
  gm_error err;
  gm_peer_result result = {.struct_size = sizeof result};
  adopt_scene_ok(gm_block_copy_peer(pools[1], &blocks[1], 0, pools[0], &blocks[0], 0, BYTES, NULL, NULL, &result, &err),
                 &err);
  assert_int_equal(result.route, GM_PEER_STAGED_BY_GM);
  assert_true(result.pinned);
  return result;
}

/* How long a copy took, in seconds of the model's clock. */
static double time_of_a_copy(const char *links) {
  gm_error err;
  cuda_say(links);
  copy();
  link_journal_take(&journal, journal_copy);
  cuda_say("set LINK off");
  adopt_scene_ok(gm_block_read(pools[1], &blocks[1], 0, got, BYTES, NULL, NULL, &err), &err);
  assert_memory_equal(want, got, BYTES);
  assert_int_equal(link_bytes(&journal, GM__LINK_H2D), BYTES);
  assert_int_equal(link_bytes(&journal, GM__LINK_D2H), BYTES);
  return (double)link_makespan(&journal) * 1e-9;
}

static double largest_piece(void) {
  uint64_t most = 0;
  for (size_t i = 0; i < journal.count; i++) most = journal.lines[i].bytes > most ? journal.lines[i].bytes : most;
  return (double)most;
}

/* The narrower link is never idle: beside it takes only the first piece, or the last one, on the other link. */
static void a_copy_goes_at_the_rate_of_the_narrower_link(void **state) {
  static const struct {
    const char *links;
    double narrow, wide; /* bytes per second */
  } cases[] = {{"set LINK h2d:25000,d2h:12000", 12e9, 25e9},
               {"set LINK h2d:6000,d2h:24000", 6e9, 24e9},
               {"set LINK h2d:20000,d2h:20000", 20e9, 20e9}};
  (void)state;
  copy(); /* the ring is there, and the pair is known */
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const double took = time_of_a_copy(cases[i].links);
    const double bound = BYTES / cases[i].narrow, slot = largest_piece() / cases[i].wide;
    assert_true(took >= bound);
    if (took > 1.01 * bound + slot) fail_msg("%s: %g s, not %g + %g", cases[i].links, took, bound, slot);
  }
}

/* The control: one piece under way at a time takes the sum of both links, so the test above can fail. */
static void one_slot_takes_the_sum_of_both_links(void **state) {
  gm_error err;
  (void)state;
  adopt_scene_ok(gm__staging_shape(devices[1], 1, 4 << 20, &err), &err);
  copy();
  const double took = time_of_a_copy("set LINK h2d:20000,d2h:20000");
  assert_true(took > 1.99 * BYTES / 20e9);
}

static void both_devices_count_a_copy(void **state) {
  gm_error err;
  gm_transfer_totals totals[CARDS] = {{.struct_size = sizeof *totals}, {.struct_size = sizeof *totals}};
  (void)state;
  copy();
  for (int i = 0; i < CARDS; i++) adopt_scene_ok(gm_device_transfer_totals(devices[i], &totals[i], &err), &err);
  assert_true(totals[0].users == 1 && totals[0].down_bytes == BYTES && totals[0].up_bytes == 0);
  assert_true(totals[1].users == 1 && totals[1].up_bytes == BYTES && totals[1].down_bytes == 0);
  assert_true(totals[0].seconds > 0 && totals[1].seconds > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_copy_goes_at_the_rate_of_the_narrower_link, begin, end),
      cmocka_unit_test_setup_teardown(both_devices_count_a_copy, begin, end),
      cmocka_unit_test_setup_teardown(one_slot_takes_the_sum_of_both_links, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
