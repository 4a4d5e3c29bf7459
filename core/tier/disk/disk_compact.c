#include "core/tier/disk/disk_compact.h"

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/tier/disk/disk_file.h"
#include "core/tier/disk/disk_front.h"
#include "core/tier/disk/disk_record.h"
#include "core/tier/disk/disk_seal.h"

/* Invariant: a new file gets the name of the old one only when all of it is on the disk. So a crash leaves the one or
 * the other. */

typedef struct disk_move {
  gm__disk_tier *tier;
  gm__disk_file *file; /* the new one */
  uint64_t end;        /* of its last record */
} disk_move;

static gm_status move_value(const disk_move *move, const gm__disk_record *record, const unsigned char *front,
                            gm_error *err) {
  gm__disk_tier *tier = move->tier;
  const uint64_t before = gm__disk_front_bytes(record);
  uint64_t from = record->at + before, to = move->end + before;
  gm_status status = GM_OK;
  for (uint32_t i = 0; !status && i < record->chunks; i++) {
    const gm__disk_chunk chunk = gm__disk_chunk_read(front, record, i);
    status = gm__data_file_read(&tier->file->file, tier->path, from, tier->chunk, chunk.bytes, err);
    if (status || gm__disk_chunk_checksum(record, i, tier->chunk, chunk.bytes) != chunk.checksum) {
      return gm__fail(err, GM_ERR_DAMAGED, "disk tier", "%.200s: a value is damaged", tier->path);
    }
    status = gm__data_file_write(&move->file->file, tier->path, to, tier->chunk, chunk.bytes, err);
    from += chunk.bytes;
    to += chunk.bytes;
  }
  return status;
}

/* Copies the record of an entry. DAMAGED: its bytes are not right, or the disk does not give them. */
static gm_status move_record(disk_move *move, gm__disk_entry *entry, gm_error *err) {
  const gm__disk_tier *tier = move->tier;
  gm__disk_record record = {.key_bytes = (uint32_t)entry->head.key_bytes,
                            .chunks = gm__disk_chunks_of(entry->value_bytes)};
  const uint64_t front_bytes = gm__disk_front_bytes(&record);
  unsigned char *front;
  gm_status status = gm__disk_front_load(tier, tier->file, entry->at, front_bytes, &record, &front, err);
  if (status) return status == GM_ERR_IO ? GM_ERR_DAMAGED : status;
  status = move_value(move, &record, front, err);
  if (!status) {
    record.at = move->end;
    record.state = GM__DISK_LIVE;
    gm__disk_front_finish(front, &record, move->file->store);
    status = gm__data_file_write(&move->file->file, tier->path, record.at, front, front_bytes, err);
  }
  gm__release(gm__disk_services(tier), front, (size_t)front_bytes);
  if (status) return status;
  entry->moved_at = move->end;
  move->end += record.bytes;
  return GM_OK;
}

/* The entry whose record comes next in the file after `at`. Records keep their order, so their sequence rises. */
static gm__disk_entry **move_order(const gm__disk_tier *tier) {
  gm__disk_entry **order = gm__alloc_array(gm__disk_services(tier), tier->entries.count + 1, sizeof *order);
  size_t cursor = 0, count = 0;
  if (!order) return NULL;
  for (gm__key_entry *entry = NULL; (entry = gm__key_map_next(&tier->entries, &cursor, entry));) {
    order[count++] = (gm__disk_entry *)entry;
  }
  for (size_t gap = count / 2; gap > 0; gap /= 2) { /* Shell's sort: no memory, no recursion */
    for (size_t i = gap; i < count; i++) {
      gm__disk_entry *moved = order[i];
      size_t at = i;
      for (; at >= gap && order[at - gap]->at > moved->at; at -= gap) order[at] = order[at - gap];
      order[at] = moved;
    }
  }
  return order;
}

/* Copies all records. A damaged value is left out: its entry says that it is lost. The new file gets the name once all
 * of it is on the disk. That its name is, too, the next gm__disk_sync sees to: until then either file will do. */
static gm_status move_all(disk_move *move, gm__disk_entry *const *order, gm_error *err) {
  gm__disk_tier *tier = move->tier;
  gm_status status = GM_OK;
  for (size_t i = 0; !status && i < tier->entries.count; i++) {
    order[i]->moved_at = 0;
    if (!order[i]->damaged) status = move_record(move, order[i], err);
    if (status == GM_ERR_DAMAGED) status = GM_OK;
  }
  if (!status) status = gm__disk_seal_put(tier, move->file, move->end, err);
  if (!status) status = gm__data_file_sync(&move->file->file, tier->path, err);
  return status ? status : gm__disk_file_give(tier, move->file, tier->file, err);
}

/* The record of an entry is where the new file has it, or nowhere. */
static void move_entry(gm__disk_tier *tier, gm__disk_entry *entry) {
  entry->at = entry->moved_at;
  if (entry->at) return;
  tier->stats.damaged += !entry->damaged;
  entry->damaged = true;
  entry->bytes = 0;
}

/* The new file is the tier's from here on. */
static void move_finish(const disk_move *move) {
  gm__disk_tier *tier = move->tier;
  size_t cursor = 0;
  gm__mutex_lock(&tier->lock);
  gm__disk_file *old = tier->file;
  for (gm__key_entry *entry = NULL; (entry = gm__key_map_next(&tier->entries, &cursor, entry));) {
    move_entry(tier, (gm__disk_entry *)entry);
  }
  tier->file = move->file;
  tier->dead_bytes = 0;
  tier->stats.written_bytes += move->end;
  gm__mutex_unlock(&tier->lock);
  tier->end = tier->flushed_end = move->end;
  tier->replaced_count = 0;
  gm__disk_file_drop(tier, old);
}

gm_status gm__disk_compact(gm__disk_tier *tier, gm_error *err) {
  disk_move move = {.tier = tier, .end = GM__DISK_START};
  gm_status status = gm__disk_buffers(tier, GM__DISK_CHUNK, err);
  if (status) return status;
  gm__disk_entry **order = move_order(tier);
  if (!order) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_tier_flush", "no host memory for a compaction");
  const size_t count = tier->entries.count;
  status = gm__disk_file_make(tier, &move.file, err);
  if (!status) {
    status = move_all(&move, order, err);
    if (status) {
      gm__disk_file_discard(tier, move.file);
    } else {
      move_finish(&move);
    }
  }
  gm__release(gm__disk_services(tier), order, (count + 1) * sizeof *order);
  return status;
}
