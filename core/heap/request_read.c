#include "core/heap/request_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/error.h"
#include "core/base/saturate.h"

enum {
  REQUEST_FLAGS = GM_ZERO | GM_INSERT_WAIT | GM_COMMIT | GM_HOST_VISIBLE | GM_SHAREABLE | GM_POOLED_ONLY |
                  GM_ALLOW_SPANS | GM_DEDICATED | GM_MAPPED,
  REQUEST_OF_BUFFERS = GM_EVICTABLE | GM_RELOCATABLE,
  REQUEST_USAGE = GM_USAGE_TRANSFER | GM_USAGE_STORAGE | GM_USAGE_UNIFORM | GM_USAGE_INDIRECT | GM_USAGE_READBACK
};

static gm_status request_check_words(const gm_request *request, gm_error *err) {
  const char *op = "gm_alloc";
  if (request->flags & REQUEST_OF_BUFFERS) {
    return gm__bad_argument(err, op, "`flags`: GM_EVICTABLE and GM_RELOCATABLE are for buffers (gm_buffer_create)");
  }
  if (request->flags & ~(uint32_t)REQUEST_FLAGS) {
    return gm__bad_argument(err, op, "`flags` has unknown bits: 0x%x", request->flags & ~(uint32_t)REQUEST_FLAGS);
  }
  if (request->usage & ~(uint32_t)REQUEST_USAGE) {
    return gm__bad_argument(err, op, "`usage` has unknown bits: 0x%x", request->usage & ~(uint32_t)REQUEST_USAGE);
  }
  if ((unsigned)request->must_be > GM_ANYWHERE) {
    return gm__bad_argument(err, op, "`must_be` is %u, none of gm_must_be", (unsigned)request->must_be);
  }
  if (request->reserved[0]) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "`reserved` comes with a later version: it must be 0");
  }
  return GM_OK;
}

static gm_status request_check(const gm__heap *heap, const gm_request *request, gm_error *err) {
  const char *op = "gm_alloc";
  if (!request) return gm__bad_argument(err, op, "`request` is NULL");
  if (request->bytes == 0) return gm__bad_argument(err, op, "`bytes` is 0");
  if (request->align & (request->align - 1)) {
    return gm__bad_argument(err, op, "`align` must be a power of two, is %u", request->align);
  }
  if (request->stream && request->stream->device != heap->device) {
    const bool closed = gm__stream_is_closed(request->stream);
    return gm__bad_argument(err, op, closed ? "`stream` is closed" : "`stream` belongs to another device");
  }
  if (request->flags & GM_SHAREABLE && heap->provider.share == GM_SHARE_NONE) {
    return gm__bad_argument(err, op, "GM_SHAREABLE: pool \"%s\" was not made to share (gm_pool_params.share)",
                            heap->provider.name);
  }
  return request_check_words(request, err);
}

/* A block of several memories is neither one driver allocation nor one mapping. */
static gm_status request_check_pair(const gm_request *request, gm_error *err) {
  const uint32_t whole = request->flags & (GM_DEDICATED | GM_MAPPED);
  if (!whole || !(request->flags & GM_ALLOW_SPANS)) return GM_OK;
  return gm__bad_argument(err, "gm_alloc",
                          "%s and GM_ALLOW_SPANS contradict each other: a block is in one memory or in "
                          "several",
                          whole & GM_DEDICATED ? "GM_DEDICATED" : "GM_MAPPED");
}

/* The request's flags, with GM_HOST_VISIBLE where another wish implies it. */
static uint32_t request_flags(const gm_request *request) {
  const uint32_t host = GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_COHERENT | GM_MEMORY_HOST_CACHED |
                        GM_MEMORY_HOST_POINTER | GM_MEMORY_WRITE_COMBINED | GM_MEMORY_PERSISTENT_MAP;
  const bool visible = request->require & host || request->flags & GM_MAPPED;
  return request->flags | (visible ? GM_HOST_VISIBLE : 0u);
}

