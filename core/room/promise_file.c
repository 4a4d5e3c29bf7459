/* Invariants. Each turn opens the file anew: threads of one process exclude each other, too, and nobody goes on with a
 * file that was removed. A card's lock is a byte far behind the file's end. A record is its owner's while the keeper
 * has locked its first byte, and nobody else writes it. So two processes never write one record, with a common turn or
 * without. A process that promises writes first and looks then. Where two do so at once, at least one sees the other.
 */
#include "core/room/promise_file.h"

#include <string.h>

#include "core/base/clock.h"
#include "core/base/env.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/shared_file.h"
#include "core/context/process.h"

enum { PROMISE_CHUNK = 16 /* records written at a time */, PROMISE_HEAD_AT = 0 };

uint64_t gm__promise_patience_ns = 1000000000;

static const uint64_t promise_hurry_ns = 10000000;
static const uint64_t promise_cards_at = UINT64_C(1) << 61; /* the locks of cards */
static const gm__data_file promise_no_file = {.fd = -1};

/* ---- set up ---- */

static const char *promise_folder(const char *folder) {
  if (folder && folder[0]) return folder;
  if (gm__shared_file_folder("/dev/shm")) return "/dev/shm";
  return gm__env("XDG_RUNTIME_DIR");
}

gm_status gm__promise_file_init(gm__promise_file *file, const char *given, gm_error *err) {
  const char *folder = promise_folder(given);
  memset(file, 0, sizeof *file);
  file->keeper = promise_no_file;
  if (!folder) return gm__fail(err, GM_ERR_NOT_FOUND, "open", "no folder for promises: set reserve.folder");
  if (folder[0] != '/') return gm__bad_argument(err, "open", "reserve.folder must be absolute, is %.200s", folder);
  gm_status status = gm__shared_file_path(folder, "gm-promises", file->path, sizeof file->path, err);
  if (status == GM_OK) status = gm__process_generation(&file->generation, err);
  if (status) return status;
  gm__task_self(NULL, &file->self);
  gm__mutex_init(&file->lock, GM__RANK_LEAF);
  return GM_OK;
}

static gm_status promise_check(const gm__promise_file *file, gm_error *err) {
  if (gm__process_is_current(file->generation)) return GM_OK;
  return gm__fail(err, GM_ERR_FORKED, "reserve", "the process was forked: its parent's promises are not its own");
}

/* ---- own records: all below is called with `file->lock` ---- */

static gm__promise_own *own_find(gm__promise_file *file, const uint8_t *card) {
  for (uint32_t i = 0; i < file->own_count; i++) {
    if (memcmp(file->own[i].card, card, GM__PROMISE_CARD_BYTES) == 0) return &file->own[i];
  }
  return NULL;
}

static bool own_has(const gm__promise_file *file, uint32_t record) {
  for (uint32_t i = 0; i < file->own_count; i++) {
    if (file->own[i].record == (int32_t)record) return true;
  }
  return false;
}

static gm_status own_put(gm__promise_file *file, const gm__promise_own *own, uint64_t bytes, gm_error *err) {
  unsigned char record[GM__PROMISE_RECORD_BYTES];
  gm__promise promise = {.bytes = bytes, .owner = file->self};
  memcpy(promise.card, own->card, sizeof promise.card);
  gm__promise_pack(&promise, record);
  return gm__data_file_write(&file->keeper, file->path, gm__promise_at((uint32_t)own->record), record, sizeof record,
                             err);
}

/* Without its lock the record is free, whatever is written there. */
static void own_release(gm__promise_file *file, gm__promise_own *own) {
  if (own->record < 0) return;
  own_put(file, own, 0, NULL);
  gm__shared_file_unlock(&file->keeper, gm__promise_at((uint32_t)own->record));
  own->record = -1;
}

static gm_status own_refuse(const gm__promise_file *file, gm_error *err) {
  return gm__fail(err, GM_ERR_BUSY, "reserve", "%.300s: all %d records are in use", file->path, GM__PROMISE_RECORDS);
}

