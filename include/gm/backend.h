/* The seam: all that a backend knows of gm, and all that gm knows of a GPU API.
 *
 * A backend is one constant gm_backend_ops. gm copies it at registration, checks ABI and size, refuses a table whose
 * required groups have holes or whose all-or-none groups are half there, and fills what is NULL with stubs that answer
 * GM_ERR_NOT_SUPPORTED, so nobody ever tests an entry for NULL. The table grows at its end alone: of an older backend's
 * shorter table the rest is NULL, and of a newer one's longer table gm leaves what it does not know unused. The other
 * structs of this header and of gm/raw_figures.h stay as they are for as long as GM_BACKEND_ABI does. A stranger's
 * backend needs this header alone (see backends/template) and is registered with gm_backend_register.
 *
 * Rules for every entry:
 * - It never aborts, exits, prints or throws; every failure is a status, with a reason in `err` (may be NULL).
 * - Outputs are written only with GM_OK.
 * - Entries on one driver, device or stream may be called from several threads at once, except that closing excludes
 *   every other call on the object (gm sees to that).
 * - What a call changes in the calling thread (a current context) it restores.
 * - Host memory comes from host->services.
 * - A driver's answer is input: counts, sizes and names are checked before use. A backend's answer is input to gm
 *   likewise: what gm reckons with and cannot believe is refused with GM_ERR_DRIVER. Alignments, atoms and granules are
 *   powers of two up to 2^30; objects and handles are not NULL or 0; memory is of the type that was asked for, has at
 * most 1 GiB more than was asked for, ends before the last address, and has a `host` only where its type says so.
 * - In a forked child only the closing entries are called, with GM_CLOSE_ABANDON: they give back host memory and call
 *   nothing of the driver, take no lock and wait for nothing. */
#ifndef GM_BACKEND_H
#define GM_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gm/device_info.h"
#include "gm/native.h"
#include "gm/raw_figures.h"
#include "gm/services.h"
#include "gm/share_kind.h"
#include "gm/status.h"
#include "gm/stream_kind.h"

GM_BEGIN_DECLS

#define GM_BACKEND_ABI 0u /* 0: unstable until CPU, OpenCL, Vulkan and one real engine have lived with it */

typedef enum gm_probe_level {
  GM_PROBE_PASSIVE = 0, /* files only; runs no vendor code; safe before a fork */
  GM_PROBE_ACTIVE = 1,  /* loads the driver and asks it; leaves no device or context behind */
  GM_PROBE_ISOLATED = 2 /* ACTIVE in a helper process; backends never see this level */
} gm_probe_level;

/* What gm lends to a backend; valid from init until fini returns. */
typedef struct gm_backend_host {
  uint32_t struct_size;
  const gm_services *services; /* never NULL, every member set except perhaps `log` */
  const char *library;        /* driver library to open in place of the default names: the operator's GM_<NAME>_LIBRARY,
                                 else the program's; NULL: default */
  const char *options;        /* backend's own switches, "word,key=value,..."; never NULL */
  gm_symbol_hook symbol_hook; /* may replace entries of the driver's symbol table; NULL: none */
  void *symbol_hook_user;
} gm_backend_host;

/* What a probe found. All texts may be "". */
typedef struct gm_driver_info {
  uint32_t struct_size;
  uint32_t device_count; /* PASSIVE: what the files tell, else 0 */
  bool simulated;
  char library[128]; /* what was, or would be, opened */
  char version[64];
} gm_driver_info;

typedef enum gm_close_mode {
  GM_CLOSE_NORMAL = 0,
  GM_CLOSE_ABANDON = 1 /* forked child or lost device: host memory only */
} gm_close_mode;

/* Kinds of memory a device offers, in order of preference for data that kernels use. */
typedef enum gm_memory_flags {
  GM_MEMORY_DEVICE_LOCAL = 1,  /* the device's own, fast for it */
  GM_MEMORY_HOST_VISIBLE = 2,  /* can be mapped */
  GM_MEMORY_HOST_COHERENT = 4, /* needs no flush or invalidate */
  GM_MEMORY_HOST_CACHED = 8,   /* fast for the host to read */
  GM_MEMORY_HOST_POINTER = 16, /* gm_memory.host is set: no mapping needed */
  GM_MEMORY_PINNED = 32,       /* page-locked host memory */
  GM_MEMORY_MANAGED = 64,      /* migrates between device and host (group 19) */
  GM_MEMORY_APART = 128        /* another kind of handle than the other types: only for who asks for this type */
} gm_memory_flags;

