#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/pool/growth.h"
#include "core/pool/hole.h"
#include "core/pool/quota.h"
#include "core/pool/request.h"
#include "core/pool/sibling.h"
#include "core/pool/spanned.h"
#include "core/pool/supply.h"
#include "gm/size.h"

/* gm_explain walks the way of gm_alloc with its eyes only: it takes nothing, trims nothing, follows no stream and puts
 * no wait anywhere, so its verdict is a forecast that another thread can overtake. What is free it makes look as a
 * request would find it: quick lists are emptied, and what streams are known to be done with is settled. */

typedef struct explain_view {
  gm__want want;
  const gm__arena *arena; /* where it is looked for first; NULL: a new one, or buckets */
  bool served;            /* a pooled block fits and is done */
  bool elsewhere;         /* one of another arena, which serves where no new memory may be had */
  bool with_wait;         /* one fits after a wait */
  bool deaf;              /* a wait is to be inserted, and the stream takes none */
  bool captured;          /* nothing but what serves at once may be had */
  bool several;           /* in one piece it would be refused, and several are allowed */
  bool crowded;           /* of the kind that it needs the pool has no memory, and can have none */
  uint32_t full;       /* the thread's part of the pool has so many blocks and holes, and can have no more; 0: it can */
  uint64_t idle_bytes; /* what a trim would set free */
  uint64_t part_bytes; /* the same, with what pieces could be served from */
  uint64_t lent_bytes; /* what other pools would set free; 0: not looked at where it serves without */
  gm_error quota;      /* why that of the tag refuses; status GM_OK: it does not */
} explain_view;

typedef struct explain_text {
  char *text;
  size_t capacity, length;
} explain_text;

static void explain_say(explain_text *out, const char *format, ...) GM_PRINTF(2, 3);
static void explain_say(explain_text *out, const char *format, ...) {
  size_t room = out->capacity - out->length;
  va_list args;
  va_start(args, format);
  int length = vsnprintf(out->text + out->length, room, format, args);
  va_end(args);
  if (length > 0) out->length += (size_t)length < room ? (size_t)length : room - 1;
}

static void explain_verdict(explain_view *view, gm__order_verdict verdict, bool first) {
  view->served |= first && verdict == GM__ORDER_READY;
  view->elsewhere |= !first && verdict == GM__ORDER_READY;
  view->with_wait |= verdict == GM__ORDER_READY || (verdict != GM__ORDER_BUSY && !view->deaf);
}

static void explain_nodes(gm_pool *pool, explain_view *view, gm_explanation *out) {
  const gm__want *want = &view->want;
  const uint32_t end = gm__bucket_class_end(&pool->buckets, want->size_class);
  uint32_t cursor = 0;
  for (gm__node *node; (node = gm__node_next(&pool->nodes, &cursor));) {
    if (node->state != GM__NODE_POOLED) continue;
    if (node->bytes > out->largest_pooled_bytes) out->largest_pooled_bytes = node->bytes;
    if (gm__pool_settle(pool, node)) view->idle_bytes += node->bytes;
    if (node->size_class < want->size_class || node->size_class >= end || !gm__want_fits(pool, want, node)) continue;
    explain_verdict(view, gm__order_forecast(&pool->order, &node->rare.mark, want->stream, want->insert), true);
  }
}

/* The hole is all of a segment that the request's arena would take over. */
static bool explain_moves(const gm__arena *arena, const gm__span *hole, const explain_view *view,
                          const gm__memory_kind *kind) {
  const gm__memory_kind *plain = &arena->pool->main_kind;
  const gm__memory_kind *own = view->arena ? &view->arena->kind : gm__kind_serves(plain, kind) ? plain : kind;
  return gm__kind_serves(&arena->kind, own) && gm__segment_is_idle(arena, arena->homes[hole->home]);
}

/* Inside the arena's lock. */
static void explain_holes(gm__arena *arena, explain_view *view, gm_explanation *out) {
  const gm__want *want = &view->want;
  const gm__memory_kind kind = gm__kind_of(&arena->pool->rules, want);
  gm__holes_flush(arena);
  gm__holes_settle(arena);
  const bool suits = arena == view->arena || gm__kind_serves(&arena->kind, &kind);
  const bool serves = suits && !gm__spans_are_full(&arena->spans, 1);
  gm__growth_publish(arena);
  const uint64_t reclaimable = atomic_load_explicit(&arena->tally.reclaimable, memory_order_relaxed);
  uint64_t parts = 0;
  for (uint32_t number = 1; number < gm__spans_count(&arena->spans); number++) {
    const gm__span *span = gm__arena_span(arena, number);
    if (gm__span_is(span) != GM__SPAN_HOLE) continue;
    out->largest_pooled_bytes = gm__max(out->largest_pooled_bytes, gm__arena_bytes(arena, span));
    if (serves && gm__arena_bytes(arena, span) >= gm__spanned_least(arena->pool)) parts += gm__arena_bytes(arena, span);
    if (!serves || !gm__hole_fits(arena, want, number)) continue;
    const gm__mark mark = gm__arena_mark(arena, number);
    const bool first = arena == view->arena || explain_moves(arena, span, view, &kind);
    explain_verdict(view, gm__order_forecast(&arena->order, &mark, want->stream, want->insert), first);
  }
  view->idle_bytes += reclaimable;
  view->part_bytes += gm__max(reclaimable, parts);
}

