/* Devices: discovery, free memory, selection, opening and adopting.
 *
 * Every function that returns a status may answer INVALID_ARGUMENT, FORKED or OUT_OF_HOST_MEMORY. It may also answer
 * what a driver said: DRIVER, DEVICE_LOST or OUT_OF_DEVICE_MEMORY. Each comment has only the other statuses. Every call
 * is thread-safe, except that closing excludes every other call on the device. */
#ifndef GM_DEVICE_H
#define GM_DEVICE_H

#include "gm/context.h"
#include "gm/device_info.h"
#include "gm/memory.h"
#include "gm/memory_info.h"
#include "gm/native.h"
#include "gm/size.h"

GM_BEGIN_DECLS

typedef struct gm_device gm_device; /* one open or adopted device; thread-safe */

/* Names a device across processes: by its backend, its UUID, and its partition where one card has several. Never grows.
 */
typedef struct gm_device_id {
  char backend[16];
  uint8_t uuid[GM_UUID_BYTES];
  char partition[64];
} gm_device_id;

typedef struct gm_backend_info {
  uint32_t struct_size;
  gm_api api;
  char name[16];
  gm_status status; /* GM_OK: usable; else why not, and `reason` says what was tried and what would help */
  gm_error reason;
  bool simulated;
  char library[128];
  char version[64];
  uint32_t device_count;
} gm_backend_info;

/* A device as discovery found it. */
typedef struct gm_device_entry {
  uint32_t struct_size;
  uint32_t physical; /* entries with equal numbers are one card */
  bool host_pool;    /* its memory is host memory */
  bool counted;      /* its memory counts in a sum over all devices */
  gm_device_id id;
  gm_device_info info;
  gm_memory_info memory;
} gm_device_entry;

/* Finds every backend that gm knows, usable or not. It writes at most `capacity` entries, and the number of backends
 * into *count. `infos` may be NULL when `capacity` is 0. If it is not 0, infos[0].struct_size is set, and is the size
 * of each entry. An unusable backend is no failure of the call. gm keeps the result: a later call at an equal or lower
 * level is cheap. Figures of free memory are always read again. */
GM_API gm_status gm_discover_backends(gm_context *ctx, gm_probe_level level, gm_backend_info *infos, size_t capacity,
                                      size_t *count, gm_error *err);

/* Finds every device of the usable backends, at the level that was last discovered (ACTIVE if there was none). It reads
 * the memory figures now. It writes at most `capacity` entries, and the number of devices into *count.
 * entries[0].struct_size is set, and is the size of each entry. */
GM_API gm_status gm_discover_devices(gm_context *ctx, gm_device_entry *entries, size_t capacity, size_t *count,
                                     gm_error *err);

/* How to choose a device. Zero-initialised with struct_size set, the choice is by configuration. */
typedef struct gm_select_params {
  uint32_t struct_size;
  bool refuse_cpu;          /* take neither the host nor a software device */
  const char *prefer;       /* "cuda,hip,vulkan": only these backends, in this order; rocm means hip. NULL or "auto":
                               any. Then the most effective free memory comes first, native APIs before others,
                               software devices last */
  uint64_t keep_free_bytes; /* 0: the key min_free_bytes. GM_NO_BYTES, GM_NO_LIMIT: none (gm/size.h) */
  double memory_fraction;   /* 0: the key memory_fraction */
} gm_select_params;

/* In gm_rejection.device: the rejection is of the backend itself, which was preferred and is not usable. */
#define GM_NO_DEVICE UINT32_MAX

/* A device that was not chosen, and the reason. Never grows. */
typedef struct gm_rejection {
  gm_device_id id;
  uint32_t device; /* index in its backend's list, or GM_NO_DEVICE */
  char why[192];
} gm_rejection;

typedef struct gm_selection {
  uint32_t struct_size;
  uint32_t device;         /* index in its backend's list */
  gm_api api;              /* of its backend */
  uint32_t rejected_count; /* how many were rejected; the first 32 are in `rejected` */
  uint64_t free_bytes;     /* effective free memory */
  uint64_t headroom_bytes; /* what is left after `bytes` */
  gm_device_id id;
  gm_rejection rejected[32];
  gm_figure_state free_state;   /* of free_bytes; ESTIMATED also where only the total is known */
  gm_figure_source free_source; /* source of free_bytes */
} gm_selection;

/* Selects a device on which `bytes` fit. Its headroom must be at least 0 (docs/memory-view.md):
 *
 * headroom = min(memory_fraction * total - used by us, effective free - keep_free) - bytes
 *
 * `params` may be NULL. The null backend is never chosen. The call fills `out` also when it fails. NOT_FOUND: nothing
 * fits. One message then lists what was tried and why each device failed. A preferred backend that is not usable is
 * listed first, with its reason. */
GM_API gm_status gm_select_backend_for_bytes(gm_context *ctx, uint64_t bytes, const gm_select_params *params,
                                             gm_selection *out, gm_error *err);

/* Selects the device that gm recommends when no size is known. gm does not recommend a device of which nothing may be
 * taken. NOT_FOUND: there is no device. */
GM_API gm_status gm_best_backend(gm_context *ctx, gm_selection *out, gm_error *err);

/* Selects a device as gm_select_backend_for_bytes does, opens it, and asks it what is free. A device that cannot be
 * opened, or on which the bytes do not fit after all, is closed again, and the next one is taken. NOT_FOUND: nothing
 * fits; the message has the reason for each device. The caller closes *out. */
