/* Loads: cut, submitted, ended. All of this is for the driver of a transfer. */
#include <inttypes.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/block/span_copy.h"
#include "core/device/point.h"
#include "core/transfer/transfer.h"

/* Invariants. A slot goes back with a point that comes after all that uses it, or after that point has passed. Bytes of
 * a copy count as arrived from its begin on, without a gap. */

/* LOAD_GAP: the most that the device's words leave free before a packed copy. */
enum { LOAD_DIRECT_BYTES = 64 << 20, LOAD_ALIGN = 64, LOAD_GAP = 31, LOAD_LOOK_NS = 50000000 };

static const char load_op[] = "gm_transfer";

void gm__transfer_fail(gm_transfer *t, uint64_t copy, uint64_t offset, const gm_error *why) {
  if (t->stats.status != GM_OK) return;
  t->failure = gm__alloc_plain(gm__context_services(t->device->ctx), sizeof *t->failure);
  if (t->failure) *t->failure = *why;
  t->stats.status = why->status;
  t->stats.failed_copy = copy;
  t->stats.failed_offset = copy == GM_TRANSFER_ALL ? 0 : offset;
}

/* The text names the copy and its byte. */
static void load_fail(gm_transfer *t, uint64_t copy, uint64_t offset, const gm_error *why) {
  gm_error told = *why;
  gm__fail_native(&told, why->status, why->native_code, why->op, "copy %" PRIu64 ", byte %" PRIu64 ": %s", copy, offset,
                  why->message);
  gm__transfer_fail(t, copy, offset, &told);
}

bool gm__transfer_submitted(const gm_transfer *t) { return t->stats.status != GM_OK || t->at_copy == t->count; }

/* --- ranges of copies --- */

/* Goes past copies of which nothing is left. */
static void load_skip(gm_transfer *t) {
  while (t->at_copy < t->count && t->at == t->copies[t->at_copy].what.bytes) {
    t->at_copy++;
    t->at = t->at_copy < t->count ? t->copies[t->at_copy].arrived : 0;
  }
}

/* The bytes of copy `index` in a load, from *out_at on. */
static uint64_t load_part(const gm_transfer *t, const gm__transfer_load *load, uint64_t index, uint64_t *out_at) {
  *out_at = index == load->first ? load->first_at : t->copies[index].arrived;
  return (index == load->last ? load->last_end : t->copies[index].what.bytes) - *out_at;
}

/* The next copies: as much as `room` bytes hold, of one way, through the ring or past it. */
static void load_cut(const gm_transfer *t, uint64_t room, gm__transfer_load *load) {
  const gm__transfer_copy *first = &t->copies[t->at_copy];
  const bool alone = t->record || first->path == GM__TRANSFER_EXPANDED;
  const uint64_t most = alone ? 1 : first->path == GM__TRANSFER_PACKED ? t->row_count : GM__TRANSFER_JOINS;
  *load = (gm__transfer_load){.first = t->at_copy, .first_at = t->at};
  for (uint64_t i = t->at_copy, at = t->at; i < t->count && i - t->at_copy < most && room;) {
    const gm__transfer_copy *copy = &t->copies[i];
    if (copy->way != first->way || copy->path != first->path) break;
    if (copy->path == GM__TRANSFER_PACKED && copy->what.bytes - at > room) break; /* whole or not at all */
    uint64_t bytes = gm__min(copy->what.bytes - at, room);
    if (bytes < copy->what.bytes - at) bytes -= bytes % gm__transfer_chunk(copy);
    if (!bytes && i != t->at_copy) break; /* the next slot holds a chunk */
    load->last = i;
    load->last_end = at + bytes;
    const uint64_t gap = copy->path == GM__TRANSFER_PACKED ? LOAD_GAP : 0;
    room -= gm__min(gm__round_up(bytes + gap, LOAD_ALIGN), room);
    if (++i < t->count) at = t->copies[i].arrived;
  }
}

/* --- one part of a load --- */

