#include "core/room/card_turn.h"

#include <string.h>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/poll.h"
#include "core/context/config.h"
#include "core/context/process.h"

/* Invariants. The process has one file of promises, for ever: two would be strangers to each other. The first context
 * that needs it says in which folder. The file is open only while something is promised. A forked child closes what it
 * has of its parent's file, and begins anew.
 *
 * A promise that could not be told is told in each later turn, until it was. A process that keeps its turn for too
 * long, stopped perhaps, holds up nobody: others go on beside it, and read each other's promises. */

enum { HOME_MAKING = 1, HOME_READY = 2, HOME_STATES = 4, HOME_FOLDER_SIZE = 256 };

static struct {
  _Atomic uint64_t state; /* HOME_STATES * generation of the process + one of the states; 0: there is no file */
  gm__promise_file file;
} home;

static gm_status home_make(gm_context *ctx, uint64_t making, uint64_t before, gm_error *err) {
  char folder[HOME_FOLDER_SIZE] = "";
  if (before % HOME_STATES == HOME_READY) gm__promise_file_close(&home.file); /* the parent's */
  gm__config_text(ctx, "reserve.folder", folder, sizeof folder);
  const gm_status status = gm__promise_file_init(&home.file, folder, err);
  atomic_store(&home.state, status ? 0 : making - HOME_MAKING + HOME_READY);
  return status;
}

static gm_status home_get(gm_context *ctx, gm__promise_file **out, gm_error *err) {
  const uint64_t making = ctx->generation * HOME_STATES + HOME_MAKING;
  uint64_t state = atomic_load(&home.state);
  gm__poll poll = gm__poll_until(GM__NEVER);
  *out = &home.file;
  while (state != making - HOME_MAKING + HOME_READY) {
    if (state == making) {
      gm__poll_again(&poll); /* another thread makes it. It may have less priority than this one */
      state = atomic_load(&home.state);
    } else if (atomic_compare_exchange_weak(&home.state, &state, making)) {
      return home_make(ctx, making, state, err);
    }
  }
  return GM_OK;
}

typedef enum share_mode { SHARE_OFF, SHARE_AUTO, SHARE_REQUIRE, SHARE_MODES } share_mode;

static share_mode share_mode_read(gm_context *ctx) {
  char word[16] = "";
  gm__config_text(ctx, "reserve.share", word, sizeof word);
  if (strcmp(word, "off") == 0) return SHARE_OFF;
  return strcmp(word, "require") == 0 ? SHARE_REQUIRE : SHARE_AUTO;
}

/* Each growth asks, so the word is read once for each change of the configuration. */
static share_mode share_mode_of(gm_context *ctx) {
  const uint64_t changes = gm__config_changes(ctx);
  uint64_t known = atomic_load_explicit(&ctx->share_mode, memory_order_relaxed);
  if (known / SHARE_MODES != changes) {
    known = changes * SHARE_MODES + share_mode_read(ctx);
    atomic_store_explicit(&ctx->share_mode, known, memory_order_relaxed);
  }
  return (share_mode)(known % SHARE_MODES);
}

/* The card's name in the file. */
static void turn_name(const gm__card *card, uint8_t out[GM__PROMISE_CARD_BYTES]) {
  const uint64_t name = atomic_load_explicit(&card->name, memory_order_relaxed);
  memset(out, 0, GM__PROMISE_CARD_BYTES);
  memcpy(out, &name, sizeof name);
}

static void turn_saw(gm__card *card, const gm__promise_others *others) {
  atomic_store_explicit(&card->others, others->bytes, memory_order_relaxed);
  atomic_store_explicit(&card->most, others->most, memory_order_relaxed);
  atomic_store_explicit(&card->most_holder, others->pid, memory_order_relaxed);
}

/* The log names each reason once, until promises are shared again. REQUIRES: the record's lock. */
static void turn_say(const gm__card_turn *self, const gm_error *why) {
  if (self->card->said == (int)why->status) return;
  self->card->said = (int)why->status;
  gm__log(gm__context_services(self->ctx), GM_LOG_WARN,
          "reservations of this process may not bind other processes for now: %s: %s", why->op, why->message);
}

/* Others hold back for all that is promised here, or they do not. */
static void turn_share(const gm__card_turn *self, bool shared) {
  atomic_store_explicit(&self->card->shared, shared, memory_order_relaxed);
  if (shared) self->card->said = 0;
}

