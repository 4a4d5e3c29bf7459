#include "core/tier/tier.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/context/context.h"
#include "core/context/object.h"
#include "core/tier/tier_kinds.h"

/* Invariants. A table's functions see checked arguments only. A tier with open values does not close. */

enum { TIER_WHERE = 64 };

struct gm_tier {
  gm__object head;
  gm_context *ctx;
  const gm__tier_kind *kind;
  void *own; /* the table's object */
  bool read_only;
  _Atomic uint64_t readers; /* open values */
  char where[TIER_WHERE];   /* or its end */
};

struct gm_tier_value {
  gm_tier *tier;
  void *own;
  uint64_t bytes;
};

/* A table may fail without a word. Its answer is only as good as its author. */
static gm_status tier_answer(const gm__tier_kind *kind, const char *op, gm_status status, gm_error *err) {
  if (!status || !err || err->status == status) return status;
  return gm__fail(err, status, op, "the tier \"%s\" gives no reason", kind->name);
}

/* Before a table is called: what `err` says afterwards is of that call. */
static void tier_silence(gm_error *err) {
  if (err) err->status = GM_OK;
}

/* ---- opening and closing ---- */

static gm_status tier_params_read(const gm_tier_params *params, gm_tier_params *out, gm_error *err) {
  static const char op[] = "gm_tier_open";
  *out = (gm_tier_params){.struct_size = sizeof *out};
  const gm_status status = params ? gm__sized_in(out, sizeof *out, params, op, "params", err) : GM_OK;
  if (status) return status;
  if ((unsigned)out->durability > GM_TIER_DURABLE_NEVER) {
    return gm__bad_argument(err, op, "`params->durability` is %u, none of gm_tier_durability", out->durability);
  }
  if ((unsigned)out->codec > GM_TIER_CODEC_ZSTD) {
    return gm__bad_argument(err, op, "`params->codec` is %u, none of gm_tier_codec", out->codec);
  }
  return GM_OK;
}

gm_status gm_tier_open(gm_context *ctx, const char *kind, const char *where, const gm_tier_params *params,
                       gm_tier **out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_tier_open";
  gm_tier_params asked;
  const gm__tier_kind *found;
  gm_status status = gm__context_check(ctx, op, err);
  if (status) return status;
  if (!kind || !where || !out) return gm__bad_argument(err, op, "`kind`, `where` or `out` is NULL");
  status = tier_params_read(params, &asked, err);
  if (!status) status = gm__tier_kind_find(ctx, kind, &found, err);
  if (status) return status;
  gm_tier *tier = gm__object_new(ctx, GM__KIND_TIER, sizeof *tier);
  if (!tier) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a tier");
  tier->ctx = ctx;
  tier->kind = found;
  tier->read_only = asked.read_only;
  const size_t length = strlen(where), kept = length < TIER_WHERE ? length : TIER_WHERE - 1;
  memcpy(tier->where, where + length - kept, kept);
  tier_silence(err);
  status = tier_answer(found, op, found->ops.open(ctx, where, &asked, &tier->own, err), err);
  if (status) {
    gm__object_end(ctx, &tier->head);
    return status;
  }
  atomic_fetch_add(&ctx->children, 1);
  *out = tier;
  return GM_OK;
}

const char *gm__tier_where(const gm_tier *tier) { return tier->where; }

static gm_status tier_check(const gm_tier *tier, const char *op, gm_error *err) {
  if (!tier) return gm__bad_argument(err, op, "`tier` is NULL");
  if (!gm__object_is(&tier->head, GM__KIND_TIER)) return gm__bad_argument(err, op, "`tier` is closed");
  tier_silence(err);
  return gm__context_check(tier->ctx, op, err);
}

gm_status gm_tier_close(gm_tier *tier, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_tier_close";
  if (!tier) return GM_OK;
  gm_status status = tier_check(tier, op, err);
  if (status == GM_ERR_INVALID_ARGUMENT) return status;
  const bool forked = status == GM_ERR_FORKED;
  const uint64_t readers = atomic_load(&tier->readers);
  if (!forked && readers) return gm__fail(err, GM_ERR_BUSY, op, "%" PRIu64 " values are open", readers);
  status = forked || tier->read_only ? GM_OK : tier_answer(tier->kind, op, tier->kind->ops.flush(tier->own, err), err);
  tier->kind->ops.close(tier->own);
  gm_context *ctx = tier->ctx;
  gm__object_end(ctx, &tier->head);
  atomic_fetch_sub(&ctx->children, 1);
  return status;
}

/* ---- values ---- */

static gm_status tier_key_check(const gm_tier *tier, const void *key, size_t key_bytes, const char *op, gm_error *err) {
  const gm_status status = tier_check(tier, op, err);
  if (status) return status;
  if (!key) return gm__bad_argument(err, op, "`key` is NULL");
  if (key_bytes > 0 && key_bytes <= GM_TIER_KEY_MOST) return GM_OK;
  return gm__bad_argument(err, op, "`key_bytes` is %zu, not 1 to %d", key_bytes, GM_TIER_KEY_MOST);
}

static gm_status tier_writable(const gm_tier *tier, const char *op, gm_error *err) {
  if (!tier->read_only) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "the tier was opened with read_only");
}

static gm_status tier_parts_check(const gm_tier_part *parts, size_t count, const char *op, gm_error *err) {
  uint64_t sum = 0;
  if (count && !parts) return gm__bad_argument(err, op, "`parts` is NULL");
  for (size_t i = 0; i < count; i++) {
    if (parts[i].bytes && !parts[i].data) return gm__bad_argument(err, op, "`parts[%zu].data` is NULL", i);
    if (parts[i].bytes > INT64_MAX - sum) return gm__bad_argument(err, op, "the parts have more than 2^63-1 bytes");
    sum += parts[i].bytes;
  }
  return GM_OK;
}

