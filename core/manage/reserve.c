#include "gm/reserve.h"

#include <stdio.h>

#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/pool/pool.h"
#include "core/room/holding.h"
#include "gm/fit.h"

/* Invariants: a reservation counts among the children of its device. One with a pool counts among the pool's guests, so
 * neither goes before it. A pool that was ended by force leaves its object until the context ends. */

struct gm_reservation {
  gm__object head;
  gm_device *device;
  _Atomic(gm_pool *) pool; /* NULL: not committed; set once */
  gm__holding promise;
  char name[GM_RESERVATION_NAME_SIZE];
};

static gm__claim *reservation_claim(const gm_reservation *reservation) {
  gm_pool *pool = atomic_load(&reservation->pool);
  return pool ? &pool->heap.provider.claim : NULL;
}

static gm_status reservation_check(const gm_reservation *reservation, const char *op, gm_error *err) {
  if (!reservation) return gm__bad_argument(err, op, "`reservation` is NULL");
  if (!gm__object_is(&reservation->head, GM__KIND_RESERVATION)) {
    return gm__bad_argument(err, op, "`reservation` is no reservation");
  }
  return gm__device_check(reservation->device, op, err);
}

/* ---- begin and end ---- */

/* Idle memory of the device's pools goes back for it. */
static gm_status reservation_promise(gm_device *device, const gm__claim *claim, uint64_t bytes, gm__holding *promise,
                                     const char *op, gm_error *err) {
  uint64_t lack;
  gm_status status = gm__holding_make(claim, bytes, promise, &lack, op, err);
  if (status == GM_ERR_OVER_LIMIT && gm__reclaimers_trim(device, NULL, lack))
    status = gm__holding_make(claim, bytes, promise, &lack, op, err);
  return status;
}

/* Within the limits of a claim. */
static gm_status reservation_make(gm_device *device, const gm__claim *claim, uint64_t bytes, const char *name,
                                  const char *op, gm_reservation **out, gm_error *err) {
  if (!bytes) return gm__bad_argument(err, op, "0 bytes are asked for");
  gm_reservation *made = gm__object_new(device->ctx, GM__KIND_RESERVATION, sizeof *made);
  if (!made) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a reservation");
  const gm_status status = reservation_promise(device, claim, bytes, &made->promise, op, err);
  if (status) {
    gm__object_end(device->ctx, &made->head);
    return status;
  }
  made->device = device;
  snprintf(made->name, sizeof made->name, "%s", name);
  atomic_fetch_add(&device->children, 1);
  *out = made;
  return GM_OK;
}

gm_status gm_reserve(gm_device *device, const gm_reserve_params *params, gm_reservation **out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_reserve";
  gm_reserve_params asked;
  gm_status status = gm__device_check(device, op, err);
  if (!status && !out) status = gm__bad_argument(err, op, "`out` is NULL");
  if (!status) status = gm__sized_in(&asked, sizeof asked, params, op, "params", err);
  if (status) return status;
  if (asked.flags) return gm__bad_argument(err, op, "`params->flags` has unknown bits: 0x%x", asked.flags);
  const gm__claim anybody = {.room = &device->room};
  return reservation_make(device, &anybody, asked.bytes, asked.name ? asked.name : "reservation", op, out, err);
}

void gm_reservation_cancel(gm_reservation *reservation) {
  GM__UNCANCELLED();
  if (!reservation || !gm__object_is(&reservation->head, GM__KIND_RESERVATION)) return;
  gm_device *device = reservation->device;
  gm_pool *pool = atomic_load(&reservation->pool);
  if (!gm__context_forked(device->ctx)) {
    gm__holding_end(&device->room, &reservation->promise, reservation_claim(reservation));
  }
  if (pool) atomic_fetch_sub(&pool->guests, 1);
  gm__object_end(device->ctx, &reservation->head);
  atomic_fetch_sub(&device->children, 1);
}

/* ---- for a pool ---- */

