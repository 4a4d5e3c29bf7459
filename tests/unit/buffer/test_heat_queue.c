/* The queue of buffers by heat, against a search through all nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/buffer/buffer.h"
#include "support/random.h"

enum { NODES = 200, TURNS = 20000 };

typedef struct scene {
  gm__heat_queue queue;
  gm__heat_node nodes[NODES];
  uint64_t end[NODES];
  bool in[NODES];
  uint64_t now, seed;
} scene;

/* When the heat of a node ends, as the queue tells ends apart. */
static uint64_t end_of(const scene *s, const gm__heat_node *node) {
  const uint64_t end = s->end[node - s->nodes];
  return end <= s->now ? s->now : end;
}

static void change(scene *s, size_t i) {
  if (s->in[i]) {
    gm__heat_node_leave(&s->nodes[i]);
    gm__heat_node_leave(&s->nodes[i]); /* nothing */
  } else {
    s->end[i] = test_random(&s->seed) % 4 ? s->now + test_random(&s->seed) % GM__HEAT_SLOTS : 0;
    gm__heat_queue_join(&s->queue, &s->nodes[i], s->now, s->end[i]);
  }
  s->in[i] = !s->in[i];
}

static void check(scene *s) {
  const gm__heat_node *cold = gm__heat_queue_coldest(&s->queue, s->now),
                      *hot = gm__heat_queue_hottest(&s->queue, s->now);
  uint64_t least = UINT64_MAX, most = 0;
  for (size_t i = 0; i < NODES; i++) {
    if (!s->in[i]) continue;
    const uint64_t end = end_of(s, &s->nodes[i]);
    if (end < least) least = end;
    if (end > most) most = end;
  }
  assert_int_equal(cold != NULL, least != UINT64_MAX);
  assert_int_equal(hot != NULL, cold != NULL);
  if (!cold) return;
  assert_true(end_of(s, cold) == least);
  assert_true(end_of(s, hot) == most);
}

/* Time stands still, goes on turn by turn, and makes jumps, short and long. */
static void test_as_a_search_through_all(void **state) {
  (void)state;
  static const uint64_t steps[] = {0, 0, 0, 0, 0, 1, 1, 5, 60, 500};
  static scene s;
  s.seed = 5;
  gm__heat_queue_init(&s.queue);
  for (int turn = 0; turn < TURNS; turn++) {
    change(&s, test_random(&s.seed) % NODES);
    if (test_random(&s.seed) % 20 == 0) s.now += steps[test_random(&s.seed) % (sizeof steps / sizeof *steps)];
    check(&s);
  }
}

/* Those of one slot go as they came, and those that are hotter than all slots share the last one. */
static void test_who_came_first_goes_first(void **state) {
  (void)state;
  static gm__heat_queue queue;
  gm__heat_node nodes[4] = {{0}};
  gm__heat_queue_init(&queue);
  for (int i = 0; i < 2; i++) gm__heat_queue_join(&queue, &nodes[i], 10, UINT64_MAX / 2 - (uint64_t)i);
  for (int i = 2; i < 4; i++) gm__heat_queue_join(&queue, &nodes[i], 10, 20);
  assert_ptr_equal(gm__heat_queue_coldest(&queue, 10), &nodes[2]);
  assert_ptr_equal(gm__heat_queue_hottest(&queue, 10), &nodes[1]);
  assert_ptr_equal(gm__heat_queue_coldest(&queue, 1000), &nodes[2]); /* all are cold now, and keep their order */
  assert_ptr_equal(gm__heat_queue_hottest(&queue, 1000), &nodes[1]);
  for (int i = 0; i < 4; i++) gm__heat_node_leave(&nodes[i]);
  assert_null(gm__heat_queue_coldest(&queue, 1000));
  assert_null(gm__heat_queue_hottest(&queue, 1000));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_a_search_through_all),
                                     cmocka_unit_test(test_who_came_first_goes_first)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
