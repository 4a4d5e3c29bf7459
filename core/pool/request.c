#include "core/pool/request.h"

#include <inttypes.h>

#include "core/base/error.h"
#include "core/pool/pool.h"

enum {
  REQUEST_FLAGS =
      GM_ZERO | GM_INSERT_WAIT | GM_COMMIT | GM_HOST_VISIBLE | GM_SHAREABLE | GM_POOLED_ONLY | GM_ALLOW_SPANS,
  REQUEST_LATER = GM_EVICTABLE | GM_RELOCATABLE,
  REQUEST_USAGE = GM_USAGE_TRANSFER | GM_USAGE_STORAGE | GM_USAGE_UNIFORM | GM_USAGE_INDIRECT | GM_USAGE_READBACK
};

static gm_status request_check_words(const gm_request *request, gm_error *err) {
  const char *op = "gm_alloc";
  if (request->flags & REQUEST_LATER) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, op, "`flags` 0x%x: comes with a later version",
                    request->flags & REQUEST_LATER);
  }
  if (request->flags & ~(uint32_t)REQUEST_FLAGS) {
    return gm__bad_argument(err, op, "`flags` has bits that are none: 0x%x", request->flags & ~(uint32_t)REQUEST_FLAGS);
  }
  if (request->usage & ~(uint32_t)REQUEST_USAGE) {
    return gm__bad_argument(err, op, "`usage` has bits that are none: 0x%x", request->usage & ~(uint32_t)REQUEST_USAGE);
  }
  if ((unsigned)request->must_be > GM_ANYWHERE) {
    return gm__bad_argument(err, op, "`must_be` is %u, none of gm_must_be", (unsigned)request->must_be);
  }
  if (request->deadline_ns) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, op, "`deadline_ns` comes with a later version: it must be 0");
  }
  if (request->reserved[0] || request->reserved[1]) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, op, "`reserved` comes with a later version: it must be 0");
  }
  return GM_OK;
}

static gm_status request_check(const gm_pool *pool, const gm_request *request, gm_error *err) {
  const char *op = "gm_alloc";
  if (!request) return gm__bad_argument(err, op, "`request` is NULL");
  if (request->bytes == 0) return gm__bad_argument(err, op, "`bytes` is 0");
  if (request->align & (request->align - 1)) {
    return gm__bad_argument(err, op, "`align` must be a power of two, is %u", request->align);
  }
  if (request->stream && request->stream->device != pool->device) {
    const bool closed = gm__stream_is_closed(request->stream);
    return gm__bad_argument(err, op, closed ? "`stream` is closed" : "`stream` belongs to another device");
  }
  if (request->flags & GM_SHAREABLE && pool->share == GM_SHARE_NONE) {
    return gm__bad_argument(err, op, "GM_SHAREABLE: pool \"%s\" was not made to share (gm_pool_params.share)",
                            pool->name);
  }
  return request_check_words(request, err);
}

/* What the request would be asked of the device with. */
static gm__device_request request_of_device(const gm_pool *pool, const gm_request *request) {
  return (gm__device_request){
      .flags = request->flags & GM_HOST_VISIBLE, .must_be = request->must_be, .share = pool->share};
}

static gm_status request_check_kind(const gm_pool *pool, const gm_request *request, gm_error *err) {
  const gm__device_request asked = request_of_device(pool, request);
  if (pool->has_upstream || gm__device_has_type(pool->device, &asked)) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "gm_alloc", "%s has no memory that is %s%s%s", pool->device->info.name,
                  asked.must_be == GM_DEVICE_LOCAL ? "GM_DEVICE_LOCAL" : "",
                  asked.must_be == GM_DEVICE_LOCAL && asked.flags ? " and " : "", asked.flags ? "GM_HOST_VISIBLE" : "");
}

