#include "gm/batch.h"

#include <inttypes.h>

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/manage/explain.h"
#include "core/pool/alloc_one.h"
#include "core/pool/free.h"
#include "core/pool/pool.h"
#include "core/provider/request.h"

/* Invariants. out_parts[0, served) are live blocks until the batch is complete, or all of them are freed again in the
 * order of their streams. No copy of a caller's memory is under way when a call returns. */

enum { BATCH_FLAGS = GM_BATCH_GROUPED, BATCH_POINTS = 64 };

static const char batch_op[] = "gm_alloc_batch";

/* ---- arguments ---- */

static gm_status batch_check(const gm_batch_params *params, const gm_part *out_parts, gm_error *err) {
  if (params->flags & ~(uint32_t)BATCH_FLAGS) {
    return gm__bad_argument(err, batch_op, "`params->flags` has unknown bits: 0x%x", params->flags);
  }
  if (params->count && !(params->requests && out_parts)) {
    return gm__bad_argument(err, batch_op, "`%s` is NULL", params->requests ? "out_parts" : "params->requests");
  }
  return GM_OK;
}

/* Checks every request before any memory is allocated: a mistake costs nothing then. */
static gm_status batch_check_requests(const gm_pool *pool, const gm_batch_params *params, size_t *failed,
                                      gm_error *err) {
  uint64_t sum = 0;
  for (*failed = 0; *failed < params->count; ++*failed) {
    gm__want want;
    const gm_request *request = &params->requests[*failed];
    gm_status status = gm__request_read(pool, request, &want, err);
    if (status) return status;
    if (request->bytes > UINT64_MAX - sum) {
      return gm__bad_argument(err, batch_op, "the bytes of `requests` are more than 2^64-1 in all");
    }
    sum += request->bytes;
  }
  return GM_OK;
}

/* ---- contents ---- */

typedef struct batch_copies {
  gm_pool *pool;
  gm_point points[BATCH_POINTS]; /* of copies that may be under way */
  uint32_t count;
} batch_copies;

static gm_status batch_wait(batch_copies *copies, gm_status status, gm_error *err) {
  gm_device *device = copies->pool->device;
  for (uint32_t i = 0; i < copies->count; i++) {
    gm_status waited = gm_point_wait(device, &copies->points[i], UINT64_MAX, status ? NULL : err);
    if (!status) status = waited;
    gm_point_release(device, &copies->points[i]);
  }
  copies->count = 0;
  return status;
}

static gm_status batch_write(batch_copies *copies, const gm_part *part, const void *bytes, gm_stream *stream,
                             gm_error *err) {
  gm_point *point = &copies->points[copies->count];
  gm_status status =
      gm_block_write(copies->pool, &part->block, part->offset, bytes, part->bytes, stream, stream ? point : NULL, err);
  if (status || !stream) return status;
  return ++copies->count < BATCH_POINTS ? GM_OK : batch_wait(copies, GM_OK, err);
}

static gm_status batch_fill(gm_pool *pool, const gm_batch_params *params, const gm_part *parts, size_t *failed,
                            gm_error *err) {
  batch_copies copies = {.pool = pool, .count = 0};
  gm_status status = GM_OK;
  if (!params->contents) return GM_OK;
  for (*failed = 0; !status && *failed < params->count;) {
    const size_t at = *failed;
    if (params->contents[at]) {
      status = batch_write(&copies, &parts[at], params->contents[at], params->requests[at].stream, err);
    }
    *failed += !status;
  }
  return batch_wait(&copies, status, err);
}

/* ---- one by one ---- */

static gm_status batch_alloc(gm_pool *pool, const gm_request *wanted, gm_block *out, gm_error *err) {
  gm_request request = *wanted;
  request.flags |= GM_INSERT_WAIT;
  gm_acquire answer = gm_alloc(pool, &request, out);
  return answer <= GM_ACQUIRE_FRESH ? GM_OK : gm__explain_refusal(pool, &request, answer, batch_op, err);
}

static gm_status batch_alloc_each(gm_pool *pool, const gm_batch_params *params, gm_part *parts, size_t *served,
                                  size_t *failed, gm_error *err) {
  gm_status status = GM_OK;
  for (*served = 0; !status && *served < params->count; *served += !status) {
    const gm_request *request = &params->requests[*served];
    gm_part *part = &parts[*served];
    status = batch_alloc(pool, request, &part->block, err);
    part->offset = 0;
    part->bytes = request->bytes;
  }
  *failed = *served;
  return status;
}

/* ---- as a group ---- */

static bool batch_is_like(const gm_request *a, const gm_request *b) {
  return a->stream == b->stream && a->usage == b->usage && a->must_be == b->must_be && a->require == b->require &&
         a->prefer == b->prefer && a->memory_types == b->memory_types &&
         ((a->flags ^ b->flags) & ~(uint32_t)GM_INSERT_WAIT) == 0;
}

