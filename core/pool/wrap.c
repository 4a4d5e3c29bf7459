#include "core/base/error.h"
#include "core/device/answer.h"
#include "core/pool/acquire.h"
#include "core/pool/quota.h"
#include "core/pool/supply.h"

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
  status = gm__error_of(op, pool->device->ops->memory_wrap(pool->device->handle, native, &memory, err), err);
  if (!status) status = gm__answer_check_wrapped(pool->device, &memory, err);
  if (status) return status;
  status = gm__pool_adopt(pool, &memory, 0, memory.bytes, NULL, out, err);
  if (status) gm__device_free(pool->device, &memory, NULL);
  return status;
}
