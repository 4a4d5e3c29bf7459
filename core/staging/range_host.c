#include "core/staging/range_host.h"

#include <string.h>

#include "core/base/error.h"
#include "core/device/memory_answer.h"
#include "gm/memory.h"

enum { HOST_FILL_BYTES = 512 };

const gm_memory_type *gm__host_access_type(const gm__access *access) {
  return access->memory.type < access->device->type_count ? &access->device->types[access->memory.type] : NULL;
}

bool gm__host_access_is_coherent(const gm__access *access) {
  const gm_memory_type *type = gm__host_access_type(access);
  return !type || type->flags & (GM_MEMORY_HOST_COHERENT | GM_MEMORY_HOST_POINTER);
}

gm__access gm__host_access_widen(const gm__access *access) {
  const gm_memory_type *type = gm__host_access_type(access);
  const uint64_t atom = type && type->atom_bytes ? type->atom_bytes : 1, end = access->offset + access->bytes;
  const uint64_t low = access->offset - access->offset % atom, more = (atom - end % atom) % atom;
  gm__access wide = *access;
  wide.offset = low;
  wide.bytes = (more > access->memory.bytes - end ? access->memory.bytes : end + more) - low;
  return wide;
}

gm_status gm__host_access_check(const gm__access *access, const char *op, gm_error *err) {
  const gm_memory_type *type = gm__host_access_type(access);
  if (access->memory.host || (type && type->flags & GM_MEMORY_HOST_VISIBLE)) return GM_OK;
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "the memory is not host-visible: ask for GM_HOST_VISIBLE");
}

/* ---- mappings ---- */

/* The backend's stream for a mapping. NULL: with GM_MAP_NO_WAIT, or gm has none for the host's order, so nothing uses
 * the range. */
static gm_status map_stream(const gm__access *access, uint32_t mode, gm_stream *stream, const char *op, void **out,
                            gm_error *err) {
  gm_stream *on = NULL;
  *out = NULL;
  if (mode & GM_MAP_NO_WAIT || (!stream && !gm__device_has_default_stream(access->device))) return GM_OK;
  const gm_status status = gm__access_stream(access->device, stream, op, &on, err);
  if (!status) *out = on->handle;
  return status;
}

/* Must the mapping hold the device's bytes? The flush at its end writes whole atoms, also what the host did not
 * write. */
static bool map_needs_contents(const gm__access *access, uint32_t mode, const gm__access *wide) {
  const bool all_new = mode & GM_MAP_DISCARD && !(mode & GM_MAP_READ);
  const bool whole = wide->offset == access->offset && wide->bytes == access->bytes;
  return !gm__host_access_is_coherent(access) && !(all_new && whole);
}

gm_status gm__map_begin(const gm__access *access, uint32_t mode, gm_stream *stream, void **out, gm_error *err) {
  gm_device *device = access->device;
  gm_stream *none;
  void *on;
  gm_status status = map_stream(access, mode, stream, "gm_block_map", &on, err);
  if (status) return status;
  status =
      gm__submitting(device)->map(device->handle, on, &access->memory, access->offset, access->bytes, mode, out, err);
  const bool lacks_stream = status == GM_ERR_NOT_SUPPORTED && !on && !(mode & GM_MAP_NO_WAIT);
  if (lacks_stream) return gm__access_stream(device, NULL, "gm_block_map", &none, err);
  gm__error_of("gm_block_map", status, err);
  status = gm__answer_check_word(device, "map", status, (uintptr_t)*out, err);
  if (status) return status;
  const gm__access wide = gm__host_access_widen(access);
  if (!map_needs_contents(access, mode, &wide)) return GM_OK;
  status = device->ops->invalidate(device->handle, &wide.memory, wide.offset, wide.bytes, err);
  if (status) gm__submitting(device)->unmap(device->handle, on, &access->memory, *out, NULL);
  return status;
}

gm_status gm__map_end(const gm__access *access, uint32_t mode, void *pointer, gm_stream *stream, gm_error *err) {
  gm_device *device = access->device;
  void *on;
  gm_status status = map_stream(access, mode, stream, "gm_block_unmap", &on, err);
  if (status) return status;
  if (!gm__host_access_is_coherent(access) && mode & (GM_MAP_WRITE | GM_MAP_DISCARD)) {
    const gm__access wide = gm__host_access_widen(access);
    status = device->ops->flush(device->handle, &wide.memory, wide.offset, wide.bytes, err);
    if (status) return status;
  }
  status = gm__submitting(device)->unmap(device->handle, on, &access->memory, pointer, err);
  return gm__error_of("gm_block_unmap", status, err);
}

/* ---- transfers ---- */

static bool by_host_can(const gm__access *access, const gm__transfer *what) {
  const gm_memory_type *type = gm__host_access_type(access);
  return what->kind != GM__TRANSFER_COPY && type && type->flags & GM_MEMORY_HOST_VISIBLE;
}

/* A whole number of patterns at a time. Nothing is read back, for the memory may be a card's. */
static void host_fill(unsigned char *to, uint64_t bytes, const unsigned char *pattern, uint32_t pattern_bytes) {
  unsigned char many[HOST_FILL_BYTES];
  const uint64_t step = sizeof many - sizeof many % pattern_bytes;
  for (uint64_t i = 0; i < step && i < bytes; i++) many[i] = pattern[i % pattern_bytes];
  for (uint64_t at = 0; at < bytes; at += step) {
    /* cppcheck-suppress uninitvar ; as much of it was set */
    memcpy(to + at, many, (size_t)(bytes - at < step ? bytes - at : step));
  }
}

void gm__host_move(const gm__transfer *what, void *at, uint64_t bytes) {
  switch (what->kind) {
    case GM__TRANSFER_WRITE: memcpy(at, what->src, (size_t)bytes); break;
    case GM__TRANSFER_READ: memcpy(what->dst, at, (size_t)bytes); break;
    case GM__TRANSFER_FILL: host_fill(at, bytes, what->src, what->pattern_bytes); break;
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
  gm__host_move(what, pointer, access->bytes);
  return gm__map_end(access, mode, pointer, NULL, err);
}