/* Zeroing, patterns and, on some devices, committing are work on a stream: the request's, or gm's own. */
static gm_status request_check_stream(const gm_pool *pool, const gm_request *request, gm_error *err) {
  const gm_device *device = pool->device;
  const bool zeroes = (request->flags & GM_ZERO) != 0, own = gm__device_makes_streams(device);
  const bool commits = request->flags & GM_COMMIT && !own && device->info.capabilities & GM_CAP_COMMIT_QUEUE;
  if (request->stream) {
    const bool writes = zeroes || (pool->guard && gm__guard_writes(pool->guard));
    if (!request->stream->silent || !(writes || commits)) return GM_OK;
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "gm_alloc",
                    "%s is work on `stream`, which the engine lent without leave to submit (may_submit false): name "
                    "another stream, or do it in the engine's own commands",
                    zeroes    ? "GM_ZERO"
                    : commits ? "GM_COMMIT"
                              : "filling red zones and patterns");
  }
  const gm__device_request asked = request_of_device(pool, request);
  const bool fills = zeroes && !own && (pool->has_upstream || !gm__device_has_host_types_only(device, &asked));
  if (!fills && !commits) return GM_OK;
  return gm__fail(
      err, GM_ERR_NOT_SUPPORTED, 0, "gm_alloc",
      "%s is work on a stream; the request names none, and gm has none of its own on this device: " GM__STREAM_ADVICE,
      fills ? "GM_ZERO" : "GM_COMMIT");
}

/* Can the device do what the request asks for, whatever memory there is? */
static gm_status request_check_device(const gm_pool *pool, const gm_request *request, gm_error *err) {
  gm_status status = request_check_kind(pool, request, err);
  return status ? status : request_check_stream(pool, request, err);
}

/* `bytes` in whole units of the device's alignment: what it takes at the least. */
static uint64_t request_exact(uint64_t bytes, uint64_t unit) {
  uint64_t more = (unit - bytes % unit) % unit;
  return more > UINT64_MAX - bytes ? UINT64_MAX : bytes + more;
}

gm_status gm__want_read(const gm_pool *pool, const gm_request *request, gm__want *out, gm_error *err) {
  gm_status status = request_check(pool, request, err);
  if (!status) status = request_check_device(pool, request, err);
  if (status) return status;
  const gm_device_info *info = &pool->device->info;
  uint64_t least = info->alignment ? info->alignment : 1;
  bool carves = pool->strategy == GM_STRATEGY_BEST_FIT;
  uint64_t align = request->align > least ? request->align : least, bytes = request->bytes;
  if (pool->guard) bytes = gm__guard_bytes(pool->guard, bytes, align);
  uint64_t exact = request_exact(bytes, carves ? pool->rules.granule : least);
  *out = (gm__want){
      .bytes = request->bytes,
      .exact = exact,
      .rounded = carves ? exact : gm__bucket_round(&pool->buckets, exact, least, info->max_alloc_bytes),
      .stream = request->stream,
      .align = (uint32_t)align,
      .flags = request->flags,
      .usage = request->usage ? request->usage : GM_USAGE_TRANSFER | GM_USAGE_STORAGE,
      .tag = request->tag,
      .size_class = gm__bucket_class(&pool->buckets, exact),
      .must_be = request->must_be,
      .insert = (request->flags & (GM_INSERT_WAIT | GM_ZERO)) != 0,
  };
  if (pool->guard) out->insert |= gm__guard_writes(pool->guard);
  return GM_OK;
}

static uint32_t request_memory_flags(const gm_pool *pool, const gm__node *node) {
  return node->memory.type < pool->device->type_count ? pool->device->types[node->memory.type].flags : 0;
}

bool gm__want_fits(const gm_pool *pool, const gm__want *want, const gm__node *node) {
  if (node->bytes < want->exact || node->must_be > want->must_be || want->usage & ~node->usage) return false;
  if (want->flags & GM_COMMIT && !node->committed) return false;
  if (want->beside_device && request_memory_flags(pool, node) & GM_MEMORY_DEVICE_LOCAL) return false;
  uint32_t visible = request_memory_flags(pool, node) & (GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_POINTER);
  if (want->flags & GM_HOST_VISIBLE && !visible) return false;
  return node->align >= want->align || (node->memory.address && node->memory.address % want->align == 0);
}