static gm_status turn_begin_file(gm__card_turn *self, bool create, gm_error *err) {
  gm__promise_file *file = NULL;
  gm__promise_others others;
  uint8_t name[GM__PROMISE_CARD_BYTES];
  gm_status status = home_get(self->ctx, &file, err);
  if (status) return status;
  turn_name(self->card, name);
  status = gm__promise_file_begin(file, name, create, &self->turn, &others, err);
  const bool beside = status == GM_ERR_TIMEOUT && !self->require;
  if (beside && gm__promise_file_begin_beside(file, name, create, &self->turn, &others, NULL)) return status;
  if (status && !beside) return status;
  self->file = file;
  turn_saw(self->card, &others);
  return status;
}

static gm_status turn_begin_shared(gm__card_turn *self, bool promise, gm_error *err) {
  gm_error why;
  const bool untold = self->before != self->card->told;
  const gm_status status = turn_begin_file(self, promise || (untold && self->before), &why);
  if (!status) return GM_OK;
  if (promise || self->before) turn_say(self, &why);
  if (!self->file && self->before) turn_share(self, false);
  if (err) *err = why;
  return status;
}

static bool turn_has_file(const gm__card_turn *self, gm__card_aim aim, share_mode mode) {
  if (mode == SHARE_OFF || !atomic_load_explicit(&self->card->name, memory_order_relaxed)) return false;
  return aim != GM__CARD_TAKE_ALONE || self->before || self->card->told;
}

gm_status gm__card_turn_begin(gm_context *ctx, gm__card *card, gm__card_aim aim, gm__card_turn *out, gm_error *err) {
  const share_mode mode = share_mode_of(ctx);
  const bool promise = aim == GM__CARD_PROMISE;
  gm_status status = GM_OK;
  gm__mutex_lock(&card->lock);
  *out = (gm__card_turn){.ctx = ctx, .card = card, .before = gm__card_promised(card)};
  out->require = mode == SHARE_REQUIRE && promise;
  atomic_store(&card->busy, true);
  if (turn_has_file(out, aim, mode)) {
    status = turn_begin_shared(out, promise, out->require ? err : NULL);
  } else if (out->require) {
    status = gm__fail(err, GM_ERR_NOT_SUPPORTED, "reserve", "no other process can have this device");
  }
  if (!status || !out->require) return GM_OK;
  gm__card_turn_end(out);
  return status;
}

/* Another one whose turn it is may not respect a promise that is told beside it. A smaller promise does no harm. */
static gm_status turn_tell(gm__card_turn *self, gm__promise_others *others, gm_error *err) {
  const uint64_t bytes = gm__card_promised(self->card);
  const gm_status status = gm__promise_file_tell(self->file, &self->turn, bytes, others, err);
  const bool rose = bytes > self->card->told || self->card->told == UINT64_MAX;
  self->card->told = status ? UINT64_MAX : bytes; /* it may have failed after it wrote */
  if (status) return status;
  if (!self->turn.beside) turn_share(self, bytes > 0);
  if (self->turn.beside && rose) turn_share(self, false);
  return GM_OK;
}

gm_status gm__card_turn_tell(gm__card_turn *self, gm_error *err) {
  gm__promise_others others;
  gm_error why;
  if (!self->file) return GM_OK; /* where it is required, the turn has a file */
  const gm_status status = turn_tell(self, &others, &why);
  if (status) {
    turn_share(self, false);
    turn_say(self, &why);
    if (self->require && err) *err = why;
    return self->require ? status : GM_OK;
  }
  turn_saw(self->card, &others);
  return GM_OK;
}

void gm__card_turn_end(gm__card_turn *self) {
  gm__card *card = self->card;
  const bool known = gm__card_promised(card) == card->told;
  gm_error why;
  if (self->file && known && !self->turn.beside) turn_share(self, card->told > 0);
  if (!known && (!self->file || turn_tell(self, NULL, &why))) {
    turn_share(self, false);
    if (self->file) turn_say(self, &why);
  }
  if (self->file) gm__promise_file_abandon(self->file, &self->turn);
  atomic_store(&card->busy, false);
  gm__mutex_unlock(&card->lock);
}

void gm__card_look(gm_context *ctx, gm__card *card) {
  gm__promise_file *file = NULL;
  gm__promise_others others;
  uint8_t name[GM__PROMISE_CARD_BYTES];
  const bool alone = !atomic_load_explicit(&card->name, memory_order_relaxed);
  if (alone || atomic_load(&card->busy) || share_mode_of(ctx) == SHARE_OFF) return;
  turn_name(card, name);
  if (home_get(ctx, &file, NULL) || gm__promise_file_read(file, name, &others, NULL)) return;
  turn_saw(card, &others);
}
