#include "core/room/holding.h"

#include <inttypes.h>

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "gm/size.h"

/* Invariants, all under the card's grow lock. The card's count is the sum of what is left of its promises and of what
 * was taken of them untouched. A pool's own count is the sum of what is left over those bound to it. While a pool is at
 * the driver, what it draws is in neither: it holds the lock, so nobody else is told yes meanwhile. */

/* The limits of a claim, seen by who promises: whoever promises heeds the promises of other processes, also on an
 * adopted device. The promises of the claim itself leave as little as those of others. */
static gm__claim holding_view(const gm__claim *claim) {
  return (gm__claim){.room = claim->room,
                     .memory_fraction = claim->memory_fraction,
                     .min_free_bytes = claim->min_free_bytes,
                     .heeds_others = true};
}

/* The bytes that the card has for one more promise. */
static uint64_t holding_room(const gm__claim *view) {
  const gm__claim physical = {
      .room = view->room, .memory_fraction = 1, .min_free_bytes = GM_NO_BYTES, .heeds_others = true};
  const uint64_t left = gm__room_left(view, true);
  return gm__min(left, gm__room_left(&physical, false));
}

static gm_status holding_refuse(const gm__claim *view, uint64_t bytes, uint64_t left, const char *op, gm_error *err) {
  char holder[GM__HOLDER_TEXT];
  const gm__claim heeds = {.room = view->room, .heeds_others = true};
  if (gm__room_is_unread(view->room))
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory to read the device's figures");
  if (left == UINT64_MAX) {
    return gm__fail(err, GM_ERR_NOT_FOUND, op, "%s: no figure for its memory, so none can be promised",
                    view->room->name);
  }
  return gm__fail(err, GM_ERR_OVER_LIMIT, op,
                  "%" PRIu64 " bytes cannot be promised: %" PRIu64
                  " are left of what memory_fraction, min_free_bytes and other promises (%" PRIu64 "%s) leave",
                  bytes, left, gm__room_promised(&heeds), gm__room_holder_text(&heeds, holder));
}

/* Tells others of the promise. A process that goes beside this turn may have promised the bytes meanwhile. Both write
 * before they look, so at least the later one sees the other. *left falls by what the other one promised. */
static gm_status holding_tell(gm__card_turn *turn, uint64_t bytes, uint64_t *left, gm_error *err) {
  gm__card *card = turn->card;
  const uint64_t others = gm__card_promised_elsewhere(card);
  gm__card_promise(card, bytes);
  gm_status status = gm__card_turn_tell(turn, err);
  if (!status) {
    *left = gm__sub_sat(*left, gm__sub_sat(gm__card_promised_elsewhere(card), others));
    if (bytes > *left) status = GM_ERR_OVER_LIMIT;
  }
  if (status) gm__card_unpromise(card, bytes);
  return status;
}

/* *left: what there was. OVER_LIMIT, without a text: it is not enough. */
static gm_status holding_try(const gm__claim *view, uint64_t bytes, uint64_t *left, gm_error *err) {
  gm__card_turn turn;
  gm_status status = gm__card_turn_begin(view->room->ctx, view->room->card, GM__CARD_PROMISE, &turn, err);
  if (status) return status;
  *left = holding_room(view);
  if (*left == UINT64_MAX || bytes > *left) status = GM_ERR_OVER_LIMIT;
  if (!status) status = holding_tell(&turn, bytes, left, err);
  gm__card_turn_end(&turn);
  return status;
}

gm_status gm__holding_make(const gm__claim *claim, uint64_t bytes, gm__holding *promise, uint64_t *lack, const char *op,
                           gm_error *err) {
  const gm__claim view = holding_view(claim);
  uint64_t left = 0;
  promise->bytes = bytes;
  const gm_status status = holding_try(&view, bytes, &left, err);
  *lack = left == UINT64_MAX ? UINT64_MAX : gm__sub_sat(bytes, left);
  if (status == GM_ERR_OVER_LIMIT) return holding_refuse(&view, bytes, left, op, err);
  return gm__error_of(op, status, err);
}

void gm__holding_bind(gm__holding *promise, gm__claim *claim) {
  gm__mutex_lock(&claim->room->card->lock);
  gm__holding **at = &claim->promises;
  while (*at) at = &(*at)->next;
  *at = promise;
  atomic_fetch_add_explicit(&claim->promised_bytes, gm__holding_left(promise), memory_order_relaxed);
  gm__mutex_unlock(&claim->room->card->lock);
}