static void explain_pooled(gm_pool *pool, explain_view *view, gm_explanation *out) {
  gm__arena *arena;
  const gm__memory_kind kind = gm__kind_of(&pool->rules, &view->want);
  if (pool->strategy == GM_STRATEGY_BEST_FIT) {
    view->arena = gm__arena_expected(pool, &kind);
    view->crowded = !view->arena && !gm__arena_may_be_made(pool, &kind);
  }
  gm__mutex_lock(&pool->lock);
  explain_nodes(pool, view, out);
  view->idle_bytes += gm__pages_spare_bytes(pool);
  view->part_bytes = view->idle_bytes;
  out->last_failure = pool->last_failure;
  gm__mutex_unlock(&pool->lock);
  for (uint32_t i = 0; (arena = gm__arena_at(pool, i)); i++) {
    gm__arena_lock(arena);
    explain_holes(arena, view, out);
    if (arena == view->arena && gm__spans_are_full(&arena->spans, GM__HOLE_SPANS)) view->full = arena->spans.most;
    gm__arena_unlock(arena);
  }
}

static void explain_figures(gm_pool *pool, gm_explanation *out) {
  const gm_stats stats = gm__pool_stats(pool);
  gm_memory_info memory = {.struct_size = sizeof memory};
  out->pooled_bytes = stats.pooled_bytes;
  out->in_use_bytes = stats.in_use_bytes;
  out->limit_bytes = gm__pool_limit(pool);
  out->max_alloc_bytes = pool->device->info.max_alloc_bytes;
  out->device_free_bytes = out->used_by_others_bytes = GM_UNKNOWN_BYTES;
  if (gm_device_memory_info(pool->device, &memory, NULL) != GM_OK) return;
  out->device_free_bytes = memory.free_bytes;
  out->used_by_others_bytes = memory.used_by_others_bytes;
}

/* What gm may still take: the limit less what is claimed and could not be given back. */
static uint64_t explain_room(gm_pool *pool, const explain_view *view, const gm_explanation *out) {
  if (out->limit_bytes == UINT64_MAX) return UINT64_MAX;
  const uint64_t cap = atomic_load_explicit(&pool->max_bytes, memory_order_relaxed);
  const uint64_t claimed = atomic_load_explicit(&pool->claimed, memory_order_relaxed);
  const uint64_t limit = gm__min(gm__add_sat(out->limit_bytes, view->lent_bytes), cap);
  return gm__sub_sat(limit, gm__sub_sat(claimed, view->idle_bytes));
}

/* Of one allocation: of mapped pages the driver's bound does not count, but that of a range of addresses. */
static uint64_t explain_most(const gm_pool *pool, const explain_view *view) {
  const uint64_t most = pool->device->info.max_alloc_bytes ? pool->device->info.max_alloc_bytes : UINT64_MAX;
  const gm__memory_kind kind = gm__kind_of(&pool->rules, &view->want);
  const bool maps = pool->pages.usable && gm__kind_serves(&pool->main_kind, &kind);
  return maps ? gm__max(most, gm__range_most_bytes(pool)) : most;
}

static gm_status explain_fresh(gm_pool *pool, const explain_view *view, const gm_explanation *out) {
  uint64_t bytes = view->want.exact;
  if (view->want.flags & GM_POOLED_ONLY) return GM_ERR_OUT_OF_DEVICE_MEMORY;
  if (view->full || view->crowded) return GM_ERR_OUT_OF_HOST_MEMORY;
  if (bytes > explain_room(pool, view, out)) return GM_ERR_OVER_LIMIT;
  if (!view->several && explain_most(pool, view) < bytes) return GM_ERR_ALLOCATION_TOO_LARGE;
  const uint64_t idle = gm__add_sat(view->idle_bytes, view->lent_bytes);
  bool device_is_full = !pool->has_upstream && out->device_free_bytes != GM_UNKNOWN_BYTES &&
                        bytes > out->device_free_bytes && bytes - out->device_free_bytes > idle;
  return device_is_full ? GM_ERR_OUT_OF_DEVICE_MEMORY : GM_OK;
}

