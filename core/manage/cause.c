#include "core/manage/cause.h"

#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/limits.h"
#include "core/base/saturate.h"
#include "core/heap/need.h"
#include "core/host/commit.h"
#include "core/host/dmem.h"
#include "core/host/host_info.h"

/* Invariant: what the code that refused knows for certain comes first (gm__ladder_blame), then the status. Only where
 * both leave it open do the figures of now decide. The order is: the pool's own bounds, streams that are late, promises
 * to others, gm's reserve, the device. A dry run (need.h) says what a change must give. Where more than one bound is
 * short, or only the driver knows, the change is a lower bound. */

enum { CAUSE_EPOCHS = 4, CAUSE_TAGS = 3 }; /* a leak: so many epochs in a row; of the tags that hold most */
enum { CAUSE_SPARE = 4 << 20 };            /* addresses that a driver takes to align memory, and gm's own records */

typedef struct cause_case {
  gm_pool *pool;
  const gm__refused *refused;
  gm_explanation *out;
  gm__need need;
  gm_status status; /* of the last try */
  uint64_t lack;    /* bytes that are missing; 0: that is not what is wrong */
} cause_case;

static gm_refusal_cause cause_say(const cause_case *self, gm_refusal_cause cause, gm_change change, uint64_t bytes) {
  self->out->change = change;
  self->out->change_bytes = bytes;
  self->out->change_at_least = false;
  return cause;
}

/* Like cause_say; the change may not be enough. */
static gm_refusal_cause cause_say_at_least(const cause_case *self, gm_refusal_cause cause, gm_change change,
                                           uint64_t bytes) {
  cause_say(self, cause, change, bytes);
  self->out->change_at_least = true;
  return cause;
}

/* `enough`: the change alone is known to do, if the driver gives so much at a time. */
static gm_refusal_cause cause_say_if(const cause_case *self, gm_refusal_cause cause, gm_change change, uint64_t bytes,
                                     bool enough) {
  if (change != GM_CHANGE_SPLIT && change != GM_CHANGE_ASK_LESS) enough = enough && self->need.in_one;
  return enough ? cause_say(self, cause, change, bytes) : cause_say_at_least(self, cause, change, bytes);
}

static const char *cause_root(const cause_case *self) {
  const char *root = self->pool->ctx->host_root;
  return root ? root : "";
}

/* ---- what only the system can tell ---- */

static gm_refusal_cause cause_of_pinned(const cause_case *self) {
  const uint64_t exact = self->refused->want.exact;
  gm__host_commit commit;
  gm__host_commit_read(cause_root(self), &commit);
  const uint64_t lack = gm__host_lock_lack(&commit, exact);
  if (lack) return cause_say(self, GM_CAUSE_MEMLOCK, GM_CHANGE_RAISE_MEMLOCK, lack);
  return cause_say_at_least(self, GM_CAUSE_PINNED_LIMIT, GM_CHANGE_FREE, exact);
}

static void cause_name(const cause_case *self, const char *name) {
  snprintf(self->out->bound, sizeof self->out->bound, "%s", name);
}

