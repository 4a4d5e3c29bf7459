/* Memory of APIs that give it as pointers with one address for host and device (CUDA, HIP): its three types, what a
 * request must hold to, pieces of the right alignment, and mapping, which is there all the time or never. Calls no
 * driver but through what it is given. Thread-safe, no state. `api` names the API in reasons ("CUDA"). */
#ifndef GM_CORE_BASE_POINTER_MEMORY_H
#define GM_CORE_BASE_POINTER_MEMORY_H

#include "gm/backend.h"

/* Indices of the memory types: the device's, page-locked host memory, and managed memory, which is there only where the
 * device has GM_CAP_MANAGED. */
enum { GM__POINTER_DEVICE = 0, GM__POINTER_PINNED = 1, GM__POINTER_MANAGED = 2 };

uint32_t gm__pointer_types(const gm_device_info *info);

/* On an integrated device all of it is host memory, of one heap. INVALID_ARGUMENT: no such type. */
gm_status gm__pointer_type(const char *api, const gm_device_info *info, uint32_t type, gm_memory_type *out,
                           gm_error *err);

/* The checks of a request to allocate, of memory to wrap, to migrate and to register: the entry's answer. */
gm_status gm__pointer_check(const char *api, const gm_device_info *info, const gm_memory_params *params, gm_error *err);
gm_status gm__pointer_check_share(const char *api, uint32_t share_kinds, const gm_memory_params *params, gm_error *err);
gm_status gm__pointer_check_wrap(const char *api, uint64_t pointer, uint64_t bytes, gm_error *err);
gm_status gm__pointer_check_managed(const char *api, const gm_device_info *info, const gm_memory *memory,
                                    gm_managed_place place, gm_error *err);
gm_status gm__pointer_check_host(const char *op, const gm_device_info *info, const void *pointer, uint64_t bytes,
                                 gm_error *err);

/* What one of the API's calls gave. */
typedef struct gm__piece {
  uint64_t handle;  /* what the API takes back */
  uint64_t address; /* of the device's */
  uint64_t host;    /* 0: none */
} gm__piece;

typedef struct gm__piece_source {
  const char *api;
  gm_status (*take)(void *device, uint32_t type, uint64_t bytes, gm__piece *out, gm_error *err);
  gm_status (*give_back)(void *device, uint32_t type, uint64_t handle, gm_error *err);
} gm__piece_source;

/* A piece for a checked request, aligned to the larger of the request's and `alignment`. The API's own alignment is
 * often enough, and always for large pieces; where it is not, some more is taken. */
gm_status gm__piece_take(const gm__piece_source *source, void *device, const gm_memory_params *params,
                         uint64_t alignment, gm__piece *out, gm_error *err);
gm_memory gm__piece_memory(const gm__piece *piece, const gm_memory_params *params);

/* Group 10. `sync` is the backend's stream_sync. Unmapping, flush and invalidate do nothing: all that can be mapped is
 * coherent, and what the host wrote before work is submitted, that work sees. */
typedef gm_status (*gm__stream_sync)(void *device, void *stream, gm_error *err);
gm_status gm__pointer_map(const char *api, gm__stream_sync sync, void *device, void *stream, const gm_memory *memory,
                          uint64_t offset, uint64_t bytes, uint32_t mode, void **out, gm_error *err);
gm_status gm__pointer_unmap(void *device, void *stream, const gm_memory *memory, void *pointer, gm_error *err);
gm_status gm__pointer_map_sync(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err);

#endif
