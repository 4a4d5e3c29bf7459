#include "core/pool/pointer.h"

#include "core/base/sized.h"
#include "core/pool/spanned.h"

/* Invariant: `order` and `anchors` hold every node with memory behind it, live or pooled, and the ranges of no two
 * overlap; the parts of a segment are found through it. They change only when memory is taken from or given back to the
 * backend, so that an allocation served from the pool pays nothing for them. */

void gm__pointers_init(gm__pointers *pointers, const gm_services *services) {
  *pointers = (gm__pointers){.order = {.services = services}};
  gm__map_init(&pointers->anchors, services);
}

void gm__pointers_clear(gm__pointers *pointers) {
  gm__map_clear(&pointers->anchors);
  gm__pair_set_close(&pointers->order);
  pointers->levels = (gm__anchor_levels){0};
}

static uint64_t pointer_anchor(const gm__node *node) {
  return gm__anchor(node->address, node->address + node->bytes - 1);
}

/* Only the next one on either side can: they do not overlap each other. */
static bool pointer_overlaps(const gm__pointers *pointers, const gm__node *node) {
  gm__pair below = {0}, above = {0};
  gm__pair_set_around(&pointers->order, node->address, 0, &below, &above);
  const gm__node *low = (const gm__node *)(uintptr_t)below.value;
  return (low && node->address - low->address < low->bytes) || (above.value && above.key - node->address < node->bytes);
}

gm_status gm__pointers_insert(gm__pointers *pointers, gm__node *node) {
  if (node->bytes - 1 > UINT64_MAX - node->address || pointer_overlaps(pointers, node)) return GM_ERR_DRIVER;
  if (gm__map_insert(&pointers->anchors, pointer_anchor(node), (uintptr_t)node)) return GM_ERR_OUT_OF_HOST_MEMORY;
  if (!gm__pair_set_put(&pointers->order, node->address, (uintptr_t)node)) {
    gm__map_remove(&pointers->anchors, pointer_anchor(node), NULL);
    return GM_ERR_OUT_OF_HOST_MEMORY;
  }
  gm__anchor_levels_add(&pointers->levels, pointer_anchor(node));
  return GM_OK;
}

void gm__pointers_remove(gm__pointers *pointers, const gm__node *node) {
  if (!gm__pair_set_take(&pointers->order, node->address, (uintptr_t)node)) return; /* it overlapped another */
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

static gm_pointer_info pointer_tell(const gm__entry *entry, uint64_t address) {
  const gm__piece *piece = gm__spanned_of(entry);
  return (gm_pointer_info){.struct_size = sizeof(gm_pointer_info),
                           .tag = entry->tag,
                           .pool = entry->pool,
                           .block = piece ? piece->whole->block : entry->block,
                           .offset = address - entry->block.address + (piece ? piece->span.offset : 0),
                           .requested_bytes = piece ? piece->whole->requested : entry->requested,
                           .stream = entry->stream};
}

gm_status gm_pointer_find(gm_device *device, const void *pointer, gm_pointer_info *out) {
  gm__entry entry;
  static const char op[] = "gm_pointer_find";
  gm_status status = gm__device_check(device, op, NULL);
  if (!status) status = gm__sized_check(out, sizeof *out, op, "out", NULL);
  if (status || !pointer) return status ? status : GM_ERR_INVALID_ARGUMENT;
  gm_context *ctx = device->ctx;
  bool found = false;
  gm__mutex_lock(&ctx->lock);
  for (gm_pool *pool = ctx->slots[GM__SLOT_POOLS]; pool && !found; pool = pool->next) {
    found = pool->device == device && gm__entry_at(pool, (uintptr_t)pointer, &entry);
  }
  gm__mutex_unlock(&ctx->lock);
  if (!found) return GM_ERR_NOT_FOUND;
  gm_pointer_info info = pointer_tell(&entry, (uintptr_t)pointer);
  gm__entry_close(&entry); /* the device's lock is before those of pools */
  if (!gm__device_find_stream(device, info.stream)) info.stream = 0;
  gm__sized_out(out, &info, sizeof info);
  return GM_OK;
}
