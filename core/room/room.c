#include "core/room/room.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/saturate.h"
#include "core/context/config.h"
#include "core/figures/memory_info.h"
#include "core/host/task.h"
#include "gm/size.h"

/* Invariants. A reading is of figures alone, so claims with other limits share it. A device on which no limit and no
 * promise holds is not asked for figures. The engine of an adopted device has planned its memory: there a key of the
 * configuration holds only if somebody has set it. */

/* Reading the figures costs some hundred microseconds of files and driver calls; a burst of allocations shares one
 * reading. */
enum { ROOM_MAX_AGE_NS = 10 * 1000 * 1000 };

typedef struct gm__room_bounds room_bounds;
typedef struct gm__room_reading room_reading;

void gm__room_init(gm__room *room) { gm__mutex_init(&room->lock, GM__RANK_LEAF); }

void gm__room_clear(gm__room *room) { gm__mutex_destroy(&room->lock); }

/* ---- limits ---- */

static room_bounds room_read_configured(const gm__room *room) {
  room_bounds bounds = {.at_ns = gm__now_ns(), .fraction = 1, .min_free_bytes = GM_NO_LIMIT};
  bounds.alone = !gm__config_holds(room->ctx, "reserve.share", room->adopted);
  if (gm__config_holds(room->ctx, "memory_fraction", room->adopted)) {
    bounds.fraction = gm__config_fraction(room->ctx, "memory_fraction");
  }
  if (gm__config_holds(room->ctx, "min_free_bytes", room->adopted)) {
    bounds.min_free_bytes = gm__config_u64(room->ctx, "min_free_bytes");
    bounds.auto_free = bounds.min_free_bytes == UINT64_MAX;
  }
  return bounds;
}

/* The bounds of the configuration, read at most 10 ms ago. */
static room_bounds room_configured(gm__room *room, bool read_now) {
  gm__mutex_lock(&room->lock);
  room_bounds bounds = room->bounds;
  gm__mutex_unlock(&room->lock);
  if (!read_now && bounds.at_ns && gm__now_ns() - bounds.at_ns <= ROOM_MAX_AGE_NS) return bounds;
  bounds = room_read_configured(room);
  gm__mutex_lock(&room->lock);
  room->bounds = bounds;
  gm__mutex_unlock(&room->lock);
  return bounds;
}

void gm__room_renew(gm__room *room) {
  gm__mutex_lock(&room->lock);
  room->bounds.at_ns = 0;
  gm__mutex_unlock(&room->lock);
}

static room_bounds room_bounds_of(const gm__claim *claim, bool read_now) {
  room_bounds bounds = room_configured(claim->room, read_now);
  if (claim->memory_fraction > 0) bounds.fraction = claim->memory_fraction;
  if (claim->min_free_bytes) {
    bounds.min_free_bytes = claim->min_free_bytes == GM_NO_BYTES ? 0 : claim->min_free_bytes;
    bounds.auto_free = false;
  }
  return bounds;
}

/* ---- promises ---- */

/* The promises of now, seen by who asks for memory. */
typedef struct room_promises {
  uint64_t own;       /* to the asker */
  uint64_t of_us;     /* by this process to others than the asker */
  uint64_t of_others; /* by other processes */
} room_promises;

static room_promises room_promised(const gm__claim *claim, const room_bounds *bounds) {
  const gm__card *card = claim->room->card;
  const uint64_t all = gm__card_promised(card);
  const uint64_t own = atomic_load_explicit(&claim->promised_bytes, memory_order_relaxed);
  const bool heeds = !bounds->alone || claim->heeds_others;
  return (room_promises){own, gm__sub_sat(all, own), heeds ? gm__card_promised_elsewhere(card) : 0};
}

static room_promises room_promised_now(const gm__claim *claim) {
  const room_bounds bounds = room_configured(claim->room, false);
  return room_promised(claim, &bounds);
}

gm__card_aim gm__room_aim(gm__room *room) {
  return room->adopted && room_configured(room, false).alone ? GM__CARD_TAKE_ALONE : GM__CARD_TAKE;
}

uint64_t gm__room_promised(const gm__claim *claim) {
  const room_promises promises = room_promised_now(claim);
  return gm__add_sat(promises.of_us, promises.of_others);
}

uint64_t gm__room_promised_elsewhere(const gm__claim *claim) { return room_promised_now(claim).of_others; }

const char *gm__room_holder_text(const gm__claim *claim, char *out) {
  const gm__card *card = claim->room->card;
  const uint64_t most = atomic_load_explicit(&card->most, memory_order_relaxed);
  const uint32_t pid = atomic_load_explicit(&card->most_holder, memory_order_relaxed);
  char name[GM__TASK_NAME];
  out[0] = 0;
  if (!gm__room_promised_elsewhere(claim)) return out;
  if (!pid) {
    snprintf(out, GM__HOLDER_TEXT, ", %" PRIu64 " of them another process", most);
  } else if (gm__task_name(NULL, pid, name)) {
    snprintf(out, GM__HOLDER_TEXT, ", %" PRIu64 " of them process %" PRIu32 " (%s)", most, pid, name);
  } else {
    snprintf(out, GM__HOLDER_TEXT, ", %" PRIu64 " of them process %" PRIu32, most, pid);
  }
  return out;
}

