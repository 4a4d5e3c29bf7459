/* The interface between gm and a backend. It is all that a backend knows of gm, and all that gm knows of a GPU API.
 * Programs that only use gm do not need it.
 *
 * A backend is one constant gm_backend_ops. gm copies it at registration, and checks its ABI and size. gm refuses a
 * table that lacks an entry of a required group, or has only a part of an all-or-none group. It fills in NULL entries
 * with stubs that answer NOT_SUPPORTED, so nobody tests an entry for NULL.
 *
 * The table grows at its end only. Entries that an older table lacks are NULL. gm ignores those of a newer table that
 * it does not know. The other structs here, of gm/memory.h and of gm/raw_figures.h never change while GM_BACKEND_ABI
 * stays. A third-party backend needs this header alone (see backends/template). gm_backend_register registers it.
 *
 * Rules for every entry:
 * - It never aborts, exits, prints or throws. Every failure is a status, with a reason in `err` (may be NULL).
 * - It writes outputs only when it answers GM_OK.
 * - Several threads may call entries on one object at once. gm closes an object when no other call uses it.
 * - It restores all that it changes in the calling thread, such as a current context. Host memory is of host->services.
 * - It treats a driver's answer as input, and checks counts, sizes and names before use.
 * - gm treats a backend's answer as input, and answers DRIVER to figures that cannot be true. Alignments, atoms and
 *   granules are powers of two up to 2^30. Objects and handles are not 0. Memory is of the type that was asked for, and
 *   at most 1 GiB larger. It ends before the last address, and has a `host` only where its type says so.
 * - In a forked child gm calls only the closing entries, with GM_CLOSE_ABANDON. They give back host memory. They call
 *   nothing of the driver, take no lock and wait for nothing. */
#ifndef GM_BACKEND_H
#define GM_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gm/device_info.h"
#include "gm/dtype.h"
#include "gm/memory.h"
#include "gm/native.h"
#include "gm/raw_figures.h"
#include "gm/services.h"
#include "gm/share_kind.h"
#include "gm/status.h"
#include "gm/stream_kind.h"

GM_BEGIN_DECLS

#define GM_BACKEND_ABI 0u /* 0: unstable until CPU, OpenCL, Vulkan and one real engine have used it for a while */

/* The services that gm lends to a backend. It is valid from init until fini returns. */
typedef struct gm_backend_host {
  uint32_t struct_size;
  const gm_services *services; /* never NULL; every member is set, except perhaps `log` */
  const char *library;         /* driver library to open in place of the default names: the operator's
                                  GM_<NAME>_LIBRARY, else the program's; NULL: default */
  const char *options;         /* switches of the backend, "word,key=value,..."; never NULL */
  gm_symbol_hook symbol_hook;  /* may replace entries of the driver's symbol table; NULL: none */
  void *symbol_hook_user;
} gm_backend_host;

/* The result of a probe. Every text may be "". */
typedef struct gm_driver_info {
  uint32_t struct_size;
  uint32_t device_count; /* at the level PASSIVE: as far as files tell, else 0 */
  bool simulated;
  char library[128]; /* the library that was, or would be, opened */
  char version[64];
} gm_driver_info;

typedef enum gm_close_mode {
  GM_CLOSE_NORMAL = 0,
  GM_CLOSE_ABANDON = 1 /* in a forked child, or on a lost device: host memory only */
} gm_close_mode;

typedef enum gm_alloc_flags {
  GM_ALLOC_COMMIT = 1,   /* really take the bytes now (touch them), where the driver is lazy */
  GM_ALLOC_DEDICATED = 2 /* nothing else will share the memory */
} gm_alloc_flags;

typedef struct gm_memory_params {
  uint32_t struct_size;
  uint32_t type;       /* index of the memory type */
  uint64_t bytes;      /* > 0 */
  uint64_t align;      /* power of two; 0: the device's */
  uint32_t usage;      /* gm_usage */
  uint32_t flags;      /* gm_alloc_flags */
  gm_share_kind share; /* how share_export must be able to hand it out */
  float priority; /* above 0, at most 1: how much it matters that the memory stays on a full device. 0: as the driver
                     does. Drivers without such a thing ignore it */
} gm_memory_params;

typedef struct gm_backend_point { /* both 0: the point has passed */
  uint64_t handle;
  uint64_t value;
} gm_backend_point;

