#include "core/block/host_access.h"

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "gm/copy.h"

/* The memory's type; NULL: it is not known, as for some imports. */
static const gm_memory_type *host_access_type(const gm__access *access) {
  return access->memory.type < access->device->type_count ? &access->device->types[access->memory.type] : NULL;
}

bool gm__host_access_is_coherent(const gm__access *access) {
  const gm_memory_type *type = host_access_type(access);
  return !type || type->flags & (GM_MEMORY_HOST_COHERENT | GM_MEMORY_HOST_POINTER);
}

gm__access gm__host_access_widen(const gm__access *access) {
  const gm_memory_type *type = host_access_type(access);
  const uint64_t atom = type && type->atom_bytes ? type->atom_bytes : 1, end = access->offset + access->bytes;
  const uint64_t low = access->offset - access->offset % atom, more = (atom - end % atom) % atom;
  gm__access wide = *access;
  wide.offset = low;
  wide.bytes = (more > access->memory.bytes - end ? access->memory.bytes : end + more) - low;
  return wide;
}

gm_status gm__host_access_check(const gm__access *access, const char *op, gm_error *err) {
  const gm_memory_type *type = host_access_type(access);
  if (access->memory.host || (type && type->flags & GM_MEMORY_HOST_VISIBLE)) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, op, "the memory is not host-visible: ask for GM_HOST_VISIBLE");
}

/* ---- flush, invalidate ---- */

typedef gm_status (*host_access_sync)(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                      gm_error *err);

static gm_status host_access_run(const gm__access *access, host_access_sync sync, const char *op, gm_error *err) {
  gm_status status = gm__host_access_check(access, op, err);
  if (status || !access->bytes || gm__host_access_is_coherent(access)) return status;
  const gm__access wide = gm__host_access_widen(access);
  status = sync(access->device->handle, &wide.memory, wide.offset, wide.bytes, err);
  return gm__error_of(op, status, err);
}

gm_status gm_block_flush(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes, gm_error *err) {
  GM__UNCANCELLED();
  gm__access access;
  const gm_status status = gm__access_open(pool, block, offset, bytes, "gm_block_flush", &access, err);
  return status ? status : host_access_run(&access, access.device->ops->flush, "gm_block_flush", err);
}

gm_status gm_block_invalidate(gm_pool *pool, const gm_block *block, uint64_t offset, uint64_t bytes, gm_error *err) {
  GM__UNCANCELLED();
  gm__access access;
  const gm_status status = gm__access_open(pool, block, offset, bytes, "gm_block_invalidate", &access, err);
  return status ? status : host_access_run(&access, access.device->ops->invalidate, "gm_block_invalidate", err);
}

/* ---- for life ---- */

gm_status gm_block_host(gm_pool *pool, const gm_block *block, void **out, gm_error *err) {
  static const char op[] = "gm_block_host";
  gm__access access;
  gm_status status = gm__access_open(pool, block, 0, block ? block->bytes : 0, op, &access, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  const gm_memory_type *type = host_access_type(&access);
  const bool stays = access.memory.host || (type && type->flags & GM_MEMORY_PERSISTENT_MAP);
  if (!stays)
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, op, "no mapping of this memory may stay: ask for GM_MAPPED");
  status = gm__device_map_for_life(access.device, &access.memory, access.offset, access.bytes, out, err);
  return gm__error_of(op, status, err);
}
