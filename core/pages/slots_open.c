/* How a set of slots begins and ends. */
#include <inttypes.h>
#include <stdatomic.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/device/device.h"
#include "core/pages/page_planes.h"
#include "core/pages/slot_choice.h"

gm_status gm__slots_check(const gm_slots *set, const char *op, gm_error *err) {
  if (!set) return gm__bad_argument(err, op, "`slots` is NULL");
  if (!gm__object_is(&set->head, GM__KIND_SLOTS)) return gm__bad_argument(err, op, "`slots` is destroyed");
  return gm__context_check(set->ctx, op, err);
}

static gm_status slots_params_read(const gm_slots_params *params, gm_slots_params *out, gm_error *err) {
  static const char op[] = "gm_slots_create";
  const gm_status status = gm__sized_in(out, sizeof *out, params, op, "params", err);
  if (status) return status;
  const gm_request *request = out->request;
  if (!out->slots || out->slots > GM_SLOTS_MOST)
    return gm__bad_argument(err, op, "`params->slots` is %u, not 1 to %d", out->slots, GM_SLOTS_MOST);
  if (!out->slot_bytes || out->slot_bytes > UINT64_MAX / out->slots - GM_SLOT_STRIDE_UNIT)
    return gm__bad_argument(err, op, "`params->slot_bytes` is %" PRIu64, out->slot_bytes);
  if (!out->load) return gm__bad_argument(err, op, "`params->load` is NULL");
  if (out->flags & ~(uint32_t)GM_SLOTS_LRU || out->reserved)
    return gm__bad_argument(err, op, "`params->flags` is %#x, which has an unknown flag", out->flags);
  if (request && (request->bytes || request->stream || request->flags & GM_ALLOW_SPANS))
    return gm__bad_argument(err, op, "`params->request` has bytes, a stream or GM_ALLOW_SPANS");
  return GM_OK;
}

/* Gives back all host memory. */
static void slots_end(gm_slots *set, bool forked) {
  gm_context *ctx = set->ctx;
  const gm_services *services = gm__slots_services(set);
  size_t cursor = 0;
  for (gm__key_entry *entry = gm__key_map_next(&set->map, &cursor, NULL), *next; entry; entry = next) {
    next = gm__key_map_next(&set->map, &cursor, entry);
    gm__key_map_unlink(&set->map, entry);
    gm__slots_entry_end(set, (gm__slots_entry *)entry);
  }
  gm__key_map_clear(&set->map);
  gm__cache_policy_end(&set->policy);
  gm__page_pieces_end(services, &set->lease_table);
  gm__release(services, set->slots, set->count * sizeof *set->slots);
  if (!forked) gm__cond_destroy(&set->changed);
  if (!forked) gm__mutex_destroy(&set->lock);
  gm__object_end(ctx, &set->head);
  atomic_fetch_sub(&ctx->children, 1);
}

static void slots_begin(gm_slots *set, gm_pool *pool, const gm_slots_params *asked) {
  static _Atomic uint32_t turns;
  set->device = gm_pool_device(pool);
  set->ctx = set->device->ctx;
  set->pool = pool;
  set->load = asked->load;
  set->user = asked->user;
  set->count = asked->slots;
  set->slot_bytes = asked->slot_bytes;
  set->stride = gm__round_up(asked->slot_bytes, GM_SLOT_STRIDE_UNIT);
  set->free_first = GM__NO_SLOT;
  set->lease_table.entry_bytes = sizeof(gm__slot_lease);
  set->lease_turn = (atomic_fetch_add(&turns, 1) + 1) * UINT32_C(0x9E3779B1);
  gm__mutex_init(&set->lock, GM__RANK_LEAF);
  gm__cond_init(&set->changed);
  gm__key_map_init(&set->map, gm__slots_services(set));
  gm__cache_policy_init(&set->policy, asked->flags & GM_SLOTS_LRU ? GM__CACHE_LRU : GM__CACHE_S3FIFO,
                        gm__slots_services(set));
  set->slots = gm__alloc_array(gm__slots_services(set), set->count, sizeof *set->slots);
  for (uint32_t i = set->count; set->slots && i-- > 0;) {
    set->slots[i].next = set->free_first;
    set->free_first = (int32_t)i;
  }
  set->stats = (gm_slots_stats){.slots = set->count, .stride = set->stride};
  atomic_fetch_add(&set->ctx->children, 1);
}

static gm_status slots_memory(gm_slots *set, const gm_request *wishes, gm_error *err) {
  static const char op[] = "gm_slots_create";
  if (!set->slots) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for %u slots", set->count);
  gm_request request = wishes ? *wishes : (gm_request){.bytes = 0};
  request.bytes = set->count * set->stride;
  const gm_acquire answer = gm_alloc(set->pool, &request, &set->block);
  set->stats.bytes = set->block.bytes;
  return gm_acquired(answer) ? GM_OK : gm__page_pool_refused(answer, request.bytes, op, err);
}

gm_status gm_slots_create(gm_pool *pool, const gm_slots_params *params, gm_slots **out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_slots_create";
  gm_slots_params asked;
  const gm_device *device = gm_pool_device(pool);
  if (!device) return gm__bad_argument(err, op, "`pool` is NULL or destroyed");
  gm_status status = gm__context_check(device->ctx, op, err);
  if (!status && !out) status = gm__bad_argument(err, op, "`out` is NULL");
  if (!status) status = slots_params_read(params, &asked, err);
  if (status) return status;
  gm_slots *set = gm__object_new(device->ctx, GM__KIND_SLOTS, sizeof *set);
  if (!set) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a set of slots");
  slots_begin(set, pool, &asked);
  status = slots_memory(set, asked.request, err);
  if (status)
    slots_end(set, false);
  else
    *out = set;
  return status;
}

static gm_status slots_release_memory(gm_slots *set, gm_error *err) {
  static const char op[] = "gm_slots_destroy";
  gm_error why = {.status = GM_OK};
  gm__mutex_lock(&set->lock);
  const uint64_t leases = set->stats.leases;
  for (uint32_t i = 0; i < set->count && !leases && !why.status; i++) {
    gm__slot_settle(set, &set->slots[i], true, &why);
  }
  gm__mutex_unlock(&set->lock);
  if (leases) return gm__fail(err, GM_ERR_BUSY, op, "%" PRIu64 " leases are open", leases);
  if (why.status && err) *err = why;
  if (why.status) return gm__error_of(op, why.status, err);
  const gm_status status = gm_free(set->pool, &set->block, NULL);
  if (status == GM_ERR_BUSY) return gm__fail(err, status, op, "the block of the slots is mapped");
  for (uint32_t i = 0; i < set->count; i++) gm_point_release(set->device, &set->slots[i].ready);
  return GM_OK;
}

gm_status gm_slots_destroy(gm_slots *slots, gm_error *err) {
  GM__UNCANCELLED();
  if (!slots) return GM_OK;
  gm_status status = gm__slots_check(slots, "gm_slots_destroy", err);
  if (status == GM_ERR_INVALID_ARGUMENT) return status;
  const bool forked = status == GM_ERR_FORKED; /* no lock then: nobody is left who could release it */
  status = forked ? GM_OK : slots_release_memory(slots, err);
  if (!status) slots_end(slots, forked);
  return status;
}