/* The request and what the pool wishes for all its requests. */
static gm_request request_join(const gm__heap *heap, const gm_request *request) {
  const gm_request *all = &heap->wishes;
  const uint32_t usage = request->usage ? request->usage : GM_USAGE_TRANSFER | GM_USAGE_STORAGE;
  gm_request joined = *request;
  if (all->must_be > joined.must_be) joined.must_be = all->must_be;
  joined.usage = usage | all->usage;
  if (all->memory_types)
    joined.memory_types = joined.memory_types ? joined.memory_types & all->memory_types : all->memory_types;
  joined.require |= all->require;
  joined.prefer |= all->prefer;
  return joined;
}

static gm_status request_check_types(const gm__heap *heap, const gm_request *request, gm_error *err) {
  const uint32_t all = heap->wishes.memory_types;
  if (!request->memory_types || !all || request->memory_types & all) return GM_OK;
  return gm__bad_argument(err, "gm_alloc", "`memory_types` is 0x%x: pool \"%s\" has memory of 0x%x only",
                          request->memory_types, heap->provider.name, all);
}

/* The question that the device would get for this request. */
static gm__device_request request_of_device(const gm__heap *heap, const gm_request *request) {
  return (gm__device_request){
      .flags = request_flags(request) & GM_HOST_VISIBLE, .must_be = request->must_be, .share = heap->provider.share};
}

/* The types that the request may have, but for `require`. */
static uint32_t request_types(const gm__heap *heap, const gm_request *request) {
  gm__device_request asked = request_of_device(heap, request);
  asked.wish.types = request->memory_types;
  return gm__device_types(heap->device, &asked);
}

/* Adds a wish to a list of them. */
static void request_say(char *text, size_t capacity, const char *wish) {
  const size_t length = strlen(text);
  snprintf(text + length, capacity - length, "%s%s", length ? " and " : "", wish);
}

static gm_status request_no_type(const gm__heap *heap, const gm_request *request, gm_error *err) {
  char wishes[160] = "", names[120];
  if (request->must_be == GM_DEVICE_LOCAL) request_say(wishes, sizeof wishes, "GM_DEVICE_LOCAL");
  if (request->flags & GM_HOST_VISIBLE) request_say(wishes, sizeof wishes, "GM_HOST_VISIBLE");
  if (request->flags & GM_MAPPED) request_say(wishes, sizeof wishes, "GM_MAPPED");
  gm__memory_flags_text(request->require, names, sizeof names);
  if (request->require) request_say(wishes, sizeof wishes, names);
  snprintf(names, sizeof names, "of memory_types 0x%x", request->memory_types);
  if (request->memory_types) request_say(wishes, sizeof wishes, names);
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_alloc", "%s has no memory that is %s", heap->device->info.name,
                  wishes);
}

static gm_status request_of_upstream(const gm_request *request, gm_error *err) {
  if (!request->require && !request->memory_types && !(request->flags & GM_MAPPED)) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_alloc",
                  "the pool's upstream chooses the memory, and gm does not know of which type it is: no %s",
                  request->require        ? "`require`"
                  : request->memory_types ? "`memory_types`"
                                          : "GM_MAPPED");
}

/* True when the request leaves the choice of memory to the device, as nearly all do. */
static bool request_takes_any(const gm_request *request) {
  return !(request->require | request->prefer | request->memory_types) && request->must_be == GM_DEVICE_LOCAL &&
         !(request->flags & (GM_HOST_VISIBLE | GM_MAPPED));
}

/* Finds which memory may serve. */
static gm_status request_read_kind(const gm__heap *heap, const gm_request *request, gm__type_wish *out, gm_error *err) {
  *out = (gm__type_wish){.types = 0};
  if (request_takes_any(request)) return GM_OK;
  const gm__device_request asked = request_of_device(heap, request);
  const gm_status status = gm__type_wish_check(heap->device, request, err);
  if (status) return status;
  if (heap->provider.has_upstream) return request_of_upstream(request, err);
  const uint32_t ordinary = gm__device_types(heap->device, &asked), may = request_types(heap, request);
  return gm__type_wish_read(heap->device, request, ordinary, may, out) ? GM_OK : request_no_type(heap, request, err);
}

uint32_t gm__want_missing(const gm__heap *heap, const gm_request *request) {
  const gm_request asked = request_join(heap, request);
  if (heap->provider.has_upstream) return asked.prefer;
  return gm__type_wish_missing(heap->device, &asked, request_types(heap, &asked));
}