/* On a device whose memory is the host's: the kernel is to promise more, or to allow more mappings. NONE: neither. */
static gm_refusal_cause cause_of_process(const cause_case *self) {
  const uint64_t bytes = gm__add_sat(self->refused->want.exact, CAUSE_SPARE);
  gm__host_commit commit;
  gm__mappings mappings;
  const bool refused = self->status == GM_ERR_OUT_OF_DEVICE_MEMORY; /* by the system; else by gm, for the figures */
  if ((!refused && self->status != GM_ERR_OVER_LIMIT) || !self->pool->device->info.unified) return GM_CAUSE_NONE;
  gm__host_commit_read(cause_root(self), &commit);
  if (!refused) commit.strict = false;
  const uint64_t lack = gm__host_commit_lack(&commit, bytes);
  if (lack) {
    cause_name(self, gm__host_commit_name(&commit, bytes));
    return cause_say_at_least(self, GM_CAUSE_HOST_OVERCOMMIT, GM_CHANGE_RAISE_COMMIT, lack);
  }
  if (!refused || !gm__mappings_read(cause_root(self), &mappings) || !gm__mappings_are_used_up(&mappings))
    return GM_CAUSE_NONE;
  cause_name(self, "vm.max_map_count");
  return cause_say_at_least(self, GM_CAUSE_MAPPINGS, GM_CHANGE_RAISE_MAPPINGS, mappings.count + 3 - mappings.most);
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

static bool cause_is_group(const char *source) { return strncmp(source, "cgroup", 6) == 0; }

/* A group bounds what is free, or in all: of the host on a device whose memory that is, else of the card. */
static bool cause_of_group(const cause_case *self) {
  const gm_services *services = gm__context_services(self->pool->ctx);
  if (!self->pool->device->info.unified) return cause_of_card_group(self);
  gm_host_info *info = gm__alloc(services, sizeof *info);
  bool binds = false;
  if (!info) return false; /* the structure is too large for a small stack */
  if (gm__host_memory_read(services, cause_root(self), info) && info->cgroup_limited) {
    const bool room = cause_is_group(info->limit_source);
    binds = room || cause_is_group(info->total_source);
    if (binds) cause_name(self, room ? info->limit_source : info->total_source);
  }
  gm__release(services, info, sizeof *info);
  return binds;
}

/* ---- what the figures tell ---- */

/* A smaller request helps: of what there is now, or, where that is nothing, of `room` at most. */
static gm_refusal_cause cause_say_ask_less(const cause_case *self, gm_refusal_cause cause, uint64_t room) {
  const uint64_t exact = self->refused->want.exact, most = self->need.most;
  const bool enough = most && self->need.most_is_sure;
  return cause_say_if(self, cause, GM_CHANGE_ASK_LESS, gm__sub_sat(exact, gm__min(most ? most : room, room)), enough);
}

/* Frees serve every bound. A block of its own gives all its bytes back; others leave holes that may be of no use. */
static gm_refusal_cause cause_say_free(const cause_case *self, gm_refusal_cause cause, uint64_t least) {
  const gm__heap *heap = &self->pool->heap;
  const gm__lacks *lacks = &self->need.lacks;
  const bool returns = heap->arenas.whole && gm__provider_lends(&heap->provider) && !self->need.streams;
  const uint64_t bytes = gm__max(gm__max(least, lacks->cap), gm__max(lacks->limits, lacks->device));
  if (!heap->provider.has_upstream && self->need.most && bytes > gm__card_used(heap->device->room.card))
    return cause_say_ask_less(self, cause, UINT64_MAX); /* gm has not so much to give back */
  const bool enough = returns && self->status == GM_ERR_OVER_LIMIT && bytes <= self->out->in_use_bytes;
  return cause_say_if(self, cause, GM_CHANGE_FREE, bytes, enough);
}

/* Memory that streams still use would have served. It serves by now: what was in the way is over. */
static gm_refusal_cause cause_of_streams(const cause_case *self) {
  const gm__late *late = &self->need.late;
  if (self->need.serves) return cause_say(self, GM_CAUSE_BUSY_STREAMS, GM_CHANGE_WAIT, 0);
  if (!self->need.serves_later || !(late->unsettled || late->working)) return GM_CAUSE_NONE;
  self->out->change_stream = late->unsettled ? late->unsettled : late->working;
  if (late->unsettled) {
    return cause_say_if(self, GM_CAUSE_UNSETTLED, GM_CHANGE_SETTLE, 0, !late->working && !late->several);
  }
  return cause_say(self, GM_CAUSE_BUSY_STREAMS, GM_CHANGE_WAIT, 0);
}

/* By the figures enough bytes are unused; or the device does not say how many are. */
static gm_refusal_cause cause_in_pieces(const cause_case *self) {
  const gm__need *need = &self->need;
  const gm__lacks *lacks = &need->lacks;
  const uint64_t exact = self->refused->want.exact, pooled = self->out->pooled_bytes;
  const bool refuses = self->status == GM_ERR_OUT_OF_DEVICE_MEMORY; /* the driver itself */
  if (self->refused->want.flags & GM_COMMIT && pooled < exact && refuses &&
      !lacks->device) /* the driver had promised it */
    return cause_say_at_least(self, GM_CAUSE_LAZY_COMMIT, GM_CHANGE_FREE, exact);
  if (need->part && !(self->refused->want.flags & GM_ALLOW_SPANS)) {
    return cause_say_if(self, GM_CAUSE_FRAGMENTATION, GM_CHANGE_SPLIT, need->part,
                        !need->part_waits && !need->part_is_new);
  }
  if (lacks->cap) {
    const bool enough = !lacks->limits && !lacks->device && !refuses;
    return cause_say_if(self, GM_CAUSE_FRAGMENTATION, GM_CHANGE_RAISE_CAP, lacks->cap, enough);
  }
  if (lacks->limits && !lacks->device) {
    return cause_say_if(self, GM_CAUSE_FRAGMENTATION, GM_CHANGE_LOWER_RESERVE, lacks->limits,
                        !refuses && need->counted);
  }
  return cause_say_free(self, GM_CAUSE_FRAGMENTATION, lacks->device ? lacks->device : exact);
}

/* The device itself has too little. */
static gm_refusal_cause cause_full(cause_case *self) {
  const uint64_t others = self->out->used_by_others_bytes, lack = self->need.lacks.device;
  self->lack = lack;
  if (cause_of_group(self)) return cause_say_at_least(self, GM_CAUSE_CGROUP, GM_CHANGE_RAISE_CGROUP, lack);
  if (others != GM_UNKNOWN_BYTES && others >= lack)
    return cause_say_at_least(self, GM_CAUSE_OTHER_PROCESS, GM_CHANGE_FREE_ELSEWHERE, lack);
  return cause_say_free(self, GM_CAUSE_DEVICE_FULL, lack);
}

/* The change that ends promises of so many bytes: this process cancels its own, or another one its. */
static gm_change cause_of_promises(const cause_case *self, uint64_t lack) {
  const gm__provider *provider = &self->pool->heap.provider;
  const uint64_t elsewhere = gm__room_promised_elsewhere(&provider->claim);
  return gm__sub_sat(self->need.promised, elsewhere) >= lack ? GM_CHANGE_CANCEL : GM_CHANGE_FREE_ELSEWHERE;
}

static gm_refusal_cause cause_of_device(cause_case *self) {
  const gm__lacks *lacks = &self->need.lacks;
  const uint64_t holes =
      gm__sub_sat(self->out->pooled_bytes, self->need.idle); /* unused, and of no use to the driver */
  const uint64_t lack = gm__sub_sat(lacks->limits, holes);
  if (!lack) return cause_in_pieces(self);
  if (lack <= self->need.promised) {
    const bool enough = lacks->limits <= self->need.promised && self->need.counted && !lacks->cap && !lacks->device;
    return cause_say_if(self, GM_CAUSE_PROMISED, cause_of_promises(self, lack), lacks->limits, enough);
  }
  if (gm__sub_sat(lacks->device, holes)) return cause_full(self);
  self->lack = lacks->limits;
  const bool enough = self->need.counted && !lacks->cap && !lacks->device;
  return cause_say_if(self, GM_CAUSE_RESERVE, GM_CHANGE_LOWER_RESERVE, self->lack, enough);
}

static gm_refusal_cause cause_too_large(const cause_case *self) {
  const uint64_t exact = self->refused->want.exact, total = self->out->device_total_bytes;
  if (cause_of_group(self)) return cause_say_at_least(self, GM_CAUSE_CGROUP, GM_CHANGE_RAISE_CGROUP, exact - total);
  return cause_say_ask_less(self, GM_CAUSE_TOO_LARGE, total);
}

static gm_refusal_cause cause_of_figures(cause_case *self) {
  const gm__provider *provider = &self->pool->heap.provider;
  const gm__lacks *lacks = &self->need.lacks;
  const uint64_t exact = self->refused->want.exact, need = gm__add_sat(self->out->in_use_bytes, exact);
  const bool over_cap = need > gm__claim_cap(&provider->claim);
  const gm_refusal_cause process = over_cap ? GM_CAUSE_NONE : cause_of_process(self);
  if (process) return process;
  if (!provider->has_upstream && exact > self->out->device_total_bytes) return cause_too_large(self);
  if (over_cap) {
    self->lack = lacks->cap;
    return cause_say_if(self, GM_CAUSE_POOL_CAP, GM_CHANGE_RAISE_CAP, lacks->cap, !lacks->limits && !lacks->device);
  }
  const gm_refusal_cause late = cause_of_streams(self);
  if (late) return late;
  return cause_of_device(self);
}

/* ---- leaks ---- */

/* The bytes that the tag left behind in epochs that are over, if it did so in each of the last ones; else 0. */
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
    return cause_say_free(self, GM_CAUSE_LEAK_BY_TAG, self->lack);
  }
  return cause;
}

