/* CUDA's driver API and HIP's runtime API differ in little but names. Their common code exists once, in the files
 * runtime_*.c of this folder. One table of entries per API, gm__runtime, says what differs. The shared code works on
 * gm__runtime_driver and gm__runtime_device, with which CUDA's and HIP's own records begin. */
#ifndef GM_BACKENDS_SHARED_RUNTIME_RUNTIME_H
#define GM_BACKENDS_SHARED_RUNTIME_RUNTIME_H

#include <stdatomic.h>

#include "backends/shared/code_table.h"
#include "backends/shared/event_slots.h"
#include "backends/shared/runtime/runtime_program_id.h"
#include "backends/shared/vmm_memory.h"
#include "core/base/dynlib.h"
#include "core/base/map.h"
#include "gm/backend.h"

typedef struct gm__runtime gm__runtime;
typedef struct gm__runtime_stream gm__runtime_stream;

/* One of gm's programs on a device; runtime_program.h has the rules. */
typedef struct gm__runtime_program {
  _Atomic int state;
  void *module, *function; /* the driver's */
} gm__runtime_program;

/* The library and the devices that it lists, found once at init. Thread-safe after init; the one owner closes it. */
typedef struct gm__runtime_driver {
  const gm__runtime *api;
  const gm_backend_ops *ops; /* the backend's entries of the seam */
  const gm_services *services;
  gm_backend_host host; /* as lent to init */
  gm__dynlib *lib;
  bool simulated;
  char version[64]; /* for people */
  uint32_t count;
  gm_device_info *infos; /* by ordinal, which is the index */
} gm__runtime_driver;

/* One open or adopted device. Thread-safe; closed by its one owner. */
typedef struct gm__runtime_device {
  gm__runtime_driver *driver;
  const gm__runtime *api;
  const gm_services *services;
  gm_device_info info;
  int ordinal;                /* the API's number of the device */
  void *context;              /* CUDA's; NULL with HIP, where each device has one context */
  _Atomic(void *) own_stream; /* NULL until first needed */
  _Atomic int32_t lost;       /* the code that told; 0: not lost */
  gm__event_slots events;
  gm__runtime_program programs[GM__RUNTIME_PROGRAMS];
  gm__vmm_table mapped; /* memory that can be shared as a descriptor, and what was imported so */

  gm__mutex lock;              /* of what follows */
  gm__runtime_stream *adopted; /* streams that an engine may be capturing */
  gm__map peers;               /* devices that this device was given access to */
  gm__map registered;          /* host pointer to the bytes registered there, where it took several calls */
} gm__runtime_device;

/* The state of the calling thread before a call. The API's `enter` fills it; its `leave` puts everything back. */
typedef struct gm__runtime_scope {
  uint64_t before; /* what was current: a context or a device */
  int mode;        /* the thread's own capture mode */
  bool switched;   /* gm's was made current in its place */
  bool set;        /* CUDA: it was set in place of what was current, not pushed above it */
  bool exchanged;  /* `mode` was read, and is to be put back */
  bool clean;      /* HIP: the thread had no error pending, so gm's calls must leave none */
} gm__runtime_scope;

/* Numbers that mean the same in both APIs. */
enum {
  GM__RUNTIME_SUCCESS = 0,
  GM__RUNTIME_OUT_OF_MEMORY = 2,
  GM__RUNTIME_DEINITIALIZED = 4,
  GM__RUNTIME_NOT_READY = 600,
  GM__RUNTIME_PEER_ENABLED = 704,
  GM__RUNTIME_PEER_NOT_ENABLED = 705,
  GM__RUNTIME_CAPTURE_IMPLICIT = 906,
  GM__RUNTIME_UNKNOWN = 999
};

