#include "core/buffer/compact_rung.h"

#include "core/base/saturate.h"
#include "core/buffer/compact.h"
#include "core/buffer/demote.h"
#include "core/device/evictor.h"
#include "gm/evictor.h"

enum { RUNG_LOOKS = 16384 };

/* Can holes that join serve the request? A pool at its own bound counts only if it has enough of them. */
static bool rung_pays(gm_pool *pool, uint64_t pooled, uint64_t bytes) {
  return pooled >= bytes || bytes == UINT64_MAX || !gm__evict_run_is_of_pool(pool->device);
}

/* Compaction comes first, because it costs no bytes on the device. Holes that joined within a segment may serve the
 * request though nothing went back to the driver. So a run with moves answers at least one byte, and the request is
 * tried again. Idle memory beyond `bytes` stays for the pool's next requests. */
static uint64_t rung_evict(void *user, uint64_t bytes) {
  gm_pool *pool = user;
  const gm_compact_params params = {.struct_size = sizeof params};
  gm_compact_report report = {.struct_size = sizeof report};
  const uint64_t pooled = gm__heap_pooled(&pool->heap);
  const gm__compact_aim aim = {
      .goal = bytes,
      .keep = pool->heap.provider.no_trim ? UINT64_MAX : gm__sub_sat(pooled, bytes),
      .looks = RUNG_LOOKS,
  };
  if (rung_pays(pool, pooled, bytes)) gm__compact(pool, &params, &aim, &report, NULL);
  uint64_t freed = report.freed_bytes;
  if (freed < bytes) freed = gm__add_sat(freed, gm__demote(pool, bytes - freed));
  return freed || !report.moves ? freed : 1;
}

gm_status gm__compact_rung_begin(gm_pool *pool, gm_error *err) {
  const gm_evictor_params params = {.struct_size = sizeof params,
                                    .priority = INT32_MIN,
                                    .name = "compaction",
                                    .pool = pool,
                                    .evict = rung_evict,
                                    .user = pool};
  gm__pool_buffers *list = &pool->buffers;
  gm_evictor *rung = NULL;
  gm__mutex_lock(&list->lock);
  const bool there = list->rung != NULL;
  gm__mutex_unlock(&list->lock);
  const gm_status status = there ? GM_OK : gm_evictor_register(pool->device, &params, &rung, err);
  if (there || status) return status;
  gm__mutex_lock(&list->lock);
  if (!list->rung) {
    list->rung = rung;
    rung = NULL;
  }
  gm__mutex_unlock(&list->lock);
  return rung ? gm_evictor_unregister(rung, err) : GM_OK; /* another thread was first */
}