/* ---- all of it ---- */

/* True when there is memory for the request. */
static bool cause_lacks_nothing_else(const cause_case *self) {
  const gm__lacks *lacks = &self->need.lacks;
  const bool at_once = self->need.serves && !self->need.part_waits;
  return at_once || (!lacks->cap && !lacks->limits && !lacks->device && self->need.in_one);
}

static gm_refusal_cause cause_of_quota(const cause_case *self) {
  gm__quotas *quotas = gm__observers_quotas(&self->pool->heap.observers);
  const uint64_t lack = quotas ? gm__quota_lack(quotas, self->refused->want.tag, self->refused->want.bytes) : 0;
  self->out->change_tag = self->refused->want.tag;
  return cause_say_if(self, GM_CAUSE_QUOTA, GM_CHANGE_RAISE_QUOTA, lack, cause_lacks_nothing_else(self));
}

/* The facts that the code that refused knows for certain. */
static gm_refusal_cause cause_of_blame(const cause_case *self) {
  switch (self->refused->ladder.cause) {
    case GM_CAUSE_QUOTA: return cause_of_quota(self);
    case GM_CAUSE_LAZY_COMMIT:
      return cause_say_at_least(self, GM_CAUSE_LAZY_COMMIT, GM_CHANGE_FREE, self->refused->want.exact);
    case GM_CAUSE_POOLED_ONLY: return cause_say(self, GM_CAUSE_POOLED_ONLY, GM_CHANGE_ALLOW_FRESH, 0);
    case GM_CAUSE_ASLEEP: return cause_say(self, GM_CAUSE_ASLEEP, GM_CHANGE_WAKE, 0);
    default: return GM_CAUSE_NONE;
  }
}

