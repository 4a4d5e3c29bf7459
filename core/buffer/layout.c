#include "core/buffer/layout.h"

#include <stddef.h>

#include "core/buffer/buffer.h"

/* A treap: a search tree by place, whose shape comes from a hash of the buffers' numbers. So its depth stays near the
 * logarithm of their number, whatever order they come in. */

static uint64_t layout_rank(const gm_buffer *buffer) {
  uint64_t hash = buffer->id * UINT64_C(0x9e3779b97f4a7c15);
  hash = (hash ^ (hash >> 32)) * UINT64_C(0xd6e8feb86659fd93);
  return hash ^ (hash >> 32);
}

static bool layout_is_before(const gm_buffer *one, const gm_buffer *other) {
  const gm_block *a = &one->at.block, *b = &other->at.block;
  if (a->memory != b->memory) return a->memory < b->memory;
  return a->address != b->address ? a->address < b->address : one->id < other->id;
}

static void layout_add_up(gm_buffer *buffer) {
  gm__layout_node *node = &buffer->layout;
  node->bytes = buffer->at.block.bytes;
  for (int i = 0; i < 2; i++) {
    const gm_buffer *child = i ? node->higher : node->lower;
    if (child) node->bytes += child->layout.bytes;
  }
}

static gm_buffer *layout_join(gm_buffer *low, gm_buffer *high) {
  if (!low || !high) return low ? low : high;
  if (layout_rank(low) > layout_rank(high)) {
    low->layout.higher = layout_join(low->layout.higher, high);
    layout_add_up(low);
    return low;
  }
  high->layout.lower = layout_join(low, high->layout.lower);
  layout_add_up(high);
  return high;
}

/* Splits the tree into what lies before the buffer and what lies behind it. */
static void layout_split(gm_buffer *top, const gm_buffer *at, gm_buffer **low, gm_buffer **high) {
  *low = *high = NULL;
  if (!top) return;
  if (layout_is_before(top, at)) {
    layout_split(top->layout.higher, at, &top->layout.higher, high);
    *low = top;
  } else {
    layout_split(top->layout.lower, at, low, &top->layout.lower);
    *high = top;
  }
  layout_add_up(top);
}

static gm_buffer *layout_add_below(gm_buffer *top, gm_buffer *buffer) {
  if (!top || layout_rank(buffer) > layout_rank(top)) {
    gm_buffer *low, *high;
    layout_split(top, buffer, &low, &high);
    buffer->layout.lower = low;
    buffer->layout.higher = high;
    layout_add_up(buffer);
    return buffer;
  }
  gm_buffer **side = layout_is_before(buffer, top) ? &top->layout.lower : &top->layout.higher;
  *side = layout_add_below(*side, buffer);
  layout_add_up(top);
  return top;
}

static gm_buffer *layout_take_below(gm_buffer *top, gm_buffer *buffer) {
  if (top == buffer) return layout_join(top->layout.lower, top->layout.higher);
  gm_buffer **side = layout_is_before(buffer, top) ? &top->layout.lower : &top->layout.higher;
  *side = layout_take_below(*side, buffer);
  layout_add_up(top);
  return top;
}

void gm__layout_add(gm_buffer **top, gm_buffer *buffer) {
  *top = layout_add_below(*top, buffer);
  buffer->layout.in = true;
}

void gm__layout_take(gm_buffer **top, gm_buffer *buffer) {
  if (!buffer->layout.in) return;
  *top = layout_take_below(*top, buffer);
  buffer->layout = (gm__layout_node){.in = false};
}

/* The bytes in lower driver allocations; with `and_this`, of that one, too. */
static uint64_t layout_bytes_before(const gm_buffer *top, uint64_t memory, bool and_this) {
  uint64_t bytes = 0;
  while (top) {
    const uint64_t here = top->at.block.memory;
    const bool counts = here < memory || (and_this && here == memory);
    if (counts) bytes += top->at.block.bytes + (top->layout.lower ? top->layout.lower->layout.bytes : 0);
    top = counts ? top->layout.higher : top->layout.lower;
  }
  return bytes;
}

uint64_t gm__layout_bytes(const gm_buffer *top, uint64_t memory) {
  return layout_bytes_before(top, memory, true) - layout_bytes_before(top, memory, false);
}

gm_buffer *gm__layout_below(gm_buffer *top, uint64_t memory, uint64_t below) {
  gm_buffer *last = NULL;
  while (top) {
    const gm_block *here = &top->at.block;
    const bool before = here->memory < memory || (here->memory == memory && here->address < below);
    if (before) last = top;
    top = before ? top->layout.higher : top->layout.lower;
  }
  return last && last->at.block.memory == memory ? last : NULL;
}

gm_buffer *gm__layout_at(gm_buffer *top, uint64_t memory, uint64_t address) {
  gm_buffer *buffer = gm__layout_below(top, memory, address + 1);
  return buffer && buffer->at.block.address == address ? buffer : NULL;
}