typedef struct gm_stream_name { /* of a stream that an engine lends */
  uint64_t words[2];
} gm_stream_name;

typedef struct gm_copy_item { /* one copy of copy_many */
  const gm_memory *src;
  uint64_t src_offset;
  const gm_memory *dst;
  uint64_t dst_offset;
  uint64_t bytes;
} gm_copy_item;

typedef struct gm_vmm_props {
  uint32_t type;
  bool shareable;
  bool exclusive; /* mapped only as a whole, at one place at a time; a backend may have better memory for that */
} gm_vmm_props;

typedef struct gm_peer_info { /* what one device has of another device's memory */
  uint32_t struct_size;
  bool direct;   /* they have a path of their own; false: copies go through host memory, kernels reach nothing */
  bool atomics;  /* atomic operations work over it */
  int32_t rank;  /* the driver's rank, lower is faster; -1: the driver does not tell */
  char why[192]; /* what the driver's answer "no path" may come from; "": nothing is known */
} gm_peer_info;

/* The table of a backend. `driver`, `device` and `stream` are the backend's own objects.
 *
 * Copies: with `out` NULL an entry returns when the bytes have arrived and `src` may change. With `out` it returns at
 * once. Host memory then stays valid and unchanged until *out has passed, and the caller releases *out. Only a copy to
 * the host may still wait, where the device cannot reach the caller's memory (Vulkan). Its point has then passed. gm
 * checks memory ranges before the call.
 *
 * gm names a `stream` in every copy and fill of a table that has streams (12). `stream` NULL: the table has none, and
 * the work is over when the entry returns. */
