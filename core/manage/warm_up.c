#include <inttypes.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/base/text.h"
#include "core/context/config.h"
#include "core/manage/explain.h"
#include "core/manage/lifecycle.h"
#include "core/pool/alloc_one.h"
#include "core/pool/free.h"
#include "core/provider/request.h"
#include "gm/config.h"
#include "gm/size.h"
#include "gm/warm_up.h"

/* A warm-up holds all its blocks at once, because only then the pool has that many. Whatever happens, it frees them in
 * the order of their stream. The list of blocks grows as they come. A list that asks for more than there is ends at the
 * device's limit, not at the host's. */

enum { WARM_UP_TEXT = 1024, WARM_UP_NUMBERS = 256, WARM_UP_FIRST = 64, WARM_UP_POWERS = 65 };

typedef struct warm_up {
  gm_pool *pool;
  gm_stream *stream;
  gm_block *blocks;
  size_t count, capacity;
  gm_warm_up_result result;
} warm_up;

static const gm_services *warm_up_services(const warm_up *self) {
  return gm__context_services(self->pool->device->ctx);
}

/* ---- what is asked for ---- */

static gm_status warm_up_check(const gm_warm_up *list, size_t count, gm_warm_up_result *out, const char *op,
                               gm_error *err) {
  uint64_t wanted = 0;
  if (count && !list) return gm__bad_argument(err, op, "`list` is NULL");
  for (size_t i = 0; i < count; i++) {
    if (list[i].bytes == 0) return gm__bad_argument(err, op, "`list[%zu].bytes` is 0", i);
    if (list[i].count > UINT64_MAX - wanted)
      return gm__bad_argument(err, op, "`list` asks for more than 2^64-1 blocks");
    wanted += list[i].count;
  }
  out->wanted = wanted;
  return GM_OK;
}

/* A bucket that keeps fewer blocks than it gets would hand them to the driver at once. It gets the first `had`
 * blocks of the list. */
static void warm_up_widen(gm_pool *pool, const gm_warm_up *list, size_t count, uint64_t had) {
  uint64_t powers[WARM_UP_POWERS] = {0}, most = 0;
  if (pool->heap.strategy != GM_STRATEGY_BUCKET) return;
  uint64_t left = had;
  for (size_t i = 0; i < count && left; i++) {
    gm__want want;
    const gm_request request = {.bytes = list[i].bytes};
    const uint64_t had_here = gm__min(list[i].count, left);
    left -= had_here;
    if (gm__request_read(pool, &request, &want, NULL)) continue;
    const uint32_t power = gm_size_class(want.exact); /* all its classes together: enough for each of them */
    powers[power] += had_here;
    most = gm__max(most, powers[power]);
  }
  gm__keep_widen(&pool->heap, had);
  gm__mutex_lock(&pool->heap.provider.lock);
  if (most > pool->heap.dedicated.buckets.most)
    pool->heap.dedicated.buckets.most = most < UINT32_MAX ? (uint32_t)most : UINT32_MAX;
  gm__mutex_unlock(&pool->heap.provider.lock);
}

/* ---- allocating and freeing ---- */

static gm_status warm_up_reserve(warm_up *self, const char *op, gm_error *err) {
  if (self->count < self->capacity) return GM_OK;
  size_t wanted = self->capacity ? 2 * self->capacity : WARM_UP_FIRST, size = sizeof *self->blocks;
  if (!gm__grow(warm_up_services(self), &self->blocks, self->capacity * size, wanted * size)) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a list of %zu blocks", wanted);
  }
  self->capacity = wanted;
  return GM_OK;
}

static gm_status warm_up_alloc(warm_up *self, uint64_t bytes, const char *op, gm_error *err) {
  const gm_request request = {.bytes = bytes, .stream = self->stream, .flags = GM_INSERT_WAIT};
  gm_status status = warm_up_reserve(self, op, err);
  if (status) return status;
  gm_acquire answer = gm_alloc(self->pool, &request, &self->blocks[self->count]);
  if (answer > GM_ACQUIRE_FRESH) return gm__explain_refusal(self->pool, &request, answer, op, err);
  self->result.bytes += self->blocks[self->count++].bytes;
  self->result.blocks++;
  return GM_OK;
}

static gm_status warm_up_alloc_all(warm_up *self, const gm_warm_up *list, size_t count, const char *op, gm_error *err) {
  for (size_t i = 0; i < count; i++) {
    for (uint64_t turn = 0; turn < list[i].count; turn++) {
      gm_status status = warm_up_alloc(self, list[i].bytes, op, err);
      if (status == GM_OK) continue;
      self->result.failed_bytes = list[i].bytes;
      return status;
    }
  }
  return GM_OK;
}

