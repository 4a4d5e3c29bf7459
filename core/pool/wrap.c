#include "core/pool/wrap.h"

#include "core/base/error.h"
#include "core/pool/acquire.h"
#include "core/pool/quota.h"
#include "core/pool/supply.h"
#include "gm/native_opencl.h"
#include "gm/native_vulkan.h"

/* Addresses do not tell whether memory is the same where gm makes them up: what the API calls it does. */

typedef struct wrap_place {
  uint64_t object, at; /* the API's own object, and where in it; object 0: addresses tell */
} wrap_place;

static wrap_place wrap_place_of(const gm_device *device, const gm_memory *memory, uint64_t offset, uint64_t bytes) {
  gm_opencl_memory buffer = {.head = {sizeof buffer, GM_API_OPENCL}};
  gm_vulkan_memory piece = {.head = {sizeof piece, GM_API_VULKAN}};
  const gm_api api = device->ops->api;
  if (api != GM_API_OPENCL && api != GM_API_VULKAN) return (wrap_place){0};
  gm_native_memory *native = api == GM_API_OPENCL ? &buffer.head : &piece.head;
  if (device->ops->memory_native(device->handle, memory, offset, bytes, native, NULL)) return (wrap_place){0};
  if (api == GM_API_OPENCL) return (wrap_place){buffer.memory, buffer.offset};
  return (wrap_place){piece.memory, piece.memory_offset};
}

bool gm__wrap_overlaps(const gm_pool *pool, const gm__node *node) {
  const wrap_place mine = wrap_place_of(pool->device, &node->memory, node->offset, node->bytes);
  for (gm__pair at = {0}, below; mine.object; at.value++) {
    gm__pair next = {0};
    gm__pair_set_around(&pool->pointers.order, at.key, at.value, &below, &next);
    const gm__node *other = (const gm__node *)(uintptr_t)next.value;
    if (!other) break;
    const wrap_place place = wrap_place_of(pool->device, &other->memory, other->offset, other->bytes);
    const bool apart = mine.at >= place.at ? mine.at - place.at >= other->bytes : place.at - mine.at >= node->bytes;
    if (place.object == mine.object && !apart) return true;
    at = next;
  }
  return false;
}

gm_status gm__pool_adopt(gm_pool *pool, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                         struct gm__opened *opened, gm_block *out, gm_error *err) {
  gm__want want = {.bytes = bytes, .exact = bytes, .align = 1};
  gm__taken taken = {.memory = *memory, .offset = offset};
  taken.memory.wrapped = true;
  gm_status status = gm__quota_claim(pool, &want, err);
  if (status) return status;
  status = gm__supply_adopt(pool, &want, &taken.memory, offset, opened, &taken.node, err);
  if (status) {
    gm__quota_unclaim(pool, &want);
    return status;
  }
  /* GM_OK means that the node is there. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
  taken.address = taken.node->address;
  taken.bytes = taken.node->bytes;
  gm__acquire_hand_out(pool, &want, &taken, true, out);
  return GM_OK;
}

gm_status gm_block_wrap(gm_pool *pool, const gm_native_memory *native, gm_block *out, gm_error *err) {
  static const char op[] = "gm_block_wrap";
  gm_status status = gm__pool_check(pool, op, err);
  if (status) return status;
  if (!native || !out) return gm__bad_argument(err, op, "`%s` is NULL", native ? "out" : "native");
  gm_memory memory = {.handle = 0};
  status = pool->device->ops->memory_wrap(pool->device->handle, native, &memory, err);
  if (status) return status;
  memory.wrapped = true;
  status = gm__pool_adopt(pool, &memory, 0, memory.bytes, NULL, out, err);
  if (status) gm__device_free(pool->device, &memory, NULL);
  return status;
}