/* The same with what other pools of the device would give back before a refusal. */
static gm_status explain_lent(gm_pool *pool, explain_view *view, const gm_explanation *out) {
  const gm_status status = explain_fresh(pool, view, out);
  const bool of_device = status == GM_ERR_OVER_LIMIT || status == GM_ERR_OUT_OF_DEVICE_MEMORY;
  if (!of_device || pool->has_upstream || view->want.flags & GM_POOLED_ONLY) return status;
  view->lent_bytes = gm__siblings_idle(pool);
  return explain_fresh(pool, view, out);
}

/* New memory: in one piece or, where that is allowed, in several. */
static gm_status explain_new(gm_pool *pool, explain_view *view, const gm_explanation *out) {
  const gm_status status = explain_lent(pool, view, out);
  const bool allowed = view->want.flags & GM_ALLOW_SPANS && !view->with_wait && gm__spanned_can(pool, &view->want);
  if (status == GM_OK || !allowed) return status;
  view->several = true;
  view->idle_bytes = view->part_bytes;
  return explain_fresh(pool, view, out);
}

static void explain_judge(gm_pool *pool, explain_view *view, gm_explanation *out) {
  out->status = view->quota.status;
  out->acquire = out->status ? GM_ACQUIRE_OVER_LIMIT : GM_ACQUIRE_OK;
  if (out->status || (view->served && !view->captured)) return;
  out->acquire = GM_ACQUIRE_EXHAUSTED;
  out->status = GM_ERR_BUSY;
  if (view->captured) return;
  out->status = explain_new(pool, view, out);
  out->acquire = GM_ACQUIRE_FRESH;
  if (out->status == GM_OK) return;
  out->acquire = out->status == GM_ERR_OVER_LIMIT ? GM_ACQUIRE_OVER_LIMIT : GM_ACQUIRE_EXHAUSTED;
  if (!view->with_wait) return;
  out->status = GM_OK;
  out->acquire = view->elsewhere || view->want.insert ? GM_ACQUIRE_OK : GM_ACQUIRE_NEEDS_WAIT;
}

static void explain_say_bytes(explain_text *text, const char *format, uint64_t bytes) {
  char words[16] = "unknown";
  if (bytes != UINT64_MAX) gm_format_bytes(bytes, words, sizeof words);
  explain_say(text, "%s%s", format, words);
}

static void explain_say_figures(explain_text *text, const gm_explanation *out) {
  explain_say_bytes(text, ": pool holds ", out->in_use_bytes);
  explain_say_bytes(text, " in use and ", out->pooled_bytes);
  explain_say_bytes(text, " pooled (largest block ", out->largest_pooled_bytes);
  explain_say_bytes(text, "), gm's limit ", out->limit_bytes);
  explain_say_bytes(text, ", free on the device ", out->device_free_bytes);
  explain_say_bytes(text, ", held by others ", out->used_by_others_bytes);
  explain_say(text, ".");
}

/* No change helps a request that is larger than the device. */
static bool explain_is_too_large(const gm_pool *pool, const explain_view *view, const gm_explanation *out) {
  const uint64_t total = pool->device->info.total_bytes;
  const bool of_memory = out->status == GM_ERR_OVER_LIMIT || out->status == GM_ERR_OUT_OF_DEVICE_MEMORY ||
                         out->status == GM_ERR_ALLOCATION_TOO_LARGE;
  return of_memory && !pool->has_upstream && total && view->want.exact > total;
}

/* The smallest change after which the request would have been served. */
static void explain_say_advice(gm_pool *pool, const explain_view *view, explain_text *text, const gm_explanation *out) {
  uint64_t bytes = view->want.exact, room;
  if (view->quota.status) {
    explain_say(text, " %s.", view->quota.message);
    return;
  }
  if (explain_is_too_large(pool, view, out)) {
    explain_say_bytes(text, " The device has ", pool->device->info.total_bytes);
    explain_say(text, " in all.");
    return;
  }
  switch (out->status) {
    case GM_ERR_BUSY:
      explain_say(text,
                  " The stream is being captured: until that ends only pooled memory serves, such as was freed on "
                  "it, and none is zeroed.");
      break;
    case GM_ERR_OVER_LIMIT:
      room = explain_room(pool, view, out);
      explain_say_bytes(text, " Freeing or allowing (max_bytes, memory_fraction, min_free_bytes) ", bytes - room);
      explain_say(text, " more would help.");
      break;
    case GM_ERR_OUT_OF_DEVICE_MEMORY:
      if (view->want.flags & GM_POOLED_ONLY) break;
      explain_say_bytes(text, " The device lacks ",
                        bytes - out->device_free_bytes - view->idle_bytes - view->lent_bytes);
      explain_say(text, ".");
      break;
    case GM_ERR_OUT_OF_HOST_MEMORY:
      if (view->crowded) {
        explain_say(text, " The pool has as many threads and kinds of memory (usage, must_be, flags) as it can have.");
        break;
      }
      explain_say(text, " This thread's part of the pool has no room for more than %" PRIu32 " blocks and holes.",
                  view->full);
      break;
    case GM_ERR_ALLOCATION_TOO_LARGE:
      explain_say_bytes(text, " Ask for pieces of at most ", explain_most(pool, view));
      explain_say(text, view->want.flags & GM_ALLOW_SPANS ? "." : ", or allow spans.");
      break;
    default: break;
  }
}

