/* Devices: what is here, how much is really free, which one to take, opening and adopting (F3-F9, F65, F79).
 *
 * A function that returns a status may answer INVALID_ARGUMENT, FORKED, OUT_OF_HOST_MEMORY, and what a driver said
 * (DRIVER, DEVICE_LOST, OUT_OF_DEVICE_MEMORY). What else it answers stands beside it. */
#ifndef GM_DEVICE_H
#define GM_DEVICE_H

#include "gm/backend.h"
#include "gm/context.h"
#include "gm/memory_info.h"

GM_BEGIN_DECLS

typedef struct gm_device gm_device; /* one open or adopted device. Thread-safe. */

/* Names a device across processes: backend and UUID (with partition where one card has several). Never grows. */
typedef struct gm_device_id {
  char backend[16];
  uint8_t uuid[GM_UUID_BYTES];
  char partition[64];
} gm_device_id;

typedef struct gm_backend_info {
  uint32_t struct_size;
  gm_api api;
  char name[16];
  gm_status status; /* GM_OK: can be used; else why not, and `reason` says what was tried and what would help */
  gm_error reason;
  bool simulated;
  char library[128];
  char version[64];
  uint32_t device_count;
} gm_backend_info;

/* A device as discovery saw it. */
typedef struct gm_device_entry {
  uint32_t struct_size;
  uint32_t physical; /* equal for entries that are one card */
  bool host_pool;    /* its memory is the host's */
  bool counted;      /* its memory counts in a sum over devices */
  gm_device_id id;
  gm_device_info info;
  gm_memory_info memory;
} gm_device_entry;

/* Register a stranger's backend. `ops` is copied. ABI_MISMATCH; INVALID_ARGUMENT (a required entry is missing, a group
 * is half there, by name; the name is taken); OVER_LIMIT (16 backends). */
GM_API gm_status gm_backend_register(gm_context *ctx, const gm_backend_ops *ops, gm_error *err);

/* Every backend gm knows, available or not. Writes at most `capacity` entries, the number there are into *count.
 * `infos` may be NULL when capacity is 0; else infos[0].struct_size is set, and is the size of each entry. An
 * unavailable backend is no failure of the call. The result is kept: a later call at the same or a lower level is cheap
 * (free figures are always read again). */
GM_API gm_status gm_discover_backends(gm_context *ctx, gm_probe_level level, gm_backend_info *infos, size_t capacity,
                                      size_t *count, gm_error *err);

/* Every device of the available backends, from the level last discovered (ACTIVE if none yet), memory read now.
 * entries[0].struct_size is set, as above. */
GM_API gm_status gm_discover_devices(gm_context *ctx, gm_device_entry *entries, size_t capacity, size_t *count,
                                     gm_error *err);

/* How to choose (F6). Zero-initialised with struct_size set, it means: by configuration. */
typedef struct gm_select_params {
  uint32_t struct_size;
  bool refuse_cpu;          /* neither the host nor software devices */
  const char *prefer;       /* "cuda,hip,vulkan" (rocm = hip): only these, in this order; NULL or "auto": any, most
                               effective free memory first, native API before others, software devices last */
  uint64_t keep_free_bytes; /* 0: min_free_bytes of the configuration */
  double memory_fraction;   /* 0: that of the configuration */
} gm_select_params;

/* In gm_rejection.device: the backend itself, which was preferred and is not available. */
#define GM_NO_DEVICE UINT32_MAX

/* A device that was not taken, and why. Never grows. */
typedef struct gm_rejection {
  gm_device_id id;
  uint32_t device; /* index in its backend's list, or GM_NO_DEVICE */
  char why[192];
} gm_rejection;

typedef struct gm_selection {
  uint32_t struct_size;
  uint32_t device;         /* index in its backend's list */
  gm_api api;              /* of its backend */
  uint32_t rejected_count; /* all that were rejected; the first 32 are in `rejected` */
  uint64_t free_bytes;     /* effective */
  uint64_t headroom_bytes; /* left after `bytes` */
  gm_device_id id;
  gm_rejection rejected[32];
} gm_selection;

