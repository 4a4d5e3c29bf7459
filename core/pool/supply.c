#include "core/pool/supply.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/poll.h"
#include "core/base/saturate.h"
#include "core/base/shadow.h"
#include "core/pool/growth.h"
#include "core/pool/share.h"
#include "core/pool/upstream.h"
#include "core/pool/vmm.h"

/* Invariants: bytes are claimed before anybody is asked for them and unclaimed after they are back, so `claimed` is
 * never below what is really held; whoever asks the backend under a share of the device does so under the device's grow
 * lock, so that two pools cannot both be told that the last bytes are theirs. A node leaves the sorted addresses before
 * its memory goes back, because the backend may hand out the same address at once. */

/* Addresses for devices whose API has none: above every address that a 46-bit user space has, never handed out twice.
 */
#define SUPPLY_FIRST_ADDRESS (UINT64_C(1) << 46)

static const uint64_t supply_patience_ns = 1000000;

static gm_status supply_address(gm_device *device, uint64_t bytes, uint64_t align, uint64_t *out, gm_error *err) {
  uint64_t used = atomic_load_explicit(&device->synthetic_bytes, memory_order_relaxed), at;
  do {
    uint64_t next = SUPPLY_FIRST_ADDRESS + used;
    uint64_t pad = (align - next % align) % align;
    if (pad > UINT64_MAX - next || bytes > UINT64_MAX - next - pad) {
      return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "gm_alloc", "no synthetic addresses are left on this device");
    }
    at = next + pad;
  } while (!atomic_compare_exchange_weak_explicit(&device->synthetic_bytes, &used, at + bytes - SUPPLY_FIRST_ADDRESS,
                                                  memory_order_relaxed, memory_order_relaxed));
  *out = at;
  return GM_OK;
}

static uint64_t supply_room(gm_device *device, bool managed, bool read_now) {
  return managed ? gm__device_room_managed(device) : gm__device_room(device, read_now);
}

static gm_status supply_check_room(gm_device *device, uint64_t bytes, bool managed, gm_error *err) {
  uint64_t room = supply_room(device, managed, false);
  if (bytes > room) room = supply_room(device, managed, true); /* as it is now, and if there was host memory to ask */
  if (bytes <= room) return GM_OK;
  return gm__fail(err, GM_ERR_OVER_LIMIT, 0, "gm_alloc",
                  "%" PRIu64 " bytes are more than the %" PRIu64
                  " that memory_fraction and min_free_bytes leave on this device",
                  bytes, room);
}

/* Where the backend cannot do it as it allocates: memory of an upstream, and where it takes a queue that gm may not
 * make itself. The device's grow lock is not held: the stream may have work to do before. */
static bool supply_commits(const gm_pool *pool, const gm__want *want) {
  const uint64_t can = pool->device->info.capabilities;
  if (!(want->flags & GM_COMMIT) || !(can & GM_CAP_COMMIT)) return false;
  return pool->has_upstream || (can & GM_CAP_COMMIT_QUEUE && !gm__device_makes_streams(pool->device));
}

static gm_status supply_commit(const gm_pool *pool, const gm__want *want, uint64_t bytes, const gm_memory *memory,
                               gm_error *err) {
  const gm_device *device = pool->device;
  void *stream = want->stream && !gm__device_makes_streams(device) ? want->stream->handle : NULL;
  return gm__submitting(device)->commit(device->handle, stream, memory, 0, bytes, err);
}

static gm_status supply_ask_device(gm_pool *pool, const gm__want *want, uint64_t bytes, gm_memory *out, gm_error *err) {
  gm_device *device = pool->device;
  gm__device_request request = {.bytes = bytes,
                                .align = want->align,
                                .usage = want->usage,
                                .flags = want->flags & (GM_HOST_VISIBLE | (supply_commits(pool, want) ? 0 : GM_COMMIT)),
                                .must_be = want->must_be,
                                .beside_device = want->beside_device,
                                .managed = want->managed,
                                .share = want->beside_device || want->managed ? GM_SHARE_NONE : pool->share};
  gm__mutex_lock(&device->grow_lock);
  gm_status status =
      want->beside_device && !device->info.unified ? GM_OK : supply_check_room(device, bytes, want->managed, err);
  if (!status) status = gm__device_alloc(device, &request, out, err);
  gm__mutex_unlock(&device->grow_lock);
  return status;
}