/* `through`: the part's place in the slot; NULL: it goes past the ring. */
static gm_status load_submit_part(const gm_transfer *t, const gm__transfer_copy *copy, uint64_t at, uint64_t bytes,
                                  unsigned char *through, gm_point *point, gm_error *err) {
  const bool down = copy->way == GM__TRANSFER_DOWN;
  const gm_end *to = &copy->what.to, *from = &copy->what.from;
  gm_point *out = t->stream ? point : NULL;
  gm__span_copy there, here;
  gm__access access;
  gm_status status = GM_OK;
  if (copy->path == GM__TRANSFER_BOX) return gm__transfer_submit_box(t, copy, point, err);
  if (through && copy->way == GM__TRANSFER_UP) status = gm__transfer_fill(t, copy, at, bytes, through, err);
  if (status) return status;
  unsigned char *host = through ? through : gm__transfer_host(copy, at);
  const gm__transfer what = {.kind = down ? GM__TRANSFER_READ : GM__TRANSFER_WRITE, .src = host, .dst = host};
  if (copy->one_memory) {
    status = gm__transfer_open(t, copy, at, bytes, &access, err);
    return status ? status : gm__range_run(&access, &what, t->stream, out, load_op, err);
  }
  if (to->block) {
    status = gm__span_copy_open(to->pool, to->block, to->offset + at, bytes, load_op, &there, err);
  }
  if (!status && from->block) {
    status = gm__span_copy_open(from->pool, from->block, from->offset + at, bytes, load_op, &here, err);
  }
  if (status) return status;
  if (copy->way == GM__TRANSFER_INSIDE) return gm__span_copy_copy(&there, &here, t->stream, out, err);
  return gm__span_copy_run(down ? &here : &there, &what, t->stream, out, err);
}

static void load_count(gm_transfer *t, const gm__transfer_copy *copy, uint64_t bytes) {
  if (copy->way == GM__TRANSFER_INSIDE) return;
  t->stats.link_bytes += bytes;
  t->stats.link_copies++;
  gm__traffic_count(t->device, copy->way == GM__TRANSFER_UP ? GM__TRAFFIC_UP : GM__TRAFFIC_DOWN, bytes, bytes);
  if (copy->path >= GM__TRANSFER_STAGED) t->stats.staged_bytes += bytes;
}

/* The engine copies it: it gets the piece, which is one part of one copy. */
static gm_status load_record(const gm_transfer *t, const gm__transfer_load *load, gm_error *err) {
  const gm__transfer_copy *copy = &t->copies[load->first];
  const uint64_t at = load->first_at;
  gm_copy piece = {.struct_size = sizeof piece, .to = copy->what.to, .from = copy->what.from};
  const bool up = copy->way == GM__TRANSFER_UP;
  if (copy->path == GM__TRANSFER_BOX) piece.rect = copy->rect;
  piece.bytes = load->last_end - at;
  piece.to.offset += at;
  piece.from.offset += at;
  if (load->slot) *(up ? &piece.from : &piece.to) = (gm_end){.host = load->slot->host};
  if (load->slot && up) {
    const gm_status status = gm__transfer_fill(t, copy, at, piece.bytes, load->slot->host, err);
    if (status) return status;
  }
  if (t->record(t->record_user, &piece, load->ticket)) return GM_OK;
  return gm__fail(err, GM_ERR_CANCELLED, "record", "the engine refused the piece");
}

/* --- submitting a load --- */

/* One point for all that the load has submitted: that of its last part on an ordered stream, else one of its own. */
static gm_status load_point(const gm_transfer *t, gm__transfer_load *load, bool several, gm_error *err) {
  if (!t->stream || !several || t->stream->kind == GM_STREAM_FIFO) return GM_OK;
  gm_point all = {0};
  const gm_status status = gm_stream_record(t->stream, &all, err);
  if (status) return status;
  gm_point_release(t->device, &load->point);
  load->point = all;
  return GM_OK;
}

