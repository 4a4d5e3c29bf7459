#include "core/manage/perf.h"

#include <stdio.h>
#include <string.h>

#include "core/arena/arena.h"
#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/manage/lifecycle.h"
#include "core/manage/record.h"

/* Invariants. A report is the difference of two sums of the counters that a pool has anyway. Each begin starts the
 * pool's peaks anew, and gives what they were to the newest scope that was open. So a frame has the peaks from its
 * begin to that of the next, and the pool has those since the last begin. A scope's peak is the highest of its own and
 * of all later ones. The frame of a scope that ends gives its peaks to the frame before it, which was open all that
 * time.
 *
 * A scope of a context is a frame of the context, whose peaks are sums over pools. A pool keeps apart what its peaks
 * were since the last begin of such a scope, because scopes of its own start them anew. The list of a pool changes
 * under its provider lock, and that of a context under the context's lock. */

typedef struct perf_peaks {
  uint64_t requested, in_use, reserved;
} perf_peaks;

typedef struct perf_frame {
  uint64_t number;
  gm_stats begin; /* the totals then */
  perf_peaks peaks;
  char name[GM_PERF_NAME_SIZE]; /* "": none */
} perf_frame;

typedef struct gm__perf {
  perf_frame *frames[GM_PERF_DEPTH_MOST]; /* the open ones, oldest first; those behind are kept for the next */
  uint32_t count;
  uint64_t newest;  /* the number of the newest scope */
  perf_peaks apart; /* of a pool: see above. A context's: of pools that have gone since its last begin */
  gm_context *ctx;  /* of a context, as the rest */
  gm_stats gone;    /* totals of pools that have gone */
  const gm__profiler *profiler;
} gm__perf;

/* Totals and peaks at one moment. */
typedef struct perf_figures {
  gm_stats totals;
  perf_peaks peaks;
} perf_figures;

/* ---- peaks ---- */

static void perf_raise(perf_peaks *peaks, const perf_peaks *other) {
  peaks->requested = gm__max(peaks->requested, other->requested);
  peaks->in_use = gm__max(peaks->in_use, other->in_use);
  peaks->reserved = gm__max(peaks->reserved, other->reserved);
}

static void perf_add(perf_peaks *peaks, const perf_peaks *other) {
  peaks->requested = gm__add_sat(peaks->requested, other->requested);
  peaks->in_use = gm__add_sat(peaks->in_use, other->in_use);
  peaks->reserved = gm__add_sat(peaks->reserved, other->reserved);
}

static uint64_t perf_peak(const _Atomic uint64_t *current, _Atomic uint64_t *peak, _Atomic uint64_t *before,
                          bool anew) {
  if (anew) return gm__stats_rearm(current, peak, before);
  return gm__max(atomic_load_explicit(peak, memory_order_relaxed), atomic_load_explicit(current, memory_order_relaxed));
}

/* The pool's peaks since they began anew. `anew`: they do so now. REQUIRES: provider lock. */
static perf_peaks perf_peaks_of(gm_pool *pool, bool anew) {
  gm__arena *arena;
  gm__stats *stats = &pool->heap.provider.stats;
  perf_peaks sum = {
      .requested =
          perf_peak(&stats->requested_bytes, &stats->peak_requested_bytes, &stats->before_requested_bytes, anew),
      .in_use = perf_peak(&stats->in_use_bytes, &stats->peak_in_use_bytes, &stats->before_in_use_bytes, anew),
      .reserved = perf_peak(&stats->reserved_bytes, &stats->peak_reserved_bytes, &stats->before_reserved_bytes, anew)};
  for (uint32_t i = 0; (arena = gm__arena_at(&pool->heap.arenas, i)); i++) {
    gm__arena_stats *own = &arena->stats;
    sum.requested += perf_peak(&own->requested, &own->peak_requested, &own->before_requested, anew);
    sum.in_use += perf_peak(&own->in_use, &own->peak_in_use, &own->before_in_use, anew);
  }
  return sum;
}

