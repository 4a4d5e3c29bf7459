#include "gm/advice.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/sized.h"
#include "gm/size.h"

/* The rules, each on its own: a figure, a threshold, what to set. Nothing is measured here. A caller that can replay
 * (gmem advise) checks what a setting gains before it says so. */

enum { ADVICE_LIST = 1024 }; /* what the key `warmup` takes, with its end mark */

static bool advice_warm_up(const gm_stats *stats, const gm_trace_profile *profile, gm_advice *out) {
  if (!stats || gm_stats_hit_rate(stats) >= GM_ADVICE_HIT_RATE) return false;
  *out = (gm_advice){.kind = GM_ADVICE_WARM_UP, .call = "gm_pool_warm_up"};
  snprintf(out->why, sizeof out->why,
           "hit rate %.2f is below %.2f: %" PRIu64 " of %" PRIu64 " allocations went to the driver",
           gm_stats_hit_rate(stats), GM_ADVICE_HIT_RATE, stats->misses, stats->allocs);
  if (!profile) return true;
  char list[ADVICE_LIST];
  if (gm_trace_profile_warm_up(profile, list, sizeof list)) {
    snprintf(out->setting, sizeof out->setting, "warmup = %s", list);
  }
  return true;
}

/* A few bytes in pieces are no harm. */
static bool advice_coalesce(const gm_stats *stats, gm_advice *out) {
  char scattered[16], reserved[16];
  if (!stats || gm_stats_fragmentation(stats) <= GM_ADVICE_FRAGMENTATION) return false;
  if ((double)stats->scattered_bytes <= GM_ADVICE_SCATTERED * (double)stats->reserved_bytes) return false;
  *out = (gm_advice){.kind = GM_ADVICE_COALESCE, .call = "gm_pool_compact"};
  gm_format_bytes(stats->scattered_bytes, scattered, sizeof scattered);
  gm_format_bytes(stats->reserved_bytes, reserved, sizeof reserved);
  snprintf(out->why, sizeof out->why,
           "fragmentation %.2f is above %.2f: %s of %s reserved lie in holes between blocks, which moving buffers "
           "(GM_RELOCATABLE) joins",
           gm_stats_fragmentation(stats), GM_ADVICE_FRAGMENTATION, scattered, reserved);
  return true;
}

static bool advice_leak(const gm_trace_profile *profile, gm_advice *out) {
  if (!profile || profile->growth_blocks <= GM_ADVICE_GROWTH_BLOCKS) return false;
  char bytes[16];
  gm_format_bytes(profile->growth_bytes, bytes, sizeof bytes);
  *out = (gm_advice){.kind = GM_ADVICE_LEAK, .setting = "track_allocations = true", .call = "gm_tracker_report"};
  snprintf(out->why, sizeof out->why,
           "%" PRIu64 " blocks (%s) allocated between two marks are never freed; there were more than %d %" PRIu64
           " times",
           profile->growth_blocks, bytes, GM_ADVICE_GROWTH_BLOCKS, profile->growth_times);
  return true;
}

size_t gm_advise(const gm_stats *stats, const gm_trace_profile *profile, gm_advice *out, size_t capacity) {
  static const char op[] = "gm_advise";
  gm_stats had;
  gm_trace_profile seen;
  gm_advice one;
  stats = gm__sized_in(&had, sizeof had, stats, op, "stats", NULL) ? NULL : &had;
  profile = gm__sized_in(&seen, sizeof seen, profile, op, "profile", NULL) ? NULL : &seen;
  size_t count = 0;
  if (!out) capacity = 0;
  if (advice_warm_up(stats, profile, &one) && count++ < capacity) out[count - 1] = one;
  if (advice_coalesce(stats, &one) && count++ < capacity) out[count - 1] = one;
  if (advice_leak(profile, &one) && count++ < capacity) out[count - 1] = one;
  return count;
}
