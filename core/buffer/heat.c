#include "core/buffer/heat.h"

#include "core/base/clock.h"
#include "core/base/saturate.h"

enum { HEAT_USE = 256, HEAT_DOUBLINGS = 6, HEAT_TURNS = 4 /* of a half-life */ };

static const uint64_t heat_half_life_ns = 1000000000;

static uint64_t heat_at(const gm_buffer *buffer, uint64_t now) {
  const uint64_t halves = gm__sub_sat(now, buffer->heat_at) / heat_half_life_ns;
  return halves < 64 ? buffer->heat >> halves : 0;
}

void gm__heat_use(gm_buffer *buffer) {
  const uint64_t now = gm__now_coarse_ns();
  buffer->heat = gm__add_sat(heat_at(buffer, now), HEAT_USE);
  buffer->heat_at = now;
}

uint64_t gm__heat_turn(uint64_t now) { return now / (heat_half_life_ns / HEAT_TURNS); }

/* The turns until the heat is 1: four times its logarithm. */
static uint64_t heat_turns(uint64_t heat) {
  if (heat < HEAT_TURNS) return heat;
  const int top = 63 - __builtin_clzll(heat);
  return (uint64_t)top * HEAT_TURNS + (heat >> (top - 2)) % HEAT_TURNS;
}

uint64_t gm__heat_end(const gm_buffer *buffer) {
  return buffer->heat ? gm__heat_turn(buffer->heat_at) + heat_turns(buffer->heat) : 0;
}

void gm__heat_demoted(gm_buffer *buffer) {
  buffer->demoted_at = gm__now_ns();
  if (buffer->demotions < HEAT_DOUBLINGS) buffer->demotions++;
}

bool gm__heat_has_waited(const gm_buffer *buffer, uint64_t now, uint64_t wait_ns) {
  if (!buffer->demotions) return true;
  const uint64_t factor = UINT64_C(1) << (buffer->demotions - 1);
  return gm__sub_sat(now, buffer->demoted_at) >= (wait_ns > UINT64_MAX / factor ? UINT64_MAX : wait_ns * factor);
}
