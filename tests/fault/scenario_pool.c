/* Warm-up, batches, quotas and sets of pools under failures. */
#include <string.h>

#include "fault/scenario.h"
#include "gm/batch.h"
#include "gm/cleanup.h"
#include "gm/pool_set.h"
#include "gm/quota.h"
#include "gm/warm_up.h"

enum { POOL_PARTS = SESSION_BLOCKS, POOL_BYTES = 5000 };

gm_status scenario_warm_up(session *s, gm_error *err) {
  static const gm_warm_up list[] = {{100000, 2}, {3000, 12}};
  gm_status status = session_open(s, err);
  if (status == GM_OK) status = gm_stream_create(s->device, &s->streams[0], err);
  if (status == GM_OK) status = gm_pool_warm_up(s->pool, list, 2, s->streams[0], NULL, err);
  if (status == GM_OK) status = gm_pool_warm_up(s->pool, list, 2, NULL, NULL, err);
  return status;
}

/* What was served is the session's to free, so that a refused free is tried again. */
static gm_status batch_round(session *s, uint32_t flags, const void *const *contents, gm_error *err) {
  gm_request requests[POOL_PARTS];
  gm_part parts[POOL_PARTS];
  for (int i = 0; i < POOL_PARTS; i++) {
    requests[i] = (gm_request){.bytes = POOL_BYTES, .stream = flags ? s->streams[0] : s->streams[i % 2]};
  }
  const gm_batch_params params = {
      .struct_size = sizeof params, .flags = flags, .requests = requests, .count = POOL_PARTS, .contents = contents};
  gm_status status = gm_alloc_batch(s->pool, &params, parts, NULL, err);
  if (status) return status;
  s->block_count = flags ? 1 : POOL_PARTS;
  for (uint32_t i = 0; i < s->block_count; i++) s->blocks[i] = parts[i].block;
  status = gm_free_batch(s->pool, parts, POOL_PARTS, s->streams[0], err);
  if (status == GM_OK) s->block_count = 0;
  return status;
}

static gm_status batch_rounds(session *s, const void *const *contents, gm_error *err) {
  gm_status status = session_open(s, err);
  for (int i = 0; i < 2 && status == GM_OK; i++) status = gm_stream_create(s->device, &s->streams[i], err);
  for (uint32_t flags = 0; flags <= GM_BATCH_GROUPED && status == GM_OK; flags++) {
    status = batch_round(s, flags, contents, err);
  }
  return status;
}

gm_status scenario_batch(session *s, gm_error *err) { return batch_rounds(s, NULL, err); }

gm_status scenario_batch_contents(session *s, gm_error *err) {
  static const unsigned char bytes[POOL_BYTES];
  const void *contents[POOL_PARTS];
  for (int i = 0; i < POOL_PARTS; i++) contents[i] = i % 2 ? bytes : NULL;
  return batch_rounds(s, contents, err);
}

/* A quota that refuses is no failure: the request within it is served. */
gm_status scenario_quota(session *s, gm_error *err) {
  gm_status status = session_open(s, err);
  if (status == GM_OK) status = gm_pool_set_quota(s->pool, gm_tag(s->ctx, "sweep"), 100000, 0, 0, err);
  for (int i = 0; i < 2 && status == GM_OK; i++) status = session_take(s, 40000, err);
  if (status == GM_OK) status = gm_pool_cleanup(s->pool, 0.5, true, NULL, err);
  gm_pool_collect(s->pool);
  return status;
}

gm_status scenario_pool_set(session *s, gm_error *err) {
  gm_pool_set *set = NULL;
  gm_status status = session_open(s, err);
  if (status == GM_OK) status = gm_pool_set_create(&s->device, 1, NULL, &set, err);
  if (status == GM_OK) gm_pool_set_trim(set, 0);
  return status == GM_OK ? gm_pool_set_destroy(set, err) : status;
}