/* The stream is done, so the host may copy: that is faster than to ask the device. */
static bool load_by_host(gm_transfer *t, const gm__transfer_load *load) {
  bool idle = false;
  gm_point point = {0};
  if (t->copies[load->first].path != GM__TRANSFER_HOST || gm_stream_record(t->stream, &point, NULL)) return false;
  if (gm_point_done(t->device, &point, &idle, NULL)) idle = false;
  gm_point_release(t->device, &point);
  for (uint64_t i = load->first; i <= load->last && idle; i++) {
    gm__transfer_copy *copy = &t->copies[i];
    gm__access access;
    uint64_t at;
    const uint64_t bytes = load_part(t, load, i, &at);
    idle = !gm__transfer_open(t, copy, at, bytes, &access, NULL);
    if (!idle) break; /* the usual way tells why */
    unsigned char *device = (unsigned char *)access.memory.host + access.offset, *host = gm__transfer_host(copy, at);
    memcpy(copy->way == GM__TRANSFER_UP ? device : host, copy->way == GM__TRANSFER_UP ? host : device, bytes);
  }
  return idle;
}

/* Submits the parts. After a failure the load ends before the part that failed; it may be empty then. */
static gm_status load_submit(gm_transfer *t, gm__transfer_load *load) {
  gm_error why;
  uint64_t place = 0;
  gm__error_none(&why);
  for (uint64_t i = load->first; i <= load->last; i++) {
    const gm__transfer_copy *copy = &t->copies[i];
    uint64_t at;
    const uint64_t bytes = load_part(t, load, i, &at);
    gm_point point = {0};
    unsigned char *through = load->slot ? load->slot->host + place : NULL;
    if (!bytes) continue;
    if (load_submit_part(t, copy, at, bytes, through, &point, &why)) {
      load->last = i;
      load->last_end = at;
      load_fail(t, i, at, &why);
      break;
    }
    if (load->point.stream) gm_point_release(t->device, &load->point);
    load->point = point;
    load_count(t, copy, bytes);
    place += gm__round_up(bytes, LOAD_ALIGN);
  }
  const gm_status pointed = load_point(t, load, load->first != load->last, &why);
  if (pointed) load_fail(t, load->first, load->first_at, &why);
  return t->stats.status;
}

static void load_submit_packed(gm_transfer *t, gm__transfer_load *load) {
  gm_error why;
  uint64_t failed = load->first;
  gm__error_none(&why);
  gm_status status = gm__transfer_pack(t, load, &failed, &why);
  if (status == GM_ERR_NOT_SUPPORTED) {
    gm__ring_give(t->ring, load->slot, NULL);
    load->slot = NULL;
    load->packed = false;
    load_submit(t, load);
    return;
  }
  if (!status) status = load_point(t, load, true, &why);
  if (!status) return;
  load_fail(t, failed, t->copies[failed].arrived, &why);
  gm_point_release(t->device, &load->point);
  load->last = load->first; /* nothing of it counts as submitted */
  load->last_end = load->first_at;
}

/* The host does what the device cannot, now and for the rest of the copy. */
static void load_submit_expanded(gm_transfer *t, gm__transfer_load *load) {
  const gm__transfer_copy *copy = &t->copies[load->first];
  const uint64_t at = load->first_at, bytes = load->last_end - at;
  gm_error why;
  gm__error_none(&why);
  copy->codec->by_host = copy->codec->by_host || !t->stream || !copy->one_memory;
  gm_status status = GM_ERR_NOT_SUPPORTED;
  if (!copy->codec->by_host) status = gm__transfer_expand(t, copy, at, bytes, load->slot, &load->point, &why);
  load->expanded = !status;
  copy->codec->by_host = status == GM_ERR_NOT_SUPPORTED;
  if (copy->codec->by_host) status = load_submit(t, load);
  if (load->expanded) load_count(t, copy, bytes / 2);
  if (!status) status = load_point(t, load, true, &why);
  if (!status) return;
  if (t->stats.status == GM_OK) load_fail(t, load->first, at, &why);
  gm__access_rest(t->stream); /* what came before the failure may use the slot */
  gm_point_release(t->device, &load->point);
  load->last_end = at; /* nothing of it counts as submitted */
}

