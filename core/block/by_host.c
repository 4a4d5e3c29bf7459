#include "core/block/by_host.h"

#include <string.h>

#include "core/block/map.h"

static bool by_host_can(const gm__access *access, const gm__transfer *what) {
  const gm_device *device = access->device;
  const uint32_t type = access->memory.type;
  const uint32_t flags = type < device->type_count ? device->types[type].flags : 0;
  return what->kind != GM__TRANSFER_COPY && flags & GM_MEMORY_HOST_VISIBLE;
}

static void by_host_move(const gm__transfer *what, unsigned char *at, uint64_t bytes) {
  const unsigned char *pattern = what->src;
  switch (what->kind) {
    case GM__TRANSFER_WRITE: memcpy(at, what->src, bytes); break;
    case GM__TRANSFER_READ: memcpy(what->dst, at, bytes); break;
    case GM__TRANSFER_FILL:
      for (uint64_t i = 0; i < bytes; i++) at[i] = pattern[i % what->pattern_bytes];
      break;
    case GM__TRANSFER_COPY: break;
  }
}

gm_status gm__access_by_host(const gm__access *access, const gm__transfer *what, const char *op, gm_error *err) {
  gm_stream *none;
  void *pointer;
  const uint32_t mode = what->kind == GM__TRANSFER_READ ? GM_MAP_READ : GM_MAP_WRITE;
  if (!by_host_can(access, what)) return gm__access_stream(access->device, NULL, op, &none, err);
  const gm_status status = gm__map_begin(access, mode, NULL, &pointer, err);
  if (status) return status;
  by_host_move(what, pointer, access->bytes);
  return gm__map_end(access, mode, pointer, NULL, err);
}
