#include "core/base/saturate.h"
#include "core/buffer/compact.h"
#include "core/buffer/poll.h"

/* Are the holes between live blocks worth it? Idle memory, which a trim gives back, is no hole. */
static bool poll_pays(gm_pool *pool) {
  const gm_stats stats = gm__heap_stats(&pool->heap);
  const uint64_t idle = gm__add_sat(stats.in_use_bytes, stats.reclaimable_bytes);
  const double holes = (double)gm__sub_sat(stats.reserved_bytes, idle);
  return holes > gm__keep_coalesce(&pool->heap) * (double)stats.reserved_bytes;
}

void gm__compact_polled(gm_pool *pool) {
  gm_compact_report report;
  gm_compact_params params = {.struct_size = sizeof params};
  if (!atomic_load(&pool->buffers.compacts)) return;
  gm__mutex_lock(&pool->buffers.lock);
  params.max_bytes = pool->buffers.compact_bytes;
  params.max_ns = pool->buffers.compact_ns;
  gm__mutex_unlock(&pool->buffers.lock);
  const gm__compact_aim aim = {.goal = UINT64_MAX, .looks = GM__COMPACT_LOOKS};
  if (poll_pays(pool)) gm__compact(pool, &params, &aim, &report, NULL);
}