/* Begins the pool's peaks anew, for a scope that begins. REQUIRES: provider lock. */
static perf_peaks perf_begin_peaks(gm_pool *pool) {
  gm__perf *perf = pool->perf;
  const perf_peaks peaks = perf_peaks_of(pool, true);
  if (perf) perf_raise(&perf->apart, &peaks);
  if (perf && perf->count) perf_raise(&perf->frames[perf->count - 1]->peaks, &peaks);
  return peaks;
}

static void perf_read_totals(const gm_pool *pool, gm_stats *out) {
  gm__stats_load(&pool->heap.provider.stats, out);
  gm__arenas_add(&pool->heap.arenas, out);
}

/* ---- frames ---- */

/* Zeroed host memory, which may be a host program's. NULL: there is none. */
static void *perf_alloc(const gm_services *services, size_t bytes) {
  GM__UNCANCELLED();
  return gm__alloc(services, bytes);
}

/* The frame of the next scope. */
static gm_status perf_claim(gm__perf *perf, const gm_services *services, const char *op, perf_frame **out,
                            gm_error *err) {
  if (perf->count == GM_PERF_DEPTH_MOST) {
    return gm__fail(err, GM_ERR_OVER_LIMIT, op, "%d scopes are open already, which is the most", GM_PERF_DEPTH_MOST);
  }
  perf_frame *frame = perf->frames[perf->count];
  if (!frame) frame = perf_alloc(services, sizeof *frame);
  if (!frame) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a scope");
  *out = perf->frames[perf->count] = frame;
  return GM_OK;
}

/* Opens the claimed frame. */
static uint64_t perf_open(gm__perf *perf, perf_frame *frame, const char *name) {
  frame->number = ++perf->newest;
  frame->peaks = (perf_peaks){0};
  frame->name[0] = 0;
  if (name) memcpy(frame->name, name, strlen(name) + 1);
  perf->count++;
  return frame->number;
}

/* The place of an open scope; the count: there is none. */
static uint32_t perf_find(const gm__perf *perf, uint64_t number) {
  uint32_t at = perf->count;
  while (at > 0 && perf->frames[at - 1]->number != number) at--;
  return at > 0 ? at - 1 : perf->count;
}

static void perf_close(gm__perf *perf, uint32_t at) {
  perf_frame *frame = perf->frames[at];
  if (at > 0) perf_raise(&perf->frames[at - 1]->peaks, &frame->peaks);
  perf->count--;
  memmove(&perf->frames[at], &perf->frames[at + 1], (perf->count - at) * sizeof *perf->frames);
  perf->frames[perf->count] = frame;
}

static void perf_release(gm__perf *perf, const gm_services *services) {
  if (!perf) return;
  for (uint32_t i = 0; i < GM_PERF_DEPTH_MOST; i++) gm__release(services, perf->frames[i], sizeof *perf->frames[i]);
  gm__release(services, perf, sizeof *perf);
}

/* ---- the report ---- */

static void perf_tell_counts(const gm_stats *from, const gm_stats *to, gm_perf_report *out) {
  const uint64_t hits = to->stream_hits - from->stream_hits + to->global_hits - from->global_hits;
  out->misses = to->misses - from->misses;
  out->allocs = hits + out->misses;
  out->global_cache_hits = gm__min(to->global_cache_hits - from->global_cache_hits, hits);
  out->local_cache_hits = hits - out->global_cache_hits;
  out->frees = to->frees - from->frees;
  out->failures = to->failures - from->failures;
  out->over_limit = to->over_limit - from->over_limit;
  out->waits = to->waits - from->waits;
  out->fallbacks = to->fallbacks - from->fallbacks;
  out->driver_allocs = to->driver_allocs - from->driver_allocs;
  out->driver_frees = to->driver_frees - from->driver_frees;
  out->driver_ns = to->driver_ns - from->driver_ns;
}