/* Locks a record that nobody has. */
static gm_status own_claim(gm__promise_file *file, gm__promise_own *own, gm_error *err) {
  for (uint32_t i = 0; i < GM__PROMISE_RECORDS; i++) {
    if (own_has(file, i) || gm__shared_file_lock(&file->keeper, file->path, gm__promise_at(i), 0, NULL)) continue;
    own->record = (int32_t)i;
    return GM_OK;
  }
  return own_refuse(file, err);
}

static gm_status own_write(gm__promise_file *file, gm__promise_own *own, uint64_t bytes, gm_error *err) {
  const bool fresh = own->record < 0;
  gm_status status = fresh ? own_claim(file, own, err) : GM_OK;
  if (status == GM_OK) status = own_put(file, own, bytes, err);
  if (status == GM_OK) {
    own->bytes = bytes;
  } else if (fresh) {
    own_release(file, own);
  }
  return status;
}

static void own_drop(gm__promise_file *file, gm__promise_own *own) {
  own_release(file, own);
  *own = file->own[--file->own_count];
  if (file->own_count == 0) gm__data_file_close(&file->keeper, false);
  atomic_store(&file->promises, file->own_count > 0);
}

/* The keeper is of the file that the turn has. Where that replaced another one, what this process promises is written
 * anew. */
static gm_status own_follow(gm__promise_file *file, const gm__promise_turn *turn, gm_error *err) {
  if (!gm__shared_file_same(&file->keeper, &turn->file)) {
    gm__data_file_close(&file->keeper, false);
    for (uint32_t i = 0; i < file->own_count; i++) file->own[i].record = -1;
    const gm_status status = gm__shared_file_open(file->path, false, &file->keeper, err);
    if (status) return status;
    if (!gm__shared_file_same(&file->keeper, &turn->file)) {
      return gm__fail(err, GM_ERR_BUSY, "open", "%.300s: somebody replaces it", file->path);
    }
  }
  gm_status status = GM_OK;
  for (uint32_t i = 0; i < file->own_count && status == GM_OK; i++) {
    gm__promise_own *own = &file->own[i];
    if (own->record < 0 && own->bytes) status = own_write(file, own, own->bytes, err);
  }
  return status;
}

/* ---- a turn ---- */

static uint64_t turn_byte(const uint8_t *card) { return promise_cards_at | gm__promise_hash(card) >> 3; }

/* A forked child may have the file open, too, so the lock does not end with the file. */
void gm__promise_file_abandon(gm__promise_file *file, gm__promise_turn *turn) {
  if (turn->file.fd >= 0 && !turn->beside && gm__process_is_current(file->generation)) {
    gm__shared_file_unlock(&turn->file, turn_byte(turn->card));
  }
  gm__data_file_close(&turn->file, false);
}

/* Writes what is missing of a new file, or of one that was cut short. Whoever died in the middle of that has left a
 * part of it. */
static gm_status turn_complete(const gm__promise_file *file, const gm__promise_turn *turn, uint64_t deadline,
                               gm_error *err) {
  unsigned char image[GM__PROMISE_RECORD_BYTES * PROMISE_CHUNK] = {0};
  uint64_t bytes = 0;
  gm_status status = gm__shared_file_lock(&turn->file, file->path, PROMISE_HEAD_AT, deadline, err);
  if (status) return status;
  status = gm__data_file_size(&turn->file, file->path, &bytes, err);
  if (bytes < GM__PROMISE_RECORD_BYTES) bytes = 0;
  if (bytes == 0) gm__promise_head(image);
  while (status == GM_OK && bytes < GM__PROMISE_FILE_BYTES) {
    const uint64_t left = GM__PROMISE_FILE_BYTES - bytes, part = left < sizeof image ? left : sizeof image;
    status = gm__data_file_write(&turn->file, file->path, bytes, image, part, err);
    memset(image, 0, sizeof image);
    bytes += part;
  }
  gm__shared_file_unlock(&turn->file, PROMISE_HEAD_AT);
  return status;
}

/* The file is short. The part of the head that is there must be right, before gm writes anything. */
static gm_status turn_repair(const gm__promise_file *file, const gm__promise_turn *turn, uint64_t deadline,
                             gm_error *err) {
  unsigned char head[GM__PROMISE_RECORD_BYTES];
  uint64_t bytes = 0;
  gm__promise_head(head);
  gm_status status = gm__data_file_size(&turn->file, file->path, &bytes, err);
  const uint64_t part = bytes < sizeof head ? bytes : sizeof head;
  if (status == GM_OK) status = gm__data_file_read(&turn->file, file->path, 0, head, part, err);
  if (status == GM_OK) status = gm__promise_head_check(file->path, head, err);
  if (status || bytes >= GM__PROMISE_FILE_BYTES) return status;
  return turn_complete(file, turn, deadline, err);
}