gm_status gm_tier_put(gm_tier *tier, const void *key, size_t key_bytes, const gm_tier_part *parts, size_t count,
                      gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_tier_put";
  gm_status status = tier_key_check(tier, key, key_bytes, op, err);
  if (!status) status = tier_writable(tier, op, err);
  if (!status) status = tier_parts_check(parts, count, op, err);
  return status ? status
                : tier_answer(tier->kind, op, tier->kind->ops.put(tier->own, key, key_bytes, parts, count, err), err);
}

gm_status gm_tier_value_open(gm_tier *tier, const void *key, size_t key_bytes, gm_tier_value **out, uint64_t *out_bytes,
                             gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_tier_value_open";
  gm_status status = tier_key_check(tier, key, key_bytes, op, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  const gm_services *services = gm__context_services(tier->ctx);
  gm_tier_value *value = gm__alloc(services, sizeof *value);
  if (!value) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a value");
  value->tier = tier;
  status = tier_answer(tier->kind, op,
                       tier->kind->ops.value_open(tier->own, key, key_bytes, &value->own, &value->bytes, err), err);
  if (status) {
    gm__release(services, value, sizeof *value);
    return status;
  }
  atomic_fetch_add(&tier->readers, 1);
  if (out_bytes) *out_bytes = value->bytes;
  *out = value;
  return GM_OK;
}

gm_status gm_tier_value_read(gm_tier_value *value, uint64_t offset, void *dst, uint64_t bytes, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_tier_value_read";
  if (!value) return gm__bad_argument(err, op, "`value` is NULL");
  gm_tier *tier = value->tier;
  const gm_status status = tier_check(tier, op, err);
  if (status) return status;
  if (offset > value->bytes || bytes > value->bytes - offset) {
    return gm__bad_argument(err, op, "`offset` %" PRIu64 " and `bytes` %" PRIu64 " reach beyond the value's %" PRIu64,
                            offset, bytes, value->bytes);
  }
  if (!bytes) return GM_OK;
  if (!dst) return gm__bad_argument(err, op, "`dst` is NULL");
  return tier_answer(tier->kind, op, tier->kind->ops.value_read(tier->own, value->own, offset, dst, bytes, err), err);
}

gm_status gm_tier_value_describe(const gm_tier_value *value, gm_tier_value_info *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_tier_value_describe";
  if (!value) return gm__bad_argument(err, op, "`value` is NULL");
  const gm_tier *tier = value->tier;
  gm_status status = tier_check(tier, op, err);
  if (!status) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  gm_tier_value_info info = {
      .struct_size = sizeof info, .codec = GM_TIER_CODEC_NONE, .bytes = value->bytes, .stored_bytes = value->bytes};
  if (tier->kind->ops.value_info) tier->kind->ops.value_info(tier->own, value->own, &info);
  gm__sized_out(out, &info, sizeof info);
  return GM_OK;
}

void gm_tier_value_close(gm_tier_value *value) {
  GM__UNCANCELLED();
  if (!value) return;
  gm_tier *tier = value->tier;
  tier->kind->ops.value_close(tier->own, value->own);
  gm__release(gm__context_services(tier->ctx), value, sizeof *value);
  atomic_fetch_sub(&tier->readers, 1);
}

gm_status gm_tier_remove(gm_tier *tier, const void *key, size_t key_bytes, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_tier_remove";
  gm_status status = tier_key_check(tier, key, key_bytes, op, err);
  if (!status) status = tier_writable(tier, op, err);
  return status ? status : tier_answer(tier->kind, op, tier->kind->ops.remove(tier->own, key, key_bytes, err), err);
}

/* ---- the tier as a whole ---- */

gm_status gm_tier_list(gm_tier *tier, const void *prefix, size_t prefix_bytes, gm_tier_visit visit, void *user,
                       gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_tier_list";
  const gm_status status = tier_check(tier, op, err);
  if (status) return status;
  if (!visit) return gm__bad_argument(err, op, "`visit` is NULL");
  if (prefix_bytes > GM_TIER_KEY_MOST || (prefix_bytes && !prefix)) {
    return gm__bad_argument(err, op, "`prefix` is NULL or has more than %d bytes", GM_TIER_KEY_MOST);
  }
  return tier_answer(tier->kind, op, tier->kind->ops.list(tier->own, prefix, prefix_bytes, visit, user, err), err);
}

gm_status gm_tier_flush(gm_tier *tier, gm_error *err) {
  GM__UNCANCELLED();
  const gm_status status = tier_check(tier, "gm_tier_flush", err);
  if (status || tier->read_only) return status;
  return tier_answer(tier->kind, "gm_tier_flush", tier->kind->ops.flush(tier->own, err), err);
}

gm_status gm_tier_get_stats(gm_tier *tier, gm_tier_stats *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_tier_get_stats";
  gm_status status = tier_check(tier, op, err);
  if (!status) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  gm_tier_stats now = {.struct_size = sizeof now};
  tier->kind->ops.stats(tier->own, &now);
  gm__sized_out(out, &now, sizeof now);
  return GM_OK;
}

const char *gm_tier_kind(const gm_tier *tier) {
  return tier && gm__object_is(&tier->head, GM__KIND_TIER) ? tier->kind->name : "";
}
