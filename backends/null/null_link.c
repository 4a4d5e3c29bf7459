#include "backends/null/null_link.h"

#include <string.h>

#include "backends/null/null_backend.h"
#include "core/base/alloc.h"
#include "core/base/error.h"

enum { LINK_LINES = 1 << 16, LINK_NO_CONTENTS = 0xcd };

struct gm__null_model {
  gm__link_model model;
  gm__null_lane own; /* of work without a stream */
  gm__link_entry lines[LINK_LINES];
};

/* Work has ended: the host sees that now, and not before. */
static void link_done(gm__null_device *device, gm__link_op *op) {
  if (op->entry.kind == GM__LINK_D2H) {
    memset((void *)(uintptr_t)op->entry.to, LINK_NO_CONTENTS, (size_t)op->entry.bytes);
  }
  gm__release(device->services, op, sizeof *op);
}

static gm__link_op *link_next(gm__null_device *device, uint64_t limit) {
  gm__link_op *op = gm__link_next(&device->link->model, limit);
  if (op) link_done(device, op);
  device->now = device->link->model.now;
  return op;
}

void gm__null_link_pass(gm__null_device *device, uint64_t limit) {
  while (link_next(device, limit)) {}
  gm__link_reach(&device->link->model, limit);
  device->now = device->link->model.now;
}

bool gm__null_link_ended(const gm__null_device *device, uint64_t sequence) {
  return gm__link_ended(&device->link->model, sequence);
}

bool gm__null_link_wait(gm__null_device *device, uint64_t sequence, uint64_t limit) {
  while (!gm__link_ended(&device->link->model, sequence)) {
    if (link_next(device, limit)) continue;
    gm__null_link_pass(device, limit);
    return false;
  }
  return true;
}

void gm__null_link_poll(gm__null_device *device) {
  gm__null_link_pass(device, gm__link_later(device->now, device->link->model.poll_ns));
}

uint64_t gm__null_link_newest(const gm__null_device *device, const gm__null_lane *lane) {
  const bool known = lane->model == device->link_number && lane->lane.tail;
  return known ? lane->lane.tail->entry.sequence : 0;
}

static void link_open_lane(gm__null_device *device, gm__null_lane *lane) {
  if (lane->model == device->link_number) return;
  lane->model = device->link_number;
  gm__link_lane_open(&device->link->model, &lane->lane);
}

uint64_t gm__null_link_submit(gm__null_device *device, gm__null_lane *lane, const gm__link_op *like) {
  gm__link_op *op = gm__alloc(device->services, sizeof *op);
  if (!op) return 0;
  *op = *like;
  op->entry.device = op->entry.peer = device->index;
  if (!lane) lane = &device->link->own;
  link_open_lane(device, lane);
  return gm__link_submit(&device->link->model, &lane->lane, op);
}

static void link_drop(const gm__null_device *device, gm__link_lane *lane) {
  for (gm__link_op *op = lane->head, *next; op; op = next) {
    next = op->next;
    gm__release(device->services, op, sizeof *op);
  }
  lane->head = lane->tail = NULL;
}

void gm__null_link_close_lane(gm__null_device *device, gm__null_lane *lane) {
  if (!device->link || lane->model != device->link_number) return;
  gm__link_lane_close(&device->link->model, &lane->lane);
  link_drop(device, &lane->lane);
}

void gm__null_link_end(gm__null_device *device) {
  if (!device->link) return;
  for (gm__link_lane *lane = device->link->model.lanes; lane; lane = lane->next) link_drop(device, lane);
  gm__release(device->services, device->link, sizeof *device->link);
  device->link = NULL;
}

/* --- what a test calls --- */

/* Takes `link`; NULL: no model. */
static void link_switch(gm__null_device *device, gm__null_model *link) {
  gm__mutex_lock(&device->lock);
  while (device->link && link_next(device, UINT64_MAX)) {}
  if (device->link) device->link_number = device->link->model.sequence;
  gm__null_link_end(device);
  device->link_number++;
  device->link = link;
  if (link) link->model.now = device->now;
  if (link) link->model.sequence = device->link_number;
  gm__mutex_unlock(&device->lock);
}

gm_status gm__null_link(void *device, const char *spec, gm_error *err) {
  gm__null_device *self = device;
  if (!spec) return link_switch(self, NULL), GM_OK;
  gm__null_model *link = gm__alloc(self->services, sizeof *link);
  if (!link) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "null link", "no host memory for the link model");
  const char *wrong = gm__link_read(spec, &link->model);
  if (wrong) {
    gm__release(self->services, link, sizeof *link);
    return gm__bad_argument(err, "null link", "the link model does not know `%.40s`", wrong);
  }
  link->model.journal = link->lines;
  link->model.capacity = LINK_LINES;
  link_switch(self, link);
  return GM_OK;
}

bool gm__null_use(void *device, const void *at, uint64_t bytes, bool writes) {
  gm__null_device *self = device;
  gm__mutex_lock(&self->lock);
  const bool good = !self->link || gm__link_use(&self->link->model, (uintptr_t)at, bytes, writes);
  gm__mutex_unlock(&self->lock);
  return good;
}

uint64_t gm__null_early(void *device) {
  gm__null_device *self = device;
  gm__mutex_lock(&self->lock);
  const uint64_t early = self->link ? self->link->model.early : 0;
  gm__mutex_unlock(&self->lock);
  return early;
}

uint64_t gm__null_journal(void *device, gm__link_entry *out, uint64_t capacity) {
  gm__null_device *self = device;
  gm__mutex_lock(&self->lock);
  const uint64_t written = self->link ? gm__link_copy_journal(&self->link->model, out, capacity) : 0;
  gm__mutex_unlock(&self->lock);
  return written;
}
