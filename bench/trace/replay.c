/* Invariants: every run begins and ends with no block handed out, so all warm runs do the same. Between the two looks
 * at the clock is the loop over the events and nothing else. */
#include "bench/trace/replay.h"

#include <inttypes.h>
#include <stdlib.h>

#include "bench/measure/ticks.h"

typedef struct replay_state {
  const peer_library *peer;
  const bench_events *events;
  void **blocks; /* by slot; NULL: none */
  uint64_t failed;
  uint64_t peak; /* of a peer that keeps none */
  bool stop;     /* at the first failure */
} replay_state;

/* In a time of its own: what is done for one event. */
static inline bool replay_event(replay_state *self, const bench_event *event) {
  void **block = &self->blocks[event->slot];
  if (!event->is_free) {
    *block = self->peer->alloc(event->bytes, event->stream);
    return *block != NULL;
  }
  if (*block) peer_give_back(self->peer, *block, event->bytes, event->home, event->stream);
  *block = NULL;
  return true;
}

/* The blocks that the trace leaves alive. */
static void replay_drain(replay_state *self) {
  for (uint32_t slot = 0; slot < self->events->slots; slot++) {
    const bench_event *event = &self->events->list[self->events->allocs[slot]];
    if (self->blocks[slot]) self->peer->free(self->blocks[slot], event->bytes, event->stream);
    self->blocks[slot] = NULL;
  }
}

/* The nanoseconds of one run. */
static uint64_t replay_run(replay_state *self) {
  const bench_event *event = self->events->list, *end = event + self->events->count;
  uint64_t failed = 0, begin = ticks_ns();
  for (; event < end; event++) {
    if (replay_event(self, event)) continue;
    failed++;
    if (self->stop) break;
  }
  uint64_t took = ticks_ns() - begin;
  self->failed = failed;
  return took;
}

/* Replays the events and looks at what is reserved after each allocation: for peers that keep no peak. */
static void replay_sampled(replay_state *self) {
  for (size_t i = 0; i < self->events->count; i++) {
    const bench_event *event = &self->events->list[i];
    bool done = replay_event(self, event);
    uint64_t reserved = event->is_free ? 0 : self->peer->reserved();
    if (reserved > self->peak) self->peak = reserved;
    self->failed += !done;
    if (!done && self->stop) return;
  }
}

static void replay_write(FILE *out, const char *name, double value) { fprintf(out, "%s %.17g\n", name, value); }

static uint64_t replay_calls(const replay_state *self) {
  return self->peer->upstream_calls ? self->peer->upstream_calls() : 0;
}

static uint64_t replay_peak(const replay_state *self) {
  return self->peer->reserved_peak ? self->peer->reserved_peak() : self->peak;
}

static void replay_cold(replay_state *self, FILE *out) {
  uint64_t calls = replay_calls(self);
  if (self->peer->reset_peak) self->peer->reset_peak();
  if (self->peer->reserved_peak || !self->peer->upstream_calls) {
    replay_write(out, "cold_ns", (double)replay_run(self) / (double)self->events->count);
  } else {
    replay_sampled(self);
  }
  replay_write(out, "failed", (double)self->failed);
  if (self->peer->upstream_calls) { /* else it has no device */
    replay_write(out, "reserved_cold", (double)replay_peak(self));
    replay_write(out, "calls_cold", (double)(replay_calls(self) - calls));
  }
  replay_drain(self);
}

static void replay_warm(replay_state *self, unsigned runs, FILE *out) {
  uint64_t least = UINT64_MAX, calls = 0;
  for (unsigned run = 0; run < runs; run++) {
    uint64_t before = replay_calls(self), took = replay_run(self);
    calls = replay_calls(self) - before;
    if (took < least) least = took;
    replay_drain(self);
  }
  replay_write(out, "warm_ns", (double)least / (double)self->events->count);
  replay_write(out, "warm_failed", (double)self->failed);
  if (self->peer->upstream_calls) {
    replay_write(out, "reserved_peak", (double)replay_peak(self));
    replay_write(out, "calls_warm", (double)calls);
  }
}

static void replay_quantiles(const ticks_scale *scale, uint32_t *times, size_t count, const char *names[2], FILE *out) {
  replay_write(out, names[0], ticks_quantile(scale, times, count, 0.5));
  replay_write(out, names[1], ticks_quantile(scale, times, count, 0.99));
}

/* Allocations grow from the front of `times`, frees from its end. One more warm run first: calibrating leaves caches
 * and guesses to others. */
static void replay_timed(replay_state *self, uint32_t *times, FILE *out) {
  ticks_scale scale = ticks_calibrate();
  size_t front = 0, back = self->events->count;
  replay_run(self);
  replay_drain(self);
  for (size_t i = 0; i < self->events->count; i++) {
    const bench_event *event = &self->events->list[i];
    uint64_t before = ticks_now();
    replay_event(self, event);
    uint64_t took = ticks_now() - before;
    times[event->is_free ? --back : front++] = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
  }
  replay_drain(self);
  replay_quantiles(&scale, times, front, (const char *[]){"alloc_p50", "alloc_p99"}, out);
  replay_quantiles(&scale, times + back, self->events->count - back, (const char *[]){"free_p50", "free_p99"}, out);
}

int replay_measure(const peer_library *peer, const bench_events *events, unsigned runs, bool latency, FILE *out) {
  replay_state self = {.peer = peer, .events = events, .stop = runs == 0};
  self.blocks = calloc(events->slots + 1u, sizeof *self.blocks);
  uint32_t *times = calloc(events->count + 1, sizeof *times);
  bool ready = self.blocks && times;
  if (ready) {
    replay_write(out, "events", (double)events->count);
    replay_write(out, "peak_live", (double)events->peak_live);
    replay_cold(&self, out);
  }
  if (ready && runs > 0) {
    replay_warm(&self, runs, out);
    if (latency) replay_timed(&self, times, out);
  }
  free(times);
  free(self.blocks);
  return ready ? 0 : -1;
}
