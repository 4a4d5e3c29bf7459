#include "core/manage/cause.h"

#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/limits.h"
#include "core/base/saturate.h"
#include "core/host/commit.h"
#include "core/host/dmem.h"
#include "core/host/host_info.h"

/* Invariant: what the code that refused knows for certain comes first (gm__ladder_blame), then the status. Only where
 * both leave it open do the figures of now decide. The order is: the pool's own bounds, promises to others, gm's
 * reserve, the device. */

enum { CAUSE_EPOCHS = 4, CAUSE_TAGS = 3 }; /* a leak: so many epochs in a row; of the tags that hold most */
enum { CAUSE_SPARE = 4 << 20 };            /* addresses that a driver takes to align memory, and gm's own records */

typedef struct cause_case {
  gm_pool *pool;
  const gm__refused *refused;
  gm_explanation *out;
  gm_status status; /* of the last try */
  uint64_t lack;    /* bytes that are missing; 0: that is not what is wrong */
} cause_case;

static gm_refusal_cause cause_say(const cause_case *self, gm_refusal_cause cause, gm_change change, uint64_t bytes) {
  self->out->change = change;
  self->out->change_bytes = bytes;
  return cause;
}

static const char *cause_root(const cause_case *self) {
  const char *root = self->pool->ctx->host_root;
  return root ? root : "";
}

/* ---- what only the system can tell ---- */

static gm_refusal_cause cause_of_pinned(const cause_case *self) {
  const uint64_t exact = self->refused->exact;
  gm__host_commit commit;
  gm__host_commit_read(cause_root(self), &commit);
  const uint64_t lack = gm__host_lock_lack(&commit, exact);
  if (lack) return cause_say(self, GM_CAUSE_MEMLOCK, GM_CHANGE_RAISE_MEMLOCK, lack);
  return cause_say(self, GM_CAUSE_PINNED_LIMIT, GM_CHANGE_FREE, exact);
}

static void cause_name(const cause_case *self, const char *name) {
  snprintf(self->out->bound, sizeof self->out->bound, "%s", name);
}

/* On a device whose memory is the host's: the kernel is to promise more, or to allow more mappings. NONE: neither. */
static gm_refusal_cause cause_of_process(const cause_case *self) {
  const uint64_t bytes = gm__add_sat(self->refused->exact, CAUSE_SPARE);
  gm__host_commit commit;
  gm__mappings mappings;
  const bool refused = self->status == GM_ERR_OUT_OF_DEVICE_MEMORY; /* by the system; else by gm, for the figures */
  if ((!refused && self->status != GM_ERR_OVER_LIMIT) || !self->pool->device->info.unified) return GM_CAUSE_NONE;
  gm__host_commit_read(cause_root(self), &commit);
  if (!refused) commit.strict = false;
  const uint64_t lack = gm__host_commit_lack(&commit, bytes);
  if (lack) {
    cause_name(self, gm__host_commit_name(&commit, bytes));
    return cause_say(self, GM_CAUSE_HOST_OVERCOMMIT, GM_CHANGE_RAISE_COMMIT, lack);
  }
  if (!refused || !gm__mappings_read(cause_root(self), &mappings) || !gm__mappings_are_used_up(&mappings))
    return GM_CAUSE_NONE;
  cause_name(self, "vm.max_map_count");
  return cause_say(self, GM_CAUSE_MAPPINGS, GM_CHANGE_RAISE_MAPPINGS, mappings.count + 3 - mappings.most);
}

/* A group bounds the card's own memory, and that is what binds. */
static bool cause_of_card_group(const cause_case *self) {
  const gm_device *device = self->pool->device;
  gm_memory_info memory = {.struct_size = sizeof memory};
  gm__dmem dmem;
  if (gm_device_memory_info(self->pool->device, &memory, NULL) != GM_OK) return false;
  if (memory.free_source != GM_SOURCE_GROUP && memory.total_source != GM_SOURCE_GROUP) return false;
  gm__dmem_read(gm__context_services(self->pool->ctx), cause_root(self), gm__pci_parse(device->info.pci), &dmem);
  const char *name = memory.free_source == GM_SOURCE_GROUP ? dmem.free_name : dmem.total_name;
  cause_name(self, name[0] ? name : "the process's MPS memory limit");
  return true;
}

/* A group bounds what is free, or in all: of the host on a device whose memory that is, else of the card. */
static bool cause_of_group(const cause_case *self) {
  const gm_services *services = gm__context_services(self->pool->ctx);
  if (!self->pool->device->info.unified) return cause_of_card_group(self);
  gm_host_info *info = gm__alloc(services, sizeof *info);
  bool binds = false;
  if (!info) return false; /* the structure is too large for a small stack */
  if (gm__host_memory_read(services, cause_root(self), info) && info->cgroup_limited) {
    const bool room = strncmp(info->limit_source, "cgroup", 6) == 0;
    binds = room || strncmp(info->total_source, "cgroup", 6) == 0;
    if (binds) cause_name(self, room ? info->limit_source : info->total_source);
  }
  gm__release(services, info, sizeof *info);
  return binds;
}

