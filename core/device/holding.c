#include "core/device/holding.h"

#include <inttypes.h>

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/device/reclaimer.h"
#include "core/room/card_turn.h"

/* Invariants, all under the card's grow lock. The card's count is the sum of what is left of its promises and of what
 * was taken of them untouched. A pool's own count is the sum of what is left over those bound to it. While a pool is at
 * the driver, what it draws is in neither: it holds the lock, so nobody else is told yes meanwhile. */

/* Whoever promises heeds the promises of other processes, also on an adopted device. */
static const gm__limits holding_heeds = {.heeds_others = true};

/* What the card has for one more promise. The promises of the pool itself leave as little as those of others. */
static uint64_t holding_room(gm_device *device, const gm__limits *limits) {
  static const gm__limits physical = {.memory_fraction = 1, .min_free_bytes = GM_NO_BYTES, .heeds_others = true};
  const uint64_t room = gm__device_headroom(device, limits, true);
  return gm__min(room, gm__device_headroom(device, &physical, false));
}

static gm_status holding_refuse(gm_device *device, uint64_t bytes, uint64_t room, const char *op, gm_error *err) {
  gm__mutex_lock(&device->lock);
  const bool unread = device->headroom.failed;
  gm__mutex_unlock(&device->lock);
  if (unread) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, op, "no host memory to read the device's figures");
  if (room == UINT64_MAX) {
    return gm__fail(err, GM_ERR_NOT_FOUND, 0, op, "%s: no figure for its memory, so none can be promised",
                    device->info.name);
  }
  char holder[GM__HOLDER_TEXT];
  return gm__fail(err, GM_ERR_OVER_LIMIT, 0, op,
                  "%" PRIu64 " bytes cannot be promised: %" PRIu64
                  " are left of what memory_fraction, min_free_bytes and other promises (%" PRIu64 "%s) leave",
                  bytes, room, gm__device_promised(device, &holding_heeds),
                  gm__device_holder_text(device, &holding_heeds, holder));
}

/* Tells others of the promise. A process that goes beside this turn may have promised the bytes meanwhile. Both write
 * before they look, so at least the later one sees the other. *room falls by what the other one promised. */
static gm_status holding_tell(gm_device *device, gm__card_turn *turn, uint64_t bytes, uint64_t *room, gm_error *err) {
  const uint64_t others = gm__card_promised_elsewhere(device->card);
  gm__card_promise(device->card, bytes);
  gm_status status = gm__card_turn_tell(turn, err);
  if (!status) {
    *room = gm__sub_sat(*room, gm__sub_sat(gm__card_promised_elsewhere(device->card), others));
    if (bytes > *room) status = GM_ERR_OVER_LIMIT;
  }
  if (status) gm__card_unpromise(device->card, bytes);
  return status;
}

/* *room: what there was. OVER_LIMIT, without a text: it is not enough. */
static gm_status holding_try(gm_device *device, const gm__limits *limits, uint64_t bytes, uint64_t *room,
                             gm_error *err) {
  gm__card_turn turn;
  gm_status status = gm__card_turn_begin(device->ctx, device->card, GM__CARD_PROMISE, &turn, err);
  if (status) return status;
  *room = holding_room(device, limits);
  if (*room == UINT64_MAX || bytes > *room) status = GM_ERR_OVER_LIMIT;
  if (!status) status = holding_tell(device, &turn, bytes, room, err);
  gm__card_turn_end(&turn);
  return status;
}

gm_status gm__holding_make(gm_device *device, const gm__limits *limits, uint64_t bytes, gm__holding *promise,
                           const char *op, gm_error *err) {
  const gm__limits bounds = {.memory_fraction = limits ? limits->memory_fraction : 0,
                             .min_free_bytes = limits ? limits->min_free_bytes : 0,
                             .heeds_others = true};
  uint64_t room = 0;
  promise->bytes = bytes;
  gm_status status = holding_try(device, &bounds, bytes, &room, err);
  if (status == GM_ERR_OVER_LIMIT && room != UINT64_MAX && gm__reclaimers_trim(device, NULL, bytes - room)) {
    status = holding_try(device, &bounds, bytes, &room, err);
  }
  if (status == GM_ERR_OVER_LIMIT) return holding_refuse(device, bytes, room, op, err);
  return gm__error_of(op, status, err);
}

