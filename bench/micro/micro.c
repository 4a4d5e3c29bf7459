/* Invariant: sizes and places are drawn before the clock starts, the same for every peer. */
#include "bench/micro/micro.h"

#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/measure/ticks.h"
#include "bench/micro/crew.h"

enum { MICRO_BYTES = 1 << 20, MICRO_LIVE = 1000, MICRO_LOW = 12, MICRO_HIGH = 26, MICRO_RING = 1024 };

/* The least of several runs, after one that warms up. */
static int micro_repeat(const micro_params *params, crew_work *work, void *user, FILE *out) {
  uint64_t least = UINT64_MAX;
  for (unsigned run = 0; run <= params->runs; run++) {
    uint64_t took = crew_run(params->threads, work, user);
    if (took == 0) return -1;
    if (run > 0 && took < least) least = took;
  }
  fprintf(out, "ns_per_event %.17g\n", (double)least / (2.0 * (double)params->pairs * params->threads));
  return 0;
}

/* ---- the same size ---- */

typedef struct micro_pairs {
  const peer_library *peer;
  size_t pairs;
  atomic_uint_fast64_t failed;
} micro_pairs;

static void pair_work(void *user, unsigned thread) {
  micro_pairs *self = user;
  const peer_library *peer = self->peer;
  uint64_t failed = 0;
  for (size_t i = 0; i < self->pairs; i++) {
    void *block = peer->alloc(MICRO_BYTES, thread);
    if (block) {
      peer->free(block, MICRO_BYTES, thread);
    } else {
      failed++;
    }
  }
  self->failed += failed;
}

static void pair_quantiles(const micro_pairs *self, uint32_t *times, FILE *out) {
  ticks_scale scale = ticks_calibrate();
  for (size_t i = 0; i < self->pairs; i++) {
    uint64_t before = ticks_now();
    void *block = self->peer->alloc(MICRO_BYTES, 0);
    uint64_t between = ticks_now();
    if (block) self->peer->free(block, MICRO_BYTES, 0);
    times[i] = (uint32_t)(between - before);
    times[self->pairs + i] = (uint32_t)(ticks_now() - between);
  }
  for (int half = 0; half < 2; half++) {
    const char *what = half ? "free" : "alloc";
    uint32_t *part = times + (half ? self->pairs : 0);
    fprintf(out, "%s_p50 %.17g\n", what, ticks_quantile(&scale, part, self->pairs, 0.5));
    fprintf(out, "%s_p99 %.17g\n", what, ticks_quantile(&scale, part, self->pairs, 0.99));
  }
}

int micro_pair(const peer_library *peer, const micro_params *params, FILE *out) {
  micro_pairs self = {.peer = peer, .pairs = params->pairs};
  uint32_t *times = calloc(2 * params->pairs, sizeof *times);
  int result = times ? micro_repeat(params, pair_work, &self, out) : -1;
  if (result == 0 && params->threads == 1 && !params->plain) pair_quantiles(&self, times, out);
  fprintf(out, "failed %" PRIu64 "\n", (uint64_t)self.failed);
  free(times);
  return result;
}

/* ---- random sizes ---- */

typedef struct random_step {
  uint32_t bytes, place;
} random_step;

typedef struct random_thread {
  random_step *steps;
  void *blocks[MICRO_LIVE];
  uint32_t bytes[MICRO_LIVE];
  uint64_t failed;
} random_thread;

typedef struct micro_randoms {
  const peer_library *peer;
  size_t pairs;
  random_thread *threads;
} micro_randoms;

