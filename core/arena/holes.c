#include "core/arena/holes.h"

#include <string.h>

#include "core/arena/free_walk.h"
#include "core/arena/reclaim.h"
#include "core/arena/walk.h"
#include "core/base/saturate.h"

/* Free chunks that touch are one hole, whatever streams may still use them: they are one free chunk once these are
 * done. Unmapped chunks between free ones do not part them, because mapping joins them. A whole segment, and the
 * whole handles within neighbouring free chunks, are no part of a hole: a trim gives them back. */

typedef struct holes_walk {
  const gm__arena *arena;
  const gm__segment *segment;
  gm__holes *part;         /* sums of the area */
  uint64_t address, bytes; /* of the free chunks beside each other that were seen last */
  uint64_t hole;           /* bytes of the hole that they belong to */
} holes_walk;

/* A chunk that is not free comes next, or the end of the hole. */
static void holes_end_row(holes_walk *walk) {
  uint64_t idle = 0;
  if (!walk->bytes) return;
  if (walk->segment->range) {
    idle = gm__reclaim_handle_bytes(walk->arena, walk->segment->range, walk->address, walk->bytes);
  } else if (walk->bytes == walk->segment->allocation->bytes) {
    idle = walk->bytes;
  }
  walk->part->idle += idle;
  walk->hole += walk->bytes - idle;
  walk->bytes = 0;
}

static void holes_end_hole(holes_walk *walk) {
  holes_end_row(walk);
  if (!walk->hole) return;
  walk->part->count++;
  walk->part->bytes += walk->hole;
  walk->part->largest = gm__max(walk->part->largest, walk->hole);
  walk->hole = 0;
}

static bool holes_has(const gm__chunk *chunk) {
  return gm__chunk_is(chunk) == GM__CHUNK_FREE || gm__chunk_is(chunk) == GM__CHUNK_UNMAPPED;
}

static void holes_add_chunk(holes_walk *walk, const gm__chunk *chunk) {
  const uint64_t bytes = gm__arena_bytes(walk->arena, chunk);
  if (gm__chunk_is(chunk) == GM__CHUNK_UNMAPPED) {
    holes_end_row(walk);
    return;
  }
  walk->part->largest_free = gm__max(walk->part->largest_free, bytes);
  if (!walk->bytes) walk->address = chunk->address;
  walk->bytes += bytes;
}

/* Is the free chunk the first one of its hole? Unmapped chunks before it add nothing. */
static bool holes_begins(const gm__arena *arena, const gm__chunk *chunk) {
  do chunk = gm__arena_chunk(arena, chunk->left);
  while (gm__chunk_is(chunk) == GM__CHUNK_UNMAPPED);
  return gm__chunk_is(chunk) != GM__CHUNK_FREE;
}

/* Adds the hole that the free chunk is the first one of; another chunk adds nothing. */
static void holes_add_from(gm__holes *part, gm__arena *arena, uint32_t number, uint32_t *looks) {
  const gm__chunk *chunk = gm__arena_chunk(arena, number);
  holes_walk walk = {.arena = arena, .part = part};
  if (!holes_begins(arena, chunk)) return;
  walk.segment = arena->segment_table[chunk->segment_index];
  for (uint32_t at = number; holes_has(chunk = gm__arena_chunk(arena, at));) {
    holes_add_chunk(&walk, chunk);
    if (!gm__arena_walk_right(arena, &at, looks)) {
      walk.bytes = 0;
      break;
    }
  }
  holes_end_hole(&walk);
}

static void holes_add(gm__holes *sum, const gm__holes *part) {
  sum->count += part->count;
  sum->bytes += part->bytes;
  sum->largest = gm__max(sum->largest, part->largest);
  sum->scattered += part->scattered;
  sum->idle += part->idle;
  sum->largest_free = gm__max(sum->largest_free, part->largest_free);
}

static void holes_note(gm__arena_stats *stats, const gm__holes *holes) {
  atomic_store_explicit(&stats->hole, holes->bytes, memory_order_relaxed);
  atomic_store_explicit(&stats->scattered, holes->scattered, memory_order_relaxed);
  atomic_store_explicit(&stats->largest_hole, holes->largest, memory_order_relaxed);
}

void gm__holes_add_arena(gm__holes *holes, gm__arena *arena) {
  gm__holes parts[GM__AREAS], whole = {0};
  gm__free_walk walk = {0};
  uint32_t looks = 0;
  do {
    memset(parts, 0, sizeof parts);
    for (uint32_t at; (at = gm__free_walk_next(arena, &walk));) {
      holes_add_from(&parts[gm__area_of(gm__arena_chunk(arena, at))], arena, at, &looks);
    }
  } while (gm__free_walk_again(&walk));
  for (int area = 0; area < GM__AREAS; area++) {
    parts[area].scattered = parts[area].bytes - parts[area].largest;
    holes_add(&whole, &parts[area]);
  }
  holes_note(&arena->stats, &whole);
  holes_add(holes, &whole);
}