static gm_status supply_ask(gm_pool *pool, const gm__want *want, uint64_t bytes, gm__node *node, gm_error *err) {
  uint64_t began = gm__now_ns();
  gm__marks_push(pool->marks, "allocation at the driver", pool->name, bytes);
  gm_status status = pool->has_upstream ? gm__upstream_take(pool, bytes, want->align, &node->memory, &node->token, err)
                                        : supply_ask_device(pool, want, bytes, &node->memory, err);
  gm__marks_pop(pool->marks);
  if (!pool->has_upstream) gm__error_of("gm_alloc", status, err);
  if (status == GM_ERR_OVER_LIMIT) return status; /* the backend was not asked */
  gm__stats_count(&pool->stats.driver_allocs, 1);
  gm__stats_count(&pool->stats.driver_ns, gm__now_ns() - began);
  return status;
}

/* Nobody watches over the memory any more. */
static void supply_let_go(const gm_pool *pool, const gm_memory *memory, const gm__node *node) {
  if (memory->host) gm__shadow_open(memory->host, memory->bytes);
  if (node->heap) gm__marks_heap_end(pool->marks, node->heap);
}

/* `memory` is the node's, or was: a node on its way back has given it up already. */
static void supply_give(gm_pool *pool, const gm_memory *memory, const gm__node *node) {
  uint64_t began = gm__now_ns();
  supply_let_go(pool, memory, node);
  gm__marks_push(pool->marks, "free at the driver", pool->name, memory->bytes);
  if (pool->has_upstream && !node->foreign) {
    gm__upstream_give(pool, memory, node->token);
  } else if (node->opened) {
    gm__share_release(pool->device, node->opened);
  } else {
    gm__device_free(pool->device, memory, NULL);
  }
  gm__marks_pop(pool->marks);
  gm__stats_count(&pool->stats.driver_frees, 1);
  gm__stats_count(&pool->stats.driver_ns, gm__now_ns() - began);
}

/* Fill the node and make it known by its address. */
static gm_status supply_enter(gm_pool *pool, const gm__want *want, uint64_t bytes, gm__node *node, gm_error *err) {
  node->bytes = bytes;
  node->align = want->align;
  node->usage = want->usage;
  node->must_be = want->must_be;
  node->size_class = want->size_class;
  node->committed = (want->flags & GM_COMMIT) != 0;
  node->foreign |= want->managed; /* goes back when it is freed */
  node->address = node->memory.address ? node->memory.address + node->offset : 0;
  gm_status status = GM_OK;
  if (!node->address) status = supply_address(pool->device, bytes, want->align, &node->address, err);
  if (status) return status;
  gm__mutex_lock(&pool->lock);
  status = gm__pointers_insert(&pool->pointers, node);
  gm__mutex_unlock(&pool->lock);
  if (status == GM_ERR_DRIVER && node->opened) status = GM_OK; /* imported twice: look-ups find the first */
  if (!status && pool->marks && !node->foreign) {
    node->heap = gm__marks_heap(pool->marks, pool->name, node->memory.address, bytes);
  }
  if (!status) return GM_OK;
  if (status == GM_ERR_DRIVER && node->foreign && !want->managed) {
    return gm__bad_argument(err, "gm_block_wrap", "`native` overlaps memory that pool \"%s\" has", pool->name);
  }
  return gm__fail(err, status, 0, "gm_alloc", "%s",
                  status == GM_ERR_DRIVER ? "the driver gave an address that overlaps memory it gave before"
                                          : "no host memory for the pool's addresses");
}

static gm_status supply_fill(gm_pool *pool, const gm__want *want, uint64_t bytes, gm__node *node, gm_error *err) {
  gm_status status = gm__pool_claim(pool, bytes, "gm_alloc", err);
  if (status) return status;
  status = supply_ask(pool, want, bytes, node, err);
  if (!status) {
    status = supply_commits(pool, want) ? supply_commit(pool, want, bytes, &node->memory, err) : GM_OK;
    if (!status) status = supply_enter(pool, want, bytes, node, err);
    if (status) supply_give(pool, &node->memory, node);
  }
  if (status) {
    gm__pool_unclaim(pool, bytes);
  } else {
    gm__stats_grow(&pool->stats.reserved_bytes, &pool->stats.peak_reserved_bytes, bytes);
  }
  return status;
}