/* A peak of several arenas is a sum of their peaks, which may be more than the pool ever had. */
static void perf_tell_bytes(const gm_stats *from, const gm_stats *to, const perf_peaks *peaks, gm_perf_report *out) {
  out->reserved_bytes = to->reserved_bytes;
  out->in_use_bytes = gm__min(to->in_use_bytes, to->reserved_bytes);
  out->requested_bytes = gm__min(to->requested_bytes, out->in_use_bytes);
  out->held_bytes = (int64_t)(to->requested_bytes - from->requested_bytes);
  out->peak_reserved_bytes = gm__max(peaks->reserved, out->reserved_bytes);
  out->peak_in_use_bytes = gm__max(gm__min(peaks->in_use, out->peak_reserved_bytes), out->in_use_bytes);
  out->peak_requested_bytes = gm__max(gm__min(peaks->requested, out->peak_in_use_bytes), out->requested_bytes);
  if (!out->peak_reserved_bytes) return;
  out->peak_unused = 1 - (double)out->peak_in_use_bytes / (double)out->peak_reserved_bytes;
}

/* Closes the scope at that place, and tells what happened in it until `end`. */
static void perf_tell(gm__perf *perf, uint32_t at, const perf_figures *end, gm_perf_report *out) {
  perf_peaks peaks = end->peaks;
  const gm_stats *begin = &perf->frames[at]->begin;
  for (uint32_t i = at; i < perf->count; i++) perf_raise(&peaks, &perf->frames[i]->peaks);
  out->depth = at;
  perf_tell_counts(begin, &end->totals, out);
  perf_tell_bytes(begin, &end->totals, &peaks, out);
  perf_close(perf, at);
}

/* ---- names ---- */

static void perf_write_mark(gm_pool *pool, const char *word, const char *name) {
  GM__UNCANCELLED();
  char label[GM_PERF_NAME_SIZE + 8];
  snprintf(label, sizeof label, "%s %s", word, name);
  gm__record_mark_in(pool, label);
}

/* `name` may be NULL or "". REQUIRES: provider lock. */
static void perf_mark(gm_pool *pool, const char *word, const char *name) {
  if (name && name[0] && gm__recorder_writes(pool->heap.observers.recorder)) perf_write_mark(pool, word, name);
}

/* Begins a range in the profiler, or ends it for NULL. */
static void perf_range(const gm__profiler *profiler, const char *name) {
  if (!profiler) return;
  GM__UNCANCELLED();
  if (name) {
    gm__profiler_push_text(profiler, name);
  } else {
    gm__profiler_pop(profiler);
  }
}

static gm_status perf_check(const char *name, const gm_perf_scope *out, const char *op, gm_error *err) {
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  if (!name) return GM_OK;
  const size_t length = strnlen(name, GM_PERF_NAME_SIZE);
  if (length > 0 && length < GM_PERF_NAME_SIZE) return GM_OK;
  return gm__bad_argument(err, op, "`name` must have 1 to %d bytes", GM_PERF_NAME_SIZE - 1);
}

/* ---- scopes of a pool ---- */

/* REQUIRES: provider lock. */
static gm_status perf_begin_in(gm_pool *pool, const char *name, uint64_t *out, gm_error *err) {
  static const char op[] = "gm_perf_begin";
  perf_frame *frame = NULL;
  const gm_services *services = gm__context_services(pool->ctx);
  if (!pool->perf) pool->perf = perf_alloc(services, sizeof *pool->perf);
  if (!pool->perf) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for the pool's scopes");
  const gm_status status = perf_claim(pool->perf, services, op, &frame, err);
  if (status) return status;
  perf_begin_peaks(pool);
  *out = perf_open(pool->perf, frame, name);
  perf_read_totals(pool, &frame->begin);
  perf_mark(pool, "begin", name);
  return GM_OK;
}

gm_status gm_perf_begin(gm_pool *pool, const char *name, gm_perf_scope *out, gm_error *err) {
  static const char op[] = "gm_perf_begin";
  uint64_t number = 0;
  gm_status status = gm__pool_alive(pool, op, err);
  if (!status) status = perf_check(name, out, op, err);
  if (status) return status;
  gm__mutex_lock(&pool->heap.provider.lock);
  status = perf_begin_in(pool, name, &number, err);
  gm__mutex_unlock(&pool->heap.provider.lock);
  if (status) return status;
  atomic_fetch_add(&pool->guests, 1);
  if (name) perf_range(pool->heap.provider.profiler, name);
  *out = (gm_perf_scope){.number = number, .pool = pool, .ctx = pool->ctx};
  return GM_OK;
}