static gm_status reservation_check_pool(const gm_device *device, const gm_pool *pool, const char *op, gm_error *err) {
  const gm_status status = gm__pool_alive(pool, op, err);
  if (status) return status;
  if (device->ctx != pool->ctx || device->room.card != pool->device->room.card) {
    return gm__bad_argument(err, op, "`pool` is of another context or card than the reservation");
  }
  if (!pool->heap.provider.has_upstream) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "pool \"%s\" has an upstream, whose memory gm does not count",
                  pool->heap.provider.name);
}

gm_status gm_reservation_commit(gm_reservation *reservation, gm_pool *pool, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_reservation_commit";
  gm_pool *none = NULL;
  gm_status status = reservation_check(reservation, op, err);
  if (!status) status = reservation_check_pool(reservation->device, pool, op, err);
  if (status) return status;
  atomic_fetch_add(&pool->guests, 1);
  if (!atomic_compare_exchange_strong(&reservation->pool, &none, pool)) {
    atomic_fetch_sub(&pool->guests, 1);
    return gm__bad_argument(err, op, "`reservation` has a pool already");
  }
  gm__holding_bind(&reservation->promise, &pool->heap.provider.claim);
  return GM_OK;
}

gm_status gm_pool_reserve(gm_pool *pool, uint64_t bytes, gm_reservation **out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_pool_reserve";
  gm_status status = gm__pool_alive(pool, op, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  status = reservation_check_pool(pool->device, pool, op, err);
  if (status) return status;
  const gm__provider *provider = &pool->heap.provider;
  gm_reservation *made = NULL;
  status = reservation_make(pool->device, &provider->claim, bytes, provider->name, op, &made, err);
  if (status) return status;
  status = gm_reservation_commit(made, pool, err);
  if (status) {
    gm_reservation_cancel(made);
  } else {
    *out = made;
  }
  return status;
}

/* ---- figures, and a whole plan ---- */

gm_status gm_reservation_read(const gm_reservation *reservation, gm_reservation_info *out, gm_error *err) {
  static const char op[] = "gm_reservation_read";
  gm_status status = reservation_check(reservation, op, err);
  if (!status) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  const gm_pool *pool = atomic_load(&reservation->pool);
  gm_reservation_info info = {.struct_size = sizeof info,
                              .shared = gm__card_is_shared(reservation->device->room.card),
                              .bytes = reservation->promise.bytes};
  info.left_bytes = gm__holding_left(&reservation->promise);
  info.taken_bytes = info.bytes - info.left_bytes;
  snprintf(info.name, sizeof info.name, "%s", reservation->name);
  if (pool) snprintf(info.pool, sizeof info.pool, "%s", pool->heap.provider.name);
  gm__sized_out(out, &info, sizeof info);
  return GM_OK;
}

static gm_status fit_commit_one(gm_device *device, const gm_fit_part *part, uint32_t number, gm_reservation **out,
                                gm_error *err) {
  static const char op[] = "gm_fit_commit";
  char name[GM_RESERVATION_NAME_SIZE];
  if (!part->bytes) return GM_OK;
  snprintf(name, sizeof name, "fit %u", number);
  const gm_status status = gm__device_check(device, op, err);
  if (status) return status;
  const gm__claim anybody = {.room = &device->room};
  return reservation_make(device, &anybody, part->bytes, name, op, out, err);
}

gm_status gm_fit_commit(gm_device *const *devices, const gm_fit_part *parts, uint32_t count, gm_reservation **out,
                        gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_fit_commit";
  if (!devices || !parts || !out) return gm__bad_argument(err, op, "`devices`, `parts` or `out` is NULL");
  if (count > GM_FIT_DEVICES_MAX) return gm__bad_argument(err, op, "`count` is %u, at most 64 is possible", count);
  gm_status status = GM_OK;
  for (uint32_t i = 0; i < count; i++) out[i] = NULL;
  for (uint32_t i = 0; i < count && !status; i++) status = fit_commit_one(devices[i], &parts[i], i, &out[i], err);
  for (uint32_t i = 0; i < count && status; i++) {
    gm_reservation_cancel(out[i]);
    out[i] = NULL;
  }
  return status;
}