static gm_refusal_cause cause_of_one_allocation(const cause_case *self) {
  const gm__fixed_sizes *fixed = &self->pool->heap.dedicated.buckets.fixed;
  if (fixed->count)
    return cause_say_at_least(self, GM_CAUSE_SINGLE_ALLOCATION, GM_CHANGE_SPLIT, fixed->bytes[fixed->count - 1]);
  const uint64_t most = self->out->max_alloc_bytes ? self->out->max_alloc_bytes : self->need.part;
  return cause_say_if(self, GM_CAUSE_SINGLE_ALLOCATION, GM_CHANGE_SPLIT, most, most && cause_lacks_nothing_else(self));
}

static gm_refusal_cause cause_of_status(cause_case *self) {
  switch (self->status) {
    case GM_OK: return GM_CAUSE_NONE;
    case GM_ERR_DEVICE_LOST: return cause_say(self, GM_CAUSE_DEVICE_LOST, GM_CHANGE_REOPEN, 0);
    case GM_ERR_BUSY: return cause_say(self, GM_CAUSE_CAPTURE, GM_CHANGE_AFTER_CAPTURE, 0);
    case GM_ERR_OUT_OF_HOST_MEMORY: return GM_CAUSE_HOST_MEMORY;
    case GM_ERR_PINNED_LIMIT: return cause_of_pinned(self);
    case GM_ERR_ALLOCATION_TOO_LARGE: return cause_of_one_allocation(self);
    case GM_ERR_OVER_LIMIT:
    case GM_ERR_OUT_OF_DEVICE_MEMORY: return cause_or_leak(self, cause_of_figures(self));
    default: return GM_CAUSE_DRIVER;
  }
}

static bool cause_ever_fits(const cause_case *self) {
  if (self->status == GM_ERR_ALLOCATION_TOO_LARGE && !(self->refused->want.flags & GM_ALLOW_SPANS)) return false;
  return self->pool->heap.provider.has_upstream || self->refused->want.exact <= self->out->device_total_bytes;
}

/* The dry run of the refused request. */
static void cause_read_need(cause_case *self) {
  const gm_pool *pool = self->pool;
  gm__want want = self->refused->want;
  if (self->refused->stream) want.stream = gm__device_find_stream(pool->device, self->refused->stream);
  gm__need_read(&self->pool->heap, &want, pool->guard ? gm__guard_bytes(pool->guard, 0, want.align) : 0, &self->need);
}

void gm__cause_tell(gm_pool *pool, const gm__refused *refused, gm_explanation *out) {
  cause_case self = {.pool = pool, .refused = refused, .out = out, .status = refused->failure.status};
  if (!refused->want.exact) return; /* nothing was refused, or a free was */
  const bool late = self.status == GM_ERR_TIMEOUT;
  if (late) self.status = refused->ladder.behind;
  cause_read_need(&self);
  gm_refusal_cause cause = cause_of_blame(&self);
  if (!cause) cause = cause_of_status(&self);
  out->cause = late ? GM_CAUSE_DEADLINE : cause;
  if (late) out->waited_for = cause;
  out->ever_fits = cause_ever_fits(&self);
}