/* REQUIRES: provider lock. */
static bool perf_end_in(gm_pool *pool, uint64_t number, gm_perf_report *out, bool *out_named) {
  gm__perf *perf = pool->perf;
  const uint32_t at = perf ? perf_find(perf, number) : 0;
  if (!perf || at == perf->count) return false;
  const perf_frame *frame = perf->frames[at];
  perf_figures end;
  end.peaks = perf_peaks_of(pool, false);
  perf_read_totals(pool, &end.totals);
  perf_mark(pool, "end", frame->name);
  *out_named = frame->name[0] != 0;
  perf_tell(perf, at, &end, out);
  return true;
}

static bool perf_end_of_pool(const gm_perf_scope *scope, gm_perf_report *out) {
  gm_pool *pool = scope->pool;
  bool named = false;
  gm__mutex_lock(&pool->heap.provider.lock);
  const bool ended = perf_end_in(pool, scope->number, out, &named);
  gm__mutex_unlock(&pool->heap.provider.lock);
  if (named) perf_range(pool->heap.provider.profiler, NULL);
  if (ended) atomic_fetch_sub(&pool->guests, 1);
  return ended;
}

void gm__perf_clear(gm_pool *pool) {
  perf_release(pool->perf, gm__context_services(pool->ctx));
  pool->perf = NULL;
}

/* ---- scopes of a context ---- */

static void perf_destroy(void *object, bool forked) {
  gm__perf *perf = object;
  (void)forked;
  perf_release(perf, gm__context_services(perf->ctx));
}

/* The context's list, made by its first scope. NULL: no host memory. */
static gm__perf *perf_of(gm_context *ctx) {
  gm__perf *perf = gm__context_hung(ctx, GM__SLOT_PERF);
  if (perf) return perf;
  gm__perf *made = gm__alloc(gm__context_services(ctx), sizeof *made);
  if (!made) return NULL;
  made->ctx = ctx;
  made->profiler = gm__profiler_of(ctx);
  perf = gm__context_hang(ctx, GM__SLOT_PERF, perf_destroy, made);
  if (perf != made) perf_destroy(made, false);
  return perf;
}

/* Says how each pool is visited, as a scope begins or ends. */
typedef struct perf_visit {
  bool begins;
  const char *name;
} perf_visit;

static void perf_visit_one(gm_pool *pool, const perf_visit *visit, perf_figures *sum) {
  gm_stats totals;
  gm__mutex_lock(&pool->heap.provider.lock);
  perf_peaks peaks = visit->begins ? perf_begin_peaks(pool) : perf_peaks_of(pool, false);
  if (pool->perf) perf_raise(&peaks, &pool->perf->apart);
  if (pool->perf && visit->begins) pool->perf->apart = (perf_peaks){0};
  perf_read_totals(pool, &totals);
  perf_mark(pool, visit->begins ? "begin" : "end", visit->name);
  gm__mutex_unlock(&pool->heap.provider.lock);
  perf_add(&sum->peaks, &peaks);
  gm__stats_add(&sum->totals, &totals);
}

/* Sums over all pools that the context has or had. REQUIRES: context lock. */
static perf_figures perf_visit_all(gm_context *ctx, const gm__perf *perf, const perf_visit *visit) {
  perf_figures sum = {.totals = perf->gone, .peaks = perf->apart};
  for (gm_pool *pool = ctx->slots[GM__SLOT_POOLS]; pool; pool = pool->next) perf_visit_one(pool, visit, &sum);
  return sum;
}

/* Nobody has the bytes of a pool that has gone. */
void gm__perf_leave(gm_pool *pool) {
  gm__perf *perf = pool->ctx->slots[GM__SLOT_PERF];
  const perf_visit visit = {.begins = false};
  perf_figures last = {.totals = {.struct_size = sizeof last.totals}};
  if (!perf) return;
  perf_visit_one(pool, &visit, &last);
  last.totals.requested_bytes = last.totals.in_use_bytes = last.totals.reserved_bytes = 0;
  gm__stats_add(&perf->gone, &last.totals);
  perf_add(&perf->apart, &last.peaks);
}