static gm_status warm_up_free_all(warm_up *self, gm_status status, const char *op, gm_error *err) {
  while (self->count > 0) {
    gm_status freed = gm__block_free_unused(self->pool, &self->blocks[--self->count], self->stream);
    if (freed && !status) status = gm__fail(err, freed, op, "a block could not be given back");
  }
  gm__release(warm_up_services(self), self->blocks, self->capacity * sizeof *self->blocks);
  return status;
}

static gm_status warm_up_run(gm_pool *pool, const gm_warm_up *list, size_t count, gm_stream *stream,
                             gm_warm_up_result *out, const char *op, gm_error *err) {
  warm_up self = {.pool = pool, .stream = stream, .result = {.struct_size = sizeof self.result}};
  gm_status status = warm_up_check(list, count, &self.result, op, err);
  if (!status && stream && stream->device != pool->device) {
    status = gm__bad_argument(err, op, "`stream` belongs to another device");
  }
  if (status) return status;
  status = warm_up_alloc_all(&self, list, count, op, err);
  warm_up_widen(pool, list, count, self.result.blocks);
  status = warm_up_free_all(&self, status, op, err);
  if (out) gm__sized_out(out, &self.result, sizeof self.result);
  return status;
}

gm_status gm_pool_warm_up(gm_pool *pool, const gm_warm_up *list, size_t count, gm_stream *stream,
                          gm_warm_up_result *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pool_warm_up";
  gm_status status = gm__pool_alive(pool, op, err);
  if (!status && out) status = gm__sized_check(out, sizeof *out, op, "out", err);
  return status ? status : warm_up_run(pool, list, count, stream, out, op, err);
}

/* ---- by bytes ---- */

gm_status gm_pool_prepare(gm_pool *pool, uint64_t bytes, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pool_prepare";
  const gm_status status = gm__pool_alive(pool, op, err);
  if (status) return status;
  if (pool->heap.arenas.whole) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "pool \"%s\" keeps blocks by size: name them to gm_pool_warm_up",
                    pool->heap.provider.name);
  }
  if (gm__heap_stats(&pool->heap).pooled_bytes >= bytes) return GM_OK;
  const uint64_t most = gm__max(pool->device->info.max_alloc_bytes, 1);
  const uint64_t whole = most > 1 ? bytes / most : 0, rest = bytes - whole * most;
  const gm_warm_up list[] = {{most, whole}, {gm__max(rest, 1), rest > 0}};
  return warm_up_run(pool, list, 2, NULL, NULL, op, err);
}

/* ---- by configuration ---- */

static size_t warm_up_read(const gm_pool *pool, const char *key, gm_warm_up *out) {
  char text[WARM_UP_TEXT];
  uint64_t numbers[WARM_UP_NUMBERS];
  size_t count = 0;
  gm__config_text(pool->device->ctx, key, text, sizeof text);
  bool pairs = strchr(text, ':') != NULL;
  for (char *colon = text; (colon = strchr(colon, ':'));) *colon = ',';
  gm__text_u64_list(key, text, numbers, WARM_UP_NUMBERS, &count, NULL);
  size_t entries = pairs ? count / 2 : count;
  for (size_t i = 0; i < entries; i++) {
    out[i] = (gm_warm_up){pairs ? numbers[2 * i] : numbers[i], pairs ? numbers[2 * i + 1] : 1};
  }
  return entries;
}

/* Both keys make one list: the blocks of the first would serve the second otherwise. */
void gm__warm_up_by_configuration(gm_pool *pool) {
  gm_context *ctx = pool->device->ctx;
  gm_warm_up list[2 * WARM_UP_NUMBERS];
  gm_warm_up_result result = {.struct_size = sizeof result};
  gm_error err = {.status = GM_OK};
  size_t count = 0;
  if (gm__config_bool(ctx, "pre_allocate")) count += warm_up_read(pool, "pre_allocate_sizes", list);
  if (gm__config_bool(ctx, "warmup_enabled")) count += warm_up_read(pool, "warmup", list + count);
  if (count == 0 || gm_pool_warm_up(pool, list, count, NULL, &result, &err) == GM_OK) return;
  gm__log(gm__context_services(ctx), GM_LOG_WARN,
          "pool \"%s\": warm-up: %" PRIu64 " of %" PRIu64 " blocks were had: %s", pool->heap.provider.name,
          result.blocks, result.wanted, err.message);
}
