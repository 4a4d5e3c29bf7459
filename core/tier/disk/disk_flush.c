#include "core/tier/disk/disk_flush.h"

#include "core/base/saturate.h"
#include "core/tier/disk/disk_compact.h"
#include "core/tier/disk/disk_record.h"
#include "core/tier/disk/disk_seal.h"

/* Invariant: a record is marked dead only when its successor is on the disk. */

#define FLUSH_DEAD_LEAST (UINT64_C(4) << 20) /* a file with fewer dead bytes is not worth a compaction */

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

/* Has anything been written since the last FLUSHED? */
static bool flush_is_due(const gm__disk_tier *tier) {
  if (tier->replaced_count) return true;
  return tier->flushed_at ? tier->end > tier->flushed_at + UINT64_C(2) * GM__DISK_UNIT : tier->end > GM__DISK_START;
}

static bool flush_should_compact(gm__disk_tier *tier) {
  gm__mutex_lock(&tier->lock);
  const uint64_t dead = tier->dead_bytes;
  gm__mutex_unlock(&tier->lock);
  return dead > gm__max(FLUSH_DEAD_LEAST, tier->end / 2);
}

gm_status gm__disk_flush_now(gm__disk_tier *tier, gm_error *err) {
  gm_status status = GM_OK;
  if (!flush_is_due(tier)) return GM_OK;
  if (tier->params.durability != GM_TIER_DURABLE_NEVER) status = gm__data_file_sync(&tier->file->file, tier->path, err);
  if (!status) status = gm__disk_seal_put(tier, tier->file, tier->path, tier->end, err);
  if (!status) status = gm__disk_append(tier, GM__DISK_FLUSHED, NULL, 0, err);
  if (!status) status = flush_mark_dead(tier, err);
  if (!status && flush_should_compact(tier)) status = gm__disk_compact(tier, err);
  return status;
}

gm_status gm__disk_flush(void *own, gm_error *err) {
  gm__disk_tier *tier = own;
  gm__mutex_lock(&tier->writer);
  const gm_status status = gm__disk_flush_now(tier, err);
  gm__mutex_unlock(&tier->writer);
  return status;
}
