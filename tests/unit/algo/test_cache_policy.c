/* Which entry of a cache goes: the policies against plain models, and their hits against LRU and Belady's optimum. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/algo/cache_policy.h"
#include "support/random.h"

enum { KEYS = 60 }; /* four for each of the first sets of ghosts: none is forgotten for want of room */

static uint64_t hash_of(uint64_t key) { return (key + 1) << 32 | key; }

/* ---- a plain model: arrays, oldest first ---- */

typedef struct model {
  gm__cache_kind kind;
  unsigned keys[2][KEYS]; /* small, main */
  size_t counts[2];
  unsigned touches[KEYS];
  uint64_t weights[KEYS];
  uint32_t evictions, gone[KEYS]; /* the number of its eviction, from 1; 0: not remembered */
} model;

static uint64_t model_weight(const model *m, int queue) {
  uint64_t weight = 0;
  for (size_t i = 0; i < m->counts[queue]; i++) weight += m->weights[m->keys[queue][i]];
  return weight;
}

static void model_push(model *m, int queue, unsigned key) { m->keys[queue][m->counts[queue]++] = key; }

static int model_remove(model *m, unsigned key) {
  for (int queue = 0; queue < 2; queue++) {
    for (size_t i = 0; i < m->counts[queue]; i++) {
      if (m->keys[queue][i] != key) continue;
      memmove(&m->keys[queue][i], &m->keys[queue][i + 1], (m->counts[queue] - i - 1) * sizeof(unsigned));
      m->counts[queue]--;
      return queue;
    }
  }
  return -1;
}

static void model_insert(model *m, unsigned key) {
  const bool known = m->gone[key] && m->evictions - m->gone[key] <= m->counts[0] + m->counts[1];
  m->gone[key] = 0;
  m->touches[key] = 0;
  model_push(m, m->kind == GM__CACHE_LRU || known, key);
}

static void model_touch(model *m, unsigned key) {
  if (m->touches[key] < 3) m->touches[key]++;
  if (m->kind == GM__CACHE_LRU && model_remove(m, key) >= 0) model_push(m, 1, key);
}

static int model_victim(model *m) {
  while (m->counts[0] + m->counts[1]) {
    const uint64_t small_weight = model_weight(m, 0), all = small_weight + model_weight(m, 1);
    const int queue = !m->counts[1] ? 0 : !m->counts[0] ? 1 : small_weight > all / 10 ? 0 : 1;
    const unsigned key = m->keys[queue][0];
    if (m->kind == GM__CACHE_LRU || !m->touches[key]) return (int)key;
    m->touches[key] = queue ? m->touches[key] - 1 : 0;
    model_remove(m, key);
    model_push(m, 1, key);
  }
  return -1;
}

static void model_evict(model *m, unsigned key) {
  m->evictions++;
  if (model_remove(m, key) == 0) m->gone[key] = m->evictions;
}

/* ---- the policy beside it ---- */

static void expect_queue(const model *m, int queue, const gm__cache_queue *has, const gm__cache_entry *entries) {
  assert_int_equal(has->count, m->counts[queue]);
  assert_int_equal(has->weight, model_weight(m, queue));
  const gm__cache_entry *entry = has->oldest;
  for (size_t i = 0; i < m->counts[queue]; i++, entry = entry->newer) {
    assert_ptr_equal(entry, &entries[m->keys[queue][i]]);
    assert_ptr_equal(entry->newer ? entry->newer->older : has->newest, entry);
  }
  assert_null(entry);
}

