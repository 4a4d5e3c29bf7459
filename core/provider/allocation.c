#include "core/provider/allocation.h"

#include "core/base/alloc.h"

/* Invariants: records never move before the table is cleared, so the address of a record is its identity. `check`
 * changes whenever an allocation is handed out or freed. So a block by value that outlived its memory is refused, until
 * its allocation was reused 2^32 times. */

void gm__allocation_table_init(gm__allocation_table *table, const gm_services *services, uint64_t pool_id) {
  *table = (gm__allocation_table){.services = services, .first_check = (uint32_t)pool_id * 0x9e3779b1u};
}

void gm__allocation_table_clear(gm__allocation_table *table) {
  for (uint32_t i = 0; i < table->chunk_count; i++) {
    gm__release(table->services, table->chunks[i], GM__ALLOCATIONS_STEP * sizeof(gm__allocation));
  }
  gm__release(table->services, table->chunks, table->chunk_capacity * sizeof *table->chunks);
  *table = (gm__allocation_table){.services = table->services, .first_check = table->first_check};
}

static bool allocation_reserve_chunks(gm__allocation_table *table) {
  if (table->chunk_count < table->chunk_capacity) return true;
  if (table->chunk_count > UINT32_MAX / GM__ALLOCATIONS_STEP / 4) return false;
  uint32_t capacity = table->chunk_capacity ? table->chunk_capacity * 2 : 16;
  size_t size = sizeof *table->chunks;
  if (!gm__grow(table->services, &table->chunks, table->chunk_capacity * size, capacity * size)) return false;
  table->chunk_capacity = capacity;
  return true;
}

static bool allocation_add_chunk(gm__allocation_table *table) {
  if (!allocation_reserve_chunks(table)) return false;
  gm__allocation *chunk = gm__alloc_array(table->services, GM__ALLOCATIONS_STEP, sizeof *chunk);
  if (!chunk) return false;
  for (uint32_t i = GM__ALLOCATIONS_STEP; i-- > 0;) {
    chunk[i].index = table->chunk_count * GM__ALLOCATIONS_STEP + i;
    chunk[i].check = table->first_check;
    chunk[i].links[GM__BY_USE].next = table->unused;
    table->unused = &chunk[i];
  }
  table->chunks[table->chunk_count++] = chunk;
  return true;
}

gm__allocation *gm__allocation_new(gm__allocation_table *table) {
  if (!table->unused && !allocation_add_chunk(table)) return NULL;
  gm__allocation *allocation = table->unused;
  table->unused = allocation->links[GM__BY_USE].next;
  *allocation = (gm__allocation){.index = allocation->index, .check = allocation->check, .state = GM__ALLOCATION_AWAY};
  return allocation;
}

void gm__allocation_release(gm__allocation_table *table, gm__allocation *allocation) {
  allocation->state = GM__ALLOCATION_UNUSED;
  allocation->links[GM__BY_USE].next = table->unused;
  table->unused = allocation;
}

gm__allocation *gm__allocation_find(const gm__allocation_table *table, const gm_block *block, bool whole) {
  if (block->number / GM__ALLOCATIONS_STEP >= table->chunk_count) return NULL;
  gm__allocation *allocation =
      &table->chunks[block->number / GM__ALLOCATIONS_STEP][block->number % GM__ALLOCATIONS_STEP];
  if (allocation->state != GM__ALLOCATION_LIVE || allocation->check != block->check) return NULL;
  if (!whole) return allocation;
  bool same = allocation->address == block->address && allocation->bytes == block->bytes &&
              allocation->memory.handle == block->memory;
  return same ? allocation : NULL;
}

gm_block gm__allocation_block(const gm__allocation *allocation) {
  return (gm_block){allocation->address, allocation->bytes, allocation->memory.handle, allocation->index,
                    allocation->check};
}

gm__allocation *gm__allocation_next(const gm__allocation_table *table, uint32_t *cursor) {
  uint32_t at = (*cursor)++;
  if (at / GM__ALLOCATIONS_STEP >= table->chunk_count) return NULL;
  return &table->chunks[at / GM__ALLOCATIONS_STEP][at % GM__ALLOCATIONS_STEP];
}
