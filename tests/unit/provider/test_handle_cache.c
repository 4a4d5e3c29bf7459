/* Spare handles: the same answers as from a walk over all of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/provider/handle_cache.h"
#include "support/random.h"

enum { COUNT = 600 };

typedef struct bench {
  gm__handle_cache spare;
  gm__handle handles[COUNT + 1];
  bool in[COUNT + 1];
  uint64_t came[COUNT + 1], clock;
} bench;

static void put(bench *self, uint32_t number, uint32_t pages) {
  self->handles[number].pages = pages;
  self->in[number] = true;
  self->came[number] = ++self->clock;
  gm__handle_cache_put(&self->spare, self->handles, number);
}

static bool is_better(const bench *self, uint32_t one, uint32_t other, uint32_t most) {
  const uint32_t a = self->handles[one].pages, b = self->handles[other].pages;
  if (a == b) return self->came[one] > self->came[other];
  if (a <= most) return b > most || a > b;
  return a < b;
}

static uint32_t expected(const bench *self, uint32_t most, uint32_t reach) {
  uint32_t best = 0;
  for (uint32_t i = 1; i <= COUNT; i++) {
    if (!self->in[i] || self->handles[i].pages > reach) continue;
    if (!best || is_better(self, i, best, most)) best = i;
  }
  return best;
}

static void check_take(bench *self, uint32_t most, uint32_t reach) {
  const uint32_t number = expected(self, most, reach);
  assert_int_equal(gm__handle_cache_take(&self->spare, self->handles, most, reach), number);
  self->in[number] = false;
}

static uint32_t some_pages(uint64_t *random) {
  static const uint32_t odd[] = {1, 63, 64, 127, 128, 129, 8191, 8192, 100000, UINT32_MAX};
  if (test_random(random) % 4 == 0) return odd[test_random(random) % (sizeof odd / sizeof *odd)];
  return (uint32_t)test_log_uniform(random, UINT64_C(1) << 20);
}

static void test_the_answers_of_a_walk(void **state) {
  (void)state;
  static bench self;
  uint64_t random = 3;
  for (int turn = 0; turn < 60000; turn++) {
    const uint32_t number = 1 + (uint32_t)(test_random(&random) % COUNT), most = some_pages(&random);
    if (turn / 3000 % 2 ? test_random(&random) % 3 == 0 : test_random(&random) % 3 != 0) {
      if (!self.in[number]) put(&self, number, most);
    } else {
      const uint32_t more = some_pages(&random);
      check_take(&self, most, more > UINT32_MAX - most ? UINT32_MAX : most + more - 1);
    }
  }
  for (int i = 0; i <= COUNT; i++) check_take(&self, UINT32_MAX, UINT32_MAX);
  assert_int_equal(gm__handle_cache_take(&self.spare, self.handles, UINT32_MAX, UINT32_MAX), 0);
}

static void test_nothing_within_reach(void **state) {
  (void)state;
  static bench self;
  assert_int_equal(gm__handle_cache_take(&self.spare, self.handles, 1, UINT32_MAX), 0);
  put(&self, 1, 130);
  put(&self, 2, 131); /* of the same bin */
  assert_int_equal(gm__handle_cache_take(&self.spare, self.handles, 1, 129), 0);
  check_take(&self, 129, 130);
  assert_int_equal(gm__handle_cache_take(&self.spare, self.handles, 130, 130), 0);
  check_take(&self, 130, 131);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_answers_of_a_walk),
      cmocka_unit_test(test_nothing_within_reach),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