/* REQUIRES: context lock. */
static gm_status perf_begin_all(gm_context *ctx, gm__perf *perf, const char *name, uint64_t *out, gm_error *err) {
  perf_frame *frame = NULL;
  const perf_visit visit = {.begins = true, .name = name};
  const gm_status status = perf_claim(perf, gm__context_services(ctx), "gm_perf_begin_context", &frame, err);
  if (status) return status;
  const perf_figures begin = perf_visit_all(ctx, perf, &visit);
  if (perf->count) perf_raise(&perf->frames[perf->count - 1]->peaks, &begin.peaks);
  perf->apart = (perf_peaks){0};
  *out = perf_open(perf, frame, name);
  frame->begin = begin.totals;
  return GM_OK;
}

gm_status gm_perf_begin_context(gm_context *ctx, const char *name, gm_perf_scope *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_perf_begin_context";
  uint64_t number = 0;
  gm_status status = gm__context_check(ctx, op, err);
  if (!status) status = perf_check(name, out, op, err);
  if (status) return status;
  gm__perf *perf = perf_of(ctx);
  if (!perf) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for the context's scopes");
  gm__mutex_lock(&ctx->lock);
  status = perf_begin_all(ctx, perf, name, &number, err);
  gm__mutex_unlock(&ctx->lock);
  if (status) return status;
  atomic_fetch_add(&ctx->children, 1);
  if (name) perf_range(perf->profiler, name);
  *out = (gm_perf_scope){.number = number, .ctx = ctx};
  return GM_OK;
}

/* REQUIRES: context lock. */
static bool perf_end_all(gm_context *ctx, gm__perf *perf, uint64_t number, gm_perf_report *out, bool *out_named) {
  const uint32_t at = perf_find(perf, number);
  if (at == perf->count) return false;
  const perf_visit visit = {.begins = false, .name = perf->frames[at]->name};
  const perf_figures end = perf_visit_all(ctx, perf, &visit);
  *out_named = visit.name[0] != 0;
  perf_tell(perf, at, &end, out);
  return true;
}

static bool perf_end_of_context(const gm_perf_scope *scope, gm_perf_report *out) {
  gm_context *ctx = scope->ctx;
  gm__perf *perf = gm__context_hung(ctx, GM__SLOT_PERF);
  bool named = false;
  if (!perf) return false;
  gm__mutex_lock(&ctx->lock);
  const bool ended = perf_end_all(ctx, perf, scope->number, out, &named);
  gm__mutex_unlock(&ctx->lock);
  if (named) perf_range(perf->profiler, NULL);
  if (ended) atomic_fetch_sub(&ctx->children, 1);
  return ended;
}

/* ---- the end ---- */

/* In a forked child: the scope no longer keeps its context. */
static void perf_forget(gm_perf_scope *scope) {
  if (!scope->pool) atomic_fetch_sub(&scope->ctx->children, 1);
  scope->number = 0;
}

gm_status gm_perf_end(gm_perf_scope *scope, gm_perf_report *out, gm_error *err) {
  static const char op[] = "gm_perf_end";
  gm_perf_report report = {.struct_size = sizeof report};
  if (!scope || !scope->number) {
    return gm__bad_argument(err, op, scope ? "`scope` is not open" : "`scope` is NULL");
  }
  gm_status status = scope->pool ? gm__pool_alive(scope->pool, op, err) : gm__context_check(scope->ctx, op, err);
  if (!status && out) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status == GM_ERR_FORKED) perf_forget(scope);
  if (status) return status;
  if (!(scope->pool ? perf_end_of_pool(scope, &report) : perf_end_of_context(scope, &report))) {
    return gm__bad_argument(err, op, "`scope` is not open: it was ended already");
  }
  scope->number = 0;
  if (out) gm__sized_out(out, &report, sizeof report);
  return GM_OK;
}
