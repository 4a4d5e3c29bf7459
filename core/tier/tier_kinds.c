#include "core/tier/tier_kinds.h"

#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/context/context.h"

/* Invariant: the list of a context only grows, so a kind that was found stays. The context's lock guards it. */

typedef struct tier_kinds {
  gm_context *ctx;
  gm__tier_kind *first;
} tier_kinds;

static const gm_tier_ops *const tier_own[] = {&gm__disk_tier_ops, &gm__host_tier_ops, &gm__remote_tier_ops};

static void tier_kinds_destroy(void *object, bool forked) {
  (void)forked;
  tier_kinds *kinds = object;
  const gm_services *services = gm__context_services(kinds->ctx);
  for (gm__tier_kind *kind = kinds->first, *next; kind; kind = next) {
    next = kind->next;
    gm__release(services, kind, sizeof *kind);
  }
  gm__release(services, kinds, sizeof *kinds);
}

static gm__tier_kind *tier_kinds_look(const tier_kinds *kinds, const char *name) {
  gm__tier_kind *kind = kinds->first;
  while (kind && strcmp(kind->name, name) != 0) kind = kind->next;
  return kind;
}

static gm_status tier_kinds_add(tier_kinds *kinds, const gm_tier_ops *ops, gm_error *err) {
  static const char op[] = "gm_tier_register";
  if (tier_kinds_look(kinds, ops->name)) {
    return gm__fail(err, GM_ERR_BUSY, op, "the context has a tier \"%s\" already", ops->name);
  }
  gm__tier_kind *kind = gm__alloc(gm__context_services(kinds->ctx), sizeof *kind);
  if (!kind) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a kind of tier");
  memcpy(kind->name, ops->name, strlen(ops->name) + 1); /* checked: it fits */
  kind->ops = *ops;
  kind->ops.name = kind->name;
  kind->next = kinds->first;
  kinds->first = kind;
  return GM_OK;
}

/* REQUIRES: context lock. */
static gm_status tier_kinds_make(gm_context *ctx, tier_kinds **out, gm_error *err) {
  tier_kinds *kinds = gm__alloc(gm__context_services(ctx), sizeof *kinds);
  gm_status status = GM_OK;
  if (!kinds) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_tier_register", "no host memory for tiers");
  kinds->ctx = ctx;
  for (size_t i = 0; !status && i < sizeof tier_own / sizeof *tier_own; i++) {
    status = tier_kinds_add(kinds, tier_own[i], err);
  }
  if (status) {
    tier_kinds_destroy(kinds, false);
    return status;
  }
  *out = kinds;
  return GM_OK;
}

static gm_status tier_kinds_get(gm_context *ctx, tier_kinds **out, gm_error *err) {
  gm__mutex_lock(&ctx->lock);
  tier_kinds *kinds = ctx->slots[GM__SLOT_TIERS];
  const bool fresh = !kinds;
  const gm_status status = fresh ? tier_kinds_make(ctx, &kinds, err) : GM_OK;
  if (!status) ctx->slots[GM__SLOT_TIERS] = *out = kinds;
  gm__mutex_unlock(&ctx->lock);
  if (fresh && !status) gm__context_on_destroy(ctx, tier_kinds_destroy, kinds);
  return status;
}

static void tier_kinds_text(const tier_kinds *kinds, char *out, size_t capacity) {
  size_t length = 0;
  for (const gm__tier_kind *kind = kinds->first; kind && length < capacity; kind = kind->next) {
    const int written = snprintf(out + length, capacity - length, "%s%s", length ? ", " : "", kind->name);
    length += written > 0 ? (size_t)written : 0;
  }
}

gm_status gm__tier_kind_find(gm_context *ctx, const char *name, const gm__tier_kind **out, gm_error *err) {
  tier_kinds *kinds;
  char known[128] = "";
  gm_status status = tier_kinds_get(ctx, &kinds, err);
  if (status) return status;
  gm__mutex_lock(&ctx->lock);
  *out = tier_kinds_look(kinds, name);
  tier_kinds_text(kinds, known, sizeof known);
  gm__mutex_unlock(&ctx->lock);
  if (*out) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_FOUND, "gm_tier_open", "no tier is called \"%s\": there are %s", name, known);
}

/* ---- registering ---- */

static bool tier_name_is_right(const char *name) {
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
  const size_t length = strnlen(name, GM__TIER_NAME);
  return length > 0 && length < GM__TIER_NAME && strspn(name, letters) == length;
}

static gm_status tier_ops_check(const gm_tier_ops *ops, gm_error *err) {
  static const char op[] = "gm_tier_register";
  if (ops->abi != GM_TIER_ABI) {
    return gm__fail(err, GM_ERR_ABI_MISMATCH, op, "`ops->abi` is %u, this gm has %d", ops->abi, GM_TIER_ABI);
  }
  if (!ops->name || !tier_name_is_right(ops->name)) {
    return gm__bad_argument(err, op, "`ops->name` must have 1 to 31 characters of a-z, 0-9, '_' and '-'");
  }
  for (size_t i = 0; i < sizeof ops->reserved / sizeof *ops->reserved; i++) {
    if (ops->reserved[i]) return gm__bad_argument(err, op, "`ops->reserved` must be NULL");
  }
  if (ops->open && ops->close && ops->put && ops->value_open && ops->value_read && ops->value_close && ops->remove &&
      ops->list && ops->flush && ops->stats) {
    return GM_OK;
  }
  return gm__bad_argument(err, op, "tier \"%s\" lacks a function", ops->name);
}

gm_status gm_tier_register(gm_context *ctx, const gm_tier_ops *ops, gm_error *err) {
  gm_tier_ops asked;
  tier_kinds *kinds;
  gm_status status = gm__context_check(ctx, "gm_tier_register", err);
  if (!status) status = gm__sized_in(&asked, sizeof asked, ops, "gm_tier_register", "ops", err);
  if (!status) status = tier_ops_check(&asked, err);
  if (!status) status = tier_kinds_get(ctx, &kinds, err);
  if (status) return status;
  gm__mutex_lock(&ctx->lock);
  status = tier_kinds_add(kinds, &asked, err);
  gm__mutex_unlock(&ctx->lock);
  return status;
}
