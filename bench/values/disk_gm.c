/* gm's disk tier. It packs nothing here: its peers do not, either. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "disk_peer.h"
#include "gm/tier.h"

typedef struct gm_side {
  gm_context *ctx;
  gm_tier *tier;
} gm_side;

static bool side_said(gm_status status, const gm_error *err) {
  return !status || disk_peer_fail("gm", err->op, err->message);
}

static bool side_open(void **self, const char *folder, bool each, size_t value_bytes) {
  (void)value_bytes;
  char path[512];
  gm_error err = {.status = GM_OK};
  gm_side *side = calloc(1, sizeof *side);
  const gm_tier_params params = {.struct_size = sizeof params,
                                 .durability = each ? GM_TIER_DURABLE_AT_PUT : GM_TIER_DURABLE_AT_FLUSH,
                                 .codec = GM_TIER_CODEC_NONE};
  if (!side) return false;
  *self = side;
  snprintf(path, sizeof path, "%s/values.gmtier", folder);
  gm_status status = gm_context_create(NULL, &side->ctx, &err);
  if (!status) status = gm_tier_open(side->ctx, "disk", path, &params, &side->tier, &err);
  return side_said(status, &err);
}

static bool side_put(void *self, const char *key, const void *value, size_t bytes) {
  gm_error err = {.status = GM_OK};
  const gm_tier_part part = {value, bytes};
  return side_said(gm_tier_put(((gm_side *)self)->tier, key, strlen(key), &part, 1, &err), &err);
}

static bool side_get(void *self, const char *key, void *out, size_t bytes) {
  gm_error err = {.status = GM_OK};
  gm_tier_value *value = NULL;
  uint64_t has = 0;
  gm_status status = gm_tier_value_open(((gm_side *)self)->tier, key, strlen(key), &value, &has, &err);
  if (!status) status = gm_tier_value_read(value, 0, out, bytes, &err);
  gm_tier_value_close(value);
  return side_said(status, &err);
}

static bool side_flush(void *self) {
  gm_error err = {.status = GM_OK};
  return side_said(gm_tier_flush(((gm_side *)self)->tier, &err), &err);
}

static bool side_close(void *self) {
  gm_side *side = self;
  gm_error err = {.status = GM_OK};
  const bool good = side_said(gm_tier_close(side->tier, &err), &err);
  gm_context_destroy(side->ctx, NULL);
  free(side);
  return good;
}

const disk_peer disk_peer_gm = {"gm", side_open, side_put, side_get, side_flush, side_close};
