/* The fault of a wrong allocator: blocks that overlap. Live blocks are kept sorted by address, so neighbours tell.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "bench/trace/replay.h"

enum { CHECK_ALIGN = 256, CHECK_RUNS = 2 };

typedef struct check_range {
  uintptr_t begin, end;
} check_range;

typedef struct check_state {
  const peer_library *peer;
  void **blocks;       /* by slot */
  check_range *ranges; /* live, rising */
  size_t live;
  uint64_t overlaps, misaligned, failed;
} check_state;

/* Where `address` stands or belongs. */
static size_t check_place(const check_state *self, uintptr_t address) {
  size_t low = 0, high = self->live;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (self->ranges[middle].begin < address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static void check_alloc(check_state *self, const bench_event *event) {
  void *pointer = self->peer->alloc(event->bytes, event->stream);
  uintptr_t begin = (uintptr_t)pointer, end = begin + event->bytes;
  self->blocks[event->slot] = pointer;
  if (!pointer) {
    self->failed++;
    return;
  }
  size_t place = check_place(self, begin);
  check_range *at = self->ranges + place;
  if (place < self->live && at->begin < end) self->overlaps++;
  if (place > 0 && at[-1].end > begin) self->overlaps++;
  self->misaligned += begin % CHECK_ALIGN != 0;
  memmove(at + 1, at, (self->live++ - place) * sizeof *at);
  *at = (check_range){begin, end};
}

static void check_free(check_state *self, const bench_event *event, uint32_t stream) {
  void *pointer = self->blocks[event->slot];
  if (!pointer) return;
  check_range *at = self->ranges + check_place(self, (uintptr_t)pointer);
  memmove(at, at + 1, (size_t)(self->ranges + self->live - at - 1) * sizeof *at);
  self->live--;
  peer_give_back(self->peer, pointer, event->bytes, event->home, stream);
  self->blocks[event->slot] = NULL;
}

static void check_run(check_state *self, const bench_events *events) {
  for (size_t i = 0; i < events->count; i++) {
    const bench_event *event = &events->list[i];
    if (event->is_free) {
      check_free(self, event, event->stream);
    } else {
      check_alloc(self, event);
    }
  }
  for (uint32_t slot = 0; slot < events->slots; slot++) {
    const bench_event *event = &events->list[events->allocs[slot]];
    check_free(self, event, event->stream);
  }
}

int replay_check(const peer_library *peer, const bench_events *events, FILE *out) {
  check_state self = {.peer = peer};
  self.blocks = calloc(events->slots + 1u, sizeof *self.blocks);
  self.ranges = calloc(events->slots + 1u, sizeof *self.ranges);
  bool ready = self.blocks && self.ranges;
  for (int run = 0; ready && run < CHECK_RUNS; run++) check_run(&self, events);
  if (ready) {
    fprintf(out, "overlaps %" PRIu64 "\nmisaligned %" PRIu64 "\nfailed %" PRIu64 "\n", self.overlaps, self.misaligned,
            self.failed);
  }
  free(self.ranges);
  free(self.blocks);
  return ready && self.overlaps == 0 ? 0 : -1;
}
