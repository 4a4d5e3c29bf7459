/* Invariant: a context is valid while its generation is the process's. */
#include "core/context/context.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/context/process.h"

enum { CONTEXT_TAG_LENGTH = 31 };

bool gm__context_forked(const gm_context *ctx) { return !gm__process_is_current(ctx->generation); }

gm_status gm__context_check(const gm_context *ctx, const char *op, gm_error *err) {
  if (!ctx) return gm__bad_argument(err, op, "`ctx` is NULL");
  if (!gm__context_forked(ctx)) return GM_OK;
  return gm__fail(err, GM_ERR_FORKED, op, "the context was made before fork; make a new one in the child");
}

uint64_t gm__context_next_id(gm_context *ctx) {
  return atomic_fetch_add_explicit(&ctx->next_id, 1, memory_order_relaxed) + 1;
}

/* REQUIRES: context lock. */
static void context_note_destructor(gm_context *ctx, gm__destructor run, void *object) {
  if (ctx->destructor_count == GM__MAX_DESTRUCTORS) return;
  ctx->destructors[ctx->destructor_count++] = (gm__destructor_entry){run, object};
}

void gm__context_on_destroy(gm_context *ctx, gm__destructor run, void *object) {
  gm__mutex_lock(&ctx->lock);
  context_note_destructor(ctx, run, object);
  gm__mutex_unlock(&ctx->lock);
}

void *gm__context_hang(gm_context *ctx, gm__slot slot, gm__destructor run, void *object) {
  gm__mutex_lock(&ctx->lock);
  if (!ctx->slots[slot]) {
    ctx->slots[slot] = object;
    context_note_destructor(ctx, run, object);
  }
  void *hung = ctx->slots[slot];
  gm__mutex_unlock(&ctx->lock);
  return hung;
}

void *gm__context_hung(gm_context *ctx, gm__slot slot) {
  gm__mutex_lock(&ctx->lock);
  void *hung = ctx->slots[slot];
  gm__mutex_unlock(&ctx->lock);
  return hung;
}

/* Where the tag of that name is, or would go: between the place of its hash and its own place none is empty. */
static uint16_t *context_tag_place(const gm_context *ctx, const char *name) {
  uint64_t at = gm__checksum(name, strlen(name), 0);
  for (;; at++) {
    uint16_t *place = &ctx->tag_places[at % GM__TAG_PLACES];
    if (!*place || strcmp(ctx->tags[*place - 1], name) == 0) return place;
  }
}

/* Names are borrowed by callers, so the table must not move: it is made once, at its first use. */
static bool context_has_tags(gm_context *ctx) {
  if (!ctx->tags) ctx->tags = gm__alloc_array(&ctx->services, GM__TAGS_MAX, sizeof *ctx->tags);
  if (!ctx->tag_places) {
    ctx->tag_places = gm__alloc_array(&ctx->services, GM__TAG_PLACES, sizeof *ctx->tag_places);
  }
  return ctx->tags && ctx->tag_places;
}

/* REQUIRES: context lock. */
static gm_status context_tag(gm_context *ctx, const char *name, uint32_t *out, gm_error *err) {
  if (!context_has_tags(ctx)) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_tag_find", "no host memory for the table of tags");
  }
  uint16_t *place = context_tag_place(ctx, name);
  if (!*place && ctx->tag_count == GM__TAGS_MAX) {
    return gm__fail(err, GM_ERR_OVER_LIMIT, "gm_tag_find", "the context has %d tags already, which is the most",
                    GM__TAGS_MAX);
  }
  if (!*place) {
    memcpy(ctx->tags[ctx->tag_count], name, strlen(name) + 1);
    *place = (uint16_t)++ctx->tag_count;
  }
  *out = *place;
  return GM_OK;
}

gm_status gm_tag_find(gm_context *ctx, const char *name, uint32_t *out, gm_error *err) {
  static const char op[] = "gm_tag_find";
  gm_status status = gm__context_check(ctx, op, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  if (!name || !name[0]) return gm__bad_argument(err, op, "`name` is %s", name ? "empty" : "NULL");
  if (strlen(name) > CONTEXT_TAG_LENGTH) {
    return gm__bad_argument(err, op, "`name` has %zu bytes, and a tag has at most %d", strlen(name),
                            CONTEXT_TAG_LENGTH);
  }
  gm__mutex_lock(&ctx->lock);
  status = context_tag(ctx, name, out, err);
  gm__mutex_unlock(&ctx->lock);
  return status;
}

uint32_t gm_tag(gm_context *ctx, const char *name) {
  uint32_t tag = 0;
  return gm_tag_find(ctx, name, &tag, NULL) == GM_OK ? tag : 0;
}

const char *gm_tag_name(gm_context *ctx, uint32_t tag) {
  if (gm__context_check(ctx, "gm_tag_name", NULL) != GM_OK || tag == 0) return "";
  gm__mutex_lock(&ctx->lock);
  const char *name = tag <= ctx->tag_count ? ctx->tags[tag - 1] : "";
  gm__mutex_unlock(&ctx->lock);
  return name;
}

void gm_tell_left_open(gm_context *ctx, const char *what, gm_status status, const gm_error *why) {
  GM__UNCANCELLED();
  gm_error told = {.status = status};
  const char *name = what ? what : "an object";
  if (!ctx || !status || gm__context_forked(ctx)) return;
  if (why && why->status) {
    told = *why;
  } else {
    gm__fail(&told, status, name, "%s", gm_status_name(status));
  }
  gm__log(&ctx->services, GM_LOG_WARN, "%s could not be ended and stays: %s", name, told.message);
  if (ctx->left_open) ctx->left_open(ctx->left_open_user, name, &told);
}