/* The device on which `bytes` fit: headroom = min(memory_fraction * total - used by us, effective free - keep_free) -
 * bytes >= 0 (docs/memory-view.md). Fills `out` in both cases: NOT_FOUND when nothing fits, with one message that
 * lists what was tried and why each failed. A preferred backend that is not available is listed first, with its reason.
 * `params` may be NULL. The null backend is never chosen. */
GM_API gm_status gm_select_backend_for_bytes(gm_context *ctx, uint64_t bytes, const gm_select_params *params,
                                             gm_selection *out, gm_error *err);

/* As gm_select_backend_for_bytes, for no particular size: the device that gm would recommend. A device of which nothing
 * may be taken is not recommended. NOT_FOUND: there is none. */
GM_API gm_status gm_best_backend(gm_context *ctx, gm_selection *out, gm_error *err);

/* Select and open (F7). NOT_FOUND when nothing fits, with the reason for each device; else as gm_device_open. The
 * caller closes *out. */
GM_API gm_status gm_open_for_bytes(gm_context *ctx, const char *prefer, uint64_t bytes, gm_device **out, gm_error *err);

/* Open by id, or by backend name and index. NOT_FOUND: no such backend or device; UNAVAILABLE: its driver is missing or
 * does not work here; NOT_SUPPORTED: it is not built into this gm. The caller closes *out. */
GM_API gm_status gm_device_open(gm_context *ctx, const gm_device_id *id, gm_device **out, gm_error *err);
GM_API gm_status gm_device_open_index(gm_context *ctx, const char *backend, uint32_t index, gm_device **out,
                                      gm_error *err);

/* Work on the engine's own device: `native` is a gm_opencl_device, gm_vulkan_device, ... . Retained where the API can;
 * nothing of it is destroyed. INVALID_ARGUMENT names the handle, feature or size that is wrong or missing;
 * NOT_SUPPORTED: this build has no such backend, or the backend adopts nothing; UNAVAILABLE: its driver does not work
 * here. The caller closes *out before it destroys its own. */
GM_API gm_status gm_device_adopt(gm_context *ctx, const gm_native_device *native, gm_device **out, gm_error *err);

/* GM_ERR_BUSY while pools, streams or buffers of it are alive. NULL is GM_OK. */
GM_API gm_status gm_device_close(gm_device *device, gm_error *err);

GM_API const gm_device_info *gm_device_get_info(const gm_device *device); /* borrowed until close */
GM_API gm_context *gm_device_context(const gm_device *device);            /* borrowed */

/* The figures, read now: total, free, used by us (all contexts of the process), reclaimable (pooled), margin. */
GM_API gm_status gm_device_memory_info(gm_device *device, gm_memory_info *out, gm_error *err);

/* As gm_device_memory_info, for managed allocations (gm/managed.h). On some devices managed memory comes from the host
 * and is limited by the process's cgroup; ordinary device memory is not. Everywhere else the figures are those of
 * gm_device_memory_info. */
GM_API gm_status gm_device_managed_memory_info(gm_device *device, gm_memory_info *out, gm_error *err);

/* GM_OK, or GM_ERR_DEVICE_LOST and why (F78). */
GM_API gm_status gm_device_state(gm_device *device, gm_error *err);

/* The API's own objects: `out` has its head filled (struct_size, api). Borrowed. INVALID_ARGUMENT: the head is of
 * another API; NOT_SUPPORTED: the API has none. */
GM_API gm_status gm_device_native(gm_device *device, gm_native_device *out, gm_error *err);

/* The kinds of memory that the device offers, the best for kernels first; `out` has its struct_size set.
 * INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_device_memory_type_count(gm_device *device, uint32_t *out, gm_error *err);
GM_API gm_status gm_device_memory_type(gm_device *device, uint32_t index, gm_memory_type *out, gm_error *err);

GM_END_DECLS

#endif
