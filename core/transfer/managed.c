#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/base/thread.h"
#include "core/block/access.h"
#include "core/manage/explain.h"
#include "core/pool/alloc.h"
#include "gm/copy.h"
#include "gm/managed.h"

/* Invariant of GM_MANAGED_COPIED: each unit has one holder, which changes only after the backend took the copy of the
 * unit. */

enum { MANAGED_UNIT = 64 << 10 };

struct gm_managed {
  gm__object head;
  gm_pool *pool;
  gm_managed_kind kind;
  gm_block block;
  uint64_t bytes;
  void *host;                     /* of COPIED: gm's own memory */
  gm__mutex lock;                 /* held through a prefetch */
  _Atomic unsigned char *holders; /* of COPIED: a gm_managed_place for each unit; changed under the lock */
  uint64_t units;
};

static bool managed_has_type(const gm_pool *pool) {
  const gm_device *device = pool->device;
  if (pool->heap.provider.has_upstream || !(device->info.capabilities & GM_CAP_MANAGED)) return false;
  for (uint32_t i = 0; i < device->type_count; i++) {
    if (device->types[i].flags & GM_MEMORY_MANAGED) return true;
  }
  return false;
}

static const gm_services *managed_services(const gm_managed *managed) {
  return gm__context_services(managed->pool->ctx);
}

/* The block's host address; NULL: it has none. */
static void *managed_find_host(const gm_managed *managed) {
  gm__access access;
  if (gm__access_open(managed->pool, &managed->block, 0, 0, "gm_managed_create", &access, NULL)) return NULL;
  return access.memory.host ? (char *)access.memory.host + access.offset : NULL;
}

/* The types that host and device can use at once, on a device whose memory is the host's: bit 1 << index. */
static uint32_t managed_shared_types(const gm_pool *pool) {
  const gm_device *device = pool->device;
  const uint32_t never = GM_MEMORY_MANAGED | GM_MEMORY_APART,
                 wanted = GM_MEMORY_PERSISTENT_MAP | GM_MEMORY_HOST_COHERENT;
  uint32_t types = 0;
  if (!device->info.unified || pool->heap.provider.has_upstream) return 0;
  for (uint32_t i = 0; i < device->type_count; i++) {
    const uint32_t flags = device->types[i].flags;
    if ((flags & wanted) == wanted && !(flags & never)) types |= UINT32_C(1) << i;
  }
  return types;
}

static void managed_free_copy(gm_managed *managed) {
  gm__release(managed_services(managed), managed->holders, (size_t)managed->units);
  gm__release(managed_services(managed), managed->host, (size_t)managed->bytes);
}

static void managed_hold(const gm_managed *managed, uint64_t unit, uint64_t count, gm_managed_place place) {
  for (uint64_t i = unit; i < unit + count; i++) {
    atomic_store_explicit(&managed->holders[i], (unsigned char)place, memory_order_relaxed);
  }
}

static gm_managed_place managed_holder(const gm_managed *managed, uint64_t unit) {
  return (gm_managed_place)atomic_load_explicit(&managed->holders[unit], memory_order_relaxed);
}

static gm_status managed_alloc_copy(gm_managed *managed, gm_error *err) {
  const gm_services *services = managed_services(managed);
  managed->kind = GM_MANAGED_COPIED;
  managed->units = (managed->bytes - 1) / MANAGED_UNIT + 1;
  managed->holders = gm__alloc(services, (size_t)managed->units);
  if (managed->holders) managed->host = gm__alloc(services, (size_t)managed->bytes);
  if (managed->host) {
    managed_hold(managed, 0, managed->units, GM_MANAGED_ON_HOST);
    return GM_OK;
  }
  gm__release(services, managed->holders, (size_t)managed->units);
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_managed_create", "no host memory for %" PRIu64 " bytes",
                  managed->bytes);
}

static gm_status managed_alloc_native(gm_managed *managed, const gm_request *request, gm_error *err) {
  gm_status status = gm__pool_alloc_managed(managed->pool, request, &managed->block, err);
  if (status) return status;
  managed->kind = GM_MANAGED_NATIVE;
  managed->host = managed_find_host(managed);
  if (managed->host) return GM_OK;
  gm_free(managed->pool, &managed->block, NULL);
  return gm__fail(err, GM_ERR_DRIVER, "gm_managed_create", "the driver's managed memory has no host address");
}

