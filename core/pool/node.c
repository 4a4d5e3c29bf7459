#include "core/pool/node.h"

#include "core/base/alloc.h"

/* Invariants: chunks are never moved or given back before the table is cleared, so a node's address is its identity.
 * `check` changes whenever a node is handed out or freed, so a block by value that outlived its memory is refused: it
 * would have to be kept for 2^32 turns of its own node to be taken for another. */

void gm__node_table_init(gm__node_table *table, const gm_services *services, uint64_t pool_id) {
  *table = (gm__node_table){.services = services, .first_check = (uint32_t)pool_id * 0x9e3779b1u};
}

void gm__node_table_clear(gm__node_table *table) {
  for (uint32_t i = 0; i < table->chunk_count; i++) {
    gm__release(table->services, table->chunks[i], GM__NODE_CHUNK * sizeof(gm__node));
  }
  gm__release(table->services, table->chunks, table->chunk_capacity * sizeof *table->chunks);
  *table = (gm__node_table){.services = table->services, .first_check = table->first_check};
}

static bool node_reserve_chunks(gm__node_table *table) {
  if (table->chunk_count < table->chunk_capacity) return true;
  if (table->chunk_count > UINT32_MAX / GM__NODE_CHUNK / 4) return false;
  uint32_t capacity = table->chunk_capacity ? table->chunk_capacity * 2 : 16;
  size_t size = sizeof *table->chunks;
  if (!gm__grow(table->services, &table->chunks, table->chunk_capacity * size, capacity * size)) return false;
  table->chunk_capacity = capacity;
  return true;
}

static bool node_add_chunk(gm__node_table *table) {
  if (!node_reserve_chunks(table)) return false;
  gm__node *chunk = gm__alloc_array(table->services, GM__NODE_CHUNK, sizeof *chunk);
  if (!chunk) return false;
  for (uint32_t i = GM__NODE_CHUNK; i-- > 0;) {
    chunk[i].index = table->chunk_count * GM__NODE_CHUNK + i;
    chunk[i].check = table->first_check;
    chunk[i].links[GM__BY_BUCKET].next = table->unused;
    table->unused = &chunk[i];
  }
  table->chunks[table->chunk_count++] = chunk;
  return true;
}

gm__node *gm__node_take(gm__node_table *table) {
  if (!table->unused && !node_add_chunk(table)) return NULL;
  gm__node *node = table->unused;
  table->unused = node->links[GM__BY_BUCKET].next;
  *node = (gm__node){.index = node->index, .check = node->check, .state = GM__NODE_AWAY};
  return node;
}

void gm__node_give(gm__node_table *table, gm__node *node) {
  node->state = GM__NODE_UNUSED;
  node->links[GM__BY_BUCKET].next = table->unused;
  table->unused = node;
}

gm__node *gm__node_find(const gm__node_table *table, const gm_block *block, bool whole) {
  if (block->node / GM__NODE_CHUNK >= table->chunk_count) return NULL;
  gm__node *node = &table->chunks[block->node / GM__NODE_CHUNK][block->node % GM__NODE_CHUNK];
  if (node->state != GM__NODE_LIVE || node->check != block->check) return NULL;
  if (!whole) return node;
  bool same = node->address == block->address && node->bytes == block->bytes && node->memory.handle == block->memory;
  return same ? node : NULL;
}

gm_block gm__node_block(const gm__node *node) {
  return (gm_block){node->address, node->bytes, node->memory.handle, node->index, node->check};
}

gm__node *gm__node_next(const gm__node_table *table, uint32_t *cursor) {
  uint32_t at = (*cursor)++;
  if (at / GM__NODE_CHUNK >= table->chunk_count) return NULL;
  return &table->chunks[at / GM__NODE_CHUNK][at % GM__NODE_CHUNK];
}
