#include "backends/shared/pointer_memory.h"

#include "backends/shared/plain.h"
#include "core/base/error.h"

uint32_t gm__pointer_types(const gm_device_info *info) {
  return info->capabilities & GM_CAP_MANAGED ? GM__POINTER_MANAGED + 1 : GM__POINTER_PINNED + 1;
}

/* Managed memory lies where it was last used. It may be larger than the device, but gm does not allow that: drivers
 * have been seen to hang. */
gm_status gm__pointer_type(const char *api, const gm_device_info *info, uint32_t type, gm_memory_type *out,
                           gm_error *err) {
  const uint32_t host = GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_COHERENT | GM_MEMORY_HOST_CACHED |
                        GM_MEMORY_HOST_POINTER | GM_MEMORY_PERSISTENT_MAP;
  const gm_status status = gm__plain_check_type(api, gm__pointer_types(info), type, err);
  if (status != GM_OK) return status;
  gm_memory_type found = {.struct_size = sizeof found, .atom_bytes = 1};
  if (type == GM__POINTER_DEVICE || info->unified) found.heap_bytes = info->total_bytes;
  if (!info->unified) found.heap = type;
  found.max_alloc_bytes = type == GM__POINTER_PINNED ? INT64_MAX : info->max_alloc_bytes;
  if (type == GM__POINTER_DEVICE) found.flags = GM_MEMORY_DEVICE_LOCAL;
  if (type == GM__POINTER_PINNED) found.flags = host | GM_MEMORY_PINNED | GM_MEMORY_SYSTEM;
  if (type == GM__POINTER_MANAGED) found.flags = host | GM_MEMORY_MANAGED | GM_MEMORY_LAZY;
  if (type == GM__POINTER_DEVICE && info->unified) found.flags |= GM_MEMORY_SYSTEM;
  *out = found;
  return GM_OK;
}

gm_status gm__pointer_check(const char *api, const gm_device_info *info, const gm_memory_params *params,
                            gm_error *err) {
  const bool unbounded = params->type == GM__POINTER_PINNED || !info->max_alloc_bytes;
  const uint64_t most = unbounded ? INT64_MAX : info->max_alloc_bytes;
  const gm_status status = gm__plain_check(api, gm__pointer_types(info), params, err);
  if (status != GM_OK) return status;
  if (params->bytes <= most && params->align <= INT64_MAX / 2) return GM_OK;
  return gm__fail(err, GM_ERR_ALLOCATION_TOO_LARGE, api, "%llu bytes asked, one allocation may have %llu",
                  (unsigned long long)params->bytes, (unsigned long long)most);
}

/* Only the device's own memory is shared. `share_kinds` has a bit for each way. */
gm_status gm__pointer_check_share(const char *api, uint32_t share_kinds, const gm_memory_params *params,
                                  gm_error *err) {
  const uint32_t kind = (uint32_t)params->share;
  const bool has = params->type == GM__POINTER_DEVICE && kind <= GM_SHARE_DMABUF && share_kinds >> kind & 1;
  if (kind == GM_SHARE_NONE || has) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, api, "memory of type %u is not made to share by kind %u",
                  (unsigned)params->type, (unsigned)kind);
}

gm_status gm__pointer_check_wrap(const char *api, uint64_t pointer, uint64_t bytes, gm_error *err) {
  if (pointer && bytes && bytes - 1 <= UINT64_MAX - pointer) return GM_OK;
  return gm__bad_argument(err, api, "`pointer` and `bytes` of the native memory must not be 0 or wrap around");
}

gm_status gm__pointer_check_managed(const char *api, const gm_device_info *info, const gm_memory *memory,
                                    gm_managed_place place, gm_error *err) {
  if (!(info->capabilities & GM_CAP_MANAGED)) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, api, "%s has no managed memory", info->name);
  }
  if (memory->type != GM__POINTER_MANAGED) {
    return gm__bad_argument(err, api, "`memory` is of type %u, which does not migrate", (unsigned)memory->type);
  }
  if (place == GM_MANAGED_ON_DEVICE || place == GM_MANAGED_ON_HOST) return GM_OK;
  return gm__bad_argument(err, api, "`place` is %d, none of gm_managed_place", (int)place);
}

gm_status gm__pointer_check_host(const char *op, const gm_device_info *info, const void *pointer, uint64_t bytes,
                                 gm_error *err) {
  if (!pointer || bytes == 0 || bytes - 1 > UINTPTR_MAX - (uintptr_t)pointer) {
    return gm__bad_argument(err, op, "`pointer` and `bytes` must not be 0 or wrap around");
  }
  if (info->capabilities & GM_CAP_REGISTRATION) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "%s cannot register host memory", info->name);
}

static bool piece_fits(const gm__pointer_piece *piece, uint64_t align) {
  return piece->address % align == 0 && piece->host % align == 0;
}

gm_status gm__pointer_take(const gm__pointer_source *source, void *device, const gm_memory_params *params,
                           uint64_t alignment, gm__pointer_piece *out, gm_error *err) {
  const uint64_t align = params->align > alignment ? params->align : alignment;
  gm_status status = source->take(device, params->type, params->bytes, out, err);
  if (status != GM_OK || piece_fits(out, align)) return status;
  status = source->give_back(device, params->type, out->handle, err);
  if (status == GM_OK) status = source->take(device, params->type, params->bytes + align, out, err);
  if (status != GM_OK) return status;
  const uint64_t skip = (align - out->address % align) % align;
  out->address += skip;
  if (out->host) out->host += skip;
  if (piece_fits(out, align)) return GM_OK;
  source->give_back(device, params->type, out->handle, NULL);
  return gm__fail(err, GM_ERR_DRIVER, source->api,
                  "%s answered success, and gave host and device addresses of different alignment", source->api);
}

gm_memory gm__pointer_memory(const gm__pointer_piece *piece, const gm_memory_params *params) {
  return (gm_memory){.handle = piece->handle,
                     .address = piece->address,
                     .bytes = params->bytes,
                     .host = (void *)(uintptr_t)piece->host,
                     .type = params->type};
}

gm_status gm__pointer_map(const char *api, gm__stream_sync sync, void *device, void *stream, const gm_memory *memory,
                          uint64_t offset, uint64_t bytes, uint32_t mode, void **out, gm_error *err) {
  if (mode == 0 || bytes == 0) return gm__bad_argument(err, api, "`mode` and `bytes` must not be 0");
  if (!memory->host) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, api,
                    "%s maps no device memory into the host: take memory of a host-visible type, or copy", api);
  }
  const gm_status status = mode & GM_MAP_NO_WAIT ? GM_OK : sync(device, stream, err);
  if (status == GM_OK) *out = (unsigned char *)memory->host + offset;
  return status;
}

gm_status gm__pointer_unmap(void *device, void *stream, const gm_memory *memory, void *pointer, gm_error *err) {
  (void)device, (void)stream, (void)memory, (void)pointer, (void)err;
  return GM_OK;
}

gm_status gm__pointer_map_sync(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err) {
  (void)device, (void)memory, (void)offset, (void)bytes, (void)err;
  return GM_OK;
}
