#include "core/pool/entry.h"

#include "core/pool/pointer.h"

static void entry_of_node(gm_pool *pool, gm__node *node, gm__entry *out) {
  *out = (gm__entry){.pool = pool,
                     .node = node,
                     .tag = node->tag,
                     .stream = node->asked_on,
                     .offset = node->offset,
                     .requested = node->requested,
                     .block = gm__node_block(node),
                     .order = &pool->order,
                     .rare = &node->rare};
}

static void entry_of_span(gm__arena *arena, uint32_t number, gm__entry *out) {
  gm__span *span = gm__arena_span(arena, number);
  gm__node *node = arena->homes[span->home]->node;
  *out = (gm__entry){.pool = arena->pool,
                     .arena = arena,
                     .node = node,
                     .span = number,
                     .tag = span->tag,
                     .stream = gm__arena_asked_on(arena, span),
                     .offset = span->address - node->address,
                     .requested = gm__arena_bytes(arena, span) - span->slack,
                     .block = gm__arena_block(arena, number),
                     .order = &arena->order,
                     .rare = gm__arena_rare(arena, number)};
}

static bool entry_open_span(gm_pool *pool, const gm_block *block, gm__entry *out) {
  gm__arena *arena = gm__arena_of_block(pool, block);
  if (!arena) return false;
  gm__arena_lock(arena);
  const uint32_t number = gm__arena_find_check(arena, block);
  if (number) {
    entry_of_span(arena, number, out);
  } else {
    gm__arena_unlock(arena);
  }
  return number != 0;
}

bool gm__entry_open_raw(gm_pool *pool, const gm_block *block, gm__entry *out) {
  if (block->node & GM__ARENA_BLOCK) return entry_open_span(pool, block, out);
  gm__mutex_lock(&pool->lock);
  gm__node *node = gm__node_find(&pool->nodes, block, false);
  if (node) {
    entry_of_node(pool, node, out);
  } else {
    gm__mutex_unlock(&pool->lock);
  }
  return node != NULL;
}

/* The caller sees of a guarded block what lies between the zones. False when it has given that back. */
static bool entry_see(gm__entry *entry) {
  const gm__guard_record *record = entry->rare ? entry->rare->guard : NULL;
  if (!record) return true;
  entry->block = gm__guard_block(record);
  entry->offset += gm__guard_front(record);
  return !gm__guard_freed(record);
}

static bool entry_is(const gm__entry *entry, const gm_block *block) {
  if (!entry->arena && !entry->pool->checked && !entry->pool->guard) return true;
  return entry->block.address == block->address && entry->block.bytes == block->bytes &&
         entry->block.memory == block->memory;
}

bool gm__entry_open(gm_pool *pool, const gm_block *block, gm__entry *out) {
  if (!gm__entry_open_raw(pool, block, out)) return false;
  if (entry_see(out) && entry_is(out, block)) return true;
  gm__entry_close(out);
  return false;
}

void gm__entry_note_mark(const gm__entry *entry) {
  if (!entry->arena) gm__pool_mark(entry->pool, entry->node);
}

gm__mark gm__entry_mark(const gm__entry *entry) {
  return entry->rare ? entry->rare->mark : gm__arena_mark(entry->arena, entry->span);
}

void gm__entry_close(const gm__entry *entry) {
  if (entry->arena) {
    gm__arena_unlock(entry->arena);
  } else {
    gm__mutex_unlock(&entry->pool->lock);
  }
}

bool gm__entry_make_rare(gm__entry *entry) {
  if (!entry->rare) entry->rare = gm__arena_make_rare(entry->arena, entry->span);
  return entry->rare != NULL;
}

int gm__entry_slot(const gm__entry *entry, gm_stream *stream) {
  return entry->arena ? gm__arena_slot(entry->arena, stream) : gm__order_slot_of(entry->order, stream);
}

int gm__entry_free_slot(const gm__entry *entry, gm_stream *stream) {
  return entry->arena ? gm__arena_free_slot(entry->arena, stream) : gm__order_free_slot(entry->order, stream);
}

/* Without host memory for more than the table of what begins where: all spans of the segment are looked at. */
static uint32_t entry_walk(const gm__arena *arena, uint64_t address) {
  uint32_t number = 0;
  for (const gm__segment *segment = arena->segments; segment && !number; segment = segment->next) {
    if (address - segment->node->address >= segment->node->bytes) continue;
    number = gm__arena_span(arena, segment->edge)->right;
    while (number &&
           address - gm__arena_span(arena, number)->address >= gm__arena_bytes(arena, gm__arena_span(arena, number))) {
      number = gm__arena_span(arena, number)->right;
    }
  }
  return number;
}

/* The live span of the arena that contains the address; 0: none. */
static uint32_t entry_span_at(gm__arena *arena, uint64_t address) {
  uint32_t number = gm__lookup_find(&arena->lookup, &arena->spans, address);
  if (!number) {
    const bool quick = gm__lookup_open_inside(&arena->lookup, &arena->spans, arena->shift);
    number = quick ? gm__lookup_find_inside(&arena->lookup, &arena->spans, address) : entry_walk(arena, address);
  }
  return number && gm__span_is(gm__arena_span(arena, number)) == GM__SPAN_LIVE ? number : 0;
}

static bool entry_at_span(gm__arena *arena, uint64_t address, gm__entry *out) {
  gm__arena_lock(arena);
  const uint32_t number = entry_span_at(arena, address);
  if (number) {
    entry_of_span(arena, number, out);
  } else {
    gm__arena_unlock(arena);
  }
  return number != 0;
}

gm__arena *gm__entry_arena_at(gm_pool *pool, uint64_t address) {
  gm__mutex_lock(&pool->lock);
  const gm__node *node = gm__pointers_find(&pool->pointers, address);
  gm__arena *arena = node && node->state == GM__NODE_SEGMENT ? node->segment->arena : NULL;
  gm__mutex_unlock(&pool->lock);
  return arena;
}

static bool entry_at_raw(gm_pool *pool, uint64_t address, gm__entry *out) {
  gm__arena *arena = NULL;
  gm__mutex_lock(&pool->lock);
  gm__node *node = gm__pointers_find(&pool->pointers, address);
  if (node && node->state == GM__NODE_SEGMENT) arena = node->segment->arena;
  if (node && node->state == GM__NODE_LIVE) {
    entry_of_node(pool, node, out);
    return true;
  }
  gm__mutex_unlock(&pool->lock);
  return arena ? entry_at_span(arena, address, out) : false;
}

bool gm__entry_at(gm_pool *pool, uint64_t address, gm__entry *out) {
  if (!entry_at_raw(pool, address, out)) return false;
  if (entry_see(out) && address - out->block.address < out->block.bytes) return true;
  gm__entry_close(out);
  return false;
}
