#include "core/pool/wrap.h"

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/device/memory_answer.h"
#include "core/pool/quota.h"

gm_status gm__pool_adopt(gm_pool *pool, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                         struct gm__import *import, gm_block *out, gm_error *err) {
  gm__want want = {.bytes = bytes, .exact = bytes, .align = 1};
  gm__grant grant = {.memory = *memory, .offset = offset};
  grant.memory.wrapped = true;
  gm_status status = gm__pool_take_quota(pool, &want, err);
  if (status) return status;
  status = gm__provider_adopt(&pool->heap.provider, &want, &grant.memory, offset, import, &grant.allocation, err);
  if (status) {
    gm__pool_return_quota(pool, &want);
    return status;
  }
  /* after GM_OK the allocation is there. NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
  grant.address = grant.allocation->address;
  grant.bytes = grant.allocation->bytes;
  gm__heap_hand_out(&pool->heap, &want, &grant, true, out);
  return GM_OK;
}

gm_status gm_block_wrap(gm_pool *pool, const gm_native_memory *native, gm_block *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_block_wrap";
  gm_status status = gm__pool_alive(pool, op, err);
  if (status) return status;
  if (!native || !out) return gm__bad_argument(err, op, "`%s` is NULL", native ? "out" : "native");
  gm_memory memory = {.handle = 0};
  status = gm__error_of(op, pool->device->ops->memory_wrap(pool->device->handle, native, &memory, err), err);
  if (!status) status = gm__answer_check_wrapped(pool->device, &memory, err);
  if (status) return status;
  status = gm__pool_adopt(pool, &memory, 0, memory.bytes, NULL, out, err);
  if (status) gm__device_free(pool->device, &memory, NULL);
  return status;
}
