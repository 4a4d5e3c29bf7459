#include "core/manage/explain.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/heap/request_read.h"
#include "core/manage/cause.h"
#include "core/manage/fragmentation.h"
#include "core/pool/alloc_one.h"
#include "gm/size.h"

/* gm_explain tells whether the request is valid, the figures of the pool and of its device now, and the last refusal.
 * It promises nothing about the next request. The code that refuses a request says at once what it lacked
 * (gm__provider_note_failure). The cause as a number follows from that and from the figures. A dry run of the
 * refused request says which change helps (cause.h). */

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

static void explain_say_bytes(explain_text *text, const char *words, uint64_t bytes) {
  char number[16] = "unknown";
  if (bytes != UINT64_MAX) gm_format_bytes(bytes, number, sizeof number);
  explain_say(text, "%s%s", words, number);
}

static void explain_figures(gm_pool *pool, gm_explanation *out) {
  gm_memory_info memory = {.struct_size = sizeof memory};
  const gm__holes holes = gm__pool_holes(pool);
  out->largest_pooled_bytes = holes.largest_free;
  out->fragmentation = gm__holes_ratio(&holes);
  const gm_stats stats = gm__heap_stats(&pool->heap);
  out->pooled_bytes = stats.pooled_bytes;
  out->in_use_bytes = stats.in_use_bytes;
  out->limit_bytes = gm__heap_limit(&pool->heap);
  out->max_alloc_bytes = pool->device->info.max_alloc_bytes;
  out->device_free_bytes = out->used_by_others_bytes = out->device_total_bytes = GM_UNKNOWN_BYTES;
  if (gm_device_memory_info(pool->device, &memory, NULL) != GM_OK) return;
  out->device_free_bytes = memory.free_bytes;
  out->device_total_bytes = memory.total_bytes;
  out->used_by_others_bytes = memory.used_by_others_bytes;
}

/* A look for pooled memory hides no refusal of a request that takes all memory, nor is it hidden by one. */
static void explain_refused(gm_pool *pool, const gm_request *request, gm__refused *refused, gm_explanation *out) {
  gm__provider *provider = &pool->heap.provider;
  const bool pooled = request && request->flags & GM_POOLED_ONLY;
  gm__mutex_lock(&provider->lock);
  *refused = pooled ? provider->probed : provider->refused;
  if (!refused->failure.status) *refused = pooled ? provider->refused : provider->probed;
  gm__mutex_unlock(&provider->lock);
  out->last_failure = refused->failure;
  out->last_failure_bytes = refused->want.bytes;
  out->waited_ns = refused->ladder.waited_ns;
  memcpy(out->rungs, refused->ladder.rungs, sizeof refused->ladder.rungs);
}

static void explain_rungs(gm_pool *pool, gm_explanation *out) {
  for (int i = 0; i < GM__RUNG_COUNT; i++) {
    const gm__rung_total *total = &pool->heap.provider.rungs[i];
    out->all_rungs[i] = (gm_rung_work){.count = atomic_load_explicit(&total->count, memory_order_relaxed),
                                       .bytes = atomic_load_explicit(&total->bytes, memory_order_relaxed),
                                       .ns = atomic_load_explicit(&total->ns, memory_order_relaxed)};
  }
}

static void explain_tags(const gm_pool *pool, gm_explanation *out) {
  gm_tag_total totals[GM_EXPLAINED_TAGS];
  if (!gm__observers_track(&pool->heap.observers)) return;
  const size_t count = gm_tracker_by_tag(pool->heap.observers.tracker, totals, GM_EXPLAINED_TAGS);
  for (size_t i = 0; i < count && i < GM_EXPLAINED_TAGS && totals[i].count; i++) {
    out->tags[out->tag_count++] =
        (gm_explained_tag){.tag = totals[i].tag, .bytes = totals[i].bytes, .count = totals[i].count};
  }
}

