/* Memory of APIs that give pointers, with one address for host and device (CUDA, HIP): types, checks of requests,
 * alignment, mapping. Calls the driver only through its arguments. Thread-safe, no state. `api` names the API in
 * reasons ("CUDA"). */
#ifndef GM_BACKENDS_SHARED_POINTER_MEMORY_H
#define GM_BACKENDS_SHARED_POINTER_MEMORY_H

#include "gm/backend.h"

/* Indices of the memory types: the device's, page-locked host memory, managed memory. The last is there only where the
 * device has GM_CAP_MANAGED. */
enum { GM__POINTER_DEVICE = 0, GM__POINTER_PINNED = 1, GM__POINTER_MANAGED = 2 };

uint32_t gm__pointer_types(const gm_device_info *info);

/* On an integrated device, all memory is host memory of one heap. INVALID_ARGUMENT: there is no such type. */
gm_status gm__pointer_type(const char *api, const gm_device_info *info, uint32_t type, gm_memory_type *out,
                           gm_error *err);

/* Check a request to allocate, to share, to wrap, to migrate, to register. The result is the entry's answer. */
gm_status gm__pointer_check(const char *api, const gm_device_info *info, const gm_memory_params *params, gm_error *err);
gm_status gm__pointer_check_share(const char *api, uint32_t share_kinds, const gm_memory_params *params, gm_error *err);
gm_status gm__pointer_check_wrap(const char *api, uint64_t pointer, uint64_t bytes, gm_error *err);
gm_status gm__pointer_check_managed(const char *api, const gm_device_info *info, const gm_memory *memory,
                                    gm_managed_place place, gm_error *err);
gm_status gm__pointer_check_host(const char *op, const gm_device_info *info, const void *pointer, uint64_t bytes,
                                 gm_error *err);

/* Memory that one call of the API gave. */
typedef struct gm__pointer_piece {
  uint64_t handle;  /* what the API takes back */
  uint64_t address; /* of the device's */
  uint64_t host;    /* 0: none */
} gm__pointer_piece;

typedef struct gm__pointer_source {
  const char *api;
  gm_status (*take)(void *device, uint32_t type, uint64_t bytes, gm__pointer_piece *out, gm_error *err);
  gm_status (*give_back)(void *device, uint32_t type, uint64_t handle, gm_error *err);
} gm__pointer_source;

/* Take a piece for a checked request, aligned to the larger of the request's alignment and `alignment`. The API's own
 * alignment is often enough. Where it is not, the piece is taken larger. */
gm_status gm__pointer_take(const gm__pointer_source *source, void *device, const gm_memory_params *params,
                           uint64_t alignment, gm__pointer_piece *out, gm_error *err);
gm_memory gm__pointer_memory(const gm__pointer_piece *piece, const gm_memory_params *params);

/* Entries of the seam, group 10. `sync` is the backend's stream_sync. Unmap, flush and invalidate do nothing: all
 * memory that can be mapped is coherent. */
typedef gm_status (*gm__stream_sync)(void *device, void *stream, gm_error *err);
gm_status gm__pointer_map(const char *api, gm__stream_sync sync, void *device, void *stream, const gm_memory *memory,
                          uint64_t offset, uint64_t bytes, uint32_t mode, void **out, gm_error *err);
gm_status gm__pointer_unmap(void *device, void *stream, const gm_memory *memory, void *pointer, gm_error *err);
gm_status gm__pointer_map_sync(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err);

#endif
