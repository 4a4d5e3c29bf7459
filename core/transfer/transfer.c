/* The public calls of a transfer, and its life. */
#include "core/transfer/transfer.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/device/point.h"
#include "core/staging/staging.h"

/* The most that glibc takes from the list of its thread, without a lock. */
enum { TRANSFER_AT_HAND = 1032 };
_Static_assert(sizeof(gm_transfer) <= TRANSFER_AT_HAND && 4 * sizeof(gm__transfer_copy) <= TRANSFER_AT_HAND,
               "a transfer of four copies takes long to make");

/* Invariants. A transfer counts as a child of its device until it is released. While it is under way it has joined the
 * ring; when it has ended it holds nothing there. */

static gm_status transfer_check(const gm_transfer *t, const char *op, gm_error *err) {
  if (!t) return gm__bad_argument(err, op, "`transfer` is NULL");
  if (!gm__object_is(&t->head, GM__KIND_TRANSFER)) return gm__bad_argument(err, op, "`transfer` is released");
  return gm__device_check(t->device, op, err);
}

/* --- one driver at a time --- */

static bool transfer_drive(gm_transfer *t, uint64_t deadline) {
  bool mine = true;
  gm__mutex_lock(&t->lock);
  while (t->driven && mine) mine = !gm__deadline_passed(deadline) && gm__cond_wait_until(&t->moved, &t->lock, deadline);
  mine = !t->driven;
  if (mine) t->driven = true;
  gm__mutex_unlock(&t->lock);
  return mine;
}

static void transfer_leave_ring(gm_transfer *t) {
  if (!t->ring) return;
  gm__ring_leave(t->ring, &t->user);
  gm__staging_close(t->device);
  t->ring = NULL;
}

/* The driver goes. Everybody sees what it did. Nobody knows a transfer that is just being started, unless it has joined
 * the ring. */
static void transfer_hand_on(gm_transfer *t, bool ends) {
  const bool alone = t->fresh && !t->ring;
  if (!t->ended && (ends || !t->fresh)) gm__transfer_times(t, ends && t->end_ns ? t->end_ns : gm__now_ns());
  if (!alone) gm__mutex_lock(&t->lock);
  t->ended = t->ended || ends;
  memcpy(&t->shown, &t->stats, sizeof t->shown);
  t->driven = false;
  if (alone) return;
  gm__cond_broadcast(&t->moved);
  gm__mutex_unlock(&t->lock);
}

static void transfer_park(gm_transfer *t) {
  const bool ends = !t->ended && gm__transfer_submitted(t) && !t->in_flight;
  if (ends) transfer_leave_ring(t);
  if (ends) gm__traffic_end(t->device, t->end_ns ? t->end_ns : gm__now_ns());
  transfer_hand_on(t, ends);
}

/* Another transfer needs a slot (gm__ring_user). The end of this one is left to its own callers. */
static bool transfer_help(gm__ring_user *user, uint64_t deadline) {
  gm_transfer *t = (gm_transfer *)((unsigned char *)user - offsetof(gm_transfer, user));
  if (!transfer_drive(t, 0)) return false; /* its driver gives slots back */
  const bool helped = gm__transfer_settle_one(t, deadline) == GM_OK;
  transfer_hand_on(t, false);
  return helped;
}

/* REQUIRES: the lock. */
static void transfer_tell_failure(const gm_transfer *t, gm_status status, gm_error *err) {
  if (t->failure) {
    *err = *t->failure;
  } else {
    gm__fail(err, status, "gm_transfer", "no host memory for the reason");
  }
}

/* The things that everybody may see, and the first failure. */
static gm_status transfer_tell(gm_transfer *t, gm_transfer_stats *out, bool *out_ended, gm_error *err) {
  gm_transfer_stats shown;
  gm__mutex_lock(&t->lock);
  memcpy(&shown, &t->shown, sizeof t->shown);
  const bool ended = t->ended;
  if (shown.status && err) transfer_tell_failure(t, shown.status, err);
  gm__mutex_unlock(&t->lock);
  memcpy(shown.why, t->stats.why, sizeof shown.why);
  if (out) gm__sized_out(out, &shown, sizeof shown);
  if (out_ended) *out_ended = ended;
  return shown.status;
}

static gm_status transfer_check_resume(const gm_transfer *before, const char *op, gm_error *err) {
  bool ended = true;
  gm_transfer *t = (gm_transfer *)(uintptr_t)before; /* for its lock alone */
  if (!t) return GM_OK;
  if (!gm__object_is(&t->head, GM__KIND_TRANSFER)) return gm__bad_argument(err, op, "`resume` is released");
  transfer_tell(t, NULL, &ended, NULL);
  return ended ? GM_OK : gm__bad_argument(err, op, "`resume` has not ended");
}