/* Where the two ends of a copy are. */
typedef enum gm__runtime_way {
  GM__RUNTIME_HOST_TO_HOST,
  GM__RUNTIME_TO_DEVICE,
  GM__RUNTIME_TO_HOST,
  GM__RUNTIME_ON_DEVICE,
  GM__RUNTIME_ANY_WAY, /* the driver finds out from the addresses */
  GM__RUNTIME_WAYS
} gm__runtime_way;

enum { GM__RUNTIME_TYPES = 3 }; /* of memory: device, pinned, managed */

/* An address, a handle or a number, in the type that CUDA writes. */
typedef unsigned long long gm__runtime_word;

/* Entries of the driver: a name for reasons, and a call. A call returns the driver's code, 0 for success. Its outputs
 * count only then. `device` is a gm__runtime_device that was entered. */
typedef struct gm__runtime_make {
  const char *op;
  int (*call)(const void *device, void **out);
} gm__runtime_make;

typedef struct gm__runtime_on {
  const char *op;
  int (*call)(const void *device, void *object);
} gm__runtime_on;

typedef struct gm__runtime_join {
  const char *op;
  int (*call)(const void *device, void *stream, void *event);
} gm__runtime_join;

typedef struct gm__runtime_ask {
  const char *op;
  int (*call)(const void *device, uint64_t in, gm__runtime_word *out);
} gm__runtime_ask;

typedef struct gm__runtime_give {
  const char *op;
  int (*call)(const void *device, uint64_t handle);
} gm__runtime_give;

/* The image that the driver loads a program from. */
typedef struct gm__runtime_code {
  const void *bytes;
  void *owned; /* by the caller of program_code; NULL: nothing */
  size_t size; /* of that */
} gm__runtime_code;

typedef struct gm__runtime_load {
  const char *op;
  int (*call)(const void *device, const void *code, void **out);
} gm__runtime_load;

typedef struct gm__runtime_find {
  const char *op;
  int (*call)(const void *device, void *module, const char *name, void **out);
} gm__runtime_find;

typedef struct gm__runtime_set {
  const char *op;
  int (*call)(const void *device, uint64_t at, uint32_t value, uint64_t count, void *stream);
} gm__runtime_set;

typedef struct gm__runtime_pair {
  const char *op;
  int (*call)(const void *device, const gm__runtime_device *other);
} gm__runtime_pair;

/* The driver's answer about a pointer. */
typedef struct gm__runtime_facts {
  enum { GM__RUNTIME_ELSEWHERE, GM__RUNTIME_HOST, GM__RUNTIME_DEVICE } kind;
  int ordinal; /* of the device it belongs to */
  bool managed;
  uint64_t host; /* the host's address; 0: none */
} gm__runtime_facts;

/* A box of bytes, and where it lies in two memories. */
typedef struct gm__runtime_side {
  uint64_t at; /* address of the first byte */
  uint64_t row_pitch, slice_pitch;
  bool host;
} gm__runtime_side;

typedef struct gm__runtime_box {
  gm__runtime_side src, dst;
  uint64_t row_bytes, rows, slices;
} gm__runtime_box;

/* A fill under way. */
typedef struct gm__runtime_fill_job {
  gm__runtime_device *device;
  void *stream;
  gm__runtime_way way; /* of copies inside the memory */
  const char *op;      /* the last call */
} gm__runtime_fill_job;

struct gm__runtime {
  const char *name;      /* "cuda": of the backend */
  const char *shown;     /* "CUDA" */
  const char *component; /* "CUDA driver": who may lack an entry, for reasons */
  gm_api api;
  const gm__code_table *codes;
  void *default_stream; /* its handle; engines name this stream 0 or 1 */

  /* The library and the kernel's part of it. */
  gm__dynlib_spec (*library)(const gm_backend_host *host);
  bool (*kernel_present)(const char *root);
  uint32_t (*kernel_cards)(const char *root);
  void (*kernel_version)(const char *root, char *out, size_t capacity); /* NULL: the kernel tells none */
  const char *kernel_owner, *kernel_trace;                              /* whose part it is, and where Linux shows it */
  const char *init_op;
  gm_status (*check_options)(const char *options, gm_error *err);
  gm_status (*start)(gm__runtime_driver *driver, gm_error *err); /* from the loaded library to the list of devices */
  void (*stop)(gm__runtime_driver *driver, gm_close_mode mode);  /* at closing; NULL: nothing */