/* Lays the requests behind each other, each at its alignment and in whole units of the device. */
static gm_status batch_lay_out(const gm_pool *pool, const gm_batch_params *params, gm_part *parts, gm_request *out,
                               size_t *failed, gm_error *err) {
  uint64_t end = 0;
  *out = params->requests[0];
  for (*failed = 0; *failed < params->count; ++*failed) {
    gm__want want;
    const gm_request *request = &params->requests[*failed];
    gm_status status = gm__request_read(pool, request, &want, err);
    if (status) return status;
    if (!batch_is_like(request, out)) {
      return gm__bad_argument(err, batch_op,
                              "`requests[%zu]` is of another stream, usage, must_be, flags or memory: no "
                              "group",
                              *failed);
    }
    if (request->flags & GM_DEDICATED) {
      return gm__bad_argument(err, batch_op, "`requests[%zu]` is GM_DEDICATED: a group is one block", *failed);
    }
    uint64_t gap = (want.align - end % want.align) % want.align;
    if (gap > UINT64_MAX - end || want.exact > UINT64_MAX - end - gap) {
      return gm__bad_argument(err, batch_op, "the group would have more than 2^64-1 bytes");
    }
    parts[*failed] = (gm_part){.offset = end + gap, .bytes = request->bytes};
    end += gap + want.exact;
    if (want.align > out->align) out->align = want.align;
  }
  out->bytes = end;
  return GM_OK;
}

static gm_status batch_alloc_group(gm_pool *pool, const gm_batch_params *params, gm_part *parts, size_t *served,
                                   size_t *failed, gm_error *err) {
  gm_request whole;
  gm_block block;
  gm_status status = batch_lay_out(pool, params, parts, &whole, failed, err);
  if (status) return status;
  *failed = 0;
  status = batch_alloc(pool, &whole, &block, err);
  if (status) return status;
  for (size_t i = 0; i < params->count; i++) parts[i].block = block;
  *served = params->count;
  return GM_OK;
}

/* ---- both ways ---- */

/* Is it another part of the same block? The same part again is not. */
static bool batch_same_group(const gm_part *part, const gm_part *last) {
  const gm_block *a = &part->block, *b = &last->block;
  return a->address == b->address && a->number == b->number && a->check == b->check && part->offset != last->offset;
}

/* Frees each block once, in the order of its request's stream, and gives back what the pool took for them. */
static void batch_undo(gm_pool *pool, const gm_batch_params *params, const gm_part *parts, size_t served,
                       uint64_t pooled_before) {
  bool grouped = params->flags & GM_BATCH_GROUPED;
  for (size_t i = grouped && served ? 1 : served; i > 0; i--) {
    gm__block_free_unused(pool, &parts[i - 1].block, params->requests[i - 1].stream);
  }
  if (served) gm_pool_trim(pool, pooled_before);
}

gm_status gm_alloc_batch(gm_pool *pool, const gm_batch_params *params, gm_part *out_parts, size_t *out_failed,
                         gm_error *err) {
  GM__UNCANCELLED();
  size_t served = 0, failed = 0;
  gm_batch_params asked;
  gm_status status = gm__pool_alive(pool, batch_op, err);
  if (!status) status = gm__sized_in(&asked, sizeof asked, params, batch_op, "params", err);
  if (!status) status = batch_check(&asked, out_parts, err);
  if (status) return status;
  status = batch_check_requests(pool, &asked, &failed, err);
  if (!status && asked.count) {
    const uint64_t pooled_before = gm__heap_stats(&pool->heap).pooled_bytes;
    status = asked.flags & GM_BATCH_GROUPED ? batch_alloc_group(pool, &asked, out_parts, &served, &failed, err)
                                            : batch_alloc_each(pool, &asked, out_parts, &served, &failed, err);
    if (!status) status = batch_fill(pool, &asked, out_parts, &failed, err);
    if (status) batch_undo(pool, &asked, out_parts, served, pooled_before);
  }
  if (status && out_failed) *out_failed = failed;
  return status;
}

gm_status gm_free_batch(gm_pool *pool, const gm_part *parts, size_t count, gm_stream *stream, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_free_batch";
  gm_status status = gm__pool_alive(pool, op, err);
  if (!status && count && !parts) status = gm__bad_argument(err, op, "`parts` is NULL");
  if (status) return status;
  for (size_t i = 0; i < count; i++) {
    if (i > 0 && batch_same_group(&parts[i], &parts[i - 1])) continue;
    gm_status freed = gm_free(pool, &parts[i].block, stream);
    if (freed && !status) status = gm__fail(err, freed, op, "part %zu: %s", i, gm_status_text(freed));
  }
  return status;
}
