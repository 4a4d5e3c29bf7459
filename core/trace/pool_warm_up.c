/* A warm-up with the blocks that a trace tells of. */
#include "core/base/cancel.h"
#include "core/pool/pool.h"
#include "gm/advice.h"
#include "gm/warm_up.h"

static size_t warm_up_classes(const gm_trace_profile *profile, gm_warm_up *out) {
  size_t count = 0;
  for (int at = GM_TRACE_CLASSES - 1; at >= 0; at--) {
    if (profile->class_peak_blocks[at] == 0) continue;
    out[count++] = (gm_warm_up){profile->class_largest_bytes[at], profile->class_peak_blocks[at]};
  }
  return count;
}

/* Blocks that have pages apart from the others need them beside the peak. */
static size_t warm_up_apart(const gm_pool *pool, const gm_trace_profile *profile, gm_warm_up *out) {
  size_t count = 0;
  for (size_t at = 0; at < GM_TRACE_CLASSES; at++) {
    const uint64_t largest = profile->class_largest_bytes[at];
    if (largest > pool->heap.provider.rules.apart) break;
    if (profile->class_peak_blocks[at]) out[count++] = (gm_warm_up){largest, profile->class_peak_blocks[at]};
  }
  return count;
}

/* At most two entries. */
static size_t warm_up_peak(const gm_pool *pool, const gm_trace_profile *profile, gm_warm_up *out) {
  uint64_t most = pool->device->info.max_alloc_bytes, peak = profile->peak_live_bytes;
  uint64_t parts = most && peak > most ? peak / most : 0;
  size_t count = 0;
  if (parts) out[count++] = (gm_warm_up){most, parts};
  if (peak > parts * most) out[count++] = (gm_warm_up){peak - parts * most, 1};
  return count;
}

gm_status gm_pool_warm_up_from_trace(gm_pool *pool, const char *path, gm_stream *stream, gm_warm_up_result *out,
                                     gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pool_warm_up_from_trace";
  gm_trace_profile profile = {.struct_size = sizeof profile};
  gm_warm_up list[GM_TRACE_CLASSES + 2];
  gm_status status = gm__pool_alive(pool, op, err);
  if (!status) status = gm_trace_profile_read(gm__context_services(pool->device->ctx), path, &profile, err);
  if (status) return status;
  bool buckets = pool->heap.arenas.whole;
  size_t count = buckets ? warm_up_classes(&profile, list) : warm_up_peak(pool, &profile, list);
  if (!buckets) count += warm_up_apart(pool, &profile, list + count);
  return gm_pool_warm_up(pool, list, count, stream, out, err);
}
