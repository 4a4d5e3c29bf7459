/* Copies between devices, and what lies between them (F55). A copy takes the direct path where there is one. Where
 * there is none it goes through host memory, and that is never silent: the result says so and why, the statistics of
 * the receiving pool count it, and the first such copy from one device to another is told to services.log as a warning.
 */
#ifndef GM_PEER_H
#define GM_PEER_H

#include "gm/pool.h"

GM_BEGIN_DECLS

typedef enum gm_peer_link {
  GM_PEER_LINK_UNKNOWN = 0,
  GM_PEER_LINK_SAME = 1, /* one device, or one card opened twice */
  GM_PEER_LINK_NVLINK =
      2,                /* taken for it: CUDA does not tell the link, but atomics of its own come with NVLink alone */
  GM_PEER_LINK_PCIE = 3 /* a direct path of CUDA without such atomics */
} gm_peer_link;

enum { GM_PEER_WHY_SIZE = 256 };

/* The way from a device to another one's memory. */
typedef struct gm_peer_path {
  uint32_t struct_size;
  bool direct;  /* there is a direct path, and gm's 256-byte test copy over it (if already made) arrived */
  bool enabled; /* by gm, for work of the first device */
  bool atomics; /* atomic operations work over it */
  int32_t rank; /* the driver's, lower is faster; -1: not told */
  gm_peer_link link;
  char why[GM_PEER_WHY_SIZE]; /* why copies are staged; "" if they are not */
} gm_peer_path;

typedef enum gm_peer_route {
  GM_PEER_DIRECT = 0,
  GM_PEER_STAGED_BY_DRIVER = 1, /* the driver's own copy, by way of host memory */
  GM_PEER_STAGED_BY_GM = 2      /* gm's, in pieces through host memory of its own */
} gm_peer_route;

/* How one copy went. */
typedef struct gm_peer_result {
  uint32_t struct_size;
  gm_peer_route route;
  bool pinned;                /* of that: page-locked */
  uint64_t staging_bytes;     /* host memory that gm took for it, and gave back */
  char why[GM_PEER_WHY_SIZE]; /* why it was staged; "" if it was not */
} gm_peer_result;

/* What lies between the two; `out` has its struct_size set. No path is no failure. INVALID_ARGUMENT, FORKED,
 * DEVICE_LOST, DRIVER. Thread-safe. */
GM_API gm_status gm_peer_get_info(gm_device *device, gm_device *other, gm_peer_path *out, gm_error *err);

/* From now on work of `device` (kernels, too) may use addresses of `other`'s memory. Again is no error. Enabling makes
 * later allocations slower, so gm does it for a pair at its first direct copy, or when it is asked to here.
 * NOT_SUPPORTED: there is no path, `err` says why. Closing either device disables what is enabled. Thread-safe. */
GM_API gm_status gm_peer_enable(gm_device *device, gm_device *other, gm_error *err);

/* Take it back: copies do not enable it by themselves any more, and the driver stages them. What the program enabled
 * past gm stays. Not enabled is no error. Not while copies between the two run. */
GM_API gm_status gm_peer_disable(gm_device *device, gm_device *other, gm_error *err);

/* Later work of `stream` waits for a point of another device: on the device where one CUDA or HIP serves both, else the
 * host waits here. INVALID_ARGUMENT (`point` is not of `of`), DRIVER, DEVICE_LOST, FORKED. Thread-safe. */
GM_API gm_status gm_peer_wait(gm_stream *stream, gm_device *of, const gm_point *point, gm_error *err);

/* Copy between blocks of any two devices, of whatever backends and contexts.
 *
 * Order: `stream` is of the receiving device: the copy follows its earlier work. (Or of the sending device: then the
 * call waits for that stream's earlier work, and until the bytes have arrived.) NULL: the call waits. What the other
 * device was given is not waited for: let `stream` wait for it (gm_peer_wait), or wait yourself.
 * With `out` a direct copy, and one that the driver stages, returns at once; *out is a point of `stream`, and the
 * caller releases it with the receiving device. A copy that gm stages returns when the bytes have arrived, and its
 * point has passed.
 *
 * gm stages where two backends, or two contexts, are involved, where the API has no peers, and where a driver's copies
 * were found to bring nothing (the first copy of a pair tries that with 256 bytes of its own): through at most 4 MiB of
 * host memory in two halves, page-locked where one of the devices has such memory of its own making.
 *
 * While the engine captures `stream` nothing is tried or enabled: the driver's copy is captured as it is, and one that
 * gm would stage is NOT_SUPPORTED. Enable and copy once before.
 *
 * Between blocks of one device this is gm_block_copy. `result` may be NULL, else its struct_size is set. Errors:
 * INVALID_ARGUMENT, NOT_SUPPORTED (no memory behind a device; a stream may not submit), OUT_OF_HOST_MEMORY, DRIVER,
 * DEVICE_LOST, FORKED. After a failure the range may be partly written. Thread-safe. */
GM_API gm_status gm_block_copy_peer(gm_pool *dst_pool, const gm_block *dst, uint64_t dst_offset, gm_pool *src_pool,
                                    const gm_block *src, uint64_t src_offset, uint64_t bytes, gm_stream *stream,
                                    gm_point *out, gm_peer_result *result, gm_error *err);

GM_END_DECLS

#endif
