/* Plans of compactions, on figures alone: each is carried out move by move on a map of who has which byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/alloc.h"
#include "core/buffer/compact_plan.h"
#include "support/random.h"

enum { PLACES = 6, BYTES = 400, PIECES = 1500 };

/* A heap of few bytes: who has which byte, and where each piece is. Piece 0 is nobody. */
typedef struct scene {
  int owner[PLACES][BYTES];
  struct {
    uint32_t place;
    uint64_t address, bytes, align;
    bool moves;
  } pieces[PIECES];
  int count;
} scene;

/* Fills the places with pieces and holes. One of `fixed` pieces stays; 0: none does. */
static void scene_fill(scene *self, uint64_t *seed, unsigned fixed) {
  static const uint64_t most[] = {4, 20, 60};
  self->count = 1;
  memset(self->owner, 0, sizeof self->owner);
  for (uint32_t place = 0; place < PLACES; place++) {
    const uint64_t largest = most[test_random(seed) % 3], sparse = test_random(seed) % 5;
    const bool all_move = test_random(seed) % 2;
    for (uint64_t at = test_random(seed) % 8; at < BYTES;) {
      const uint64_t align = test_random(seed) % 8 ? 1 : 8, bytes = 1 + test_random(seed) % largest;
      at = (at + align - 1) / align * align;
      if (at + bytes > BYTES) break;
      self->pieces[self->count].place = place;
      self->pieces[self->count].address = at;
      self->pieces[self->count].bytes = bytes;
      self->pieces[self->count].align = align;
      self->pieces[self->count].moves = all_move || !fixed || test_random(seed) % fixed;
      for (uint64_t i = 0; i < bytes; i++) self->owner[place][at + i] = self->count;
      self->count++;
      at += bytes + (sparse ? test_random(seed) % (sparse * largest) : 0);
    }
  }
}

/* Bytes of all holes but the largest; where nobody is, there is no hole. */
static uint64_t scene_scattered(const scene *self) {
  uint64_t all = 0, largest = 0;
  for (int place = 0; place < PLACES; place++) {
    uint64_t free_bytes = 0, most = 0;
    for (int at = 0, row = 0; at < BYTES; at++) {
      row = self->owner[place][at] ? 0 : row + 1;
      free_bytes += row != 0;
      most = (uint64_t)row > most ? (uint64_t)row : most;
    }
    if (free_bytes == BYTES) continue;
    all += free_bytes;
    largest = most > largest ? most : largest;
  }
  return all - largest;
}

static int scene_empty_places(const scene *self) {
  int empty = PLACES;
  for (uint32_t place = 0; place < PLACES; place++) {
    for (int i = 1, any = 0; i < self->count && !any; i++) {
      any = self->pieces[i].place == place;
      empty -= any;
    }
  }
  return empty;
}

static void scene_plan(const scene *self, gm__plan *plan, bool apart, uint64_t goal) {
  *plan = (gm__plan){.services = gm__default_services()};
  for (uint32_t place = 0; place < PLACES; place++) {
    const gm__plan_place at = {.memory = place + 1, .bytes = BYTES, .align = 64, .group = 7, .apart = apart};
    assert_true(gm__plan_add_place(plan, &at));
    for (uint64_t byte = 0; byte < BYTES; byte++) {
      const int i = self->owner[place][byte];
      if (!i || self->pieces[i].address != byte) continue;
      const gm__plan_piece piece = {.address = byte,
                                    .bytes = self->pieces[i].bytes,
                                    .align = self->pieces[i].align,
                                    .slack = self->pieces[i].align - 1,
                                    .chunk = (uint32_t)i,
                                    .moves = self->pieces[i].moves};
      assert_true(gm__plan_add_piece(plan, &piece));
    }
    if (plan->count == plan->places[plan->place_count - 1].first) gm__plan_drop_place(plan);
  }
  assert_true(gm__plan_make(plan, goal));
}

static void scene_own(scene *self, int i, int owner) {
  for (uint64_t byte = 0; byte < self->pieces[i].bytes; byte++) {
    int *at = &self->owner[self->pieces[i].place][self->pieces[i].address + byte];
    assert_int_equal(*at, owner ? 0 : i); /* nobody is where it goes */
    *at = owner;
  }
}

/* Carries out one move: to room that is free before the piece goes. */
static void scene_move(scene *self, const gm__plan *plan, const gm__plan_piece *piece, bool *moved) {
  const int i = (int)piece->chunk;
  const scene before = *self;
  assert_true(self->pieces[i].moves);
  assert_false(moved[i]);
  moved[i] = true;
  scene_own(self, i, 0);
  self->pieces[i].place = (uint32_t)plan->places[piece->to_place].memory - 1;
  self->pieces[i].address = piece->to;
  scene_own(self, i, i);
  for (uint64_t byte = 0; byte < piece->bytes; byte++) {
    assert_int_equal(before.owner[self->pieces[i].place][piece->to + byte], 0);
  }
  assert_int_equal(piece->to % self->pieces[i].align, 0);
}

/* Returns how many moves the plan had. */
static int scene_carry_out(scene *self, const gm__plan *plan) {
  bool moved[PIECES] = {false};
  int moves = 0;
  for (size_t i = 0; i < plan->count; i++) {
    if (!gm__plan_is_move(&plan->pieces[i])) continue;
    scene_move(self, plan, &plan->pieces[i], moved);
    moves++;
  }
  return moves;
}