/* The ring gets an up-going slot at once, so it need not wait until somebody asks for the transfer. */
static void load_give_early(const gm_transfer *t, gm__transfer_load *load) {
  gm_point point = {0};
  if (!load->slot || t->copies[load->first].way != GM__TRANSFER_UP || !t->stream || load->ticket) return;
  if (gm__point_keep(t->device, &load->point, &point, NULL) != GM_OK &&
      gm_stream_record(t->stream, &point, NULL) != GM_OK) {
    return;
  }
  gm__ring_give(t->ring, load->slot, &point);
  load->slot = NULL;
}

static gm__transfer_load *load_push(gm_transfer *t, const gm__transfer_load *load) {
  if (t->record) gm__mutex_lock(&t->lock);
  gm__transfer_load *place = &t->loads[(t->head_load + t->in_flight++) % t->load_most];
  *place = *load;
  if (t->record) gm__mutex_unlock(&t->lock);
  return place;
}

/* Room for a second load. False: there is no memory for it, or there was room for several. */
static bool load_room(gm_transfer *t) {
  if (t->load_most > 1) return false;
  gm__transfer_load *loads =
      gm__alloc_array(gm__context_services(t->device->ctx), GM__TRANSFER_LOADS, sizeof *t->loads);
  if (!loads) return false;
  gm__mutex_lock(&t->lock);
  loads[0] = t->first_load;
  t->loads = loads;
  t->load_most = GM__TRANSFER_LOADS;
  gm__mutex_unlock(&t->lock);
  return true;
}

/* Takes the newest load back, which the engine has not begun. */
static void load_take_back(gm_transfer *t, const gm__transfer_load *load) {
  gm__mutex_lock(&t->lock);
  t->in_flight--;
  gm__mutex_unlock(&t->lock);
  if (load->slot) gm__ring_give(t->ring, load->slot, NULL);
}

static void load_hand_over(gm_transfer *t, gm__transfer_load *load) {
  load->ticket = ++t->tickets;
  const uint64_t bytes = load->last_end - load->first_at;
  const gm__transfer_load *mine = load_push(t, load);
  gm_error why;
  gm__error_none(&why);
  if (load_record(t, mine, &why) == GM_OK) {
    load_count(t, &t->copies[load->first], bytes);
    return;
  }
  load_fail(t, load->first, load->first_at, &why);
  load_take_back(t, load);
}

static bool load_is_empty(const gm__transfer_load *load) {
  return load->first == load->last && load->first_at == load->last_end;
}

static void load_begin(gm_transfer *t, gm__transfer_load *load) {
  const uint64_t next_copy = load->last, next = load->last_end;
  load->submitted_ns = gm__now_ns();
  if (t->record) {
    load_hand_over(t, load);
  } else {
    if (t->copies[load->first].path == GM__TRANSFER_PACKED) {
      load_submit_packed(t, load);
    } else if (t->copies[load->first].path == GM__TRANSFER_EXPANDED) {
      load_submit_expanded(t, load);
    } else if (!load_by_host(t, load)) {
      load_submit(t, load);
    }
    load_give_early(t, load);
    if (!load_is_empty(load)) {
      load_push(t, load);
    } else if (load->slot) {
      gm__ring_give(t->ring, load->slot, NULL);
    }
  }
  t->at_copy = next_copy;
  t->at = next;
  load_skip(t);
}

/* --- ending a load --- */

/* Waits for the engine's answer, if it records the load. */
static gm_status load_wait_answer(gm_transfer *t, const gm__transfer_load *load, uint64_t deadline) {
  gm_status status = GM_OK;
  if (!load->ticket) return GM_OK;
  gm__mutex_lock(&t->lock);
  while (load->ticket && !load->answered && status == GM_OK) {
    if (gm__deadline_passed(deadline)) status = GM_ERR_TIMEOUT;
    if (status == GM_OK) gm__cond_wait_until(&t->moved, &t->lock, deadline);
  }
  gm__mutex_unlock(&t->lock);
  return status;
}