gm_status gm__supply_take(gm_pool *pool, const gm__want *want, uint64_t bytes, gm__node **out, gm_error *err) {
  gm__mutex_lock(&pool->lock);
  gm__node *node = gm__node_take(&pool->nodes);
  gm__mutex_unlock(&pool->lock);
  if (!node) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "gm_alloc", "no host memory for the pool's table");
  gm_status status = supply_fill(pool, want, bytes, node, err);
  if (!status) {
    *out = node;
    return GM_OK;
  }
  gm__mutex_lock(&pool->lock);
  gm__node_give(&pool->nodes, node);
  gm__mutex_unlock(&pool->lock);
  return status;
}

gm_status gm__supply_adopt(gm_pool *pool, const gm__want *want, const gm_memory *memory, uint64_t offset,
                           gm__opened *opened, gm__node **out, gm_error *err) {
  gm__mutex_lock(&pool->lock);
  gm__node *node = gm__node_take(&pool->nodes);
  gm__mutex_unlock(&pool->lock);
  const char *op = opened ? "gm_block_import" : "gm_block_wrap";
  if (!node) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, op, "no host memory for the pool's table");
  gm_status status = gm__pool_claim(pool, want->bytes, op, err);
  if (status == GM_OK) {
    node->memory = *memory;
    node->offset = offset;
    node->opened = opened;
    node->foreign = true;
    status = supply_enter(pool, want, want->bytes, node, err);
    if (status != GM_OK) gm__pool_unclaim(pool, want->bytes);
  }
  if (status == GM_OK) {
    gm__stats_grow(&pool->stats.reserved_bytes, &pool->stats.peak_reserved_bytes, want->bytes);
    *out = node;
    return GM_OK;
  }
  gm__mutex_lock(&pool->lock);
  node->memory.handle = 0;
  gm__node_give(&pool->nodes, node);
  gm__mutex_unlock(&pool->lock);
  return status;
}

gm_status gm__supply_enter_range(gm_pool *pool, const gm_memory *memory, gm__segment *segment, gm_error *err) {
  gm_status status = GM_ERR_OUT_OF_HOST_MEMORY;
  gm__mutex_lock(&pool->lock);
  gm__node *node = gm__node_take(&pool->nodes);
  if (node) {
    node->memory = *memory;
    node->address = memory->address;
    node->bytes = memory->bytes;
    status = gm__pointers_insert(&pool->pointers, node);
    if (status == GM_OK) {
      node->segment = segment;
      node->state = GM__NODE_SEGMENT;
      segment->node = node;
    } else {
      node->memory.handle = 0;
      gm__node_give(&pool->nodes, node);
    }
  }
  gm__mutex_unlock(&pool->lock);
  if (status != GM_OK) return gm__fail(err, status, 0, "gm_alloc", "a range of addresses cannot be entered");
  if (pool->marks) node->heap = gm__marks_heap(pool->marks, pool->name, memory->address, memory->bytes);
  return GM_OK;
}

void gm__supply_leave_range(gm_pool *pool, gm__segment *segment) {
  if (segment->node->heap) gm__marks_heap_end(pool->marks, segment->node->heap);
  gm__mutex_lock(&pool->lock);
  gm__pointers_remove(&pool->pointers, segment->node);
  segment->node->memory.handle = 0;
  gm__node_give(&pool->nodes, segment->node);
  gm__mutex_unlock(&pool->lock);
}

void gm__supply_detach(gm_pool *pool, gm__leaving *leaving, gm__node *node) {
  gm__pool_pull(pool, node);
  gm__supply_leave(pool, leaving, node);
}

void gm__supply_leave(gm_pool *pool, gm__leaving *leaving, gm__node *node) {
  gm__pool_unmark(pool, node);
  gm__pointers_remove(&pool->pointers, node);
  gm__order_drop_point(&pool->order, &node->rare.mark);
  node->links[GM__BY_BUCKET].next = leaving->first;
  leaving->first = node;
  leaving->bytes += node->bytes;
}

void gm__supply_return(gm_pool *pool, gm__leaving *leaving) {
  if (!leaving->first) return;
  for (gm__node *node = leaving->first; node; node = node->links[GM__BY_BUCKET].next) {
    gm_memory memory = node->memory;
    node->memory.handle = 0; /* a process forked just now must not find it and free it again */
    gm__stats_uncount(&pool->stats.reserved_bytes, node->bytes); /* before others can have what the driver gets back */
    supply_give(pool, &memory, node);
    gm__pool_unclaim(pool, node->bytes);
  }
  gm__mutex_lock(&pool->lock);
  for (gm__node *node = leaving->first, *next; node; node = next) {
    next = node->links[GM__BY_BUCKET].next;
    gm__node_give(&pool->nodes, node);
  }
  gm__mutex_unlock(&pool->lock);
  leaving->first = NULL;
}