static int scene_compact(scene *self, bool apart, uint64_t goal) {
  gm__plan plan;
  scene_plan(self, &plan, apart, goal);
  const int moves = scene_carry_out(self, &plan);
  gm__plan_clear(&plan);
  return moves;
}

static void test_plans_of_random_heaps(void **state) {
  (void)state;
  static scene self;
  int emptied = 0, moves = 0;
  for (uint64_t start = 1; start <= 400; start++) {
    uint64_t seed = start;
    scene_fill(&self, &seed, start % 4 ? (unsigned)(start % 16) : 0);
    const uint64_t scattered = scene_scattered(&self);
    const int empty = scene_empty_places(&self);
    moves += scene_compact(&self, false, UINT64_MAX);
    emptied += scene_empty_places(&self) - empty;
    assert_true(scene_scattered(&self) <= scattered);
    assert_int_equal(scene_compact(&self, false, UINT64_MAX), 0);
  }
  printf("  400 heaps: %d moves empty %d of %d segments\n", moves, emptied, 400 * PLACES);
  assert_true(emptied > 400);
}

/* No piece comes into another place of pages. */
static void test_places_apart_keep_their_pieces(void **state) {
  (void)state;
  static scene self, before;
  for (uint64_t start = 1; start <= 50; start++) {
    uint64_t seed = start;
    scene_fill(&self, &seed, 9);
    before = self;
    scene_compact(&self, true, UINT64_MAX);
    for (int i = 1; i < self.count; i++) {
      assert_int_equal(self.pieces[i].place, before.pieces[i].place);
      assert_true(self.pieces[i].address <= before.pieces[i].address);
    }
  }
}

/* Six places have one small piece each: as many go as the goal asks. */
static void test_a_goal_bounds_what_is_emptied(void **state) {
  (void)state;
  for (uint64_t goal = 0; goal < 5; goal++) {
    static scene self;
    memset(&self, 0, sizeof self);
    self.count = 1;
    for (uint32_t place = 0; place < PLACES; place++, self.count++) {
      self.pieces[self.count].place = place;
      self.pieces[self.count].bytes = self.pieces[self.count].align = 1;
      self.pieces[self.count].moves = true;
      self.owner[place][0] = self.count;
    }
    assert_int_equal(scene_compact(&self, false, goal * BYTES), goal);
    assert_int_equal(scene_empty_places(&self), goal);
  }
}

/* Beside as many pieces and holes as servers have, a plan that looked at all holes for each piece would take minutes.
 */
static void test_a_plan_of_many_pieces(void **state) {
  (void)state;
  enum { MANY = 100000, SEGMENTS = 100 };
  gm__plan plan = {.services = gm__default_services()};
  uint64_t seed = 5;
  for (int i = 0; i < MANY; i++) {
    if (i % (MANY / SEGMENTS) == 0) {
      const gm__plan_place at = {.memory = (uint64_t)i + 1, .bytes = MANY / SEGMENTS * 100, .align = 64};
      assert_true(gm__plan_add_place(&plan, &at));
    }
    const gm__plan_piece piece = {.address = (uint64_t)(i % (MANY / SEGMENTS)) * 100,
                                  .bytes = 1 + test_random(&seed) % 99,
                                  .align = 1,
                                  .moves = i % 7 != 0 || i > MANY / 2};
    assert_true(gm__plan_add_piece(&plan, &piece));
  }
  assert_true(gm__plan_make(&plan, UINT64_MAX));
  int moves = 0, left = 0;
  for (size_t i = 0; i < plan.count; i++) moves += gm__plan_is_move(&plan.pieces[i]);
  for (size_t i = 0; i < plan.place_count; i++) left += !plan.places[i].leaves;
  printf("  %d of %d pieces move, %d of %d segments are left\n", moves, MANY, left, SEGMENTS);
  assert_true(left < SEGMENTS * 3 / 4);
  gm__plan_clear(&plan);
}

/* Whichever host allocation fails, the plan says so and keeps none. */
static size_t calls, fails_at, live;

static void *failing_alloc(void *user, size_t bytes, size_t align) {
  (void)user, (void)align;
  if (++calls == fails_at) return NULL;
  live++;
  return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static void failing_release(void *user, void *ptr, size_t bytes) {
  (void)user, (void)bytes;
  live--;
  free(ptr);
}

static bool plan_of_many(const gm_services *services) {
  gm__plan plan = {.services = services};
  const gm__plan_place at = {.memory = 1, .bytes = 1000, .align = 64};
  bool done = gm__plan_add_place(&plan, &at);
  for (uint64_t i = 0; i < 100 && done; i++) {
    const gm__plan_piece piece = {.address = 10 * i + 5, .bytes = 5, .align = 1, .moves = true};
    done = gm__plan_add_piece(&plan, &piece);
  }
  done = done && gm__plan_make(&plan, UINT64_MAX);
  gm__plan_clear(&plan);
  return done;
}

static void test_a_plan_without_host_memory(void **state) {
  (void)state;
  const gm_services services = {.alloc = failing_alloc, .release = failing_release};
  bool done = false;
  for (fails_at = 1; !done && fails_at < 30; fails_at++) {
    calls = 0;
    done = plan_of_many(&services);
    assert_int_equal(live, 0);
    assert_true(done == (calls < fails_at));
  }
  assert_true(done);
  assert_true(fails_at > 6);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_plans_of_random_heaps),         cmocka_unit_test(test_places_apart_keep_their_pieces),
      cmocka_unit_test(test_a_goal_bounds_what_is_emptied), cmocka_unit_test(test_a_plan_of_many_pieces),
      cmocka_unit_test(test_a_plan_without_host_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