const char *gm__room_promise_advice(const gm__claim *claim) {
  return room_promised_now(claim).of_us ? "cancel one" : "wait for that process";
}

static bool room_is_free(const room_bounds *bounds, const room_promises *promises) {
  return bounds->fraction >= 1 && bounds->min_free_bytes == GM_NO_LIMIT && !bounds->auto_free && !promises->of_us &&
         !promises->of_others;
}

/* ---- figures ---- */

/* Reads what is free, and what gm holds. Bytes that come or go while the figures are read count as not held, because
 * the figures may count them as free. */
static room_reading room_read(gm__room *room, gm__room_question question) {
  GM__UNCANCELLED();
  room_reading reading = {.at_ns = gm__now_ns()};
  gm_memory_info memory = {.struct_size = sizeof memory};
  const uint64_t departures = gm__card_departures(room->card), used = gm__card_used(room->card);
  reading.failed = room->read(room->owner, question, &memory) != GM_OK;
  reading.total_bytes = memory.total_bytes;
  reading.free_bytes = memory.free_bytes;
  reading.held_bytes = memory.used_by_us_bytes;
  reading.used_bytes = gm__sub_sat(used, gm__card_departures(room->card) - departures);
  return reading;
}

/* A reading of at most 10 ms ago; *fresh: it is one of now. */
static room_reading room_known(gm__room *room, bool read_now, bool *fresh) {
  gm__mutex_lock(&room->lock);
  room_reading reading = room->reading;
  gm__mutex_unlock(&room->lock);
  *fresh = read_now || reading.at_ns == 0 || gm__now_ns() - reading.at_ns > ROOM_MAX_AGE_NS;
  if (!*fresh) return reading;
  reading = room_read(room, read_now ? GM__ROOM_LOOK : GM__ROOM_OWN);
  gm__mutex_lock(&room->lock);
  room->reading = reading;
  gm__mutex_unlock(&room->lock);
  return reading;
}

bool gm__room_is_unread(gm__room *room) {
  gm__mutex_lock(&room->lock);
  const bool unread = room->reading.failed;
  gm__mutex_unlock(&room->lock);
  return unread;
}

/* The bytes that the limits leave of a reading now, less what others are promised. They get nothing of what the asker
 * is promised, whatever an old look at their promises says. Bytes on their way back are nobody's until the driver has
 * them. A share needs no figure of what is free: a driver does not tell it during a capture. */
static uint64_t room_now(const gm__room *room, const room_reading *reading, const room_bounds *bounds,
                         const room_promises *promises) {
  const uint64_t total = reading->total_bytes, most = gm__card_used_most(room->card);
  const bool known = reading->free_bytes != GM_UNKNOWN_BYTES;
  const bool promised = promises->of_us || promises->of_others;
  const bool by_free = known && (bounds->auto_free || bounds->min_free_bytes != GM_NO_LIMIT || promised);
  if (reading->failed) return 0;
  if (total == GM_UNKNOWN_BYTES || (!by_free && bounds->fraction >= 1 && !promised)) return UINT64_MAX;
  const uint64_t free_bytes = gm__sub_sat(gm__add_sat(reading->free_bytes, reading->used_bytes), most);
  gm_memory_info memory = {
      .total_bytes = total,
      .free_bytes = by_free ? free_bytes : total,
      .used_by_us_bytes = gm__sub_sat(gm__add_sat(reading->held_bytes, most), reading->used_bytes)};
  uint64_t keep = bounds->auto_free ? gm__margin_auto(total) : bounds->min_free_bytes;
  if (!by_free || keep == GM_NO_LIMIT) keep = 0;
  const uint64_t within = gm__headroom(&memory, bounds->fraction, keep);
  memory.promised_bytes = promises->of_us;
  memory.promised_by_others_bytes = promises->of_others;
  return gm__min(within, gm__max(gm__headroom(&memory, bounds->fraction, keep), promises->own));
}

uint64_t gm__room_left(const gm__claim *claim, bool read_now) {
  bool fresh;
  if (claim->apart) return UINT64_MAX;
  const room_bounds bounds = room_bounds_of(claim, read_now);
  room_promises promises = room_promised(claim, &bounds);
  if (room_is_free(&bounds, &promises)) return UINT64_MAX;
  const room_reading reading = room_known(claim->room, read_now, &fresh);
  if (fresh) promises = room_promised(claim, &bounds); /* the figures' look may have seen others */
  return room_now(claim->room, &reading, &bounds, &promises);
}

uint64_t gm__room_left_physical(gm__room *room, bool read_now) {
  const gm__claim physical = {.room = room, .memory_fraction = 1, .min_free_bytes = GM_NO_BYTES};
  return gm__room_left(&physical, read_now);
}

uint64_t gm__room_left_managed(const gm__claim *claim) {
  const room_bounds bounds = room_bounds_of(claim, true);
  const room_promises none = {0, 0, 0};
  if (room_is_free(&bounds, &none)) return UINT64_MAX;
  const room_reading reading = room_read(claim->room, GM__ROOM_MANAGED);
  return room_now(claim->room, &reading, &bounds, &none);
}