  /* Descriptions of devices. */
  gm_status (*describe)(const gm__runtime_driver *driver, uint32_t ordinal, gm_device_info *out, gm_error *err);
  void (*figures)(const gm__runtime_driver *driver, const gm_device_info *info, gm_raw_figures *out);
  uint32_t (*share_kinds)(const gm__runtime_driver *driver, int ordinal, const gm_device_info *info);

  /* The API's own records, which begin with a gm__runtime_driver and a gm__runtime_device. */
  size_t driver_bytes, device_bytes;
  void (*device_init)(gm__runtime_device *device);  /* its own members; NULL: nothing */
  void (*device_clear)(gm__runtime_device *device); /* gives back their host memory, calls no driver; NULL: nothing */
  void (*device_drop)(gm__runtime_device *device);  /* at closing, after all that was the device's; NULL: nothing */

  /* The calling thread: see gm__runtime_enter. */
  gm_status (*enter)(gm__runtime_device *device, gm__runtime_scope *out, gm_error *err);
  void (*leave)(const gm__runtime_device *device, const gm__runtime_scope *scope);

  int (*memory_room)(const void *device, size_t *room, size_t *total);
  gm__runtime_ask memory_alloc[GM__RUNTIME_TYPES]; /* in: bytes; out: the address */
  gm__runtime_give memory_free[GM__RUNTIME_TYPES];
  gm__runtime_ask pinned_address; /* in: the host's address; out: the device's */

  const char *pointer_op, *host_register_op;
  /* INVALID_ARGUMENT: the driver knows no such memory. */
  gm_status (*pointer_ask)(gm__runtime_device *device, uint64_t pointer, gm__runtime_facts *out, gm_error *err);
  uint64_t most_registered; /* bytes that one call can register */
  int (*host_register)(const void *device, void *pointer, uint64_t bytes);
  gm__runtime_on host_unregister;

  gm__runtime_make stream_create;
  gm__runtime_on stream_destroy, stream_query, stream_sync;
  gm__runtime_on device_sync;       /* `object` is NULL. NULL: streams have no numbers, and nobody asks */
  gm__runtime_ask stream_capturing; /* in: a stream; out: 0 where nobody captures it */
  gm__runtime_ask stream_id;        /* in: a stream; out: the driver's number. NULL: the API has none */
  /* May the engine lend this stream to this device? */
  gm_status (*stream_check)(gm__runtime_device *device, void *stream, gm_error *err);

  gm__runtime_make event_create;
  gm__runtime_on event_destroy, event_query, event_sync;
  gm__runtime_join event_record, stream_wait_event;

  const char *copy_ops[GM__RUNTIME_WAYS];
  int (*copy)(const void *device, gm__runtime_way way, uint64_t to, uint64_t from, uint64_t bytes, void *stream);
  const char *copy_box_op;
  bool box_slices; /* a box may have several slices, of whole rows; else it has one */
  int (*copy_box)(const void *device, const gm__runtime_box *box, void *stream);
  gm__runtime_set set_bytes, set_words;
  gm__runtime_way fill_way; /* of a copy from device memory into the same memory, for a wide pattern */
  /* Like gm__fill_target.set_ring; `user` is a gm__runtime_fill_job. NULL: none. */
  int (*set_ring)(void *user, uint64_t at, const uint8_t *ring, uint64_t bytes, bool *out_done);