/* How many bytes of a part have reached their end: a codec may keep some until its piece is whole. */
static uint64_t load_take_out(gm_transfer *t, uint64_t index, uint64_t at, uint64_t bytes, const unsigned char *slot) {
  const gm__transfer_copy *copy = &t->copies[index];
  gm_error why;
  uint64_t out = 0;
  gm__error_none(&why);
  if (gm__transfer_empty(t, copy, at, bytes, slot, &out, &why)) load_fail(t, index, at, &why);
  return out;
}

/* The bytes are there. */
static void load_arrive(gm_transfer *t, const gm__transfer_load *load) {
  uint64_t place = 0;
  for (uint64_t i = load->first; i <= load->last; i++) {
    gm__transfer_copy *copy = &t->copies[i];
    const uint64_t waiting = copy->codec ? copy->codec->waiting : 0;
    uint64_t at;
    const uint64_t bytes = load_part(t, load, i, &at);
    uint64_t came = bytes;
    if (!bytes) continue;
    const uint64_t here = load->packed ? copy->place : place;
    place += gm__round_up(bytes, LOAD_ALIGN);
    const bool follows = at == copy->arrived + waiting; /* else bytes before it are lost */
    if (load->slot && copy->way == GM__TRANSFER_DOWN && (follows || !copy->codec)) {
      came = load_take_out(t, i, at, bytes, load->slot->host + here);
    }
    if (!follows) continue;
    copy->arrived += came;
    t->ended_bytes[copy->way] += load->expanded ? came / 2 : came;
    if (copy->codec && copy->codec->expands) {
      *(load->expanded ? &t->stats.device_expanded : &t->stats.host_expanded) += came;
    }
    t->stats.useful_bytes += came;
  }
}

/* Ends the oldest load. TIMEOUT: not in time. Any other failure is the transfer's. */
static gm_status load_retire(gm_transfer *t, uint64_t deadline) {
  gm__transfer_load *load = &t->loads[t->head_load];
  gm_error why;
  gm__error_none(&why);
  t->fresh = false;
  gm_status status = load_wait_answer(t, load, deadline);
  if (!status) status = gm_point_wait(t->device, &load->point, gm__deadline_left(deadline), &why);
  if (status == GM_ERR_TIMEOUT) return status;
  gm__transfer_time(t, load);
  if (status == GM_OK) {
    load_arrive(t, load);
  } else {
    load_fail(t, load->first, load->first_at, &why);
  }
  if (status && status != GM_ERR_DEVICE_LOST && !t->record) gm__access_rest(t->stream);
  if (load->slot) gm__ring_give(t->ring, load->slot, NULL); /* a lost device is not waited for */
  gm_point_release(t->device, &load->point);
  if (t->record) gm__mutex_lock(&t->lock);
  t->head_load = (t->head_load + 1) % t->load_most;
  t->in_flight--;
  if (t->record) gm__mutex_unlock(&t->lock);
  return GM_OK;
}

gm_status gm__transfer_settle(gm_transfer *t, uint64_t deadline) {
  gm_status status = GM_OK;
  while (t->in_flight && status == GM_OK) status = load_retire(t, deadline);
  return status;
}

gm_status gm__transfer_settle_one(gm_transfer *t, uint64_t deadline) {
  return t->in_flight && !load_wait_answer(t, &t->loads[t->head_load], 0) ? load_retire(t, deadline) : GM_ERR_TIMEOUT;
}

gm_status gm__transfer_settle_answered(gm_transfer *t) {
  while (gm__transfer_settle_one(t, GM__NEVER) == GM_OK) continue;
  return t->in_flight ? GM_ERR_TIMEOUT : GM_OK;
}

