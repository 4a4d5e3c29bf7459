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
 * Records before the last FLUSHED, or before the end of a seal, are on the disk, so only their fronts are read. A crash
 * may have torn those behind. So their values are checked, too. A torn one was never promised, and the one before it
 * stays. The others are written again: if the system dropped them when it could not write them, the next sync would not
 * know.
 *
 * Nothing is cut off that a seal tells of, or that could not be read. */

enum { SCAN_WINDOW = 1 << 16, SCAN_SECTOR = 4096 };

typedef struct disk_scan {
  gm__disk_tier *tier;
  uint64_t file_bytes;
  uint64_t bytes; /* of the file, rounded up to a whole unit */
  uint64_t end;   /* of the last record */
  uint64_t sequence;
  uint64_t flushed_at;
  uint64_t sealed;     /* how far a seal says that the file reaches */
  uint64_t unfinished; /* the first record behind the last one that the file's end cuts; before it: none */
  uint64_t unreadable; /* the end of the last sector that the disk does not give */
  uint64_t window_at, window_bytes;
  unsigned char *window; /* SCAN_WINDOW bytes of the file */
  gm_status (*take)(struct disk_scan *scan, const gm__disk_record *record, const unsigned char *front, gm_error *err);
} disk_scan;

static gm_status scan_no_memory(gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_tier_open", "no host memory for the index of a disk tier");
}

/* ---- walking from record to record ---- */

/* Reads a window, as far as the file has it. Bytes that the disk does not give are zero, so no record
 * begins there. */
static gm_status scan_fill(disk_scan *scan, uint64_t at, uint64_t there, gm_error *err) {
  const gm__disk_tier *tier = scan->tier;
  gm_status status = gm__data_file_read(&tier->file->file, tier->path, at, scan->window, there, err);
  for (uint64_t done = 0; status == GM_ERR_IO && done < there;) {
    const uint64_t bytes = gm__min(SCAN_SECTOR - (at + done) % SCAN_SECTOR, there - done);
    if (gm__data_file_read(&tier->file->file, tier->path, at + done, scan->window + done, bytes, err)) {
      memset(scan->window + done, 0, (size_t)bytes);
      scan->unreadable = at + done + bytes;
    }
    done += bytes;
  }
  return status == GM_ERR_IO ? GM_OK : status;
}

