/* The documents' older calls: a buffer by device, number of elements and precision, to be given back by hand. */
#include <inttypes.h>

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/manage/explain.h"
#include "core/manage/lifecycle.h"
#include "gm/pool_set.h"

/* Finds the pool, and the bytes of so many elements. */
static gm_status set_get_read(const gm_pool_set *set, size_t device, uint64_t count, gm_dtype precision, const char *op,
                              gm_pool **out, uint64_t *bytes, gm_error *err) {
  *out = gm_pool_set_pool(set, device);
  if (!*out) return gm__bad_argument(err, op, "`device` %zu: the set has %zu pools", device, gm_pool_set_count(set));
  const gm_status status = gm_dtype_bytes(precision, count, bytes);
  if (!status && *bytes) return GM_OK;
  return gm__bad_argument(err, op, "`count` %" PRIu64 " and `precision` %d are no size", count, (int)precision);
}

gm_status gm_pool_set_get(gm_pool_set *set, size_t device, uint64_t count, gm_dtype precision, gm_block *out,
                          gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pool_set_get";
  gm_pool *pool;
  gm_request request = {.flags = GM_INSERT_WAIT};
  const gm_status status = set_get_read(set, device, count, precision, op, &pool, &request.bytes, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  const gm_acquire answer = gm_alloc(pool, &request, out);
  return gm_acquired(answer) ? GM_OK : gm__explain_refusal(pool, &request, answer, op, err);
}

gm_status gm_pool_set_return(gm_pool_set *set, size_t device, const gm_block *block, uint64_t count, gm_dtype precision,
                             gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pool_set_return";
  gm_pool *pool;
  uint64_t bytes;
  const gm_status status = set_get_read(set, device, count, precision, op, &pool, &bytes, err);
  if (status) return status;
  if (!block) return gm__bad_argument(err, op, "`block` is NULL");
  if (block->bytes < bytes) {
    return gm__bad_argument(err, op, "`block` has %" PRIu64 " bytes, and `count` elements are %" PRIu64, block->bytes,
                            bytes);
  }
  const gm_status freed = gm_free(pool, block, NULL);
  return freed ? gm__fail(err, freed, op, "the pool does not take the block back: %s", gm_status_name(freed)) : GM_OK;
}
