/* Warm-up, batches, quotas and sets of pools under failures. */
#include <stdio.h>
#include <string.h>

#include "fault/scenario.h"
#include "gm/batch.h"
#include "gm/cleanup.h"
#include "gm/config.h"
#include "gm/pool_set.h"
#include "gm/quota.h"
#include "gm/spans.h"
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

/* A block that was served is the session's to free, so that a refused free is tried again. */
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

/* ---- one block of several memories ---- */

enum { SPANNED_PIECE = 1 << 20, SPANNED_BLOCKS = 5, SPANNED_BYTES = 5000 };
static unsigned char spanned_source[SPANNED_BYTES], spanned_target[SPANNED_BYTES];

/* A segment that the cap allows once, with two holes between blocks. */
static gm_status spanned_fragment(session *s, gm_error *err) {
  const gm_pool_params params = {.struct_size = sizeof params,
                                 .strategy = GM_STRATEGY_BEST_FIT,
                                 .max_bytes = (uint64_t)SPANNED_BLOCKS * SPANNED_PIECE,
                                 .checked = true,
                                 .track = true,
                                 .no_vmm = true};
  gm_status status = session_open_device(s, err);
  if (status == GM_OK) status = gm_config_set(s->ctx, "segment_size", "5M", err);
  if (status == GM_OK) status = gm_pool_create(s->device, &params, &s->pool, err);
  if (status == GM_OK) status = gm_stream_create(s->device, &s->streams[0], err);
  for (int i = 0; i < SPANNED_BLOCKS && status == GM_OK; i++) status = session_take(s, SPANNED_PIECE, err);
  for (int hole = 1; hole < 4 && status == GM_OK; hole += 2) {
    const gm_block last = s->blocks[s->block_count - 1];
    s->blocks[s->block_count - 1] = s->blocks[hole];
    s->blocks[hole] = last;
    status = session_give(s, NULL, err);
  }
  return status;
}

/* Across the border between the two; one, where a failure left other holes. */
static gm_status spanned_use(session *s, const gm_block *block, gm_error *err) {
  const uint64_t at = SPANNED_PIECE - SPANNED_BYTES / 2;
  gm_stream *stream = s->streams[0];
  gm_point point = {0};
  uint32_t count = 0;
  gm_status status = gm_block_spans(s->pool, block, 0, 0, NULL, &count, err);
  for (unsigned i = 0; i < SPANNED_BYTES; i++) spanned_source[i] = (unsigned char)(i * 7);
  if (status == GM_OK) status = gm_block_write(s->pool, block, at, spanned_source, SPANNED_BYTES, stream, &point, err);
  if (status == GM_OK) status = gm_point_wait(s->device, &point, UINT64_MAX, err);
  gm_point_release(s->device, &point);
  if (status == GM_OK) status = gm_block_fill(s->pool, block, at, 3001, "abc", 1, stream, NULL, err);
  if (status == GM_OK) status = gm_block_copy(s->pool, block, 0, s->pool, block, at, 100, NULL, NULL, err);
  if (status == GM_OK) status = gm_block_read(s->pool, block, at, spanned_target, SPANNED_BYTES, NULL, NULL, err);
  if (status) return status;
  memset(spanned_source, 'a', 3001);
  if (memcmp(spanned_source, spanned_target, SPANNED_BYTES) == 0) return GM_OK;
  snprintf(err->message, sizeof err->message, "every call succeeded, and the bytes are wrong");
  return GM_ERR_FORMAT;
}

gm_status scenario_spanned(session *s, gm_error *err) {
  gm_status status = spanned_fragment(s, err);
  if (status == GM_OK) status = session_take_spanned(s, UINT64_C(2) * SPANNED_PIECE, s->streams[0], err);
  if (status == GM_OK) status = spanned_use(s, &s->blocks[s->block_count - 1], err);
  if (status == GM_OK) status = session_give(s, s->streams[0], err);
  return status;
}