/* --- submitting all --- */

static bool load_is_cancelled(gm_transfer *t) {
  if (!atomic_load(&t->cancelled)) return false;
  const gm_error why = {.status = GM_ERR_CANCELLED, .op = "gm_transfer", .message = "the transfer was cancelled"};
  load_fail(t, t->at_copy, t->at, &why);
  return true;
}

/* How long to wait at a time. The device ends its work. Other users may keep a slot for ever, and a cancel ends the
 * wait for them. */
static uint64_t load_patience(const gm_transfer *t, uint64_t left) {
  gm__ring_info info;
  gm__ring_figures(t->ring, &info);
  return info.taken ? gm__min(left, LOAD_LOOK_NS) : left;
}

/* A slot, as soon as the ring or a load of this transfer has one. TIMEOUT; any other failure is the transfer's. */
static gm_status load_slot(gm_transfer *t, uint64_t deadline, gm__ring_slot **out) {
  gm_error why;
  gm__error_none(&why);
  gm_status status = gm__ring_take_as(t->ring, &t->user, 0, out, &why);
  const uint64_t begun = status == GM_ERR_TIMEOUT ? gm__now_ns() : 0;
  while (status == GM_ERR_TIMEOUT && !load_is_cancelled(t) && t->stats.status == GM_OK) {
    t->fresh = false;
    const bool moved = t->in_flight ? load_retire(t, deadline) == GM_OK : gm__ring_help(t->ring, &t->user, deadline);
    const uint64_t left = gm__deadline_left(deadline);
    status = gm__ring_take_as(t->ring, &t->user, moved ? 0 : load_patience(t, left), out, &why);
    if (!left) break;
  }
  if (begun) t->stats.stalled += (double)(gm__now_ns() - begun) * 1e-9;
  if (status && status != GM_ERR_TIMEOUT) load_fail(t, t->at_copy, t->at, &why);
  return status;
}

/* How much a load may have. */
static uint64_t load_most(gm__transfer_path path, const gm__ring_slot *slot) {
  if (path == GM__TRANSFER_EXPANDED) return gm__transfer_expand_most(slot);
  if (path == GM__TRANSFER_PACKED) return gm__min(slot->bytes, GM__TRANSFER_ROOM);
  if (slot) return gm__min(slot->bytes, LOAD_DIRECT_BYTES);
  return path == GM__TRANSFER_BOX ? UINT64_MAX : LOAD_DIRECT_BYTES;
}

static gm_status load_next(gm_transfer *t, uint64_t deadline) {
  const gm__transfer_path path = t->copies[t->at_copy].path;
  const bool direct = path < GM__TRANSFER_PACKED;
  gm__ring_slot *slot = NULL;
  gm__transfer_load load;
  if (load_is_cancelled(t)) return GM_OK;
  if (t->in_flight == t->load_most && !load_room(t)) return load_retire(t, deadline);
  if (!direct && load_slot(t, deadline, &slot) == GM_ERR_TIMEOUT) return GM_ERR_TIMEOUT;
  if (!direct && !slot) return GM_OK; /* it failed */
  load_cut(t, load_most(path, slot), &load);
  load.slot = slot;
  load_begin(t, &load);
  return GM_OK;
}

static void load_flush(gm_transfer *t) {
  gm_error why;
  gm__error_none(&why);
  if (gm_stream_flush(t->stream, &why) != GM_OK) gm__transfer_fail(t, GM_TRANSFER_ALL, 0, &why);
}

gm_status gm__transfer_submit(gm_transfer *t, uint64_t until, uint64_t deadline) {
  const uint64_t begin = t->at_copy, begin_at = t->at;
  gm_status status = GM_OK;
  load_skip(t);
  while (!gm__transfer_submitted(t) && t->at_copy <= until && status == GM_OK) status = load_next(t, deadline);
  const bool moved = t->at_copy != begin || t->at != begin_at;
  if (moved && t->stream && !t->record) load_flush(t);
  return status;
}