/* Is a refusal of shared memory one of these types alone? The pool has none of them, or the driver gives none. */
static bool managed_may_copy(gm_acquire answer) {
  return answer == GM_ACQUIRE_INVALID || answer == GM_ACQUIRE_EXHAUSTED || answer == GM_ACQUIRE_FAILED;
}

static gm_status managed_alloc_block(gm_managed *managed, const gm_request *request, gm_error *err) {
  gm_pool *pool = managed->pool;
  gm_request wish = *request;
  wish.memory_types = managed_shared_types(pool);
  gm_acquire answer = gm_alloc(pool, &wish, &managed->block);
  if (managed_may_copy(answer) && wish.memory_types) {
    wish.memory_types = 0;
    answer = gm_alloc(pool, &wish, &managed->block);
  }
  if (answer != GM_ACQUIRE_OK && answer != GM_ACQUIRE_FRESH) {
    return gm__explain_refusal(pool, &wish, answer, "gm_managed_create", err);
  }
  managed->kind = GM_MANAGED_UNIFIED;
  if (pool->device->info.unified) managed->host = managed_find_host(managed);
  if (!managed->host && wish.memory_types) (void)gm_block_host(pool, &managed->block, &managed->host, NULL);
  gm_status status = managed->host ? GM_OK : managed_alloc_copy(managed, err);
  if (status) gm_free(pool, &managed->block, NULL);
  return status;
}

static gm_status managed_fill(gm_managed *managed, const gm_managed_params *params, gm_error *err) {
  const gm_request request = {.bytes = params->bytes,
                              .align = params->align,
                              .flags = GM_INSERT_WAIT,
                              .tag = params->tag,
                              .usage = params->usage};
  managed->bytes = params->bytes;
  gm_status status = managed_has_type(managed->pool) ? managed_alloc_native(managed, &request, err)
                                                     : managed_alloc_block(managed, &request, err);
  if (status == GM_OK && params->zero && managed->kind != GM_MANAGED_COPIED) {
    memset(managed->host, 0, (size_t)managed->bytes); /* gm's own memory is zeroed already */
  }
  return status;
}

static gm_status managed_check_params(const gm_pool *pool, const gm_managed_params *params, gm_managed *const *out,
                                      gm_managed_params *asked, gm_error *err) {
  static const char op[] = "gm_managed_create";
  gm_status status = gm__pool_alive(pool, op, err);
  if (status) return status;
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  status = gm__sized_in(asked, sizeof *asked, params, op, "params", err);
  if (status) return status;
  if (asked->bytes == 0) return gm__bad_argument(err, op, "`bytes` is 0");
  if (asked->bytes <= PTRDIFF_MAX) return GM_OK;
  return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, op, "%" PRIu64 " bytes have no host address", asked->bytes);
}

gm_status gm_managed_create(gm_pool *pool, const gm_managed_params *params, gm_managed **out, gm_error *err) {
  GM__UNCANCELLED();
  gm_managed_params asked;
  gm_status status = managed_check_params(pool, params, out, &asked, err);
  if (status) return status;
  gm_context *ctx = pool->ctx;
  gm_managed *managed = gm__object_new(ctx, GM__KIND_MANAGED, sizeof *managed);
  if (!managed) {
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_managed_create", "no host memory for the object");
  }
  managed->pool = pool;
  status = managed_fill(managed, &asked, err);
  if (status) {
    gm__object_end(ctx, &managed->head);
    return status;
  }
  gm__mutex_init(&managed->lock, GM__RANK_MANAGED);
  *out = managed;
  return GM_OK;
}

/* True for an object that is not NULL and, in debug builds, not destroyed. */
static bool managed_is(const gm_managed *managed) { return managed && gm__object_is(&managed->head, GM__KIND_MANAGED); }