typedef struct gm_memory_type {
  uint32_t struct_size;
  uint32_t flags;           /* gm_memory_flags */
  uint32_t heap;            /* types with equal heap share its bytes */
  uint32_t share_kinds;     /* bit 1 << kind for each gm_share_kind that memory of this type can be made for */
  uint64_t heap_bytes;      /* 0: not known */
  uint64_t max_alloc_bytes; /* 0: as the device */
  uint64_t atom_bytes;      /* flush and invalidate granularity, a power of two up to 2^30; 1 if coherent */
} gm_memory_type;

typedef enum gm_usage { /* what the memory is for; 0 means TRANSFER | STORAGE */
                        GM_USAGE_TRANSFER = 1,
                        GM_USAGE_STORAGE = 2,
                        GM_USAGE_UNIFORM = 4,
                        GM_USAGE_INDIRECT = 8,
                        GM_USAGE_READBACK = 16 /* the host reads it: prefer cached */
} gm_usage;

typedef enum gm_alloc_flags {
  GM_ALLOC_COMMIT = 1,   /* really take the bytes now (touch), where the driver is lazy */
  GM_ALLOC_DEDICATED = 2 /* nothing else will share it */
} gm_alloc_flags;

typedef struct gm_memory_params {
  uint32_t struct_size;
  uint32_t type;       /* index of the memory type */
  uint64_t bytes;      /* > 0 */
  uint64_t align;      /* power of two; 0: the device's */
  uint32_t usage;      /* gm_usage */
  uint32_t flags;      /* gm_alloc_flags */
  gm_share_kind share; /* made so that share_export can hand it out in this way */
} gm_memory_params;

/* One driver allocation, by value. */
typedef struct gm_memory {
  uint64_t handle;  /* the backend's; never 0 */
  uint64_t address; /* device address of the first byte; 0: the API has none */
  uint64_t bytes;   /* usable, at least what was asked */
  void *host;       /* host address without mapping; NULL if there is none */
  uint32_t type;
  bool wrapped; /* the engine's: freeing it lets go, and destroys nothing */
} gm_memory;

typedef struct gm_backend_point { /* both zero: passed */
  uint64_t handle;
  uint64_t value;
} gm_backend_point;

typedef enum gm_map_mode { GM_MAP_READ = 1, GM_MAP_WRITE = 2, GM_MAP_DISCARD = 4 } gm_map_mode;

/* A box of bytes: `rows` rows of `row_bytes`, `slices` times; pitches of 0 mean tight. Offsets are of the first byte.
 */
typedef struct gm_rect {
  uint64_t row_bytes, rows, slices;
  uint64_t src_offset, src_row_pitch, src_slice_pitch;
  uint64_t dst_offset, dst_row_pitch, dst_slice_pitch;
} gm_rect;

typedef struct gm_copy_item { /* for copy_many */
  const gm_memory *src;
  uint64_t src_offset;
  const gm_memory *dst;
  uint64_t dst_offset;
  uint64_t bytes;
} gm_copy_item;

typedef struct gm_vmm_props {
  uint32_t type;
  bool shareable;
  bool exclusive; /* only ever mapped as a whole, at one place at a time: a backend may have better memory for that */
} gm_vmm_props;

typedef struct gm_peer_info { /* what one device has of another one's memory */
  uint32_t struct_size;
  bool direct;  /* a path of their own; false: copies go through host memory, and kernels reach nothing */
  bool atomics; /* atomic operations work over it */
  int32_t rank; /* the driver's, lower is faster; -1: not told */
} gm_peer_info;

typedef enum gm_managed_place { GM_MANAGED_ON_DEVICE = 0, GM_MANAGED_ON_HOST = 1 } gm_managed_place;

typedef enum gm_managed_advice {
  GM_ADVICE_READ_MOSTLY = 0,  /* both may keep a copy */
  GM_ADVICE_STAY_ON = 1,      /* prefers to lie at `place` */
  GM_ADVICE_ACCESSED_FROM = 2 /* `place` keeps a mapping wherever it lies */
} gm_managed_advice;

/* `driver`, `device` and `stream` are the backend's own objects. Copies: with `out` NULL the call returns when the
 * bytes have arrived and `src` may change; otherwise it returns at once, host memory must stay valid and unchanged
 * until *out has passed, and the caller releases *out. Only a copy to the host may still wait, where the device cannot
 * reach the caller's memory (Vulkan); its point has passed then. Memory ranges are checked by gm before the call. */
