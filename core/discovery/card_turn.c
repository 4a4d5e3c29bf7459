#include "core/discovery/card_turn.h"

#include <string.h>

#include "core/base/barrier.h"
#include "core/base/error.h"
#include "core/context/config.h"
#include "core/context/process.h"

/* Invariants. The process has one file of promises, for ever: two would be strangers to each other. The first context
 * that needs it says in which folder. The file is open only while something is promised. A forked child closes what it
 * has of its parent's file, and begins anew. */

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
  *out = &home.file;
  while (state != making - HOME_MAKING + HOME_READY) {
    if (state == making) {
      gm__thread_yield(); /* another thread makes it */
      state = atomic_load(&home.state);
    } else if (atomic_compare_exchange_weak(&home.state, &state, making)) {
      return home_make(ctx, making, state, err);
    }
  }
  return GM_OK;
}

typedef enum share_mode { SHARE_OFF, SHARE_AUTO, SHARE_REQUIRE } share_mode;

static share_mode share_mode_of(gm_context *ctx) {
  char word[16] = "";
  gm__config_text(ctx, "reserve.share", word, sizeof word);
  if (strcmp(word, "off") == 0) return SHARE_OFF;
  return strcmp(word, "require") == 0 ? SHARE_REQUIRE : SHARE_AUTO;
}

/* The card's name in the file. */
static void turn_card(const gm__promises *promises, uint8_t out[GM__PROMISE_CARD_BYTES]) {
  const uint64_t card = atomic_load_explicit(&promises->card, memory_order_relaxed);
  memset(out, 0, GM__PROMISE_CARD_BYTES);
  memcpy(out, &card, sizeof card);
}

static gm_status turn_begin_shared(gm_context *ctx, bool reserve, gm__card_turn *self, gm_error *err) {
  gm__promise_file *file = NULL;
  uint8_t card[GM__PROMISE_CARD_BYTES];
  uint64_t others = 0;
  if (!atomic_load_explicit(&self->promises->card, memory_order_relaxed)) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "reserve", "no other process can have this device");
  }
  gm_status status = home_get(ctx, &file, err);
  turn_card(self->promises, card);
  if (!status) status = gm__promise_file_begin(file, card, reserve, &self->turn, &others, err);
  if (status) return status;
  self->file = file;
  atomic_store_explicit(&self->promises->others, others, memory_order_relaxed);
  return GM_OK;
}

gm_status gm__card_turn_begin(gm_context *ctx, gm__promises *promises, bool reserve, gm__card_turn *out,
                              gm_error *err) {
  const share_mode mode = share_mode_of(ctx);
  gm__mutex_lock(&promises->lock);
  *out = (gm__card_turn){.promises = promises, .before = gm__promises_bytes(promises)};
  out->require = mode == SHARE_REQUIRE && reserve;
  atomic_store(&promises->busy, true);
  const gm_status status = mode == SHARE_OFF ? GM_OK : turn_begin_shared(ctx, reserve, out, out->require ? err : NULL);
  if (!status || !out->require) return GM_OK;
  gm__card_turn_end(out);
  return status;
}

gm_status gm__card_turn_tell(gm__card_turn *self, bool *told, gm_error *err) {
  gm_status status = GM_ERR_NOT_SUPPORTED;
  const uint64_t bytes = gm__promises_bytes(self->promises);
  if (self->file) status = gm__promise_file_end(self->file, &self->turn, bytes, self->require ? err : NULL);
  self->file = NULL;
  *told = status == GM_OK;
  return self->require ? status : GM_OK;
}

void gm__card_turn_end(gm__card_turn *self) {
  gm__promises *promises = self->promises;
  const uint64_t bytes = gm__promises_bytes(promises);
  if (self->file && bytes != self->before) {
    gm__promise_file_end(self->file, &self->turn, bytes, NULL);
  } else if (self->file) {
    gm__promise_file_abandon(self->file, &self->turn);
  }
  atomic_store(&promises->busy, false);
  gm__mutex_unlock(&promises->lock);
}

void gm__card_look(gm_context *ctx, gm__promises *promises) {
  gm__promise_file *file = NULL;
  uint8_t card[GM__PROMISE_CARD_BYTES];
  uint64_t others = 0;
  const bool alone = !atomic_load_explicit(&promises->card, memory_order_relaxed);
  if (alone || atomic_load(&promises->busy) || share_mode_of(ctx) == SHARE_OFF) return;
  turn_card(promises, card);
  if (home_get(ctx, &file, NULL) || gm__promise_file_read(file, card, &others, NULL)) return;
  atomic_store_explicit(&promises->others, others, memory_order_relaxed);
}
