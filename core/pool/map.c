#include <inttypes.h>

#include "core/base/error.h"
#include "core/device/answer.h"
#include "core/pool/access.h"
#include "core/pool/entry.h"
#include "gm/copy.h"

/* Host mappings. The node remembers the one mapping of its block, so that unmap knows what to flush, and gm_free
 * refuses a block that is still mapped. Ranges for flush and invalidate are widened to the memory's atom, inside the
 * memory: its bytes belong to this block alone. */

static const gm_memory_type *map_type(const gm__access *access) {
  return access->memory.type < access->device->type_count ? &access->device->types[access->memory.type] : NULL;
}

/* The range in whole atoms. */
static void map_widen(const gm__access *access, uint64_t *offset, uint64_t *bytes) {
  const gm_memory_type *type = map_type(access);
  uint64_t atom = type && type->atom_bytes ? type->atom_bytes : 1;
  uint64_t end = access->offset + access->bytes, low = access->offset - access->offset % atom;
  uint64_t more = (atom - end % atom) % atom;
  *offset = low;
  *bytes = (more > access->memory.bytes - end ? access->memory.bytes : end + more) - low;
}

static bool map_is_coherent(const gm__access *access) {
  const gm_memory_type *type = map_type(access);
  return !type || type->flags & (GM_MEMORY_HOST_COHERENT | GM_MEMORY_HOST_POINTER);
}

static gm_status map_check(const gm__access *access, uint32_t mode, void *const *out, gm_error *err) {
  const char *op = "gm_block_map";
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  if (access->bytes == 0) return gm__bad_argument(err, op, "`bytes` is 0");
  if (!mode || mode & ~(uint32_t)(GM_MAP_READ | GM_MAP_WRITE | GM_MAP_DISCARD)) {
    return gm__bad_argument(err, op, "`mode` must be of gm_map_mode, is %u", mode);
  }
  const gm_memory_type *type = map_type(access);
  if (access->memory.host || (type && type->flags & GM_MEMORY_HOST_VISIBLE)) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, op, "the memory is not host-visible: ask for GM_HOST_VISIBLE");
}

/* Keep the block for one mapping (any pointer but NULL until the true one is known), or give it back with NULL. */
static gm_status map_hold(gm_pool *pool, const gm_block *block, void *pointer, const gm__access *access,
                          uint32_t mode) {
  gm__entry entry;
  gm_status status = GM_OK;
  if (!gm__entry_open(pool, block, &entry)) return GM_ERR_INVALID_ARGUMENT;
  if (!gm__entry_make_rare(&entry)) {
    status = GM_ERR_OUT_OF_HOST_MEMORY;
  } else if (pointer == pool && entry.rare->mapping.pointer) {
    status = GM_ERR_BUSY;
  } else {
    entry.rare->mapping = (gm__mapping){pointer, access ? access->offset : 0, access ? access->bytes : 0, mode};
  }
  gm__entry_close(&entry);
  return status;
}

/* The flush that ends a mapping carries whole atoms, so what the host does not write must be the device's latest. */
static bool map_needs_contents(const gm__access *access, uint32_t mode, uint64_t offset, uint64_t bytes) {
  bool all_new = mode & GM_MAP_DISCARD && !(mode & GM_MAP_READ);
  return !map_is_coherent(access) && !(all_new && offset == access->offset && bytes == access->bytes);
}

static gm_status map_begin(const gm__access *access, uint32_t mode, gm_stream *stream, void **out, gm_error *err) {
  gm_device *device = access->device;
  gm_stream *on;
  gm_status status = gm__access_stream(device, stream, "gm_block_map", &on, err);
  if (status) return status;
  status = gm__submitting(device)->map(device->handle, on->handle, &access->memory, access->offset, access->bytes, mode,
                                       out, err);
  gm__error_of("gm_block_map", status, err);
  status = gm__answer_check_word(device, "map", status, (uintptr_t)*out, err);
  if (status) return status;
  uint64_t offset, bytes;
  map_widen(access, &offset, &bytes);
  if (!map_needs_contents(access, mode, offset, bytes)) return GM_OK;
  status = device->ops->invalidate(device->handle, &access->memory, offset, bytes, err);
  if (status) gm__submitting(device)->unmap(device->handle, on->handle, &access->memory, *out, NULL);
  return status;
}

gm_status gm_block_map(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes, uint32_t mode,
                       gm_stream *stream, void **out, gm_error *err) {
  gm__access access;
  gm_status status = gm__access_open(pool, block, offset, bytes, "gm_block_map", &access, err);
  if (!status) status = map_check(&access, mode, out, err);
  if (status) return status;
  status = map_hold(pool, block, pool, &access, mode);
  if (status)
    return gm__fail(err, status, 0, "gm_block_map", "%s",
                    status == GM_ERR_OUT_OF_HOST_MEMORY ? "no host memory for the record of a mapping"
                                                        : "`block` is mapped already, or gone");
  void *pointer = NULL;
  status = map_begin(&access, mode, stream, &pointer, err);
  map_hold(pool, block, status ? NULL : pointer, &access, mode);
  if (!status) *out = pointer;
  return status;
}

/* The mapping of the block, if `pointer` is it. */
static bool map_find(gm_pool *pool, const gm_block *block, const void *pointer, gm__access *access, uint32_t *mode) {
  gm__entry entry;
  if (!gm__entry_open(pool, block, &entry)) return false;
  const gm__mapping *mapping = entry.rare ? &entry.rare->mapping : NULL;
  const bool found = mapping && pointer && mapping->pointer == pointer;
  if (found) {
    access->offset = mapping->offset;
    access->bytes = mapping->bytes;
    *mode = mapping->mode;
  }
  gm__entry_close(&entry);
  return found;
}

static gm_status map_end(const gm__access *access, uint32_t mode, void *pointer, gm_stream *stream, gm_error *err) {
  gm_device *device = access->device;
  gm_stream *on;
  gm_status status = gm__access_stream(device, stream, "gm_block_unmap", &on, err);
  if (status) return status;
  if (!map_is_coherent(access) && mode & (GM_MAP_WRITE | GM_MAP_DISCARD)) {
    uint64_t offset, bytes;
    map_widen(access, &offset, &bytes);
    status = device->ops->flush(device->handle, &access->memory, offset, bytes, err);
    if (status) return status;
  }
  status = gm__submitting(device)->unmap(device->handle, on->handle, &access->memory, pointer, err);
  return gm__error_of("gm_block_unmap", status, err);
}

gm_status gm_block_unmap(gm_pool *pool, const gm_block *block, void *pointer, gm_stream *stream, gm_error *err) {
  gm__access access;
  uint32_t mode;
  gm_status status = gm__access_open(pool, block, 0, 0, "gm_block_unmap", &access, err);
  if (status) return status;
  if (!map_find(pool, block, pointer, &access, &mode)) {
    return gm__bad_argument(err, "gm_block_unmap", "`pointer` is not the mapping of `block`");
  }
  status = map_end(&access, mode, pointer, stream, err);
  if (!status || status == GM_ERR_DEVICE_LOST) map_hold(pool, block, NULL, NULL, 0);
  return status;
}