static void run_model(gm__cache_kind kind, uint64_t seed) {
  static gm__cache_entry entries[KEYS];
  static model m;
  gm__cache_policy policy;
  bool aside[KEYS] = {false};
  int back[KEYS] = {0};
  memset(entries, 0, sizeof entries);
  m = (model){.kind = kind};
  gm__cache_policy_init(&policy, kind, NULL);
  for (int step = 0; step < 20000; step++) {
    const unsigned key = (unsigned)(test_random(&seed) % KEYS);
    gm__cache_entry *entry = &entries[key];
    const unsigned what = (unsigned)(test_random(&seed) % 16);
    if (aside[key]) {
      gm__cache_policy_touch(&policy, entry);
      model_touch(&m, key);
      gm__cache_policy_resume(&policy, entry);
      model_push(&m, back[key], key);
      aside[key] = false;
    } else if (what < 9 && !entry->place) {
      entry->hash = hash_of(key);
      m.weights[key] = entry->weight = test_log_uniform(&seed, 1000) - 1;
      gm__cache_policy_insert(&policy, entry);
      model_insert(&m, key);
    } else if (what < 9) {
      gm__cache_policy_touch(&policy, entry);
      model_touch(&m, key);
    } else if (what == 9) {
      aside[key] = entry->place != 0;
      const int queue = model_remove(&m, key);
      const bool before_turn = step % 2 && aside[key];
      if (before_turn) gm__cache_policy_pause(&policy, entry);
      if (!before_turn) gm__cache_policy_remove(&policy, entry);
      back[key] = before_turn ? queue : 1;
      assert_int_equal(entry->place, GM__CACHE_NOWHERE);
    } else {
      gm__cache_entry *victim = gm__cache_policy_victim(&policy);
      const int expected = model_victim(&m);
      assert_ptr_equal(victim, expected < 0 ? NULL : &entries[expected]);
      if (victim && what != 15) {
        gm__cache_policy_evict(&policy, victim);
        model_evict(&m, (unsigned)expected);
      }
    }
    expect_queue(&m, 0, &policy.queues[GM__CACHE_SMALL], entries);
    expect_queue(&m, 1, &policy.queues[GM__CACHE_MAIN], entries);
  }
  gm__cache_policy_end(&policy);
}

static void test_s3fifo_is_its_model(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 5; seed++) run_model(GM__CACHE_S3FIFO, seed);
}

static void test_lru_is_its_model(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 5; seed++) run_model(GM__CACHE_LRU, seed);
}

/* The memory grows by a set with an eviction, and forgets nothing on the way: what went lately is known. */
static void test_what_comes_back_soon_is_known(void **state) {
  enum { MANY = 4096, GONE = MANY / 2, LATELY = MANY / 4 };
  (void)state;
  static gm__cache_entry entries[MANY];
  gm__cache_policy policy;
  size_t known = 0;
  gm__cache_policy_init(&policy, GM__CACHE_S3FIFO, NULL);
  for (uint64_t i = 0; i < MANY; i++) {
    entries[i] = (gm__cache_entry){.hash = (i + 1) * UINT64_C(0x9e3779b97f4a7c15), .weight = 1};
    gm__cache_policy_insert(&policy, &entries[i]);
  }
  for (size_t i = 0; i < GONE; i++) {
    const size_t sets = policy.ghosts.count;
    gm__cache_entry *victim = gm__cache_policy_victim(&policy);
    assert_ptr_equal(victim, &entries[i]);
    gm__cache_policy_evict(&policy, victim);
    assert_true(policy.ghosts.count <= (sets ? sets + 1 : GM__PLACES_LEAST));
  }
  for (size_t i = GONE - LATELY; i < GONE; i++) {
    gm__cache_policy_insert(&policy, &entries[i]);
    known += entries[i].place == GM__CACHE_MAIN;
  }
  assert_true(known > LATELY * 97 / 100); /* five that share a set of four are rare */
  gm__cache_policy_end(&policy);
}

/* ---- hits ---- */

typedef struct accesses {
  unsigned *keys;
  size_t count, most;
  unsigned known; /* keys are below */
} accesses;

static void accesses_add(accesses *a, unsigned key) {
  assert_true(a->count < a->most);
  a->keys[a->count++] = key;
  if (key >= a->known) a->known = key + 1;
}

static accesses accesses_new(size_t most) {
  accesses a = {.keys = calloc(most, sizeof(unsigned)), .most = most};
  assert_non_null(a.keys);
  return a;
}

/* `count` accesses to `keys` keys, of which number i comes with a likelihood of 1/i. */
static void add_zipf(accesses *a, size_t count, unsigned keys, uint64_t *seed) {
  double *sums = calloc(keys, sizeof *sums), sum = 0;
  assert_non_null(sums);
  for (unsigned i = 0; i < keys; i++) sums[i] = sum += 1.0 / (i + 1);
  while (count--) {
    const double at = (double)(test_random(seed) >> 11) * 0x1p-53 * sum;
    unsigned low = 0, high = keys - 1;
    while (low < high) {
      const unsigned middle = low + (high - low) / 2;
      if (sums[middle] > at)
        high = middle;
      else
        low = middle + 1;
    }
    accesses_add(a, low);
  }
  free(sums);
}

