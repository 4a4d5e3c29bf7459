#include "core/staging/range_host.h"

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/block/access.h"
#include "gm/copy.h"

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
  const gm_memory_type *type = gm__host_access_type(&access);
  const bool stays = access.memory.host || (type && type->flags & GM_MEMORY_PERSISTENT_MAP);
  if (!stays) return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "no mapping of this memory may stay: ask for GM_MAPPED");
  status = gm__device_map_for_life(access.device, &access.memory, access.offset, access.bytes, out, err);
  return gm__error_of(op, status, err);
}