typedef struct gm_backend_ops {
  /* 1. Head: required. */
  uint32_t abi;         /* GM_BACKEND_ABI */
  uint32_t struct_size; /* sizeof(gm_backend_ops) of the header that the backend was compiled with */
  const char *name;     /* lower case, at most 15 characters, static storage */
  gm_api api;
  uint64_t capabilities; /* gm_capability bits that the backend can have at all */

  /* 2. Driver: required. probe needs no init and leaves nothing behind. */
  gm_status (*probe)(const gm_backend_host *host, gm_probe_level level, gm_driver_info *out, gm_error *err);
  gm_status (*init)(const gm_backend_host *host, void **out_driver, gm_error *err);
  void (*fini)(void *driver, gm_close_mode mode);

  /* 3. Device info: required. `device` NULL: by index; else of that open or adopted device, index ignored. */
  gm_status (*device_count)(void *driver, uint32_t *out, gm_error *err);
  gm_status (*device_info)(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err);

  /* 4. Device: required. device_state: GM_OK, or GM_ERR_DEVICE_LOST with the reason. device_native: fills the struct
   * whose head says its size and API. */
  gm_status (*device_open)(void *driver, uint32_t index, void **out_device, gm_error *err);
  void (*device_close)(void *device, gm_close_mode mode);
  gm_status (*device_state)(void *device, gm_error *err);
  gm_status (*device_native)(void *device, gm_native_device *out, gm_error *err);

  /* 5. Adoption: all or none, but for memory_wrap and point_native, which may stand alone. A wrapped memory has
   * `wrapped` set; freeing it lets go of what was retained and destroys nothing. point_native: the API's own event or
   * semaphore, good until the point is released; handle 0 where the point has passed. */
  gm_status (*device_adopt)(void *driver, const gm_native_device *native, void **out_device, gm_error *err);
  gm_status (*stream_adopt)(void *device, const gm_native_stream *native, void **out_stream, gm_stream_kind *out_kind,
                            gm_error *err);
  gm_status (*point_import)(void *device, const gm_native_point *native, gm_backend_point *out, gm_error *err);
  gm_status (*memory_wrap)(void *device, const gm_native_memory *native, gm_memory *out, gm_error *err);
  gm_status (*point_native)(void *device, const gm_backend_point *point, gm_native_point *out, gm_error *err);

  /* 6. Figures: required. Raw numbers and which of them could be had; no policy. `device` NULL: before opening. */
  gm_status (*figures)(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err);

  /* 7. Memory types: required. At least one. */
  gm_status (*memory_type_count)(void *device, uint32_t *out, gm_error *err);
  gm_status (*memory_type)(void *device, uint32_t type, gm_memory_type *out, gm_error *err);

  /* 8. Memory: required. memory_free: gm has made sure that nothing uses it any more. memory_native: `out` is the API's
   * struct, of the block at [offset, offset + bytes). */
  gm_status (*memory_alloc)(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err);
  gm_status (*memory_free)(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err);
  gm_status (*memory_native)(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                             gm_native_memory *out, gm_error *err);

  /* 9. Block view: all or none. A native object of its own for a range (sub-buffer, VkBuffer). */
  gm_status (*view_create)(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, uint32_t usage,
                           uint64_t *out_view, gm_error *err);
  gm_status (*view_destroy)(void *device, uint64_t view, gm_close_mode mode, gm_error *err);

  /* 10. Host mapping: all or none. map waits for earlier work of `stream` on the range; unmap gives it back to later
   * work of `stream`. flush and invalidate: gm has widened the range to the atom. */
  gm_status (*map)(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes, uint32_t mode,
                   void **out, gm_error *err);
  gm_status (*unmap)(void *device, void *stream, const gm_memory *memory, void *pointer, gm_error *err);
  gm_status (*flush)(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err);
  gm_status (*invalidate)(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err);

  /* 11. Commit: optional. Makes the driver really take the range now. Contents stay. With GM_CAP_COMMIT_QUEUE it is
   * work on `stream`, or on a queue of the backend's own (`stream` NULL; NOT_SUPPORTED where it may make none), and is
   * over when the call returns; others take no notice of `stream`. */
  gm_status (*commit)(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                      gm_error *err);

  /* 12. Streams: all or none. stream_close waits for the stream's work unless abandoned; of an adopted one it only lets
   * go. */
  gm_status (*stream_create)(void *device, void **out_stream, gm_stream_kind *out_kind, gm_error *err);
  void (*stream_close)(void *device, void *stream, gm_close_mode mode);
  gm_status (*stream_flush)(void *device, void *stream, gm_error *err);
  gm_status (*stream_sync)(void *device, void *stream, gm_error *err);

  /* 13. Points: all or none. record: after all that was submitted to `stream` so far. point_wait: GM_ERR_TIMEOUT when
   * timeout_ns passed first (UINT64_MAX: no limit). point_wait_on: later work of `stream` waits, the host does not;
   * for a point that has passed (both zero) nothing is submitted; NOT_SUPPORTED: nothing may ever be submitted to this
   * stream, which gm asks once in that way when it adopts one. A barrier: later work of `stream` sees and follows all
   * earlier work of it. stream_capturing may stand alone: true while the engine records the work of a stream that it
   * lent, instead of doing it. Meanwhile gm allocates nothing for the stream, and submits and waits for nothing there.
   * It may ask for a point of it all the same, because others wait for what was freed there, and a recording can begin
   * at any moment: each entry that would touch the recording answers GM_ERR_BUSY and leaves it as it is. */
  gm_status (*point_record)(void *device, void *stream, gm_backend_point *out, gm_error *err);
  gm_status (*point_done)(void *device, const gm_backend_point *point, bool *out, gm_error *err);
  gm_status (*point_wait)(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err);
  gm_status (*point_wait_on)(void *device, void *stream, const gm_backend_point *point, gm_error *err);
  gm_status (*stream_barrier)(void *device, void *stream, gm_error *err);
  void (*point_release)(void *device, const gm_backend_point *point, gm_close_mode mode);
  gm_status (*stream_capturing)(void *device, void *stream, bool *out, gm_error *err);

  /* 14. Copies: the first four required, the rest optional. fill: `pattern` of 1, 2, 4, 8 or 16 bytes, repeated from
   * the first byte; bytes need not be a multiple. copy: ranges do not overlap. copy_record: into the engine's own
   * native command buffer. */
  gm_status (*copy_to_device)(void *device, void *stream, const gm_memory *dst, uint64_t offset, const void *src,
                              uint64_t bytes, gm_backend_point *out, gm_error *err);
  gm_status (*copy_to_host)(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                            uint64_t bytes, gm_backend_point *out, gm_error *err);
  gm_status (*copy)(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out, gm_error *err);
  gm_status (*fill)(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                    const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err);
  gm_status (*rect_to_device)(void *device, void *stream, const gm_memory *dst, const void *src, const gm_rect *rect,
                              gm_backend_point *out, gm_error *err);
  gm_status (*rect_to_host)(void *device, void *stream, const gm_memory *src, void *dst, const gm_rect *rect,
                            gm_backend_point *out, gm_error *err);
  gm_status (*rect_copy)(void *device, void *stream, const gm_memory *dst, const gm_memory *src, const gm_rect *rect,
                         gm_backend_point *out, gm_error *err);
  gm_status (*copy_many)(void *device, void *stream, const gm_copy_item *items, uint32_t count, gm_backend_point *out,
                         gm_error *err);
  gm_status (*copy_record)(void *device, uintptr_t native_command_buffer, const gm_copy_item *item, gm_error *err);

  /* 15. Host registration: all or none. Page-locks the caller's memory; GM_ERR_PINNED_LIMIT when the system refuses. */
  gm_status (*host_register)(void *device, void *pointer, uint64_t bytes, gm_error *err);
  gm_status (*host_unregister)(void *device, void *pointer, gm_close_mode mode, gm_error *err);

  /* 16. Virtual memory: all or none. vmm_granularity: NOT_SUPPORTED if vmm_create cannot make such memory. For
   * `exclusive` requests a backend may also answer this when the memory would be slow. vmm_destroy: what is mapped
   * stays until it is unmapped. */
  gm_status (*vmm_granularity)(void *device, const gm_vmm_props *props, uint64_t *out, gm_error *err);
  gm_status (*vmm_reserve)(void *device, uint64_t bytes, uint64_t align, uint64_t *out_address, gm_error *err);
  gm_status (*vmm_unreserve)(void *device, uint64_t address, uint64_t bytes, gm_close_mode mode, gm_error *err);
  gm_status (*vmm_create)(void *device, const gm_vmm_props *props, uint64_t bytes, uint64_t *out_handle, gm_error *err);
  gm_status (*vmm_destroy)(void *device, uint64_t handle, uint64_t bytes, gm_close_mode mode, gm_error *err);
  gm_status (*vmm_map)(void *device, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset, gm_error *err);
  gm_status (*vmm_unmap)(void *device, uint64_t address, uint64_t bytes, gm_error *err);
  gm_status (*vmm_access)(void *device, uint64_t address, uint64_t bytes, gm_error *err);

  /* 17. Peer: all or none. Both devices are this backend's. peer_enable: from now on work of `device` may use addresses
   * of `other`'s memory; again is no error, NOT_SUPPORTED without a path. peer_access: a range that vmm_access has
   * opened for its own device is open for `other` too. peer_copy: from memory of `src_device` to memory of `device`, in
   * the order of `stream`, which is `device`'s; without a path the driver goes through host memory. */
  gm_status (*peer_info)(void *device, void *other, gm_peer_info *out, gm_error *err);
  gm_status (*peer_enable)(void *device, void *other, gm_error *err);
  gm_status (*peer_disable)(void *device, void *other, gm_close_mode mode, gm_error *err);
  gm_status (*peer_access)(void *device, void *other, uint64_t address, uint64_t bytes, gm_error *err);
  gm_status (*peer_copy)(void *device, void *stream, void *src_device, const gm_copy_item *item, gm_backend_point *out,
                         gm_error *err);

  /* 18. Share: all or none. The exporting process lives, and keeps the memory, until every import is closed.
   * share_export: of memory made with params.share == `kind` (a driver may take any memory for IPC); the descriptor in
   * *out is the caller's. share_import: gives memory of kinds IPC, FD and DMABUF, to be given back by share_close; gm
   * asks for the whole (offset 0, `bytes` = `whole_bytes`), once for one allocation of the driver. The last two: kind
   * FD, of what vmm_create made with `shareable`; imported physical memory is given back by vmm_destroy. An import does
   * not take `fd`, and refuses what does not fit what the driver opened. Whose device it is (device_uuid, backend) gm
   * says and checks. */
  gm_status (*share_export)(void *device, const gm_memory *memory, gm_share_kind kind, gm_shared *out, gm_error *err);
  gm_status (*share_import)(void *device, const gm_shared *shared, gm_memory *out, gm_error *err);
  gm_status (*share_close)(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err);
  gm_status (*share_export_vmm)(void *device, uint64_t handle, uint64_t bytes, gm_shared *out, gm_error *err);
  gm_status (*share_import_vmm)(void *device, const gm_shared *shared, uint64_t *out_handle, gm_error *err);

  /* 19. Managed: all or none. For memory types that migrate; INVALID_ARGUMENT for others. managed_advise: `give` false
   * takes the advice back. */
  gm_status (*managed_prefetch)(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                gm_managed_place place, gm_backend_point *out, gm_error *err);
  gm_status (*managed_advise)(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                              gm_managed_advice advice, gm_managed_place place, bool give, gm_error *err);

  /* 20. Ranges as memory: optional. What copies and native handles take for [address, address + bytes) of a reserved
   * range, mapped or not; memory_free lets go of it, before the range is unreserved, and unmaps nothing. Its address
   * and bytes are those that were asked for. Without the entry such a memory is one whose handle and address are
   * `address` (see gm_memory). A backend may be unable to map a range into the host; of a type with
   * GM_MEMORY_HOST_POINTER `host` is set, for what is mapped. */
  gm_status (*vmm_memory)(void *device, uint64_t address, uint64_t bytes, uint32_t type, gm_memory *out, gm_error *err);

  /* 21. Copies of points: optional. A second point at the same place, which is released by itself; of one that was
   * given back, a zero point. */
  gm_status (*point_copy)(void *device, const gm_backend_point *point, gm_backend_point *out, gm_error *err);

  /* 22. Adoption by the engine's own loader: optional. Of a device whose native struct says where the API's entries
   * are: without init, and with nothing of the machine's libraries. Group 5 then serves the device as one that
   * device_adopt gave, and entries that take a driver beside it get NULL. `host` outlives the device. NOT_SUPPORTED:
   * the struct does not say it; gm then tries init and device_adopt. */
  gm_status (*device_adopt_alone)(const gm_backend_host *host, const gm_native_device *native, void **out_device,
                                  gm_error *err);

  /* 23. Streams adopted again: optional. Whether `stream`, an adopted one, is the queue that `native` names.
   * INVALID_ARGUMENT, naming what differs, where it is and was lent on other terms. gm asks before it adopts, with a
   * lock held: the backend neither waits nor calls the engine. Without the entry a queue adopted twice is two streams.
   */
  gm_status (*stream_same)(void *device, void *stream, const gm_native_stream *native, bool *out, gm_error *err);

  /* 24, 25. Files, kernels: reserved, must be NULL. */
  void (*reserved[8])(void);
  /* End of ABI 0. */
} gm_backend_ops;

GM_END_DECLS

#endif
