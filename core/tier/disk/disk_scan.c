#include "core/tier/disk/disk_scan.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/tier/disk/disk_front.h"
#include "core/tier/disk/disk_record.h"
#include "core/tier/disk/disk_seal.h"

/* Invariants. Records are taken in the order of the file, so the last one of a key counts. A record that is dead or
 * damaged also ends the earlier ones of its key. So no older value comes back in place of one that is lost.
 *
 * Records before the last FLUSHED are on the disk, so only their fronts are read. A crash may have torn those behind
 * it. So their values are checked, too. A torn one was never promised, and the one before it stays. */

enum { SCAN_WINDOW = 1 << 16 };

typedef struct disk_scan {
  gm__disk_tier *tier;
  uint64_t bytes; /* of the file, rounded up to a whole unit */
  uint64_t end;   /* of the last record */
  uint64_t sequence;
  uint64_t flushed_at;
  uint64_t window_at, window_bytes;
  unsigned char *window; /* SCAN_WINDOW bytes of the file */
  gm_status (*take)(struct disk_scan *scan, const gm__disk_record *record, const unsigned char *front, gm_error *err);
} disk_scan;

static gm_status scan_no_memory(gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_tier_open", "no host memory for the index of a disk tier");
}

/* ---- walking from record to record ---- */

/* Makes `count` bytes from `at` visible, as far as the file has them; what it has not is zero. */
static gm_status scan_look(disk_scan *scan, uint64_t at, uint64_t count, const unsigned char **out, gm_error *err) {
  const gm__disk_tier *tier = scan->tier;
  uint64_t file_bytes;
  if (at < scan->window_at || at + count > scan->window_at + scan->window_bytes) {
    gm_status status = gm__data_file_size(&tier->file->file, tier->path, &file_bytes, err);
    if (status) return status;
    memset(scan->window, 0, SCAN_WINDOW);
    const uint64_t there = gm__min(gm__sub_sat(file_bytes, at), SCAN_WINDOW);
    status = gm__data_file_read(&tier->file->file, tier->path, at, scan->window, there, err);
    if (status) return status;
    scan->window_at = at;
    scan->window_bytes = SCAN_WINDOW;
  }
  *out = scan->window + (at - scan->window_at);
  return GM_OK;
}

/* Takes the record at `at`. *out_bytes is 0 where none begins there. */
static gm_status scan_record(disk_scan *scan, uint64_t at, uint64_t *out_bytes, gm_error *err) {
  gm__disk_tier *tier = scan->tier;
  const unsigned char *seen;
  gm__disk_record record;
  *out_bytes = 0;
  gm_status status = scan_look(scan, at, GM__DISK_HEAD, &seen, err);
  if (status || !gm__disk_head_read(seen, at, tier->file->store, scan->bytes, &record)) return status;
  const uint64_t front_bytes = gm__disk_front_bytes(&record);
  unsigned char *front = NULL;
  if (record.sequence <= scan->sequence) return GM_OK;
  if (front_bytes <= SCAN_WINDOW) {
    status = scan_look(scan, at, front_bytes, &seen, err);
    if (status || !gm__disk_front_is_right(seen, &record)) return status;
  } else {
    status = gm__disk_front_load(tier, tier->file, at, front_bytes, &record, &front, err);
    if (status) return status == GM_ERR_DAMAGED ? GM_OK : status;
  }
  status = scan->take(scan, &record, front ? front : seen, err);
  gm__release(gm__disk_services(tier), front, (size_t)front_bytes);
  scan->sequence = record.sequence;
  scan->end = at + record.bytes;
  *out_bytes = record.bytes;
  return status;
}

/* Takes every record. What lies between two records is damage, which is counted once for each gap. */
static gm_status scan_walk(disk_scan *scan, gm_error *err) {
  gm_status status = GM_OK;
  scan->end = GM__DISK_START;
  scan->sequence = scan->window_bytes = 0;
  for (uint64_t at = GM__DISK_START, bytes; !status && at < scan->bytes; at += bytes ? bytes : GM__DISK_UNIT) {
    const uint64_t gap = at - scan->end;
    status = scan_record(scan, at, &bytes, err);
    if (bytes && gap) scan->tier->stats.damaged++;
  }
  return status;
}

/* ---- the two walks ---- */

static gm_status scan_take_flushed(disk_scan *scan, const gm__disk_record *record, const unsigned char *front,
                                   gm_error *err) {
  (void)front, (void)err;
  if (record->kind == GM__DISK_FLUSHED) scan->flushed_at = record->at;
  return GM_OK;
}

/* Takes the entry of the key out of the index. Its record is dead, and is to be marked so. */
static gm_status scan_forget(gm__disk_tier *tier, const unsigned char *key, uint32_t key_bytes, gm_error *err) {
  gm__disk_entry *entry = (gm__disk_entry *)gm__key_map_find(&tier->entries, key, key_bytes);
  if (!entry) return GM_OK;
  gm_status status = gm__disk_replaced_reserve(tier, err);
  if (status) return status;
  if (!entry->damaged) tier->replaced[tier->replaced_count++] = entry->at;
  tier->dead_bytes += entry->bytes;
  tier->stats.values--;
  tier->stats.value_bytes -= entry->value_bytes;
  gm__key_map_remove(&tier->entries, &entry->head);
  gm__release(gm__disk_services(tier), entry, sizeof *entry);
  return GM_OK;
}