/* --- its life --- */

static void transfer_free(gm_transfer *t, bool forked) {
  gm_device *device = t->device;
  const gm_services *services = gm__context_services(device->ctx);
  gm__release(services, t->copies, t->count * sizeof *t->copies);
  gm__transfer_free_codecs(t);
  gm__release(services, t->rows, t->row_count * sizeof *t->rows);
  gm__release(services, t->failure, sizeof *t->failure);
  if (t->load_most > 1) gm__release(services, t->loads, t->load_most * sizeof *t->loads);
  if (!forked) {
    gm__cond_destroy(&t->moved);
    gm__mutex_destroy(&t->lock);
  }
  gm__object_end(device->ctx, &t->head);
  atomic_fetch_sub(&device->children, 1);
}

static gm_status transfer_no_memory(const char *op, gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a transfer");
}

static gm_status transfer_new(gm_device *device, uint64_t count, const char *op, gm_transfer **out, gm_error *err) {
  gm_transfer *t = gm__object_new_plain(device->ctx, GM__KIND_TRANSFER, sizeof *t);
  if (!t) return transfer_no_memory(op, err);
  gm__mutex_init(&t->lock, GM__RANK_LEAF);
  gm__cond_init(&t->moved);
  atomic_fetch_add(&device->children, 1);
  t->device = device;
  t->loads = &t->first_load;
  t->load_most = 1;
  t->user.help = transfer_help;
  if (count <= SIZE_MAX / sizeof *t->copies) {
    t->copies = gm__alloc_plain(gm__context_services(device->ctx), (size_t)count * sizeof *t->copies);
  }
  if (!t->copies) {
    t->count = 0;
    transfer_free(t, false);
    return transfer_no_memory(op, err);
  }
  t->count = count;
  t->begun_ns = gm__now_ns();
  t->stats = (gm_transfer_stats){.struct_size = sizeof t->stats, .copies = count, .failed_copy = GM_TRANSFER_ALL};
  *out = t;
  return GM_OK;
}

/* The first pieces move. */
static gm_status transfer_begin(gm_transfer *t, bool no_wait, const char *op, gm_error *err) {
  t->at = t->count ? t->copies[0].arrived : 0;
  t->driven = t->fresh = true;
  gm__traffic_begin(t->device, t->begun_ns);
  const gm_status status = gm__transfer_submit(t, GM_TRANSFER_ALL, no_wait || t->record ? 0 : GM__NEVER);
  const bool none = status == GM_ERR_TIMEOUT && !t->in_flight && !t->stats.link_copies;
  transfer_park(t);
  t->fresh = false;
  if (!no_wait || !none) return GM_OK;
  gm__traffic_end(t->device, t->begun_ns);
  return gm__fail(err, GM_ERR_BUSY, op, "the ring has no slot for the first piece");
}

gm_status gm_transfer_start(gm_device *device, const gm_copy *copies, uint64_t count, const gm_transfer_params *params,
                            gm_transfer **out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_transfer_start";
  gm_transfer_params mine = {.struct_size = sizeof mine};
  gm_transfer *t = NULL;
  gm_status status = gm__device_check(device, op, err);
  if (!status && params) status = gm__sized_in(&mine, sizeof mine, params, op, "params", err);
  if (status) return status;
  if (!out || (!copies && count)) return gm__bad_argument(err, op, "`%s` is NULL", out ? "copies" : "out");
  status = transfer_check_resume(mine.resume, op, err);
  if (!status) status = transfer_new(device, count, op, &t, err);
  if (status) return status;
  t->record = mine.record;
  t->record_user = mine.user;
  status = gm__transfer_plan(t, copies, &mine, op, err);
  if (!status) status = transfer_begin(t, mine.no_wait, op, err);
  if (!status) {
    *out = t;
    return GM_OK;
  }
  transfer_leave_ring(t);
  transfer_free(t, false);
  return status;
}

void gm_transfer_cancel(gm_transfer *transfer) {
  GM__UNCANCELLED();
  if (transfer && gm__object_is(&transfer->head, GM__KIND_TRANSFER)) atomic_store(&transfer->cancelled, true);
}

/* Ends what can be ended now. */
static gm_status transfer_finish(gm_transfer *t) {
  gm__transfer_submit(t, GM_TRANSFER_ALL, 0);
  const gm_status status = gm__transfer_settle_answered(t);
  transfer_park(t);
  return status;
}