gm_status gm__supply_zero(gm_pool *pool, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err) {
  if (memory->host) {
    memset((unsigned char *)memory->host + offset, 0, bytes);
    return GM_OK;
  }
  const gm_device *device = pool->device;
  gm_stream *stream;
  gm_status status = gm__device_default_stream(pool->device, "gm_alloc", &stream, err);
  if (status) return status;
  return gm__submitting(device)->fill(device->handle, stream->handle, memory, offset, bytes, "", 1, NULL, err);
}

bool gm__supply_is_shortage(gm_status status) {
  return status == GM_ERR_OVER_LIMIT || status == GM_ERR_OUT_OF_DEVICE_MEMORY || status == GM_ERR_PINNED_LIMIT ||
         status == GM_ERR_ALLOCATION_TOO_LARGE;
}

/* Ask the order's streams how far they are, inside its lock. True: all are done. */
static bool supply_ask_order(gm__order *order, bool flush) {
  gm__order_refresh(order, UINT64_MAX);
  if (flush) gm__order_flush(order);
  return gm__order_is_done(order);
}

static bool supply_ask_streams(gm_pool *pool, bool flush) {
  gm__arena *arena;
  gm__mutex_lock(&pool->lock);
  bool done = supply_ask_order(&pool->order, flush);
  gm__mutex_unlock(&pool->lock);
  for (uint32_t i = 0; (arena = gm__arena_at(pool, i)); i++) {
    gm__arena_lock(arena);
    done &= supply_ask_order(&arena->order, flush);
    gm__arena_unlock(arena);
  }
  return done;
}

void gm__supply_await(gm_pool *pool) {
  bool flush = true;
  for (gm__poll poll = gm__poll_until(gm__deadline_after(supply_patience_ns));; flush = false) {
    if (supply_ask_streams(pool, flush) || !gm__poll_again(&poll)) return;
  }
}

uint64_t gm__supply_trim(gm_pool *pool, uint64_t keep_bytes, uint64_t freed_by) {
  gm__leaving leaving = {0};
  gm__marks_push(pool->marks, "trim", pool->name, keep_bytes);
  gm__supply_await(pool);
  gm__mutex_lock(&pool->lock);
  for (gm__node *node = pool->buckets.ages.last, *newer;
       node && gm__sub_sat(gm__pool_pooled(pool), leaving.bytes) > keep_bytes; node = newer) {
    newer = node->links[GM__BY_AGE].prev;
    if (!gm__freed_by(node->rare.mark.freed_at, freed_by)) continue;
    if (gm__pool_settle(pool, node)) gm__supply_detach(pool, &leaving, node);
  }
  gm__mutex_unlock(&pool->lock);
  gm__growth_trim(pool, keep_bytes, freed_by, &leaving);
  gm__supply_return(pool, &leaving);
  leaving.bytes += gm__vmm_trim(pool, keep_bytes, freed_by);
  gm__marks_pop(pool->marks);
  return leaving.bytes;
}

void gm__supply_end(gm_pool *pool) {
  bool forked = gm__pool_forked(pool);
  uint32_t cursor = 0;
  for (gm__node *node; (node = gm__node_next(&pool->nodes, &cursor));) {
    if (node->state == GM__NODE_UNUSED || !node->memory.handle) continue;
    if (node->state == GM__NODE_SEGMENT && node->segment->range) { /* the arena's */
      if (!forked && node->heap) gm__marks_heap_end(pool->marks, node->heap);
      continue;
    }
    if (forked && node->state == GM__NODE_AWAY) continue; /* a thread that is not here may be half through with it */
    if (!forked) supply_let_go(pool, &node->memory, node);
    if (pool->has_upstream && !node->foreign) {
      gm__upstream_give(pool, &node->memory, node->token);
      continue;
    }
    if (node->opened) {
      gm__share_release(pool->device, node->opened);
      continue;
    }
    bool noted = node->state == GM__NODE_POOLED && gm__device_is_charged(pool->device, &node->memory);
    if (noted && !forked) gm__device_note_pooled(pool->device, -(int64_t)node->bytes);
    gm__device_free(pool->device, &node->memory, NULL);
  }
}