/* Makes `count` bytes from `at` visible, as far as the file has them; what it has not is zero. */
static gm_status scan_look(disk_scan *scan, uint64_t at, uint64_t count, const unsigned char **out, gm_error *err) {
  if (at < scan->window_at || at + count > scan->window_at + scan->window_bytes) {
    memset(scan->window, 0, SCAN_WINDOW);
    const uint64_t there = gm__min(gm__sub_sat(scan->file_bytes, at), SCAN_WINDOW);
    const gm_status status = scan_fill(scan, at, there, err);
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
  if (status || !gm__disk_head_read(seen, at, tier->file->store, UINT64_MAX, &record)) return status;
  if (record.bytes > scan->bytes - at) {
    if (scan->unfinished < scan->end) scan->unfinished = at;
    return GM_OK;
  }
  const uint64_t front_bytes = gm__disk_front_bytes(&record);
  unsigned char *front = NULL;
  if (record.sequence <= scan->sequence) return GM_OK;
  if (front_bytes <= SCAN_WINDOW) {
    status = scan_look(scan, at, front_bytes, &seen, err);
    if (status || !gm__disk_front_is_right(seen, &record)) return status;
  } else {
    status = gm__disk_front_load(tier, tier->file, at, front_bytes, &record, &front, err);
    if (status == GM_ERR_IO) scan->unreadable = at + front_bytes;
    if (status) return status == GM_ERR_DAMAGED || status == GM_ERR_IO ? GM_OK : status;
  }
  status = scan->take(scan, &record, front ? front : seen, err);
  gm__release(gm__disk_services(tier), front, (size_t)front_bytes);
  scan->sequence = record.sequence;
  scan->end = at + record.bytes;
  *out_bytes = record.bytes;
  return status;
}

/* Takes every record. Bytes between two records are damage, which is counted once for each gap. */
static gm_status scan_walk(disk_scan *scan, gm_error *err) {
  gm_status status = GM_OK;
  scan->end = GM__DISK_START;
  scan->sequence = scan->window_bytes = scan->unfinished = 0;
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

/* May a crash have torn the record, or is it the last one of a file that was cut? */
static bool scan_may_be_torn(const disk_scan *scan, const gm__disk_record *record) {
  if (record->at + record->bytes > scan->file_bytes) return true;
  return record->at > scan->flushed_at && record->at >= scan->sealed;
}

/* A record behind the last flush. DAMAGED: a crash tore it. One that the disk does not give stays, and who reads it
 * is told: another time it may be there. */
static gm_status scan_check(const disk_scan *scan, const gm__disk_record *record, const unsigned char *front,
                            gm_error *err) {
  gm__disk_tier *tier = scan->tier;
  gm_status status = gm__disk_buffers(tier, record->value_bytes, err);
  if (!status) status = gm__disk_verify(tier, tier->file, record, front, tier->chunk, err);
  if (status == GM_ERR_IO) return GM_OK;
  return status || tier->params.read_only ? status : gm__disk_renew(tier, record, front, err);
}

static gm_status scan_take(disk_scan *scan, const gm__disk_record *record, const unsigned char *front, gm_error *err) {
  gm__disk_tier *tier = scan->tier;
  const unsigned char *key = front + GM__DISK_HEAD;
  if (record->state == GM__DISK_VOID) return scan_void(tier, record, err);
  if (record->state == GM__DISK_LIVE && scan_may_be_torn(scan, record)) {
    const gm_status status = scan_check(scan, record, front, err);
    if (status == GM_ERR_DAMAGED) return scan_void(tier, record, err);
    if (status) return status;
  }
  const gm_status status = record->key_bytes ? scan_forget(tier, key, record->key_bytes, err) : GM_OK;
  if (status) return status;
  if (record->kind == GM__DISK_PUT && record->state != GM__DISK_DEAD) return scan_remember(tier, record, key, err);
  tier->dead_bytes += record->bytes;
  return GM_OK;
}

/* Has the file records at all? A beginning that is not whole, or a seal, may say that it had some. Then its bytes were
 * moved, and gm leaves them as they are. */
static gm_status scan_judge_start(const disk_scan *scan, gm_error *err) {
  const gm__disk_tier *tier = scan->tier;
  const bool shows_none = scan->end == GM__DISK_START && scan->file_bytes > GM__DISK_START;
  const bool was_cut = scan->sealed > scan->file_bytes && tier->params.read_only; /* who reads is told */
  const bool had_some = !tier->file->start_is_whole || (scan->sealed > GM__DISK_START && !was_cut);
  if (!shows_none || !had_some) return GM_OK;
  return gm__fail(err, GM_ERR_FORMAT, "disk tier", "%.300s: no record is where its beginning says: it is not opened",
                  tier->path);
}

/* Counts one damaged place where the file does not end as it should. There is something behind the last record, or
 * records are missing that a seal tells of. */
static gm_status scan_judge_end(disk_scan *scan, gm_error *err) {
  static const unsigned char nothing[GM__DISK_HEAD];
  const unsigned char *seen;
  const gm_status status = scan_look(scan, scan->end, GM__DISK_HEAD, &seen, err);
  if (status) return status;
  const bool ends_well = scan->sealed <= scan->end && memcmp(seen, nothing, sizeof nothing) == 0;
  if (!ends_well || scan->unreadable > scan->end) scan->tier->stats.damaged++;
  return GM_OK;
}

/* Where the next record goes. Behind the last one may lie the beginning of another, which must not come to life when
 * the file grows over its end. But where flushed records are missing, their bytes may lie there. */
static uint64_t scan_end(const disk_scan *scan) {
  if (scan->sealed <= scan->end) return scan->end;
  return scan->unfinished >= scan->end ? scan->unfinished : scan->bytes;
}

/* Finds where the next record goes, and cuts off what lies behind. */
static gm_status scan_cut(gm__disk_tier *tier, const disk_scan *scan, gm_error *err) {
  const bool noted = scan->flushed_at == scan->sealed && scan->end == scan->flushed_at + UINT64_C(2) * GM__DISK_UNIT;
  tier->end = scan_end(scan);
  if (noted || scan->sealed == tier->end || tier->end == GM__DISK_START) tier->flushed_end = tier->end;
  if (tier->params.read_only || scan->file_bytes <= tier->end) return GM_OK;
  if (scan->unreadable <= tier->end) return gm__data_file_cut(&tier->file->file, tier->path, tier->end, err);
  return gm__fail(err, GM_ERR_IO, "disk tier", "%.200s: its end cannot be read: it can be read only", tier->path);
}

static gm_status scan_both(gm__disk_tier *tier, disk_scan *scan, gm_error *err) {
  gm_status status = gm__data_file_size(&tier->file->file, tier->path, &scan->file_bytes, err);
  if (!status) status = gm__disk_seal_find(tier, &scan->sealed, err);
  if (status) return status;
  scan->bytes = gm__round_up(scan->file_bytes, GM__DISK_UNIT);
  scan->take = scan_take_flushed;
  status = scan_walk(scan, err);
  if (status) return status;
  tier->stats.damaged = 0; /* the second walk counts again */
  scan->take = scan_take;
  status = scan_walk(scan, err);
  if (!status) status = scan_judge_start(scan, err);
  if (!status) status = scan_judge_end(scan, err);
  tier->sequence = scan->sequence;
  return status ? status : scan_cut(tier, scan, err);
}

gm_status gm__disk_scan(gm__disk_tier *tier, gm_error *err) {
  disk_scan scan = {.tier = tier};
  scan.window = gm__alloc(gm__disk_services(tier), SCAN_WINDOW);
  if (!scan.window) return scan_no_memory(err);
  const gm_status status = scan_both(tier, &scan, err);
  gm__release(gm__disk_services(tier), scan.window, SCAN_WINDOW);
  return status;
}
