#include "core/heap/heap_sleep.h"

#include "core/arena/arena.h"
#include "core/base/error.h"
#include "core/heap/headroom.h"

/* Invariant: pages fall asleep after all work that gm knows of. Whoever submits later uses memory that is not there. */

static const char sleep_op[] = "gm_pool_sleep_whole";

static gm_status sleep_drain_order(gm__order *order, gm_error *err) {
  return gm__order_drain_slots(order, order->used | UINT64_C(1) << GM__ORDER_CROWD, sleep_op, err);
}

static gm_status sleep_drain(gm__heap *heap, gm_stream *stream, gm_error *err) {
  gm_status status = GM_OK;
  if (gm__order_is_captured(stream, err)) return GM_ERR_BUSY;
  if (stream) status = gm__order_drain(stream, sleep_op, err);
  for (gm__arena *arena = NULL; (arena = gm__arena_next(&heap->arenas, arena));) {
    if (!status) status = sleep_drain_order(&arena->order, err);
  }
  return status;
}

/* Requests that other threads made since have given their streams work: zeros to write. It comes to an end, too. */
static gm_status sleep_close(gm__heap *heap, gm_stream *stream, gm_error *err) {
  gm_status status = gm__arenas_close_pages(&heap->arenas, err);
  if (status) return status;
  status = sleep_drain(heap, stream, err);
  if (status) gm__arenas_open_pages(&heap->arenas);
  return status;
}

gm_status gm__heap_sleep_begin(gm__heap *heap, gm_stream *stream, gm__heap_sleep *out, gm_error *err) {
  gm__pages *pages = &heap->provider.pages;
  *out = (gm__heap_sleep){.begun = false};
  if (err) *err = (gm_error){.status = GM_OK}; /* a backend may fail without a word */
  if (!pages->usable) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, sleep_op, "pool \"%s\" maps no pages", heap->provider.name);
  }
  gm_status status = sleep_drain(heap, stream, err);
  if (status) return status;
  out->bytes = gm__heap_trim(heap, 0, UINT64_MAX);
  gm__mutex_lock(&pages->lock);
  if (!gm__pages_are_asleep(pages)) {
    status = sleep_close(heap, stream, err);
    out->begun = !status;
  }
  if (!out->begun) gm__mutex_unlock(&pages->lock);
  return status;
}

gm_status gm__heap_sleep_run(gm__heap *heap, const gm__sleep_params *params, gm__heap_sleep *sleep, gm_error *err) {
  uint64_t bytes;
  sleep->bytes += gm__pages_release(&heap->provider); /* what came back since the trim */
  const gm_status status = gm__arenas_sleep(&heap->arenas, params, &bytes, &sleep->asleep, err);
  sleep->bytes += bytes;
  return status;
}

void gm__heap_sleep_end(gm__heap *heap, const gm__heap_sleep *sleep) {
  if (!sleep->asleep) gm__arenas_open_pages(&heap->arenas);
  gm__mutex_unlock(&heap->provider.pages.lock);
}

/* One try. *lacks: the bytes that the pages want. */
static gm_status sleep_try_wake(gm__heap *heap, gm_stream *stream, uint64_t *lacks, gm_error *err) {
  gm__pages *pages = &heap->provider.pages;
  gm_status status = GM_OK;
  gm__mutex_lock(&pages->lock);
  *lacks = pages->asleep_bytes;
  if (gm__pages_are_asleep(pages)) {
    status = gm__arenas_wake(&heap->arenas, stream, err);
    if (!status) gm__arenas_open_pages(&heap->arenas);
  }
  gm__mutex_unlock(&pages->lock);
  return status;
}

gm_status gm__heap_wake(gm__heap *heap, gm_stream *stream, gm_error *err) {
  gm__want want = {.bytes = 1};
  if (err) *err = (gm_error){.status = GM_OK}; /* a backend may fail without a word */
  if (gm__order_is_captured(stream, err)) return GM_ERR_BUSY;
  const gm_status status = sleep_try_wake(heap, stream, &want.exact, err);
  if (!gm__is_shortage(status) || !gm__headroom_make(heap, &want, status)) return status;
  return sleep_try_wake(heap, stream, &want.exact, err);
}
