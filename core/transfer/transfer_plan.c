/* Before the first copy moves: every copy is checked, and gets its way. */
#include <inttypes.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/block/span_copy.h"
#include "core/device/host_range.h"
#include "core/staging/staging.h"
#include "core/transfer/transfer.h"

static gm_status plan_check(gm_transfer *t, gm__transfer_copy *copy, const gm_copy *asked, const char *op,
                            gm_error *err) {
  gm__transfer_ends *what = &copy->what;
  gm__span_copy to = {.op = op}, from = {.op = op};
  const uint64_t bytes = asked->bytes, host = asked->codec ? asked->host_bytes : bytes;
  *what = (gm__transfer_ends){asked->to, asked->from, bytes};
  gm_status status = gm__transfer_plan_end(t, &what->to, &copy->to, what->to.host ? host : bytes, "to", op, &to, err);
  if (!status) {
    status = gm__transfer_plan_end(t, &what->from, &copy->from, what->from.host ? host : bytes, "from", op, &from, err);
  }
  if (status) return status;
  if (what->to.block && what->from.block) {
    copy->way = GM__TRANSFER_INSIDE;
    status = gm__transfer_plan_codec(t, copy, asked, op, err);
    return what->bytes && !status ? gm__span_copy_check(to, &from, err) : status;
  }
  if (what->to.host && what->from.host) return gm__bad_argument(err, op, "no end is a block");
  const bool up = what->to.block;
  const gm__access *access = up ? &to.here : &from.here;
  const gm_memory *memory = &access->memory;
  copy->way = up ? GM__TRANSFER_UP : GM__TRANSFER_DOWN;
  copy->one_memory = access->bytes == what->bytes;
  copy->memory = *memory;
  copy->memory_at = access->offset;
  copy->hosted = copy->one_memory && memory->host && t->device->info.unified &&
                 t->device->types[memory->type].flags & GM_MEMORY_HOST_COHERENT;
  return gm__transfer_plan_codec(t, copy, asked, op, err);
}

static gm_status plan_copies(gm_transfer *t, const gm_copy *copies, const char *op, gm_error *err) {
  for (uint64_t i = 0; i < t->count; i++) {
    gm__transfer_copy *copy = &t->copies[i];
    gm_copy asked;
    gm_error why;
    gm__error_none(&why);
    gm_status status = gm__sized_in_at(&asked, sizeof asked, copies, i, op, "copies", &why);
    if (!status && asked.rect) status = gm__transfer_plan_box(t, copy, &asked, op, &why);
    if (!status && !asked.rect) status = plan_check(t, copy, &asked, op, &why);
    if (status) return gm__fail_native(err, status, why.native_code, op, "copy %" PRIu64 ": %s", i, why.message);
    t->stats.total_bytes = gm__add_sat(t->stats.total_bytes, copy->what.bytes);
  }
  return GM_OK;
}

/* --- the ring, and what goes past it --- */

enum { PLAN_SMALL_MOST = 65536, PLAN_PACK_LEAST = 16 };

static gm__transfer_path plan_path(const gm_transfer *t, const gm__transfer_copy *copy) {
  const gm__transfer_ends *what = &copy->what;
  if (copy->path == GM__TRANSFER_BOX) return copy->path;
  if (copy->codec) return copy->codec->expands ? GM__TRANSFER_EXPANDED : GM__TRANSFER_STAGED;
  if (copy->way == GM__TRANSFER_INSIDE || !what->bytes || !t->stream) return GM__TRANSFER_DIRECT;
  if (copy->hosted && what->bytes <= PLAN_SMALL_MOST && !t->record) return GM__TRANSFER_HOST;
  if (t->device->info.unified) return GM__TRANSFER_DIRECT;
  return gm__host_range_has(t->device, gm__transfer_host(copy, 0), what->bytes) ? GM__TRANSFER_DIRECT
                                                                                : GM__TRANSFER_STAGED;
}

static bool plan_may_pack(const gm_transfer *t, const gm__transfer_copy *copy) {
  if (copy->path == GM__TRANSFER_HOST || copy->way == GM__TRANSFER_INSIDE || t->record || !t->stream) return false;
  if (copy->codec || copy->path == GM__TRANSFER_BOX) return false;
  return copy->one_memory && copy->what.bytes && copy->what.bytes <= PLAN_SMALL_MOST;
}

/* With the ring at hand: copies of up to `small` bytes are packed. A ring whose memory the device copies no faster than
 * the caller's is of no other use. */
static void plan_with_ring(gm_transfer *t, const gm__ring_info *info, uint64_t small) {
  for (uint64_t i = 0; i < t->count; i++) {
    gm__transfer_copy *copy = &t->copies[i];
    if (plan_may_pack(t, copy) && copy->what.bytes <= small && copy->what.bytes <= info->slot_bytes) {
      copy->path = GM__TRANSFER_PACKED;
      t->row_count++;
    } else if (copy->path == GM__TRANSFER_STAGED && !info->pinned && !copy->codec) {
      copy->path = GM__TRANSFER_DIRECT;
    }
  }
  t->row_count = gm__min(t->row_count, GM__TRANSFER_PACKS);
}

static gm_status plan_rows(gm_transfer *t, const char *op, gm_error *err) {
  if (!t->row_count) return GM_OK;
  t->rows = gm__alloc_array(gm__context_services(t->device->ctx), t->row_count, sizeof *t->rows);
  if (t->rows) return GM_OK;
  t->row_count = 0;
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory to pack small copies");
}