/* splitmix64 */
static uint64_t random_next(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

static uint32_t random_bytes(uint64_t *state) {
  double part = (double)(random_next(state) >> 11) / 9007199254740992.0;
  return (uint32_t)exp2(MICRO_LOW + part * (MICRO_HIGH - MICRO_LOW));
}

static void random_take(const peer_library *peer, random_thread *mine, uint32_t place, uint32_t bytes,
                        unsigned thread) {
  mine->bytes[place] = bytes;
  mine->blocks[place] = peer->alloc(bytes, thread);
  mine->failed += !mine->blocks[place];
}

static void random_work(void *user, unsigned thread) {
  const micro_randoms *self = user;
  random_thread *mine = &self->threads[thread];
  for (size_t i = 0; i < self->pairs; i++) {
    const random_step *step = &mine->steps[i];
    if (mine->blocks[step->place]) self->peer->free(mine->blocks[step->place], mine->bytes[step->place], thread);
    random_take(self->peer, mine, step->place, step->bytes, thread);
  }
}

static bool random_draw(micro_randoms *self, unsigned thread) {
  random_thread *mine = &self->threads[thread];
  uint64_t state = 5 + thread;
  mine->steps = calloc(self->pairs, sizeof *mine->steps);
  for (size_t i = 0; mine->steps && i < self->pairs; i++) {
    mine->steps[i] = (random_step){random_bytes(&state), (uint32_t)(random_next(&state) % MICRO_LIVE)};
  }
  for (uint32_t place = 0; mine->steps && place < MICRO_LIVE; place++) {
    random_take(self->peer, mine, place, random_bytes(&state), thread);
  }
  return mine->steps != NULL;
}

static void random_end(micro_randoms *self, unsigned thread) {
  random_thread *mine = &self->threads[thread];
  for (uint32_t place = 0; place < MICRO_LIVE; place++) {
    if (mine->blocks[place]) self->peer->free(mine->blocks[place], mine->bytes[place], thread);
  }
  free(mine->steps);
}

int micro_random(const peer_library *peer, const micro_params *params, FILE *out) {
  micro_randoms self = {.peer = peer, .pairs = params->pairs};
  self.threads = calloc(params->threads, sizeof *self.threads);
  bool ready = self.threads != NULL;
  uint64_t failed = 0;
  for (unsigned i = 0; ready && i < params->threads; i++) ready = random_draw(&self, i);
  int result = ready ? micro_repeat(params, random_work, &self, out) : -1;
  for (unsigned i = 0; self.threads && i < params->threads; i++) {
    failed += self.threads[i].failed;
    random_end(&self, i);
  }
  fprintf(out, "failed %" PRIu64 "\n", failed);
  free(self.threads);
  return result;
}

/* ---- another thread frees ---- */

typedef struct micro_ring {
  const peer_library *peer;
  size_t pairs;
  uint64_t failed;
  _Alignas(64) atomic_size_t put;
  _Alignas(64) atomic_size_t taken;
  _Alignas(64) void *slots[MICRO_RING];
} micro_ring;

static void cross_produce(micro_ring *self) {
  for (size_t i = 0; i < self->pairs; i++) {
    void *block = self->peer->alloc(MICRO_BYTES, 0);
    self->failed += !block;
    while (i - atomic_load_explicit(&self->taken, memory_order_acquire) >= MICRO_RING) sched_yield();
    self->slots[i % MICRO_RING] = block;
    atomic_store_explicit(&self->put, i + 1, memory_order_release);
  }
}

static void cross_consume(micro_ring *self) {
  for (size_t i = 0; i < self->pairs; i++) {
    while (atomic_load_explicit(&self->put, memory_order_acquire) <= i) sched_yield();
    void *block = self->slots[i % MICRO_RING];
    atomic_store_explicit(&self->taken, i + 1, memory_order_release);
    if (block) peer_give_back(self->peer, block, MICRO_BYTES, 0, 1);
  }
}

static void cross_work(void *user, unsigned thread) {
  micro_ring *self = user;
  if (thread == 0) {
    cross_produce(self);
  } else {
    cross_consume(self);
  }
}

int micro_cross(const peer_library *peer, const micro_params *params, FILE *out) {
  static micro_ring self;
  self.peer = peer;
  self.pairs = params->pairs;
  const micro_params two = {.threads = 2, .runs = params->runs, .pairs = params->pairs};
  uint64_t least = UINT64_MAX;
  for (unsigned run = 0; run <= two.runs; run++) {
    self.put = self.taken = 0;
    uint64_t took = crew_run(two.threads, cross_work, &self);
    if (took == 0) return -1;
    if (run > 0 && took < least) least = took;
  }
  fprintf(out, "ns_per_event %.17g\nfailed %" PRIu64 "\n", (double)least / (2.0 * (double)two.pairs), self.failed);
  return 0;
}

micro_case *micro_find(const char *name) {
  if (strcmp(name, "pair") == 0) return micro_pair;
  if (strcmp(name, "random") == 0) return micro_random;
  return strcmp(name, "cross") == 0 ? micro_cross : NULL;
}