  /* gm's programs. UNAVAILABLE: there is no compiler, or the driver has no modules. */
  gm_status (*program_code)(gm__runtime_device *device, gm__runtime_program_id id, gm__runtime_code *out,
                            gm_error *err);
  void (*program_code_release)(const gm__runtime_device *device, const gm__runtime_code *code); /* NULL: nothing */
  gm__runtime_load module_load;
  gm__runtime_find module_function;
  int (*module_unload)(const void *device, void *module);
  const char *launch_op;
  int (*launch)(const void *device, void *function, uint32_t blocks, uint32_t threads, void *stream, void **parameters);

  const char *prefetch_op, *advise_op;
  int (*prefetch)(const void *device, uint64_t at, uint64_t bytes, gm_managed_place place, void *stream);
  int (*advise)(const void *device, uint64_t at, uint64_t bytes, int advice, gm_managed_place place);

  const char *peer_reaches_op, *peer_copy_op;
  bool (*peer_reaches)(const void *device, const gm__runtime_device *other);
  const char *(*peer_why)(const void *device); /* gm_peer_info.why, where there is no path; NULL: nothing is known */
  /* With `atomics`: do atomic operations work? Otherwise it is the driver's rank. `otherwise` where the driver does
   * not tell. */
  int (*peer_attribute)(const void *device, const gm__runtime_device *other, bool atomics, int otherwise);
  gm__runtime_pair peer_enable, peer_disable;
  int (*peer_copy)(const void *device, uint64_t to, const gm__runtime_device *other, uint64_t from, uint64_t bytes,
                   void *stream);

  const char *address_range_op, *ipc_get_op, *ipc_open_op;
  int (*address_range)(const void *device, uint64_t address, gm__runtime_word *out_base, size_t *out_bytes);
  int (*ipc_get)(const void *device, uint64_t base, void *out_handle); /* of GM_SHARE_IPC_BYTES */
  int (*ipc_open)(const void *device, const void *handle, gm__runtime_word *out);
  gm__runtime_give ipc_close;
  gm__runtime_ask fd_export; /* in: a handle of physical memory; out: a descriptor */
  gm__runtime_ask fd_import; /* in: a descriptor; out: a handle */

  gm__runtime_ask vmm_granularity; /* in: 1 for shareable memory, else 0; out: bytes */
  const char *vmm_create_op, *vmm_open_op;
  int (*vmm_create)(const void *device, bool shareable, uint64_t bytes, gm__runtime_word *out_handle);
  gm__runtime_give vmm_release;
  /* Open a mapped range to the device with this ordinal. */
  gm_status (*vmm_open)(gm__runtime_device *device, int ordinal, uint64_t address, uint64_t bytes, gm_error *err);
};

/* Fill `err` from what the driver answered to `op`, and remember a code that tells of a lost device. */
gm_status gm__runtime_fail(gm__runtime_device *device, int code, const char *op, gm_error *err);

/* GM_OK for success, else gm__runtime_fail. */
gm_status gm__runtime_answer(gm__runtime_device *device, int code, const char *op, gm_error *err);

/* The status for a call that gives something back. It is GM_OK also when the device is lost or the driver has shut
 * down: nothing is left then. */
gm_status gm__runtime_released(gm__runtime_device *device, int code, const char *op, gm_error *err);

/* gm__code_nonsense with the API's table. */
gm_status gm__runtime_nonsense(const gm__runtime_device *device, const char *op, const char *what, gm_error *err);

/* Make the device current in the calling thread, and make the thread's calls harmless to stream captures of the engine.
 * DEVICE_LOST without a call where gm knows it. On failure the caller leaves nothing. */
gm_status gm__runtime_enter(gm__runtime_device *device, gm__runtime_scope *out, gm_error *err);

/* gm__runtime_enter for giving back. On a lost device it answers GM_OK with *out_gone true, and nothing was entered. */
gm_status gm__runtime_enter_release(gm__runtime_device *device, gm__runtime_scope *out, bool *out_gone, gm_error *err);

/* Every path between enter and leave runs through leave. */
void gm__runtime_leave(const gm__runtime_device *device, const gm__runtime_scope *scope);

#endif