/* Zeroing, patterns and, on some devices, committing are work on a stream: the request's, or gm's own. */
static gm_status request_check_stream(const gm__heap *heap, const gm_request *request, const gm__type_wish *wish,
                                      bool patterns, gm_error *err) {
  gm_device *device = heap->device;
  const bool zeroes = (request->flags & GM_ZERO) != 0, own = gm__device_makes_streams(device);
  const bool commits = request->flags & GM_COMMIT && !own && device->info.capabilities & GM_CAP_COMMIT_QUEUE;
  if (request->stream) {
    const bool writes = zeroes || patterns;
    if (!request->stream->silent || !(writes || commits)) return GM_OK;
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, "gm_alloc",
                    "%s is work on `stream`, which the engine lent without leave to submit (may_submit false): name "
                    "another stream, or do it in the engine's own commands",
                    zeroes    ? "GM_ZERO"
                    : commits ? "GM_COMMIT"
                              : "filling red zones and patterns");
  }
  gm__device_request asked = request_of_device(heap, request);
  asked.wish = *wish;
  const bool fills = zeroes && !own && (heap->provider.has_upstream || !gm__device_has_host_types_only(device, &asked));
  if ((!fills && !commits) || gm__device_chosen_stream(device)) return GM_OK;
  return gm__fail(
      err, GM_ERR_NOT_SUPPORTED, "gm_alloc",
      "%s is work on a stream; the request names none, and gm has none of its own on this device: " GM__STREAM_ADVICE,
      fills ? "GM_ZERO" : "GM_COMMIT");
}

/* Can the device do what the request asks for, however much memory there is? */
static gm_status request_read_device(const gm__heap *heap, const gm_request *request, bool patterns, gm__type_wish *out,
                                     gm_error *err) {
  gm_status status = request_check_pair(request, err);
  if (!status) status = request_read_kind(heap, request, out, err);
  return status ? status : request_check_stream(heap, request, out, patterns, err);
}

/* The unit that the driver demands of an allocation: whole words for fills, and whole atoms. */
static uint64_t want_unit(const gm_device *device) {
  uint64_t unit = 4;
  for (uint32_t i = 0; i < device->type_count; i++) unit = gm__max(unit, device->types[i].atom_bytes);
  return unit;
}

void gm__want_size(const gm__heap *heap, uint64_t bytes, gm__want *want) {
  const gm_device_info *info = &heap->device->info;
  const gm__buckets *buckets = &heap->dedicated.buckets;
  const uint64_t least = info->alignment ? info->alignment : 1;
  const bool dedicated = gm__want_is_dedicated(want);
  const bool carves = heap->strategy == GM_STRATEGY_BEST_FIT && !dedicated;
  want->exact = gm__round_up(bytes, dedicated ? want_unit(heap->device)
                                    : carves  ? heap->provider.rules.granule
                                              : least);
  want->rounded = want->exact;
  if (carves && !buckets->fixed.count) return;
  want->size_class = gm__bucket_class(buckets, want->exact);
  if (!dedicated)
    want->rounded = gm__bucket_round(buckets, want->size_class, want->exact, least, info->max_alloc_bytes);
  if (buckets->fixed.count && !dedicated) want->exact = want->rounded; /* no block of another size will do */
}

gm_status gm__want_read(const gm__heap *heap, const gm_request *request, bool patterns, gm__want *out, gm_error *err) {
  gm__type_wish wish;
  gm_status status = request_check(heap, request, err);
  if (!status) status = request_check_types(heap, request, err);
  if (status) return status;
  const gm_request asked = request_join(heap, request);
  status = request_read_device(heap, &asked, patterns, &wish, err);
  if (status) return status;
  const uint64_t least = heap->device->info.alignment ? heap->device->info.alignment : 1;
  *out = (gm__want){
      .bytes = request->bytes,
      .stream = request->stream,
      .align = (uint32_t)(request->align > least ? request->align : least),
      .flags = request_flags(&asked),
      .usage = asked.usage,
      .tag = request->tag,
      .must_be = asked.must_be,
      .deadline_ns = request->deadline_ns,
      .wish = wish,
      .insert = patterns || (request->flags & (GM_INSERT_WAIT | GM_ZERO)) != 0,
  };
  gm__want_size(heap, request->bytes, out);
  return GM_OK;
}