static gm_status managed_check(const gm_managed *managed, const char *op, gm_error *err) {
  if (!managed) return gm__bad_argument(err, op, "`managed` is NULL");
  if (!managed_is(managed)) return gm__bad_argument(err, op, "`managed` is destroyed");
  return gm__pool_alive(managed->pool, op, err);
}

gm_status gm_managed_destroy(gm_managed *managed, gm_stream *stream, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_managed_destroy";
  if (!managed) return GM_OK;
  if (!managed_is(managed)) return gm__bad_argument(err, op, "`managed` is destroyed");
  gm_context *ctx = managed->pool->ctx;
  bool forked = gm__context_forked(ctx);
  if (!forked && stream && gm__pool_lives(managed->pool)) {
    gm_stream *on;
    gm_status status = gm__access_stream(managed->pool->device, stream, op, &on, err);
    if (status == GM_OK) status = gm__access_settle(on, err);
    if (status && status != GM_ERR_DEVICE_LOST) return status; /* nothing runs on a lost device any more */
  }
  gm_status status = forked ? GM_OK : gm_free(managed->pool, &managed->block, NULL);
  if (status == GM_ERR_BUSY) return gm__fail(err, status, op, "the block is mapped");
  if (managed->kind == GM_MANAGED_COPIED) managed_free_copy(managed);
  if (!forked) gm__mutex_destroy(&managed->lock);
  gm__object_end(ctx, &managed->head);
  return GM_OK;
}

void *gm_managed_host(const gm_managed *managed) { return managed_is(managed) ? managed->host : NULL; }

const gm_block *gm_managed_block(const gm_managed *managed) { return managed_is(managed) ? &managed->block : NULL; }

bool gm_managed_is_native(const gm_managed *managed) {
  return managed_is(managed) && managed->kind == GM_MANAGED_NATIVE;
}

/* Bytes of at most `count` units from `unit` on. */
static uint64_t managed_unit_bytes(const gm_managed *managed, uint64_t unit, uint64_t count) {
  const uint64_t from = unit * MANAGED_UNIT, whole = count * MANAGED_UNIT;
  return whole < managed->bytes - from ? whole : managed->bytes - from;
}

gm_status gm_managed_get_info(gm_managed *managed, gm_managed_info *out, gm_error *err) {
  static const char op[] = "gm_managed_get_info";
  gm_status status = managed_check(managed, op, err);
  if (!status) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  gm_managed_info info = {.struct_size = sizeof info,
                          .kind = managed->kind,
                          .advice = managed->kind == GM_MANAGED_NATIVE,
                          .bytes = managed->bytes,
                          .unit_bytes = managed->kind == GM_MANAGED_COPIED ? MANAGED_UNIT : 0};
  for (uint64_t i = 0; i < managed->units; i++) {
    if (managed_holder(managed, i) == GM_MANAGED_ON_DEVICE) info.device_bytes += managed_unit_bytes(managed, i, 1);
  }
  gm__sized_out(out, &info, sizeof info);
  return GM_OK;
}

static gm_status managed_check_range(const gm_managed *managed, gm_managed_place place, uint64_t offset, uint64_t bytes,
                                     const char *op, gm_error *err) {
  gm_status status = managed_check(managed, op, err);
  if (status) return status;
  if (place != GM_MANAGED_ON_DEVICE && place != GM_MANAGED_ON_HOST) {
    return gm__bad_argument(err, op, "`place` is %d, none of gm_managed_place", (int)place);
  }
  if (offset <= managed->bytes && bytes <= managed->bytes - offset) return GM_OK;
  return gm__bad_argument(err, op, "`offset` %" PRIu64 " and `bytes` %" PRIu64 " reach beyond the %" PRIu64 " bytes",
                          offset, bytes, managed->bytes);
}

typedef struct managed_move {
  gm_managed *managed;
  gm_managed_place place;
  gm_stream *stream; /* never NULL */
  const char *op;
} managed_move;