typedef struct gm_backend_ops {
  /* 1. Head: required. */
  uint32_t abi;         /* GM_BACKEND_ABI */
  uint32_t struct_size; /* sizeof(gm_backend_ops) of the header that the backend was compiled with */
  const char *name;     /* lower case, at most 15 characters, static */
  gm_api api;
  uint64_t capabilities; /* gm_capability bits that the backend can have at all */

  /* 2. Driver: required. probe needs no init, and leaves nothing behind. */
  gm_status (*probe)(const gm_backend_host *host, gm_probe_level level, gm_driver_info *out, gm_error *err);
  gm_status (*init)(const gm_backend_host *host, void **out_driver, gm_error *err);
  void (*fini)(void *driver, gm_close_mode mode);

  /* 3. Device info: required. With `device` NULL the index names the device. With `device` the entry is about that
   * open or adopted device, and ignores the index. */
  gm_status (*device_count)(void *driver, uint32_t *out, gm_error *err);
  gm_status (*device_info)(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err);

  /* 4. Device: required. device_state answers GM_OK, or DEVICE_LOST with the reason. device_native fills in the struct
   * whose head states its size and API. */
  gm_status (*device_open)(void *driver, uint32_t index, void **out_device, gm_error *err);
  void (*device_close)(void *device, gm_close_mode mode);
  gm_status (*device_state)(void *device, gm_error *err);
  gm_status (*device_native)(void *device, gm_native_device *out, gm_error *err);

  /* 5. Adoption: all or none, except memory_wrap and point_native, which may stand alone. A wrapped memory has
   * `wrapped` set. Freeing it releases what was retained, and destroys nothing. point_native returns the API's own
   * event or semaphore, valid until the point is released. Its handle is 0 where the point has passed. */
  gm_status (*device_adopt)(void *driver, const gm_native_device *native, void **out_device, gm_error *err);
  gm_status (*stream_adopt)(void *device, const gm_native_stream *native, void **out_stream, gm_stream_kind *out_kind,
                            gm_error *err);
  gm_status (*point_import)(void *device, const gm_native_point *native, gm_backend_point *out, gm_error *err);
  gm_status (*memory_wrap)(void *device, const gm_native_memory *native, gm_memory *out, gm_error *err);
  gm_status (*point_native)(void *device, const gm_backend_point *point, gm_native_point *out, gm_error *err);

  /* 6. Figures: required. Raw numbers, and which of them the driver gave. `device` NULL: before opening. */
  gm_status (*figures)(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err);

  /* 7. Memory types: required. At least one. */
  gm_status (*memory_type_count)(void *device, uint32_t *out, gm_error *err);
  gm_status (*memory_type)(void *device, uint32_t type, gm_memory_type *out, gm_error *err);

  /* 8. Memory: required. Before memory_free gm makes sure that nothing uses the memory any more. memory_native fills in
   * `out`, the API's struct, for the block at [offset, offset + bytes). */
  gm_status (*memory_alloc)(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err);
  gm_status (*memory_free)(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err);
  gm_status (*memory_native)(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                             gm_native_memory *out, gm_error *err);

  /* 9. Block view: all or none. A view is a native object for a range of a memory (sub-buffer, VkBuffer). */
  gm_status (*view_create)(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, uint32_t usage,
                           uint64_t *out_view, gm_error *err);
  gm_status (*view_destroy)(void *device, uint64_t view, gm_close_mode mode, gm_error *err);

  /* 10. Host mapping: all or none. map waits for earlier work of `stream` on the range. unmap gives the range back to
   * later work of `stream`. With `stream` NULL no work uses the range; NOT_SUPPORTED where the API maps on a queue. A
   * memory may have several mappings at once. For flush and invalidate gm has widened the range to the atom. They do
   * nothing for memory that is not mapped.
   *
   * With GM_MAP_NO_WAIT `stream` is NULL, and map waits for nothing. NOT_SUPPORTED where the API cannot. On types with
   * GM_MEMORY_PERSISTENT_MAP it can. There the pointer is good until the memory is freed, also after unmap. */
  gm_status (*map)(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes, uint32_t mode,
                   void **out, gm_error *err);
  gm_status (*unmap)(void *device, void *stream, const gm_memory *memory, void *pointer, gm_error *err);
  gm_status (*flush)(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err);
  gm_status (*invalidate)(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err);

  /* 11. Commit: optional. Makes the driver really take the range now; the contents stay. With GM_CAP_COMMIT_QUEUE it is
   * work on `stream`. With `stream` NULL it is work on a queue of the backend's own, or NOT_SUPPORTED where it may make
   * none. That work is over when the call returns. Other backends ignore `stream`. */
  gm_status (*commit)(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                      gm_error *err);

  /* 12. Streams: all or none. stream_close waits for the work, unless abandoned. It only releases an adopted one. */
  gm_status (*stream_create)(void *device, void **out_stream, gm_stream_kind *out_kind, gm_error *err);
  void (*stream_close)(void *device, void *stream, gm_close_mode mode);
  gm_status (*stream_flush)(void *device, void *stream, gm_error *err);
  gm_status (*stream_sync)(void *device, void *stream, gm_error *err);

  /* 13. Points: all or none.
   * - point_record: a point after all work that was submitted to `stream` so far.
   * - point_wait: TIMEOUT when `timeout_ns` nanoseconds passed first; UINT64_MAX means no limit.
   * - point_wait_on: later work of `stream` waits; the host does not. For a point that has passed (both zero) nothing
   *   is submitted. NOT_SUPPORTED: nothing may ever be submitted to this stream. gm asks that once, with a zero point,
   *   when it adopts the stream.
   * - stream_barrier: later work of `stream` follows all its earlier work, and sees its results.
   * - stream_capturing may stand alone. It is true while the engine records the work of a stream that it lent, instead
   *   of running it. Meanwhile gm allocates nothing for the stream, and submits and waits for nothing there. gm may
   *   still ask for a point of it, because others wait for memory that was freed there. A recording can also begin at
   *   any moment. So an entry that would touch the recording answers BUSY or NOT_SUPPORTED, and leaves it as it was. */
  gm_status (*point_record)(void *device, void *stream, gm_backend_point *out, gm_error *err);
  gm_status (*point_done)(void *device, const gm_backend_point *point, bool *out, gm_error *err);
  gm_status (*point_wait)(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err);
  gm_status (*point_wait_on)(void *device, void *stream, const gm_backend_point *point, gm_error *err);
  gm_status (*stream_barrier)(void *device, void *stream, gm_error *err);
  void (*point_release)(void *device, const gm_backend_point *point, gm_close_mode mode);
  gm_status (*stream_capturing)(void *device, void *stream, bool *out, gm_error *err);

  /* 14. Copies: the first four are required, the others optional. fill repeats `pattern` of 1, 2, 4, 8 or 16 bytes from
   * the first byte; `bytes` need not be a multiple. The ranges of copy do not overlap. copy_record records into the
   * engine's own native command buffer. */
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

  /* 15. Host registration: all or none. It page-locks the caller's memory. PINNED_LIMIT: the system refuses. */
  gm_status (*host_register)(void *device, void *pointer, uint64_t bytes, gm_error *err);
  gm_status (*host_unregister)(void *device, void *pointer, gm_close_mode mode, gm_error *err);

  /* 16. Virtual memory: all or none. vmm_granularity answers NOT_SUPPORTED if vmm_create cannot make such memory. For
   * `exclusive` requests a backend may also answer this when the memory would be slow. After vmm_destroy, mapped memory
   * stays until it is unmapped. */
  gm_status (*vmm_granularity)(void *device, const gm_vmm_props *props, uint64_t *out, gm_error *err);
  gm_status (*vmm_reserve)(void *device, uint64_t bytes, uint64_t align, uint64_t *out_address, gm_error *err);
  gm_status (*vmm_unreserve)(void *device, uint64_t address, uint64_t bytes, gm_close_mode mode, gm_error *err);
  gm_status (*vmm_create)(void *device, const gm_vmm_props *props, uint64_t bytes, uint64_t *out_handle, gm_error *err);
  gm_status (*vmm_destroy)(void *device, uint64_t handle, uint64_t bytes, gm_close_mode mode, gm_error *err);
  gm_status (*vmm_map)(void *device, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset, gm_error *err);
  gm_status (*vmm_unmap)(void *device, uint64_t address, uint64_t bytes, gm_error *err);
  gm_status (*vmm_access)(void *device, uint64_t address, uint64_t bytes, gm_error *err);

  /* 17. Peer: all or none. Both devices are this backend's.
   * - peer_enable: from now on work of `device` may use addresses of `other`'s memory. Repeating it is no error.
   *   NOT_SUPPORTED: there is no path.
   * - peer_access: a range that vmm_access has opened for its own device is open for `other`, too.
   * - peer_copy: from memory of `src_device` to memory of `device`, in the order of `stream`, which is `device`'s.
   *   Without a path the driver goes through host memory. */
  gm_status (*peer_info)(void *device, void *other, gm_peer_info *out, gm_error *err);
  gm_status (*peer_enable)(void *device, void *other, gm_error *err);
  gm_status (*peer_disable)(void *device, void *other, gm_close_mode mode, gm_error *err);
  gm_status (*peer_access)(void *device, void *other, uint64_t address, uint64_t bytes, gm_error *err);
  gm_status (*peer_copy)(void *device, void *stream, void *src_device, const gm_copy_item *item, gm_backend_point *out,
                         gm_error *err);

  /* 18. Share: all or none. The exporting process lives, and keeps the memory, until every import is closed.
   * - share_export: of memory made with params.share == `kind`; a driver may take any memory for IPC. The descriptor in
   *   *out is the caller's.
   * - share_import: memory of kinds IPC, FD and DMABUF, which share_close gives back. gm asks for the whole (offset 0,
   *   `bytes` = `whole_bytes`), once for each allocation of the driver.
   * - share_export_vmm and share_import_vmm: kind FD, of memory that vmm_create made with `shareable`. vmm_destroy
   *   gives back imported physical memory.
   *
   * An import does not take `fd`. It refuses words that do not fit what the driver opened. gm fills in and checks whose
   * device it is (device_uuid, backend). */
  gm_status (*share_export)(void *device, const gm_memory *memory, gm_share_kind kind, gm_shared *out, gm_error *err);
  gm_status (*share_import)(void *device, const gm_shared *shared, gm_memory *out, gm_error *err);
  gm_status (*share_close)(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err);
  gm_status (*share_export_vmm)(void *device, uint64_t handle, uint64_t bytes, gm_shared *out, gm_error *err);
  gm_status (*share_import_vmm)(void *device, const gm_shared *shared, uint64_t *out_handle, gm_error *err);

  /* 19. Managed: all or none. For memory types that migrate; INVALID_ARGUMENT for others. managed_advise with `give`
   * false takes the advice back. */
  gm_status (*managed_prefetch)(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                gm_managed_place place, gm_backend_point *out, gm_error *err);
  gm_status (*managed_advise)(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                              gm_managed_advice advice, gm_managed_place place, bool give, gm_error *err);

  /* 20. Ranges as memory: optional. Returns what copies and native handles use for [address, address + bytes) of a
   * reserved range, mapped or not. Its address and bytes are those asked for. memory_free releases it before the range
   * is unreserved, and unmaps nothing. Without this entry the memory has `address` as its handle and its address (see
   * gm_memory). A backend may be unable to map a range into the host. Where the type has GM_MEMORY_HOST_POINTER, `host`
   * is set, for the mapped parts. */
  gm_status (*vmm_memory)(void *device, uint64_t address, uint64_t bytes, uint32_t type, gm_memory *out, gm_error *err);

  /* 21. Copies of points: optional. Returns a second point at the same place, which is released by itself. The copy of
   * a released point is a zero point. */
  gm_status (*point_copy)(void *device, const gm_backend_point *point, gm_backend_point *out, gm_error *err);

  /* 22. Adoption by the engine's own loader: optional. The native struct says where the API's entries are. The backend
   * adopts the device without init, and without any library of the machine. Group 5 then works on it as on a device of
   * device_adopt, and entries that also take a driver get NULL. `host` outlives the device. NOT_SUPPORTED: the struct
   * does not say where the entries are. gm then tries init and device_adopt. */
  gm_status (*device_adopt_alone)(const gm_backend_host *host, const gm_native_device *native, void **out_device,
                                  gm_error *err);

  /* 23. Streams adopted again: optional. Tells whether `stream`, an adopted one, is the queue that `native` names.
   * INVALID_ARGUMENT: it is, but was lent on other terms; the message names what differs. gm asks before it adopts, and
   * holds a lock: the backend neither waits nor calls the engine. Without this entry a queue adopted twice is two. */
  gm_status (*stream_same)(void *device, void *stream, const gm_native_stream *native, bool *out, gm_error *err);

  /* 24. Names of streams: optional. The name of a native stream: two equal names are one stream, lent on the same
   * terms. Where two names differ in words[1] only, the API has used the handle again, and the older stream is gone.
   * gm asks this for each gm_stream_of, so the answer is quick. The backend neither waits nor calls the engine.
   * INVALID_ARGUMENT: `native` is no stream. */
  gm_status (*stream_name)(void *device, const gm_native_stream *native, gm_stream_name *out, gm_error *err);

  /* 25. Waits for all work of a device, on any stream: optional. Needed where a stream can be gone (24). */
  gm_status (*device_sync)(void *device, gm_error *err);

  /* 26. Views as native objects: optional. Fills in `out`, the API's struct, for exactly [offset, offset + bytes).
   * `view` is of view_create for that range, or 0. NOT_SUPPORTED: 0, and neither is the memory just the range nor has
   * it an address. */
  gm_status (*view_native)(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, uint64_t view,
                           gm_native_memory *out, gm_error *err);

  /* 27. Another library's calls: optional. Runs `call` with the device current in this thread, as cuFile needs it. */
  gm_status (*device_call)(void *device, gm_status (*call)(void *user, gm_error *err), void *user, gm_error *err);
  /* 28. Host memory of the driver's: optional. *out is at a page. Copies take it as memory that host_register has
   * registered, and host_unregister gives it back. NOT_SUPPORTED: there is none, and gm registers its own memory. */
  gm_status (*host_alloc)(void *device, uint64_t bytes, void **out, gm_error *err);

  /* 29. Expansion: optional. A kernel makes `count` floats of 32 bits of those of 16 bits, GM_DTYPE_BF16 or
   * GM_DTYPE_F16, with the bits of gm_codec_decode. Offsets are multiples of a number's bytes, and the ranges share no
   * byte. NOT_SUPPORTED: there is no kernel, or not for these memories; nothing was submitted. */
  gm_status (*expand)(void *device, void *stream, const gm_memory *dst, uint64_t dst_offset, const gm_memory *src,
                      uint64_t src_offset, uint64_t count, gm_dtype from, gm_backend_point *out, gm_error *err);
  void (*reserved[3])(void); /* must be NULL. End of ABI 0 */
} gm_backend_ops;

struct gm_context;

/* Registers a third-party backend. gm copies `ops`. ABI_MISMATCH: it was compiled for another ABI. INVALID_ARGUMENT: a
 * required entry is missing, a group is incomplete (the message names it), or the name is taken. OVER_LIMIT: there are
 * 16 backends already. */
GM_API gm_status gm_backend_register(struct gm_context *ctx, const gm_backend_ops *ops, gm_error *err);

GM_END_DECLS

#endif