/* ---- what the figures tell ---- */

/* True where the device's free bytes are no estimate. */
static bool cause_free_is_known(const cause_case *self) {
  gm_memory_info memory = {.struct_size = sizeof memory};
  return gm_device_memory_info(self->pool->device, &memory, NULL) == GM_OK && memory.free_state == GM_FIGURE_KNOWN;
}

/* By the figures enough bytes are unused; or the device does not say how many are. */
static gm_refusal_cause cause_in_pieces(const cause_case *self) {
  const gm_explanation *out = self->out;
  const uint64_t exact = self->refused->exact, largest = out->largest_pooled_bytes, pooled = out->pooled_bytes;
  const bool known = cause_free_is_known(self);
  const uint64_t unused = known ? gm__add_sat(pooled, out->device_free_bytes) : pooled;
  if (self->refused->flags & GM_COMMIT && pooled < exact && !(known && unused < exact)) /* the driver had promised it */
    return cause_say(self, GM_CAUSE_LAZY_COMMIT, GM_CHANGE_FREE, exact);
  if (unused < exact) return cause_say(self, GM_CAUSE_DEVICE_FULL, GM_CHANGE_FREE, exact - unused);
  if (self->refused->flags & GM_ALLOW_SPANS || largest >= exact)
    return cause_say(self, GM_CAUSE_FRAGMENTATION, GM_CHANGE_FREE, exact);
  return cause_say(self, GM_CAUSE_FRAGMENTATION, GM_CHANGE_SPLIT, largest);
}

/* The device itself has too little. */
static gm_refusal_cause cause_full(cause_case *self, uint64_t lack) {
  const uint64_t others = self->out->used_by_others_bytes;
  self->lack = lack;
  if (cause_of_group(self)) return cause_say(self, GM_CAUSE_CGROUP, GM_CHANGE_RAISE_CGROUP, lack);
  if (others != GM_UNKNOWN_BYTES && others >= lack)
    return cause_say(self, GM_CAUSE_OTHER_PROCESS, GM_CHANGE_FREE_ELSEWHERE, lack);
  return cause_say(self, GM_CAUSE_DEVICE_FULL, GM_CHANGE_FREE, lack);
}

static gm_refusal_cause cause_of_device(cause_case *self, uint64_t within_cap) {
  static const gm__limits physical = {.memory_fraction = 1, .min_free_bytes = GM_NO_BYTES};
  const gm__heap *heap = &self->pool->heap;
  const uint64_t exact = self->refused->exact, pooled = self->out->pooled_bytes;
  uint64_t room = UINT64_MAX, most = UINT64_MAX, promised = 0;
  if (!heap->provider.has_upstream) {
    promised = gm__device_promised(heap->device, &heap->provider.limits);
    room = gm__device_headroom(heap->device, &heap->provider.limits, true);
    most = gm__device_headroom(heap->device, &physical, false);
  }
  const uint64_t unused = gm__add_sat(pooled, gm__min(within_cap, room));
  if (unused >= exact) return cause_in_pieces(self);
  if (gm__add_sat(unused, promised) >= exact) {
    const uint64_t here = promised - gm__device_promised_elsewhere(heap->device, &heap->provider.limits);
    const gm_change change = here >= exact - unused ? GM_CHANGE_CANCEL : GM_CHANGE_FREE_ELSEWHERE;
    return cause_say(self, GM_CAUSE_PROMISED, change, exact - unused);
  }
  if (gm__add_sat(pooled, most) < exact) return cause_full(self, exact - gm__add_sat(pooled, most));
  self->lack = exact - unused;
  return cause_say(self, GM_CAUSE_RESERVE, GM_CHANGE_LOWER_RESERVE, self->lack);
}

static gm_refusal_cause cause_of_figures(cause_case *self) {
  gm__heap *heap = &self->pool->heap;
  const uint64_t exact = self->refused->exact, total = self->out->device_total_bytes;
  const uint64_t cap = gm__budget_cap(&heap->provider.budget), need = gm__add_sat(self->out->in_use_bytes, exact);
  const gm_refusal_cause process = need > cap ? GM_CAUSE_NONE : cause_of_process(self);
  if (process) return process;
  if (!heap->provider.has_upstream && exact > total) {
    if (cause_of_group(self)) return cause_say(self, GM_CAUSE_CGROUP, GM_CHANGE_RAISE_CGROUP, exact - total);
    return cause_say(self, GM_CAUSE_TOO_LARGE, GM_CHANGE_ASK_LESS, exact - total);
  }
  if (need > cap) {
    self->lack = need - cap;
    return cause_say(self, GM_CAUSE_POOL_CAP, GM_CHANGE_RAISE_CAP, self->lack);
  }
  return cause_of_device(self, gm__sub_sat(cap, gm__budget_used(&heap->provider.budget)));
}