void gm__holding_bind(gm_device *device, gm__holding *promise, gm__limits *limits) {
  gm__mutex_lock(&device->card->lock);
  gm__holding **at = &limits->promises;
  while (*at) at = &(*at)->next;
  *at = promise;
  atomic_fetch_add_explicit(&limits->promised_bytes, gm__holding_left(promise), memory_order_relaxed);
  gm__mutex_unlock(&device->card->lock);
}

/* REQUIRES: grow lock. */
static void holding_unbind(gm__holding *promise, gm__limits *limits) {
  gm__holding **at = &limits->promises;
  while (*at != promise) at = &(*at)->next;
  *at = promise->next;
  atomic_fetch_sub_explicit(&limits->promised_bytes, gm__holding_left(promise), memory_order_relaxed);
}

void gm__holding_end(gm_device *device, gm__holding *promise, gm__limits *limits) {
  gm__card_turn turn;
  gm__card_turn_begin(device->ctx, device->card, gm__device_aim(device), &turn, NULL);
  if (limits) holding_unbind(promise, limits);
  gm__card_unpromise(device->card, gm__holding_left(promise) + promise->untouched);
  gm__card_turn_end(&turn);
}

uint64_t gm__holding_draw(gm_device *device, gm__limits *limits, uint64_t bytes) {
  bytes = gm__min(bytes, atomic_load_explicit(&limits->promised_bytes, memory_order_relaxed));
  if (!bytes) return 0;
  gm__card_unpromise(device->card, bytes);
  atomic_fetch_sub_explicit(&limits->promised_bytes, bytes, memory_order_relaxed);
  return bytes;
}

/* Of an untouched promise the card's count keeps what the pool's has lost. */
void gm__holding_drawn(gm_device *device, gm__limits *limits, uint64_t bytes, gm__drawn fared) {
  if (!bytes) return;
  if (fared != GM__DRAWN_TAKEN) gm__card_promise(device->card, bytes);
  if (fared == GM__DRAWN_REFUSED) {
    atomic_fetch_add_explicit(&limits->promised_bytes, bytes, memory_order_relaxed);
    return;
  }
  for (gm__holding *promise = limits->promises; bytes; promise = promise->next) {
    const uint64_t part = gm__min(bytes, gm__holding_left(promise));
    atomic_fetch_add_explicit(&promise->taken, part, memory_order_relaxed);
    if (fared == GM__DRAWN_UNTOUCHED) promise->untouched += part;
    bytes -= part;
  }
}

void gm__holding_touched(gm_device *device, gm__limits *limits, uint64_t bytes) {
  gm__card_turn turn;
  if (!bytes) return;
  gm__card_turn_begin(device->ctx, device->card, gm__device_aim(device), &turn, NULL);
  for (gm__holding *promise = limits->promises; bytes && promise; promise = promise->next) {
    const uint64_t part = gm__min(bytes, promise->untouched);
    promise->untouched -= part;
    gm__card_unpromise(device->card, part);
    bytes -= part;
  }
  gm__card_turn_end(&turn);
}

void gm__holding_untake(gm_device *device, gm__limits *limits, uint64_t bytes) {
  gm__mutex_lock(&device->card->lock);
  for (gm__holding *promise = limits->promises; bytes && promise; promise = promise->next) {
    const uint64_t part = gm__min(bytes, promise->untouched);
    promise->untouched -= part;
    atomic_fetch_sub_explicit(&promise->taken, part, memory_order_relaxed);
    atomic_fetch_add_explicit(&limits->promised_bytes, part, memory_order_relaxed);
    bytes -= part;
  }
  gm__mutex_unlock(&device->card->lock);
}

void gm__holding_retake(gm_device *device, gm__limits *limits, uint64_t bytes) {
  gm__card_turn turn;
  if (!bytes) return;
  gm__card_turn_begin(device->ctx, device->card, gm__device_aim(device), &turn, NULL);
  bytes = gm__min(bytes, gm__device_headroom(device, &holding_heeds, true));
  for (gm__holding *promise = limits->promises; bytes && promise; promise = promise->next) {
    const uint64_t taken = atomic_load_explicit(&promise->taken, memory_order_relaxed);
    const uint64_t part = gm__min(bytes, taken - promise->untouched);
    atomic_store_explicit(&promise->taken, taken - part, memory_order_relaxed);
    atomic_fetch_add_explicit(&limits->promised_bytes, part, memory_order_relaxed);
    gm__card_promise(device->card, part);
    bytes -= part;
  }
  gm__card_turn_end(&turn);
}
