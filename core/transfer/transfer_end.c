/* One end of a copy, checked. */
#include "core/base/error.h"
#include "core/transfer/transfer.h"

gm_status gm__transfer_plan_end(const gm_transfer *t, gm_end *end, gm_block *block, uint64_t bytes, const char *name,
                                const char *op, gm__span_copy *out, gm_error *err) {
  if (end->reserved[0] || end->reserved[1]) return gm__bad_argument(err, op, "`%s.reserved` is not 0", name);
  if (!end->block == !end->host) {
    return gm__bad_argument(err, op, "`%s` has %s of `block` and `host`", name, end->block ? "both" : "none");
  }
  if (end->host) {
    if (end->offset <= UINTPTR_MAX - (uintptr_t)end->host &&
        bytes <= UINTPTR_MAX - (uintptr_t)end->host - end->offset) {
      return GM_OK;
    }
    return gm__bad_argument(err, op, "`%s` reaches beyond the last address", name);
  }
  *block = *end->block;
  end->block = block;
  const gm_status status = gm__span_copy_open(end->pool, block, end->offset, bytes, op, out, err);
  if (status || end->pool->device == t->device) return status;
  return gm__bad_argument(err, op, "`%s` is a block of another device; gm_block_copy_peer copies between devices",
                          name);
}