/* A child that was forked, and that outlives its parent, keeps the parent's locks. */
static bool turn_counts(const gm__promise_file *file, const gm__promise_turn *turn, uint32_t record,
                        const gm__promise *promise) {
  return memcmp(promise->card, turn->card, sizeof turn->card) == 0 && !own_has(file, record) &&
         gm__shared_file_is_locked(&turn->file, gm__promise_at(record), 1) &&
         !gm__task_has_ended(NULL, &file->self, &promise->owner);
}

/* Counts what the image says of others. */
static void turn_sum(gm__promise_file *file, const gm__promise_turn *turn, gm__promise_others *out) {
  gm__promise promise;
  *out = (gm__promise_others){0};
  for (uint32_t i = 0; i < GM__PROMISE_RECORDS; i++) {
    if (!gm__promise_unpack(file->image + gm__promise_at(i), &promise) || !turn_counts(file, turn, i, &promise))
      continue;
    out->bytes = gm__add_sat(out->bytes, promise.bytes);
    if (promise.bytes <= out->most) continue;
    out->most = promise.bytes;
    out->pid = promise.owner.space == file->self.space ? promise.owner.pid : 0; /* elsewhere it has another number */
  }
}

/* Reads the whole file at once. FORMAT: it is short, or none of promises. REQUIRES: file->lock. */
static gm_status turn_read(gm__promise_file *file, const gm__promise_turn *turn, gm_error *err) {
  const gm_status status = gm__data_file_read(&turn->file, file->path, 0, file->image, GM__PROMISE_FILE_BYTES, err);
  return status ? status : gm__promise_head_check(file->path, file->image, err);
}

static gm_status turn_look(gm__promise_file *file, const gm__promise_turn *turn, gm__promise_others *out,
                           gm_error *err) {
  gm__mutex_lock(&file->lock);
  gm_status status = turn_read(file, turn, err);
  if (status == GM_OK && file->own_count) status = own_follow(file, turn, err);
  if (status == GM_OK) turn_sum(file, turn, out);
  gm__mutex_unlock(&file->lock);
  return status;
}

/* Whether nobody promises anything on any card. One question tells: the locks on records, also on those that another
 * version of gm may have behind this one's. */
static bool turn_is_idle(gm__promise_file *file, const gm__promise_turn *turn) {
  const uint64_t at = gm__promise_at(0);
  return !atomic_load(&file->promises) && !gm__shared_file_is_locked(&turn->file, at, promise_cards_at - at);
}

/* That there is no file is no failure, unless it was to be made. */
static gm_status turn_open(const gm__promise_file *file, bool create, gm__promise_turn *turn, gm_error *err) {
  gm_error why;
  const gm_status status = gm__shared_file_open(file->path, create, &turn->file, &why);
  if (status == GM_ERR_NOT_FOUND && !create) return GM_OK;
  if (status && err) *err = why;
  return status;
}

/* Where nobody promises, and nobody is about to, the file is not read. */
static gm_status turn_enter(gm__promise_file *file, gm__promise_turn *turn, bool create, uint64_t patience_ns,
                            gm__promise_others *out, gm_error *err) {
  const uint64_t deadline = gm__deadline_after(patience_ns);
  gm_status status = GM_OK;
  if (!turn->beside) status = gm__shared_file_lock(&turn->file, file->path, turn_byte(turn->card), deadline, err);
  if (status || (!create && turn_is_idle(file, turn))) return status;
  gm_error why;
  status = turn_look(file, turn, out, &why);
  if (status != GM_ERR_FORMAT) {
    if (status && err) *err = why;
    return status;
  }
  status = turn_repair(file, turn, deadline, err);
  return status ? status : turn_look(file, turn, out, err);
}