/* Copies neighbouring units that the other side holds. */
static gm_status managed_copy(const managed_move *move, uint64_t unit, uint64_t count, gm_error *err) {
  gm_managed *managed = move->managed;
  gm__access access;
  gm_point point = {0, 0, 0};
  const uint64_t from = unit * MANAGED_UNIT, bytes = managed_unit_bytes(managed, unit, count);
  char *host = (char *)managed->host + from;
  gm_status status = gm__access_open(managed->pool, &managed->block, from, bytes, move->op, &access, err);
  if (status) return status;
  status = move->place == GM_MANAGED_ON_DEVICE ? gm__access_write(&access, host, move->stream, &point, move->op, err)
                                               : gm__access_read(&access, host, move->stream, &point, move->op, err);
  if (status) return status;
  gm_point_release(access.device, &point);
  managed_hold(managed, unit, count, move->place);
  return GM_OK;
}

static gm_status managed_move_units(const managed_move *move, uint64_t offset, uint64_t bytes, gm_error *err) {
  const gm_managed *managed = move->managed;
  const uint64_t end = (offset + bytes - 1) / MANAGED_UNIT + 1;
  gm_status status = gm_stream_barrier(move->stream, err);
  for (uint64_t unit = offset / MANAGED_UNIT, next; unit < end && status == GM_OK; unit = next) {
    const bool there = managed_holder(managed, unit) == move->place;
    for (next = unit + 1; next < end && (managed_holder(managed, next) == move->place) == there;) next++;
    if (!there) status = managed_copy(move, unit, next - unit, err);
  }
  return status ? status : gm_stream_barrier(move->stream, err);
}

static gm_status managed_prefetch_native(const managed_move *move, uint64_t offset, uint64_t bytes, gm_error *err) {
  gm__access access;
  gm_backend_point point = {0, 0};
  gm_pool *pool = move->managed->pool;
  gm_status status = gm__access_open(pool, &move->managed->block, offset, bytes, move->op, &access, err);
  if (status) return status;
  const gm_device *device = access.device;
  status = gm__submitting(device)->managed_prefetch(device->handle, move->stream->handle, &access.memory, access.offset,
                                                    bytes, move->place, &point, err);
  if (status == GM_OK) device->ops->point_release(device->handle, &point, GM_CLOSE_NORMAL);
  return status;
}

gm_status gm_managed_prefetch(gm_managed *managed, gm_managed_place place, uint64_t offset, uint64_t bytes,
                              gm_stream *stream, gm_point *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_managed_prefetch";
  managed_move move = {managed, place, NULL, op};
  gm_status status = managed_check_range(managed, place, offset, bytes, op, err);
  if (status == GM_OK) status = gm__access_stream(managed->pool->device, stream, op, &move.stream, err);
  if (status) return status;
  gm__mutex_lock(&managed->lock);
  if (bytes && managed->kind == GM_MANAGED_NATIVE) status = managed_prefetch_native(&move, offset, bytes, err);
  if (bytes && managed->kind == GM_MANAGED_COPIED) status = managed_move_units(&move, offset, bytes, err);
  if (bytes && managed->kind == GM_MANAGED_UNIFIED && place == GM_MANAGED_ON_HOST) {
    status = gm_stream_barrier(move.stream, err); /* the host sees what the device wrote */
  }
  gm__mutex_unlock(&managed->lock);
  if (status) return status;
  if (stream && out) return gm_stream_record(stream, out, err);
  if (out) *out = (gm_point){0, 0, 0};
  return gm__access_settle(move.stream, err);
}

gm_status gm_managed_advise(gm_managed *managed, gm_managed_advice advice, gm_managed_place place, uint64_t offset,
                            uint64_t bytes, bool give, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_managed_advise";
  gm__access access;
  gm_status status = managed_check_range(managed, place, offset, bytes, op, err);
  if (status) return status;
  if ((unsigned)advice > GM_ADVICE_ACCESSED_FROM) {
    return gm__bad_argument(err, op, "`advice` is %d, none of gm_managed_advice", (int)advice);
  }
  if (managed->kind != GM_MANAGED_NATIVE) return GM_OK;
  status = gm__access_open(managed->pool, &managed->block, offset, bytes, op, &access, err);
  if (status) return status;
  return access.device->ops->managed_advise(access.device->handle, &access.memory, access.offset, bytes, advice, place,
                                            give, err);
}