static size_t hits_of(const accesses *a, gm__cache_kind kind, size_t room) {
  gm__cache_entry *entries = calloc(a->known, sizeof *entries);
  size_t hits = 0, used = 0;
  assert_non_null(entries);
  gm__cache_policy policy;
  gm__cache_policy_init(&policy, kind, NULL);
  for (size_t i = 0; i < a->count; i++) {
    gm__cache_entry *entry = &entries[a->keys[i]];
    if (entry->place) {
      gm__cache_policy_touch(&policy, entry);
      hits++;
      continue;
    }
    if (used == room)
      gm__cache_policy_evict(&policy, gm__cache_policy_victim(&policy));
    else
      used++;
    uint64_t state = a->keys[i];
    entry->hash = test_random(&state);
    entry->weight = 1;
    gm__cache_policy_insert(&policy, entry);
  }
  free(entries);
  gm__cache_policy_end(&policy);
  return hits;
}

/* Belady: what is needed again last goes. */
static size_t best_hits(const accesses *a, size_t room) {
  size_t *next = calloc(a->count, sizeof *next), *last = calloc(a->known, sizeof *last);
  size_t *needed = calloc(room, sizeof *needed), *place = calloc(a->known, sizeof *place); /* place + 1 */
  unsigned *keys = calloc(room, sizeof *keys);
  size_t hits = 0, used = 0;
  assert_true(next && last && needed && place && keys);
  for (size_t i = a->count; i--; last[a->keys[i]] = i) next[i] = last[a->keys[i]] ? last[a->keys[i]] : SIZE_MAX;
  for (size_t i = 0; i < a->count; i++) {
    size_t at = place[a->keys[i]];
    if (at) {
      hits++;
      needed[at - 1] = next[i];
      continue;
    }
    if (used < room) {
      at = used++;
    } else {
      for (size_t j = at = 0; j < room; j++) at = needed[j] > needed[at] ? j : at;
      place[keys[at]] = 0;
    }
    keys[at] = a->keys[i];
    needed[at] = next[i];
    place[keys[at]] = at + 1;
  }
  free(next), free(last), free(needed), free(place), free(keys);
  return hits;
}

typedef struct hit_counts {
  size_t s3fifo, lru, best;
} hit_counts;

static hit_counts count_hits(const char *name, accesses *a, size_t room) {
  const hit_counts hits = {hits_of(a, GM__CACHE_S3FIFO, room), hits_of(a, GM__CACHE_LRU, room), best_hits(a, room)};
  print_message("%s: %zu accesses, room for %zu: LRU %zu hits, S3-FIFO %zu, Belady %zu\n", name, a->count, room,
                hits.lru, hits.s3fifo, hits.best);
  free(a->keys);
  assert_true(hits.s3fifo <= hits.best && hits.lru <= hits.best); /* else nobody could believe the counts */
  return hits;
}

static void test_hits_on_zipf(void **state) {
  (void)state;
  uint64_t seed = 1;
  accesses a = accesses_new(60000);
  add_zipf(&a, 60000, 10000, &seed);
  const hit_counts hits = count_hits("zipf", &a, 400);
  assert_true(hits.s3fifo * 100 >= hits.lru * 110);
  assert_true(hits.s3fifo * 100 >= hits.best * 85);
}

static void test_hits_with_scans(void **state) {
  (void)state;
  uint64_t seed = 2;
  accesses a = accesses_new(61250);
  for (unsigned round = 0; round < 35; round++) {
    add_zipf(&a, 1000, 2000, &seed);
    for (unsigned i = 0; i < 750; i++) accesses_add(&a, 2000 + round * 750 + i); /* once, and never again */
  }
  const hit_counts hits = count_hits("zipf and scans", &a, 300);
  assert_true(hits.s3fifo * 100 >= hits.lru * 115);
  assert_true(hits.s3fifo * 100 >= hits.best * 85);
}

static void test_hits_on_a_loop(void **state) {
  (void)state;
  accesses a = accesses_new(60000);
  for (unsigned i = 0; i < 60000; i++) accesses_add(&a, i % 440);
  const hit_counts hits = count_hits("loop", &a, 400);
  assert_int_equal(hits.lru, 0);
  assert_true(hits.s3fifo * 100 >= hits.best * 75);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_s3fifo_is_its_model),
      cmocka_unit_test(test_lru_is_its_model),
      cmocka_unit_test(test_what_comes_back_soon_is_known),
      cmocka_unit_test(test_hits_on_zipf),
      cmocka_unit_test(test_hits_with_scans),
      cmocka_unit_test(test_hits_on_a_loop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
