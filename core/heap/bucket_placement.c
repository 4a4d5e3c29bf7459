#include <inttypes.h>

#include "core/base/error.h"
#include "core/heap/placement.h"

static gm_status bucket_begin(gm__attempt *attempt, gm_error *err) {
  const gm__buckets *buckets = &attempt->heap->dedicated.buckets;
  if (!gm__bucket_is_beyond(buckets, attempt->want->size_class) || buckets->fixed.passes_larger) return GM_OK;
  return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, "gm_alloc",
                  "pool \"%s\" has blocks of fixed sizes, of %" PRIu64
                  " bytes at most (GM_POOL_PASS_LARGER passes larger requests on)",
                  attempt->heap->provider.name, buckets->fixed.bytes[buckets->fixed.count - 1]);
}

static bool bucket_search(gm__attempt *attempt, bool others) {
  return gm__dedicated_alloc_pooled(&attempt->heap->dedicated, attempt->want, others, attempt->grant, &attempt->answer,
                                    attempt->block);
}

static bool bucket_pooled(gm__attempt *attempt) { return bucket_search(attempt, false); }

static bool bucket_moved(gm__attempt *attempt) {
  (void)attempt;
  return false;
}

static gm_status bucket_fresh(gm__attempt *attempt, gm_error *err) {
  return gm__dedicated_alloc_fresh(&attempt->heap->dedicated, attempt->want, attempt->grant, &attempt->answer, err);
}

static bool bucket_anywhere(gm__attempt *attempt) { return bucket_search(attempt, true); }

const gm__placement gm__bucket_placement = {bucket_begin, bucket_pooled, bucket_moved, bucket_fresh, bucket_anywhere};