/* ---- leaks ---- */

/* What the tag left behind in epochs that are over, if it did so in each of the last ones; else 0. */
static uint64_t cause_left_behind(const cause_case *self, uint32_t tag) {
  uint64_t bytes[CAUSE_EPOCHS], all = 0;
  gm_tracker *tracker = self->pool->heap.observers.tracker;
  if (!tracker || !gm__tracker_left_behind(tracker, tag, bytes, CAUSE_EPOCHS, &all)) return 0;
  for (int i = 0; i < CAUSE_EPOCHS; i++) {
    if (!bytes[i]) return 0;
  }
  return all;
}

static gm_refusal_cause cause_or_leak(const cause_case *self, gm_refusal_cause cause) {
  for (uint32_t i = 0; self->lack && i < self->out->tag_count && i < CAUSE_TAGS; i++) {
    const uint32_t tag = self->out->tags[i].tag;
    if (cause_left_behind(self, tag) < self->lack) continue;
    self->out->change_tag = tag;
    return cause_say(self, GM_CAUSE_LEAK_BY_TAG, GM_CHANGE_FREE, self->lack);
  }
  return cause;
}

/* ---- all of it ---- */

static gm_refusal_cause cause_of_quota(const cause_case *self) {
  gm__quotas *quotas = gm__observers_quotas(&self->pool->heap.observers);
  const uint64_t lack = quotas ? gm__quota_lack(quotas, self->refused->tag, self->refused->bytes) : 0;
  self->out->change_tag = self->refused->tag;
  return cause_say(self, GM_CAUSE_QUOTA, GM_CHANGE_RAISE_QUOTA, lack);
}

/* What the code that refused knows for certain. */
static gm_refusal_cause cause_of_blame(const cause_case *self) {
  switch (self->refused->ladder.cause) {
    case GM_CAUSE_QUOTA: return cause_of_quota(self);
    case GM_CAUSE_LAZY_COMMIT: return cause_say(self, GM_CAUSE_LAZY_COMMIT, GM_CHANGE_FREE, self->refused->exact);
    case GM_CAUSE_POOLED_ONLY: return cause_say(self, GM_CAUSE_POOLED_ONLY, GM_CHANGE_ALLOW_FRESH, 0);
    case GM_CAUSE_ASLEEP: return cause_say(self, GM_CAUSE_ASLEEP, GM_CHANGE_WAKE, 0);
    default: return GM_CAUSE_NONE;
  }
}

static gm_refusal_cause cause_of_status(cause_case *self) {
  const uint64_t most = self->out->max_alloc_bytes;
  switch (self->status) {
    case GM_OK: return GM_CAUSE_NONE;
    case GM_ERR_DEVICE_LOST: return cause_say(self, GM_CAUSE_DEVICE_LOST, GM_CHANGE_REOPEN, 0);
    case GM_ERR_BUSY: return cause_say(self, GM_CAUSE_CAPTURE, GM_CHANGE_AFTER_CAPTURE, 0);
    case GM_ERR_OUT_OF_HOST_MEMORY: return GM_CAUSE_HOST_MEMORY;
    case GM_ERR_PINNED_LIMIT: return cause_of_pinned(self);
    case GM_ERR_ALLOCATION_TOO_LARGE: return cause_say(self, GM_CAUSE_SINGLE_ALLOCATION, GM_CHANGE_SPLIT, most);
    case GM_ERR_OVER_LIMIT:
    case GM_ERR_OUT_OF_DEVICE_MEMORY: return cause_or_leak(self, cause_of_figures(self));
    default: return GM_CAUSE_DRIVER;
  }
}

static bool cause_ever_fits(const cause_case *self) {
  if (self->status == GM_ERR_ALLOCATION_TOO_LARGE && !(self->refused->flags & GM_ALLOW_SPANS)) return false;
  return self->pool->heap.provider.has_upstream || self->refused->exact <= self->out->device_total_bytes;
}

void gm__cause_tell(gm_pool *pool, const gm__refused *refused, gm_explanation *out) {
  cause_case self = {.pool = pool, .refused = refused, .out = out, .status = refused->failure.status};
  if (!refused->exact) return; /* nothing was refused, or a free was */
  const bool late = self.status == GM_ERR_TIMEOUT;
  if (late) self.status = refused->ladder.behind;
  gm_refusal_cause cause = cause_of_blame(&self);
  if (!cause) cause = cause_of_status(&self);
  out->cause = late ? GM_CAUSE_DEADLINE : cause;
  if (late) out->waited_for = cause;
  out->ever_fits = cause_ever_fits(&self);
}
