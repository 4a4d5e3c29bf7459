/* Eight processes, with two threads each, race for two cards: at no time is more promised than a card has. Then holders
 * are killed at random, and afterwards everything can be promised again. Memory that all share is the oracle. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "support/great_many.h"
#include "support/promise_scene.h"
#include "support/random.h"

enum { RACERS = 8, CARDS = 2, CARD = 1000, TURNS = 1000, KILLS = 60 };

/* A racer writes its own row, and only in the card's turn. */
typedef struct race_oracle {
  _Atomic uint64_t held[RACERS][CARDS]; /* what the racer was told that it has */
  _Atomic bool dying[RACERS];           /* it gets a signal; it counts no more */
  _Atomic uint64_t started, granted, refused, wrong, failed;
  bool kills; /* what a dying racer holds is not sure */
} race_oracle;

static race_oracle *oracle;
static gm__promise_file racer_file;
static uint32_t racer;

static const uint8_t *race_card(uint32_t card) { return card ? scene_other_card : scene_card; }

static uint64_t oracle_others(uint32_t card) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < RACERS; i++) {
    if (i != racer && !oracle->dying[i]) sum += oracle->held[i][card];
  }
  return sum;
}

/* It wants up to a half of the card. */
static void race_turn(uint32_t card, uint64_t *seed) {
  gm__promise_turn turn;
  gm__promise_others others;
  const uint64_t want = test_random(seed) % 3 ? test_random(seed) % (CARD / 2 + 1) : 0;
  gm_status status = gm__promise_file_begin(&racer_file, race_card(card), true, &turn, &others, NULL);
  if (status == GM_ERR_TIMEOUT) return; /* a busy machine */
  if (status) {
    oracle->failed++;
    return;
  }
  if (!oracle->kills && others.bytes != oracle_others(card)) oracle->wrong++;
  if (others.bytes + want > CARD) {
    oracle->refused++;
    gm__promise_file_abandon(&racer_file, &turn);
    return;
  }
  oracle->held[racer][card] = want;
  if (oracle_others(card) + want > CARD) oracle->wrong++;
  if (gm__promise_file_end(&racer_file, &turn, want, NULL)) oracle->failed++;
  oracle->granted += want > 0;
}

static void *race_thread(void *arg) {
  const uint32_t card = *(const uint32_t *)arg;
  uint64_t seed = racer * CARDS + card + ((uint64_t)getpid() << 32);
  /* Few turns may refuse nothing, so all go on until one does. */
  for (size_t i = 0; i < great_many(TURNS) || oracle->kills || !oracle->refused; i++) race_turn(card, &seed);
  return NULL;
}

static void race_run(promise_scene *scene) {
  static const uint32_t cards[CARDS] = {0, 1};
  pthread_t threads[CARDS];
  scene_open(scene, &racer_file);
  oracle->started++;
  while (oracle->started < RACERS) gm__sleep_ns(100000);
  for (uint32_t i = 0; i < CARDS; i++) {
    if (pthread_create(&threads[i], NULL, race_thread, (void *)(uintptr_t)&cards[i])) _exit(1);
  }
  for (uint32_t i = 0; i < CARDS; i++) pthread_join(threads[i], NULL);
  for (uint32_t i = 0; i < CARDS; i++) {
    gm__promise_turn turn;
    gm__promise_others others;
    while (gm__promise_file_begin(&racer_file, race_card(i), false, &turn, &others, NULL) == GM_ERR_TIMEOUT) continue;
    oracle->held[racer][i] = 0;
    if (gm__promise_file_end(&racer_file, &turn, 0, NULL)) oracle->failed++;
  }
  gm__promise_file_close(&racer_file);
}

static pid_t race_start(promise_scene *scene, uint32_t number) {
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    racer = number;
    race_run(scene);
    _exit(0);
  }
  return child;
}

static void oracle_make(bool kills) {
  oracle = mmap(NULL, sizeof *oracle, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(oracle != MAP_FAILED);
  oracle->kills = kills;
}

/* All is well, and the cards are free again. */
static void oracle_check(promise_scene *scene) {
  gm__promise_file file;
  assert_int_equal(oracle->wrong, 0);
  assert_int_equal(oracle->failed, 0);
  assert_true(oracle->granted > 0 && oracle->refused > 0);
  scene_open(scene, &file);
  for (uint32_t i = 0; i < CARDS; i++) assert_int_equal(scene_others_on(&file, race_card(i)), 0);
  scene_promise(&file, CARD);
  gm__promise_file_close(&file);
  assert_int_equal(munmap(oracle, sizeof *oracle), 0);
}

static void test_never_more_than_the_card_has(void **state) {
  pid_t children[RACERS];
  int status = 1;
  oracle_make(false);
  for (uint32_t i = 0; i < RACERS; i++) children[i] = race_start(*state, i);
  for (uint32_t i = 0; i < RACERS; i++) {
    assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    assert_int_equal(status, 0);
  }
  oracle_check(*state);
}

static void race_kill(uint32_t number, pid_t child) {
  oracle->dying[number] = true;
  scene_kill(child);
  for (uint32_t card = 0; card < CARDS; card++) oracle->held[number][card] = 0;
  oracle->dying[number] = false;
}

static void test_killed_holders_hold_nothing(void **state) {
  pid_t children[RACERS];
  uint64_t seed = 3;
  oracle_make(true);
  for (uint32_t i = 0; i < RACERS; i++) children[i] = race_start(*state, i);
  for (int i = 0; i < KILLS; i++) {
    const uint32_t victim = (uint32_t)(test_random(&seed) % RACERS);
    const uint64_t before = oracle->granted;
    while (oracle->granted < before + 3 && !oracle->wrong && !oracle->failed) gm__sleep_ns(1000000);
    race_kill(victim, children[victim]);
    children[victim] = race_start(*state, victim);
  }
  while (oracle->refused == 0 && !oracle->wrong && !oracle->failed) gm__sleep_ns(1000000);
  for (uint32_t i = 0; i < RACERS; i++) race_kill(i, children[i]);
  oracle_check(*state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, promise_scene_set_up, promise_scene_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(test_never_more_than_the_card_has), TEST(test_killed_holders_hold_nothing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