static void explain_words(gm_pool *pool, const explain_view *view, gm_explanation *out) {
  explain_text text = {out->text, sizeof out->text, 0};
  explain_say_bytes(&text, "", out->asked_bytes);
  explain_say(&text, " from pool \"%s\" now: %s", pool->name,
              out->status     ? gm_status_text(out->status)
              : view->several ? "would succeed in several memories"
                              : "would succeed");
  explain_say_figures(&text, out);
  if (view->lent_bytes) explain_say_bytes(&text, " Other pools of the device could give back ", view->lent_bytes);
  if (view->lent_bytes) explain_say(&text, ".");
  explain_say_advice(pool, view, &text, out);
  const bool said = view->quota.status && strcmp(view->quota.message, out->last_failure.message) == 0;
  if (out->last_failure.status && !said) {
    explain_say(&text, " Last failure: %s: %s", out->last_failure.op, out->last_failure.message);
  }
}

static gm_status explain_check(const gm_pool *pool, const gm_explanation *out, gm_error *err) {
  gm_status status = gm__pool_check(pool, "gm_explain", err);
  return status ? status : gm__sized_check(out, sizeof *out, "gm_explain", "out", err);
}

/* Whether and why the request fails, into `out`, which is gm's own. */
static void explain_request(gm_pool *pool, const gm_request *request, gm_explanation *out) {
  gm_error reason;
  explain_view view = {0};
  *out = (gm_explanation){.struct_size = sizeof *out, .asked_bytes = request ? request->bytes : 0};
  out->status = gm__want_read(pool, request, &view.want, &reason);
  if (out->status) {
    out->acquire = GM_ACQUIRE_INVALID;
    explain_say(&(explain_text){out->text, sizeof out->text, 0}, "%s: %s", reason.op, reason.message);
    return;
  }
  out->rounded_bytes = view.want.rounded;
  view.deaf = view.want.insert && view.want.stream && view.want.stream->silent;
  explain_pooled(pool, &view, out);
  if (!view.served || view.want.flags & GM_ZERO) view.captured = gm__stream_captured(view.want.stream);
  explain_figures(pool, out);
  gm__quota_check(pool, &view.want, &view.quota);
  explain_judge(pool, &view, out);
  explain_words(pool, &view, out);
}

gm_status gm_explain(gm_pool *pool, const gm_request *request, gm_explanation *out, gm_error *err) {
  const gm_status status = explain_check(pool, out, err);
  if (status) return status;
  gm_explanation why;
  explain_request(pool, request, &why);
  gm__sized_out(out, &why, sizeof why);
  return GM_OK;
}

static gm_status explain_status(gm_acquire answer) {
  switch (answer) {
    case GM_ACQUIRE_OVER_LIMIT: return GM_ERR_OVER_LIMIT;
    case GM_ACQUIRE_EXHAUSTED: return GM_ERR_OUT_OF_DEVICE_MEMORY;
    case GM_ACQUIRE_INVALID: return GM_ERR_INVALID_ARGUMENT;
    default: return GM_ERR_DRIVER;
  }
}

gm_status gm__explain_refusal(gm_pool *pool, const gm_request *request, gm_acquire answer, const char *op,
                              gm_error *err) {
  gm_explanation why = {.struct_size = sizeof why};
  gm_status status = gm_explain(pool, request, &why, err);
  if (status) return status;
  status = why.status ? why.status : explain_status(answer);
  bool passing =
      answer == GM_ACQUIRE_EXHAUSTED && !why.status; /* host memory, perhaps: only the failure itself tells */
  if ((answer == GM_ACQUIRE_FAILED || passing) && why.last_failure.status) status = why.last_failure.status;
  return gm__fail(err, status, why.last_failure.native_code, op, "%s", why.text);
}