/* Copies of one size, in equal steps on the device, in any order. */
static bool plan_is_even(const gm_transfer *t) {
  if (t->count < 2) return false;
  const gm__transfer_copy *first = &t->copies[0];
  const uint64_t bytes = first->what.bytes;
  uint64_t low = UINT64_MAX, high = 0;
  for (uint64_t i = 0; i < t->count; i++) {
    const gm__transfer_copy *copy = &t->copies[i];
    if (copy->what.bytes != bytes || copy->memory.handle != first->memory.handle) return false;
    low = gm__min(low, copy->memory_at);
    high = gm__max(high, copy->memory_at);
  }
  const uint64_t step = (high - low) / (t->count - 1);
  bool even = step && step >= bytes;
  for (uint64_t i = 0; i < t->count && even; i++) even = (t->copies[i].memory_at - low) % step == 0;
  return even;
}

/* Is it worth to look closer? The device scatters no few copies, so these have to become one. */
static bool plan_packs(const gm_transfer *t, uint64_t may_pack) {
  if (may_pack >= GM__TRANSFER_SCATTERS) return true;
  return may_pack >= PLAN_PACK_LEAST && may_pack == t->count && plan_is_even(t);
}

static gm_status plan_ring(gm_transfer *t, bool packs, bool staged, const char *op, gm_error *err) {
  gm__ring_info info;
  gm_status status = gm__staging_open(t->device, &t->ring, err);
  if (status) return status;
  gm__ring_join(t->ring, &t->user);
  const uint64_t small = packs ? gm__transfer_small_bytes(t->device) : 0;
  if (!staged && !small) return GM_OK;
  status = gm__ring_grow(t->ring, 1, err);
  if (status) return status;
  gm__ring_figures(t->ring, &info);
  memcpy(t->stats.why, info.why, sizeof t->stats.why);
  plan_with_ring(t, &info, small);
  status = gm__transfer_make_rooms(t, info.slot_bytes, op, err);
  return status ? status : plan_rows(t, op, err);
}

static gm_status plan_ways(gm_transfer *t, const char *op, gm_error *err) {
  bool staged = false;
  uint64_t may_pack = 0;
  for (uint64_t i = 0; i < t->count; i++) {
    t->copies[i].path = plan_path(t, &t->copies[i]);
    staged = staged || t->copies[i].path >= GM__TRANSFER_STAGED;
    may_pack += plan_may_pack(t, &t->copies[i]);
  }
  const bool packs = plan_packs(t, may_pack);
  return staged || packs ? plan_ring(t, packs, staged, op, err) : GM_OK;
}

/* --- the stream --- */

/* The host copies; it has no way from one block to another. */
static gm_status plan_without_stream(const gm_transfer *t, const char *op, gm_error *err) {
  gm_stream *none;
  for (uint64_t i = 0; i < t->count; i++) {
    if (t->copies[i].way == GM__TRANSFER_INSIDE && t->copies[i].what.bytes) {
      return gm__access_stream(t->device, NULL, op, &none, err);
    }
  }
  return GM_OK;
}

static gm_status plan_stream(gm_transfer *t, gm_stream *asked, const char *op, gm_error *err) {
  gm_status status = asked ? gm__stream_check(asked, op, err) : GM_OK;
  if (status) return status;
  if (asked || gm__device_has_default_stream(t->device)) {
    status = gm__access_stream(t->device, asked, op, &t->stream, err);
  }
  if (status) return status;
  if (!t->stream) return plan_without_stream(t, op, err);
  if (t->stream->silent && !t->record) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, op,
                    "the engine lent `stream` without leave to submit (may_submit false): let it record the copies "
                    "(`record`)");
  }
  if (t->record || !gm__stream_captured(t->stream)) return GM_OK;
  return gm__fail(err, GM_ERR_BUSY, op, "the engine is capturing `stream`");
}

/* --- what an earlier transfer has moved --- */

static gm_status plan_resume(gm_transfer *t, const gm_transfer *before, const char *op, gm_error *err) {
  if (!before) return GM_OK;
  if (before->count != t->count) {
    return gm__bad_argument(err, op, "`resume` has %" PRIu64 " copies, not %" PRIu64, before->count, t->count);
  }
  for (uint64_t i = 0; i < t->count; i++) {
    const gm__transfer_copy *old = &before->copies[i];
    if (old->what.bytes != t->copies[i].what.bytes || old->way != t->copies[i].way) {
      return gm__bad_argument(err, op, "copy %" PRIu64 " is not that of `resume`", i);
    }
    /* A codec goes on at its last chunk. */
    const uint64_t chunk = t->copies[i].codec ? t->copies[i].codec->chunk : 1;
    t->copies[i].arrived = old->arrived - old->arrived % chunk;
    t->stats.useful_bytes = gm__add_sat(t->stats.useful_bytes, t->copies[i].arrived);
  }
  return GM_OK;
}

gm_status gm__transfer_plan(gm_transfer *t, const gm_copy *copies, const gm_transfer_params *params, const char *op,
                            gm_error *err) {
  gm__staging_links(t->device, &t->ceiling[GM__TRANSFER_UP], &t->ceiling[GM__TRANSFER_DOWN]);
  gm_status status = plan_copies(t, copies, op, err);
  if (!status) status = plan_stream(t, params->stream, op, err);
  if (!status) status = plan_ways(t, op, err);
  if (!status) status = plan_resume(t, params->resume, op, err);
  return status;
}
