#include "model/model.h"

#include <string.h>

#include "gm/batch.h"
#include "gm/cleanup.h"
#include "gm/warm_up.h"

/* ---- tidying ---- */

static void check_stats(model *m) {
  gm_stats stats = {.struct_size = sizeof stats};
  gm_pool_stats(m->pool, &stats);
  CHECK(m, stats.reserved_bytes <= m->cap, "%" PRIu64 " bytes reserved, the cap is %" PRIu64, stats.reserved_bytes,
        m->cap);
  CHECK(m, stats.requested_bytes <= stats.in_use_bytes && stats.in_use_bytes <= stats.reserved_bytes,
        "statistics contradict each other");
}

void step_tidy(worker *w) {
  model *m = w->m;
  gm_perf_scope scope;
  CHECK_OK(m, gm_perf_begin(m->pool, "tidy", &scope, &err));
  switch (below(w, 7)) {
    case 0: gm_pool_trim(m->pool, below(w, m->cap)); break;
    case 1: gm_pool_coalesce(m->pool, chance(w, 50)); break;
    case 2: gm_pool_collect(m->pool); break;
    case 3: gm_pool_clear(m->pool); break;
    case 4: gm_pool_shrink(m->pool, below(w, m->cap)); break;
    case 5: CHECK_OK(m, gm_pool_cleanup(m->pool, 0.5, chance(w, 50), NULL, &err)); break;
    default: CHECK_OK(m, gm_pool_set_max_bytes(m->pool, m->cap - below(w, m->cap / 4), &err)); break;
  }
  check_stats(m);
  CHECK_OK(m, gm_perf_end(&scope, NULL, &err));
}

/* ---- batches ---- */

static bool is_refusal(gm_status status) {
  return status == GM_ERR_OVER_LIMIT || status == GM_ERR_OUT_OF_DEVICE_MEMORY || status == GM_ERR_ALLOCATION_TOO_LARGE;
}

/* Sizes of every magnitude side by side, on one stream; the number of requests. */
static uint32_t ask_raggedly(worker *w, gm_request *requests, gm_stream *stream) {
  const uint32_t count = 1 + (uint32_t)below(w, MAX_HELD / 2), tag = w->m->tags[below(w, 4)];
  for (uint32_t i = 0; i < count; i++) {
    const uint64_t bytes = test_log_uniform(&w->random, w->m->largest / (1 + below(w, 16)));
    requests[i] = (gm_request){.bytes = bytes, .stream = stream, .tag = tag};
  }
  return count;
}

static void batch_of_blocks(worker *w) {
  model *m = w->m;
  gm_request requests[MAX_HELD];
  gm_part parts[MAX_HELD];
  gm_stream *stream = any_stream(w);
  const gm_batch_params params = {
      .struct_size = sizeof params, .requests = requests, .count = ask_raggedly(w, requests, stream)};
  size_t failed = params.count + 1;
  const gm_status status = gm_alloc_batch(m->pool, &params, parts, &failed, NULL);
  if (status) {
    atomic_store(&m->uncounted, true);
    atomic_fetch_add(&m->refused, 1);
    CHECK(m, is_refusal(status) && failed <= params.count, "gm_alloc_batch: %s", gm_status_name(status));
    return;
  }
  for (size_t i = 0; i < params.count; i++) {
    CHECK(m, parts[i].offset == 0 && parts[i].bytes == requests[i].bytes, "a part of a batch is not as asked");
    owned o = {.block = parts[i].block, .asked = requests[i].bytes, .stream = stream, .tag = requests[i].tag};
    welcome(w, &o);
    keep(w, &o);
  }
}

/* One block for all, with contents; given back at once. */
static void batch_of_one_block(worker *w) {
  model *m = w->m;
  gm_request requests[MAX_HELD];
  gm_part parts[MAX_HELD];
  unsigned char contents[MAX_HELD][64], back[64];
  const void *pointers[MAX_HELD];
  gm_stream *stream = any_stream(w);
  gm_batch_params params = {.struct_size = sizeof params, .flags = GM_BATCH_GROUPED, .requests = requests};
  params.count = ask_raggedly(w, requests, stream);
  for (size_t i = 0; i < params.count; i++) {
    requests[i].bytes = 1 + below(w, sizeof contents[i]);
    memset(contents[i], (int)(roll(w) & 0xff), sizeof contents[i]);
    pointers[i] = contents[i];
  }
  if (m->has_memory) params.contents = pointers;
  const gm_status status = gm_alloc_batch(m->pool, &params, parts, NULL, NULL);
  atomic_store(&m->uncounted, true);
  CHECK(m, !status || is_refusal(status), "gm_alloc_batch: %s", gm_status_name(status));
  for (size_t i = 0; i < params.count && !status && m->has_memory; i++) {
    CHECK_OK(m, gm_block_read(m->pool, &parts[i].block, parts[i].offset, back, parts[i].bytes, stream, NULL, &err));
    CHECK(m, !memcmp(back, contents[i], parts[i].bytes), "part %zu of a batch has other contents", i);
  }
  if (!status) CHECK_OK(m, gm_free_batch(m->pool, parts, params.count, stream, &err));
}

/* ---- patterns ---- */

/* Each request a little larger than the last, which is given back when the next one is there. */
static void growth(worker *w) {
  uint64_t bytes = test_log_uniform(&w->random, w->m->largest / 4);
  owned last, next;
  if (!take(w, bytes, &last)) return;
  for (int turn = 0; turn < 8; turn++) {
    bytes += 1 + below(w, 1 + bytes / 4);
    const bool more = take(w, bytes, &next);
    verify(w, &last, last.stream ? last.stream : any_stream(w));
    give(w, &last);
    if (!more) return;
    last = next;
  }
  keep(w, &last);
}

/* Many small ones, every other given back, and then one that fits none of the holes. */
static void storm(worker *w) {
  owned held[MAX_HELD];
  uint32_t count = 0;
  const uint64_t small = test_log_uniform(&w->random, 16 << 10);
  while (count < MAX_HELD - 1 && take(w, small, &held[count])) count++;
  for (uint32_t i = 0; i < count; i += 2) give(w, &held[i]);
  if (count < MAX_HELD && take(w, 2 * small + 1, &held[count])) keep(w, &held[count]);
  for (uint32_t i = 1; i < count; i += 2) {
    verify(w, &held[i], held[i].stream ? held[i].stream : any_stream(w));
    give(w, &held[i]);
  }
}

static void warm_up(worker *w) {
  const gm_warm_up list[2] = {{1 + below(w, w->m->largest), 1 + below(w, 4)}, {1 + below(w, 4096), below(w, 20)}};
  gm_warm_up_result result = {.struct_size = sizeof result};
  atomic_store(&w->m->uncounted, true);
  const gm_status status = gm_pool_warm_up(w->m->pool, list, 2, any_stream(w), &result, NULL);
  CHECK(w->m, !status || is_refusal(status), "gm_pool_warm_up: %s", gm_status_name(status));
  CHECK(w->m, status || result.blocks == result.wanted, "warm-up answered OK with %" PRIu64 " blocks", result.blocks);
}

void step_pattern(worker *w) {
  switch (below(w, 5)) {
    case 0: growth(w); break;
    case 1: storm(w); break;
    case 2: batch_of_blocks(w); break;
    case 3: batch_of_one_block(w); break;
    default: warm_up(w); break;
  }
}
