#include "core/tier/disk/disk_flush.h"

#include "core/base/log.h"
#include "core/base/saturate.h"
#include "core/tier/disk/disk_compact.h"
#include "core/tier/disk/disk_record.h"
#include "core/tier/disk/disk_seal.h"
#include "core/tier/disk/disk_sync.h"

/* Invariants. A record is marked dead only when its successor is on the disk. A compaction only makes room: where it
 * fails, the file goes on as it is, and nobody's call fails. */

#define FLUSH_DEAD_LEAST (UINT64_C(4) << 20) /* a file with fewer dead bytes is not worth a compaction */
#define FLUSH_PUT_LEAST (UINT64_C(64) << 20) /* as much in a put, for those who never flush */

static gm_status flush_mark_dead(gm__disk_tier *tier, gm_error *err) {
  unsigned char state[sizeof(uint64_t)];
  gm_status status = GM_OK;
  gm__disk_state_write(state, GM__DISK_DEAD);
  while (!status && tier->replaced_count) {
    const uint64_t at = tier->replaced[tier->replaced_count - 1] + GM__DISK_STATE_AT;
    status = gm__data_file_write(&tier->file->file, tier->path, at, state, sizeof state, err);
    if (!status) tier->replaced_count--;
  }
  return status;
}

/* Notes that all before is on the disk. */
static gm_status flush_note(gm__disk_tier *tier, gm_error *err) {
  gm_status status = gm__disk_append(tier, GM__DISK_FLUSHED, NULL, 0, err);
  return status ? status : flush_mark_dead(tier, err);
}

/* Has anything been written since the last flush? */
static bool flush_is_due(const gm__disk_tier *tier) { return tier->replaced_count || tier->end != tier->flushed_end; }

/* Compacts the file where more of it is dead than half, and than `least` bytes. */
static void flush_compact(gm__disk_tier *tier, uint64_t least) {
  gm_error why = {.status = GM_OK};
  const uint64_t dead = tier->dead_bytes; /* only the writer changes it */
  if (dead <= gm__max(gm__max(least, tier->end / 2), tier->compact_at)) return;
  if (gm__disk_compact(tier, &why) == GM_OK) {
    tier->compact_at = 0;
    return;
  }
  tier->compact_at = dead + dead / 2; /* it may take long, and fail again */
  gm__log(gm__disk_services(tier), GM_LOG_WARN, "disk tier %.200s: no compaction: %s", tier->path, why.message);
}

static gm_status flush_now(gm__disk_tier *tier, gm_error *err) {
  gm_status status = gm__disk_is_stuck(tier, err);
  if (status || !flush_is_due(tier)) return status;
  if (tier->params.durability != GM_TIER_DURABLE_NEVER) status = gm__disk_sync(tier, err);
  if (!status) status = gm__disk_seal_put(tier, tier->file, tier->end, err);
  if (!status) status = flush_note(tier, err);
  if (status) return status;
  tier->flushed_end = tier->end;
  flush_compact(tier, FLUSH_DEAD_LEAST);
  return GM_OK;
}

gm_status gm__disk_flush(void *own, gm_error *err) {
  gm__disk_tier *tier = own;
  gm__mutex_lock(&tier->writer);
  const gm_status status = flush_now(tier, err);
  gm__mutex_unlock(&tier->writer);
  return status;
}

void gm__disk_flush_after(gm__disk_tier *tier) {
  if (tier->params.durability == GM_TIER_DURABLE_AT_PUT) flush_note(tier, NULL);
  flush_compact(tier, FLUSH_PUT_LEAST);
}