GM_API gm_status gm_open_for_bytes(gm_context *ctx, const char *prefer, uint64_t bytes, gm_device **out, gm_error *err);

/* Opens a device by its id. The caller closes *out. NOT_FOUND: there is no such backend or device. UNAVAILABLE: the
 * driver is missing, or does not work here. NOT_SUPPORTED: this build of gm has no such backend. */
GM_API gm_status gm_device_open(gm_context *ctx, const gm_device_id *id, gm_device **out, gm_error *err);
/* Opens a device by the name of its backend and its index there. The caller closes *out. It answers as gm_device_open.
 */
GM_API gm_status gm_device_open_index(gm_context *ctx, const char *backend, uint32_t index, gm_device **out,
                                      gm_error *err);

/* Adopts the engine's own device. `native` is a gm_opencl_device, gm_vulkan_device and so on. gm retains the objects
 * where the API can, and destroys none of them. The caller closes *out before it destroys its own device.
 * INVALID_ARGUMENT: the message names the handle, feature or size that is wrong or missing. NOT_SUPPORTED: this build
 * has no such backend, or the backend adopts no devices. UNAVAILABLE: the driver does not work here. */
GM_API gm_status gm_device_adopt(gm_context *ctx, const gm_native_device *native, gm_device **out, gm_error *err);
/* Adopts as gm_device_adopt does, by the backend of that name. Registered backends (gm/backend.h) may share one API,
 * such as GM_API_OTHER: then gm_device_adopt answers INVALID_ARGUMENT, and only this call can tell them apart.
 * INVALID_ARGUMENT: also where `native` is of another API than the backend. NOT_FOUND: there is no such backend.
 * Otherwise it answers as gm_device_adopt. */
GM_API gm_status gm_device_adopt_as(gm_context *ctx, const char *backend, const gm_native_device *native,
                                    gm_device **out, gm_error *err);

/* Closes a device. NULL is GM_OK. BUSY: pools, streams, buffers, evictors, watches or registered ranges of it are
 * alive. */
GM_API gm_status gm_device_close(gm_device *device, gm_error *err);

/* Returns the description of a device. Borrowed until the device is closed. */
GM_API const gm_device_info *gm_device_get_info(const gm_device *device);
/* Returns the context of a device. Borrowed. */
GM_API gm_context *gm_device_context(const gm_device *device);

/* Reads the memory figures now: total, free, used by us (all contexts of the process), reclaimable (pooled) and margin.
 */
GM_API gm_status gm_device_memory_info(gm_device *device, gm_memory_info *out, gm_error *err);

/* Reads the memory figures for managed allocations (gm/managed.h). On some devices managed memory comes from the host
 * and is limited by the process's cgroup; ordinary device memory is not. Everywhere else the figures are those of
 * gm_device_memory_info. */
GM_API gm_status gm_device_managed_memory_info(gm_device *device, gm_memory_info *out, gm_error *err);

/* Returns how many heaps the device's memory has. On Vulkan these are the API's heaps. Elsewhere they follow from the
 * memory types. A card has one heap, and one of pinned host memory; the CPU has one. */
GM_API gm_status gm_device_heap_count(gm_device *device, uint32_t *out, gm_error *err);
/* Reads the figures of heap number `index` now. The caller sets out->struct_size. INVALID_ARGUMENT: there are fewer
 * heaps. */
GM_API gm_status gm_device_heap(gm_device *device, uint32_t index, gm_heap_info *out, gm_error *err);

/* Registers the caller's own host memory, such as a mapped file. The system keeps it in RAM, and the device copies from
 * and to it directly. The caller keeps the memory, and unregisters it before it gives the memory back and before it
 * closes the device. A range is known by its begin. It need not begin at a page, but whole pages are kept in RAM.
 *
 * INVALID_ARGUMENT: also where the range overlaps one that is registered on this device, or wraps around. PINNED_LIMIT:
 * the system refuses. NOT_SUPPORTED: the device cannot (no GM_CAP_REGISTRATION). */
GM_API gm_status gm_host_register(gm_device *device, void *pointer, uint64_t bytes, gm_error *err);
/* Unregisters the range that begins at `pointer`. No work of the device may still use it. In a forked child it gives
 * back gm's record only. NOT_FOUND: no range that was registered on this device begins there. BUSY: another thread is
 * submitting a copy of it (Vulkan). After other errors, apart from DEVICE_LOST, the range is still registered. */
GM_API gm_status gm_host_unregister(gm_device *device, void *pointer, gm_error *err);

/* Tells whether the device still works. DEVICE_LOST: it does not; `err` has the reason. */
GM_API gm_status gm_device_state(gm_device *device, gm_error *err);

/* Returns the API's own objects. The caller fills the head of `out` (struct_size and api). The objects are borrowed.
 * INVALID_ARGUMENT: the head names another API. NOT_SUPPORTED: the API has no such objects. */
GM_API gm_status gm_device_native(gm_device *device, gm_native_device *out, gm_error *err);

/* Returns how many kinds of memory the device offers. */
GM_API gm_status gm_device_memory_type_count(gm_device *device, uint32_t *out, gm_error *err);
/* Returns the memory type number `index`. Types come in order of preference for kernels, the best first. The caller
 * sets out->struct_size. */
GM_API gm_status gm_device_memory_type(gm_device *device, uint32_t index, gm_memory_type *out, gm_error *err);

GM_END_DECLS

#endif