/* A process that has promised something makes the file again where somebody has removed it. */
static gm_status promise_begin(gm__promise_file *file, const uint8_t *card, bool create, uint64_t patience_ns,
                               gm__promise_turn *turn, gm__promise_others *out, gm_error *err) {
  *out = (gm__promise_others){0};
  turn->file = promise_no_file;
  memcpy(turn->card, card, sizeof turn->card);
  create = create || atomic_load(&file->promises);
  gm_status status = promise_check(file, err);
  if (status == GM_OK) status = turn_open(file, create, turn, err);
  if (status == GM_OK && turn->file.fd >= 0) status = turn_enter(file, turn, create, patience_ns, out, err);
  if (status) gm__promise_file_abandon(file, turn);
  return status;
}

gm_status gm__promise_file_begin(gm__promise_file *file, const uint8_t card[GM__PROMISE_CARD_BYTES], bool create,
                                 gm__promise_turn *turn, gm__promise_others *others, gm_error *err) {
  const uint64_t patience_ns = atomic_load(&file->hurried) ? promise_hurry_ns : gm__promise_patience_ns;
  turn->beside = false;
  const gm_status status = promise_begin(file, card, create, patience_ns, turn, others, err);
  atomic_store(&file->hurried, status == GM_ERR_TIMEOUT);
  return status;
}

gm_status gm__promise_file_begin_beside(gm__promise_file *file, const uint8_t card[GM__PROMISE_CARD_BYTES], bool create,
                                        gm__promise_turn *turn, gm__promise_others *others, gm_error *err) {
  turn->beside = true;
  return promise_begin(file, card, create, promise_hurry_ns, turn, others, err);
}

gm_status gm__promise_file_read(gm__promise_file *file, const uint8_t card[GM__PROMISE_CARD_BYTES],
                                gm__promise_others *others, gm_error *err) {
  gm__promise_turn turn = {.beside = false};
  const gm_status status = promise_begin(file, card, false, promise_hurry_ns, &turn, others, err);
  if (status == GM_OK) gm__promise_file_abandon(file, &turn);
  return status;
}

static gm_status turn_promise(gm__promise_file *file, const gm__promise_turn *turn, uint64_t bytes, gm_error *err) {
  gm__promise_own *own = own_find(file, turn->card);
  if (bytes == 0) {
    if (own) own_drop(file, own);
    return GM_OK;
  }
  if (!own && file->own_count == GM__PROMISE_RECORDS) return own_refuse(file, err);
  if (!own) {
    own = &file->own[file->own_count++];
    *own = (gm__promise_own){.record = -1};
    memcpy(own->card, turn->card, sizeof own->card);
  }
  gm_status status = own_follow(file, turn, err);
  if (status == GM_OK) status = own_write(file, own, bytes, err);
  if (own->bytes == 0) own_drop(file, own);
  atomic_store(&file->promises, file->own_count > 0);
  return status;
}

gm_status gm__promise_file_tell(gm__promise_file *file, const gm__promise_turn *turn, uint64_t own_bytes,
                                gm__promise_others *others, gm_error *err) {
  gm_status status = promise_check(file, err);
  if (status == GM_OK && turn->file.fd < 0 && own_bytes) {
    status = gm__bad_argument(err, "reserve", "no file of promises was made");
  }
  if (status) return status;
  gm__mutex_lock(&file->lock);
  status = turn_promise(file, turn, own_bytes, err);
  if (status == GM_OK && own_bytes && others) {
    status = turn_read(file, turn, err);
    if (status == GM_OK) turn_sum(file, turn, others);
  }
  gm__mutex_unlock(&file->lock);
  return status;
}

gm_status gm__promise_file_end(gm__promise_file *file, gm__promise_turn *turn, uint64_t own_bytes, gm_error *err) {
  const gm_status status = gm__promise_file_tell(file, turn, own_bytes, NULL, err);
  gm__promise_file_abandon(file, turn);
  return status;
}

void gm__promise_file_close(gm__promise_file *file) {
  if (gm__process_is_current(file->generation)) {
    gm__mutex_lock(&file->lock);
    while (file->own_count) own_drop(file, &file->own[file->own_count - 1]);
    gm__mutex_unlock(&file->lock);
    gm__mutex_destroy(&file->lock);
  }
  gm__data_file_close(&file->keeper, false);
}