/* A preference that no memory meets is told, not refused. */
static void explain_preference(const gm_pool *pool, const gm_request *request, explain_text *text) {
  char names[160];
  const uint32_t missing = gm__want_missing(&pool->heap, request);
  if (!missing) return;
  gm__memory_flags_text(missing, names, sizeof names);
  explain_say(text, "No memory that may serve is %s, which the request prefers. ", names);
}

/* The stream that is in the way. */
static void explain_stream(const gm_explanation *out, explain_text *text) {
  if (!out->change_stream) return;
  explain_say(text, " Work of stream %" PRIu64 " may still use what is free: ", out->change_stream);
  explain_say(text, out->change == GM_CHANGE_SETTLE ? "when it is done, gm_stream_passed tells gm."
                                                    : "a request with a deadline waits for it.");
}

static void explain_words(const gm_pool *pool, const gm_explanation *out, explain_text *text) {
  const gm_error *last = &out->last_failure;
  explain_say(text, "Pool \"%s\" ", pool->heap.provider.name);
  if (last->status) {
    explain_say_bytes(text, "last refused ", out->last_failure_bytes);
    explain_say(text, ": %s: %s.", last->op, last->message);
  } else {
    explain_say(text, "has refused nothing.");
  }
  explain_say_bytes(text, " Now it has ", out->in_use_bytes);
  explain_say_bytes(text, " in use and ", out->pooled_bytes);
  explain_say_bytes(text, " pooled (largest block ", out->largest_pooled_bytes);
  explain_say_bytes(text, "), gm's limit is ", out->limit_bytes);
  explain_say_bytes(text, ", the device has ", out->device_free_bytes);
  explain_say_bytes(text, " free, and others hold ", out->used_by_others_bytes);
  explain_say(text, ".");
  if (out->cause) explain_say(text, " Cause: %s", gm_refusal_cause_name(out->cause));
  if (out->cause) explain_say(text, out->bound[0] ? " (%s)." : ".", out->bound);
  explain_stream(out, text);
}

/* Fills `out`, which is gm's own. */
static void explain_request(gm_pool *pool, const gm_request *request, gm_explanation *out) {
  gm_error reason;
  gm__want want;
  gm__refused refused;
  memset(out, 0, sizeof *out);
  out->struct_size = sizeof *out;
  out->asked_bytes = request ? request->bytes : 0;
  out->status = gm__request_read(pool, request, &want, &reason);
  out->rounded_bytes = out->status ? 0 : want.rounded;
  explain_refused(pool, request, &refused, out);
  explain_figures(pool, out);
  explain_rungs(pool, out);
  explain_tags(pool, out);
  gm__cause_tell(pool, &refused, out);
  explain_text text = {out->text, sizeof out->text, 0};
  if (out->status) {
    explain_say(&text, "%s: %s", reason.op, reason.message);
  } else {
    explain_preference(pool, request, &text);
    explain_words(pool, out, &text);
  }
}

/* For a program that was compiled with a shorter report. The longer one lies on the stack, which may be small. */
static __attribute__((noinline)) void explain_sized(gm_pool *pool, const gm_request *request, gm_explanation *out) {
  gm_explanation why;
  explain_request(pool, request, &why);
  gm__sized_out(out, &why, sizeof why);
}

gm_status gm_explain(gm_pool *pool, const gm_request *request, gm_explanation *out, gm_error *err) {
  GM__UNCANCELLED();
  gm_status status = gm__pool_alive(pool, "gm_explain", err);
  if (!status) status = gm__sized_check(out, sizeof *out, "gm_explain", "out", err);
  if (status) return status;
  if (out->struct_size == sizeof *out) {
    explain_request(pool, request, out);
  } else {
    explain_sized(pool, request, out);
  }
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
  const gm_status status = gm_explain(pool, request, &why, err);
  if (status) return status;
  if (why.status) return gm__fail(err, why.status, op, "%s", why.text);
  const gm_error *last = &why.last_failure;
  const bool same = last->status && gm__refusal_answer(last->status) == answer; /* else another thread's */
  return gm__fail_native(err, same ? last->status : explain_status(answer), same ? last->native_code : 0, op, "%s",
                         why.text);
}
