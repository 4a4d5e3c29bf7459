#include "core/pool/pointer.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/pool/spanned.h"

/* Invariant: `nodes` holds every node with memory behind it, live or pooled, by rising address, and their ranges do not
 * overlap; the parts of a segment are found through it; `anchors` has the same nodes. They change only when memory is
 * taken from or given back to the backend, so that an allocation served from the pool pays nothing for them. */

void gm__pointers_init(gm__pointers *pointers, const gm_services *services) {
  *pointers = (gm__pointers){.services = services};
  gm__map_init(&pointers->anchors, services);
}

void gm__pointers_clear(gm__pointers *pointers) {
  gm__map_clear(&pointers->anchors);
  gm__release(pointers->services, pointers->nodes, pointers->capacity * sizeof(gm__node *));
  gm__pointers_init(pointers, pointers->services);
}

static uint64_t pointer_anchor(const gm__node *node) {
  return gm__anchor(node->address, node->address + node->bytes - 1);
}

/* How many nodes begin at or below `address`. */
static size_t pointer_place(const gm__pointers *pointers, uint64_t address) {
  size_t low = 0, high = pointers->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (pointers->nodes[middle]->address <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static bool pointer_reserve(gm__pointers *pointers) {
  if (pointers->count < pointers->capacity) return true;
  size_t capacity = pointers->capacity ? pointers->capacity * 2 : 64, size = sizeof(gm__node *);
  if (!gm__grow(pointers->services, &pointers->nodes, pointers->capacity * size, capacity * size)) return false;
  pointers->capacity = capacity;
  return true;
}

static bool pointer_overlaps(const gm__node *low, const gm__node *high) {
  return high->address - low->address < low->bytes;
}

gm_status gm__pointers_insert(gm__pointers *pointers, gm__node *node) {
  if (!pointer_reserve(pointers)) return GM_ERR_OUT_OF_HOST_MEMORY;
  size_t at = pointer_place(pointers, node->address);
  if (node->bytes - 1 > UINT64_MAX - node->address) return GM_ERR_DRIVER;
  if (at > 0 && pointer_overlaps(pointers->nodes[at - 1], node)) return GM_ERR_DRIVER;
  if (at < pointers->count && pointer_overlaps(node, pointers->nodes[at])) return GM_ERR_DRIVER;
  if (gm__map_insert(&pointers->anchors, pointer_anchor(node), (uintptr_t)node)) return GM_ERR_OUT_OF_HOST_MEMORY;
  gm__anchor_levels_add(&pointers->levels, pointer_anchor(node));
  memmove(&pointers->nodes[at + 1], &pointers->nodes[at], (pointers->count - at) * sizeof(gm__node *));
  pointers->nodes[at] = node;
  pointers->count++;
  return GM_OK;
}

void gm__pointers_remove(gm__pointers *pointers, const gm__node *node) {
  size_t at = pointer_place(pointers, node->address);
  if (at == 0 || pointers->nodes[at - 1] != node) return;
  memmove(&pointers->nodes[at - 1], &pointers->nodes[at], (pointers->count - at) * sizeof(gm__node *));
  pointers->count--;
  gm__map_remove(&pointers->anchors, pointer_anchor(node), NULL);
  gm__anchor_levels_remove(&pointers->levels, pointer_anchor(node));
}

gm__node *gm__pointers_find(const gm__pointers *pointers, uint64_t address) {
  for (uint64_t left = pointers->levels.used; left; left &= left - 1) {
    uint64_t found;
    if (!gm__map_find(&pointers->anchors, gm__anchor_at(address, __builtin_ctzll(left)), &found)) continue;
    gm__node *node = (gm__node *)(uintptr_t)found;
    if (address - node->address < node->bytes) return node;
  }
  return NULL;
}

gm_status gm_block_of(gm_pool *pool, const void *pointer, gm_block *out) {
  gm__entry entry;
  if (!gm__pool_is(pool) || !pointer || !out) return GM_ERR_INVALID_ARGUMENT;
  if (gm__pool_forked(pool)) return GM_ERR_FORKED;
  if (!gm__entry_at(pool, (uintptr_t)pointer, &entry)) return GM_ERR_NOT_FOUND;
  const gm__piece *piece = gm__spanned_of(&entry);
  *out = piece ? piece->whole->block : entry.block;
  gm__entry_close(&entry);
  return GM_OK;
}

static void pointer_tell(const gm__entry *entry, uint64_t address, gm_pointer_info *out) {
  const gm__piece *piece = gm__spanned_of(entry);
  *out = (gm_pointer_info){.struct_size = sizeof *out,
                           .tag = entry->tag,
                           .pool = entry->pool,
                           .block = piece ? piece->whole->block : entry->block,
                           .offset = address - entry->block.address + (piece ? piece->span.offset : 0),
                           .requested_bytes = piece ? piece->whole->requested : entry->requested,
                           .stream = entry->stream};
}

gm_status gm_pointer_find(gm_device *device, const void *pointer, gm_pointer_info *out) {
  gm__entry entry;
  const gm_status status = gm__device_check(device, "gm_pointer_find", NULL);
  if (status) return status;
  if (!pointer || !out || out->struct_size != sizeof *out) return GM_ERR_INVALID_ARGUMENT;
  gm_context *ctx = device->ctx;
  bool found = false;
  gm__mutex_lock(&ctx->lock);
  for (gm_pool *pool = ctx->slots[GM__SLOT_POOLS]; pool && !found; pool = pool->next) {
    found = pool->device == device && gm__entry_at(pool, (uintptr_t)pointer, &entry);
  }
  gm__mutex_unlock(&ctx->lock);
  if (!found) return GM_ERR_NOT_FOUND;
  pointer_tell(&entry, (uintptr_t)pointer, out);
  gm__entry_close(&entry);
  return GM_OK;
}