static gm_status scan_remember(gm__disk_tier *tier, const gm__disk_record *record, const unsigned char *key,
                               gm_error *err) {
  gm__disk_entry *entry = gm__alloc(gm__disk_services(tier), sizeof *entry);
  if (!entry) return scan_no_memory(err);
  entry->at = record->at;
  entry->bytes = record->bytes;
  entry->value_bytes = record->value_bytes;
  entry->damaged = record->state != GM__DISK_LIVE;
  if (!gm__key_map_prepare(&tier->entries, &entry->head, key, record->key_bytes)) {
    gm__release(gm__disk_services(tier), entry, sizeof *entry);
    return scan_no_memory(err);
  }
  gm__key_map_link(&tier->entries, &entry->head);
  tier->stats.values++;
  tier->stats.value_bytes += entry->value_bytes;
  tier->stats.damaged += entry->damaged;
  return GM_OK;
}

/* A torn record is left out, now and by later openings. */
static gm_status scan_void(gm__disk_tier *tier, const gm__disk_record *record, gm_error *err) {
  unsigned char state[sizeof(uint64_t)];
  tier->dead_bytes += record->bytes;
  if (record->state == GM__DISK_VOID) return GM_OK;
  tier->stats.damaged++;
  if (tier->params.read_only) return GM_OK;
  gm__disk_state_write(state, GM__DISK_VOID);
  return gm__data_file_write(&tier->file->file, tier->path, record->at + GM__DISK_STATE_AT, state, sizeof state, err);
}

static gm_status scan_take(disk_scan *scan, const gm__disk_record *record, const unsigned char *front, gm_error *err) {
  gm__disk_tier *tier = scan->tier;
  const unsigned char *key = front + GM__DISK_HEAD;
  if (record->state == GM__DISK_VOID) return scan_void(tier, record, err);
  if (record->at > scan->flushed_at && record->state == GM__DISK_LIVE) {
    const gm_status status = gm__disk_verify(tier, tier->file, record, front, tier->chunk, err);
    if (status == GM_ERR_DAMAGED) return scan_void(tier, record, err);
    if (status) return status;
  }
  const gm_status status = record->key_bytes ? scan_forget(tier, key, record->key_bytes, err) : GM_OK;
  if (status) return status;
  if (record->kind == GM__DISK_PUT && record->state != GM__DISK_DEAD) return scan_remember(tier, record, key, err);
  tier->dead_bytes += record->bytes;
  return GM_OK;
}

/* Counts one damaged place where the file does not end as it should. There is something behind the last record, or
 * records are missing that a seal tells of. */
static gm_status scan_judge_end(gm__disk_tier *tier, disk_scan *scan, gm_error *err) {
  static const unsigned char nothing[GM__DISK_HEAD];
  const unsigned char *seen;
  uint64_t sealed;
  gm_status status = gm__disk_seal_find(tier, &sealed, err);
  if (!status) status = scan_look(scan, scan->end, GM__DISK_HEAD, &seen, err);
  if (status) return status;
  if (sealed > scan->end || memcmp(seen, nothing, sizeof nothing) != 0) tier->stats.damaged++;
  return GM_OK;
}

/* Cuts off what lies behind the last record. It may be the beginning of one, which must not come to life when the file
 * grows over its end. */
static gm_status scan_cut(gm__disk_tier *tier, disk_scan *scan, uint64_t file_bytes, gm_error *err) {
  tier->end = scan->end;
  const gm_status status = scan_judge_end(tier, scan, err);
  if (status || file_bytes <= scan->end) return status;
  return tier->params.read_only ? GM_OK : gm__data_file_cut(&tier->file->file, tier->path, scan->end, err);
}

static gm_status scan_both(gm__disk_tier *tier, disk_scan *scan, gm_error *err) {
  uint64_t file_bytes;
  gm_status status = gm__data_file_size(&tier->file->file, tier->path, &file_bytes, err);
  if (status) return status;
  scan->bytes = gm__round_up(file_bytes, GM__DISK_UNIT);
  scan->take = scan_take_flushed;
  status = scan_walk(scan, err);
  if (status) return status;
  tier->stats.damaged = 0; /* the second walk counts again */
  scan->take = scan_take;
  status = scan_walk(scan, err);
  if (status) return status;
  tier->sequence = scan->sequence;
  tier->flushed_at = scan->flushed_at;
  return scan_cut(tier, scan, file_bytes, err);
}

gm_status gm__disk_scan(gm__disk_tier *tier, gm_error *err) {
  disk_scan scan = {.tier = tier};
  gm_status status = gm__disk_buffers(tier, err);
  if (status) return status;
  scan.window = gm__alloc(gm__disk_services(tier), SCAN_WINDOW);
  if (!scan.window) return scan_no_memory(err);
  status = scan_both(tier, &scan, err);
  gm__release(gm__disk_services(tier), scan.window, SCAN_WINDOW);
  return status;
}