/* REQUIRES: grow lock. */
static void holding_unbind(gm__holding *promise, gm__claim *claim) {
  gm__holding **at = &claim->promises;
  while (*at != promise) at = &(*at)->next;
  *at = promise->next;
  atomic_fetch_sub_explicit(&claim->promised_bytes, gm__holding_left(promise), memory_order_relaxed);
}

/* A turn that takes bytes, or gives some back. */
static void holding_turn(gm__room *room, gm__card_turn *turn) {
  gm__card_turn_begin(room->ctx, room->card, gm__room_aim(room), turn, NULL);
}

void gm__holding_end(gm__room *room, gm__holding *promise, gm__claim *claim) {
  gm__card_turn turn;
  holding_turn(room, &turn);
  if (claim) holding_unbind(promise, claim);
  gm__card_unpromise(room->card, gm__holding_left(promise) + promise->untouched);
  gm__card_turn_end(&turn);
}

uint64_t gm__holding_draw(gm__claim *claim, uint64_t bytes) {
  bytes = gm__min(bytes, atomic_load_explicit(&claim->promised_bytes, memory_order_relaxed));
  if (!bytes) return 0;
  gm__card_unpromise(claim->room->card, bytes);
  atomic_fetch_sub_explicit(&claim->promised_bytes, bytes, memory_order_relaxed);
  return bytes;
}

/* The card's count keeps what the pool's has lost, where the promise is untouched. */
void gm__holding_drawn(gm__claim *claim, uint64_t bytes, gm__drawn fared) {
  if (!bytes) return;
  if (fared != GM__DRAWN_TAKEN) gm__card_promise(claim->room->card, bytes);
  if (fared == GM__DRAWN_REFUSED) {
    atomic_fetch_add_explicit(&claim->promised_bytes, bytes, memory_order_relaxed);
    return;
  }
  for (gm__holding *promise = claim->promises; bytes; promise = promise->next) {
    const uint64_t part = gm__min(bytes, gm__holding_left(promise));
    atomic_fetch_add_explicit(&promise->taken, part, memory_order_relaxed);
    if (fared == GM__DRAWN_UNTOUCHED) promise->untouched += part;
    bytes -= part;
  }
}

void gm__holding_touched(gm__claim *claim, uint64_t bytes) {
  gm__card_turn turn;
  if (!bytes) return;
  holding_turn(claim->room, &turn);
  for (gm__holding *promise = claim->promises; bytes && promise; promise = promise->next) {
    const uint64_t part = gm__min(bytes, promise->untouched);
    promise->untouched -= part;
    gm__card_unpromise(claim->room->card, part);
    bytes -= part;
  }
  gm__card_turn_end(&turn);
}

void gm__holding_untake(gm__claim *claim, uint64_t bytes) {
  gm__mutex_lock(&claim->room->card->lock);
  for (gm__holding *promise = claim->promises; bytes && promise; promise = promise->next) {
    const uint64_t part = gm__min(bytes, promise->untouched);
    promise->untouched -= part;
    atomic_fetch_sub_explicit(&promise->taken, part, memory_order_relaxed);
    atomic_fetch_add_explicit(&claim->promised_bytes, part, memory_order_relaxed);
    bytes -= part;
  }
  gm__mutex_unlock(&claim->room->card->lock);
}

void gm__holding_retake(gm__claim *claim, uint64_t bytes) {
  const gm__claim heeds = {.room = claim->room, .heeds_others = true};
  gm__card_turn turn;
  if (!bytes) return;
  holding_turn(claim->room, &turn);
  bytes = gm__min(bytes, gm__room_left(&heeds, true));
  for (gm__holding *promise = claim->promises; bytes && promise; promise = promise->next) {
    const uint64_t taken = atomic_load_explicit(&promise->taken, memory_order_relaxed);
    const uint64_t part = gm__min(bytes, taken - promise->untouched);
    atomic_store_explicit(&promise->taken, taken - part, memory_order_relaxed);
    atomic_fetch_add_explicit(&claim->promised_bytes, part, memory_order_relaxed);
    gm__card_promise(claim->room->card, part);
    bytes -= part;
  }
  gm__card_turn_end(&turn);
}