gm_status gm_transfer_release(gm_transfer *transfer, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_transfer_release";
  if (!transfer) return GM_OK;
  if (!gm__object_is(&transfer->head, GM__KIND_TRANSFER)) return transfer_check(transfer, op, err);
  const bool forked = gm__context_forked(transfer->device->ctx);
  if (!forked) {
    atomic_store(&transfer->cancelled, true);
    transfer_drive(transfer, GM__NEVER);
    const gm_status status = transfer->ended ? GM_OK : transfer_finish(transfer);
    if (status) {
      return gm__fail(err, GM_ERR_BUSY, op, "%" PRIu32 " pieces that the engine records are under way",
                      transfer->in_flight);
    }
  }
  transfer_free(transfer, forked);
  return GM_OK;
}

/* --- how far it is --- */

gm_status gm_transfer_poll(gm_transfer *transfer, gm_transfer_stats *out, bool *out_done, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_transfer_poll";
  gm_status status = transfer_check(transfer, op, err);
  if (!status && out) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  if (transfer_drive(transfer, 0)) {
    if (gm__transfer_submit(transfer, GM_TRANSFER_ALL, 0) == GM_OK) gm__transfer_settle(transfer, 0);
    transfer_park(transfer);
  }
  return transfer_tell(transfer, out, out_done, err);
}

static gm_status transfer_late(gm_transfer *t, gm_transfer_stats *out, const char *op, gm_error *err) {
  transfer_tell(t, out, NULL, NULL);
  return gm__fail(err, GM_ERR_TIMEOUT, op, "the transfer has not ended in time");
}

gm_status gm_transfer_wait(gm_transfer *transfer, uint64_t timeout_ns, gm_transfer_stats *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_transfer_wait";
  const uint64_t deadline = gm__deadline_after(timeout_ns);
  gm_status status = transfer_check(transfer, op, err);
  if (!status && out) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  if (!transfer_drive(transfer, deadline)) return transfer_late(transfer, out, op, err);
  status = gm__transfer_submit(transfer, GM_TRANSFER_ALL, deadline);
  if (!status) status = gm__transfer_settle(transfer, deadline);
  transfer_park(transfer);
  return status ? transfer_late(transfer, out, op, err) : transfer_tell(transfer, out, NULL, err);
}

/* --- order on the device, and the engine's answers --- */

static bool transfer_load_has(const gm__transfer_load *load, uint64_t copy) {
  return copy == GM_TRANSFER_ALL || (load->first <= copy && copy <= load->last);
}

gm_status gm_transfer_before(gm_transfer *transfer, uint64_t copy, gm_stream *stream, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_transfer_before";
  gm_status status = transfer_check(transfer, op, err);
  if (!status) status = gm__stream_check(stream, op, err);
  if (status) return status;
  if (stream->device != transfer->device) return gm__bad_argument(err, op, "`stream` belongs to another device");
  if (copy != GM_TRANSFER_ALL && copy >= transfer->count) {
    return gm__bad_argument(err, op, "there are %" PRIu64 " copies, and no copy %" PRIu64, transfer->count, copy);
  }
  if (transfer->record) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "the engine records the copies, and orders them itself");
  }
  transfer_drive(transfer, GM__NEVER);
  gm__transfer_submit(transfer, copy, GM__NEVER);
  for (uint32_t i = 0; i < transfer->in_flight && !status; i++) {
    const gm__transfer_load *load = &transfer->loads[(transfer->head_load + i) % transfer->load_most];
    if (transfer_load_has(load, copy)) status = gm_stream_wait(stream, &load->point, err);
  }
  transfer_park(transfer);
  return status ? status : transfer_tell(transfer, NULL, NULL, err);
}

static bool transfer_answer(gm_transfer *t, uint64_t ticket, const gm_point *point) {
  bool found = false;
  if (!t->record) return false; /* its loads are the driver's alone */
  gm__mutex_lock(&t->lock);
  for (uint32_t i = 0; i < t->in_flight && !found; i++) {
    gm__transfer_load *load = &t->loads[(t->head_load + i) % t->load_most];
    found = ticket && load->ticket == ticket && !load->answered;
    if (!found) continue;
    load->answered = true;
    load->point = *point;
  }
  gm__cond_broadcast(&t->moved);
  gm__mutex_unlock(&t->lock);
  return found;
}

gm_status gm_transfer_passed(gm_transfer *transfer, uint64_t ticket, const gm_point *point, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_transfer_passed";
  gm_point own;
  gm_status status = transfer_check(transfer, op, err);
  if (!status && point) status = gm__point_check(transfer->device, point, op, err);
  if (!status) status = gm__error_of(op, gm__point_keep(transfer->device, point, &own, err), err);
  if (status || transfer_answer(transfer, ticket, &own)) return status;
  gm_point_release(transfer->device, &own);
  return gm__fail(err, GM_ERR_NOT_FOUND, op, "no piece with ticket %" PRIu64 " awaits an answer", ticket);
}
