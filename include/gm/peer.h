/* Copies between devices, and the paths between them. A copy takes the direct path where there is one. Elsewhere it
 * goes through host memory, which is never silent: the result says so, with the reason. The statistics of the
 * receiving pool count it. The first such copy from one device to another is a warning in the log. */
#ifndef GM_PEER_H
#define GM_PEER_H

#include "gm/pool.h"

GM_BEGIN_DECLS

typedef enum gm_peer_link {
  GM_PEER_LINK_UNKNOWN = 0,
  GM_PEER_LINK_SAME = 1,   /* one device, or one card that was opened twice */
  GM_PEER_LINK_NVLINK = 2, /* taken to be NVLink: CUDA does not name the link, but only NVLink has native atomics */
  GM_PEER_LINK_PCIE = 3    /* a direct path of CUDA without native atomics */
} gm_peer_link;

enum { GM_PEER_WHY_SIZE = 256 };

/* The path from a device to another device's memory. */
typedef struct gm_peer_path {
  uint32_t struct_size;
  bool direct;  /* a direct path exists, and gm's 256-byte test copy over it (if already made) arrived */
  bool enabled; /* gm enabled it for work of the first device */
  bool atomics; /* atomic operations work over the path */
  int32_t rank; /* the driver's rank, lower is faster; -1: the driver does not tell */
  gm_peer_link link;
  char why[GM_PEER_WHY_SIZE]; /* why copies are staged; "" if they are not */
} gm_peer_path;

typedef enum gm_peer_route {
  GM_PEER_DIRECT = 0,
  GM_PEER_STAGED_BY_DRIVER = 1, /* the driver's own copy, through host memory */
  GM_PEER_STAGED_BY_GM = 2      /* gm's copy, in pieces through the ring of a device */
} gm_peer_route;

/* How one copy went. */
typedef struct gm_peer_result {
  uint32_t struct_size;
  gm_peer_route route;
  bool pinned;                /* the staging memory is page-locked */
  uint64_t staging_bytes;     /* most host memory of the ring that the copy used at a time */
  char why[GM_PEER_WHY_SIZE]; /* why the copy was staged; "" if it was not */
} gm_peer_result;

/* Returns the path between two devices. The caller sets out->struct_size. A missing path is no failure. Errors:
 * INVALID_ARGUMENT, FORKED, DEVICE_LOST, DRIVER. Thread-safe. */
GM_API gm_status gm_peer_get_info(gm_device *device, gm_device *other, gm_peer_path *out, gm_error *err);

/* Lets work of `device`, kernels included, use addresses of `other`'s memory. Enabling makes later allocations slower.
 * So gm enables a pair only at its first direct copy, or in this call. Repeating the call is no error. Closing either
 * device disables the pair. NOT_SUPPORTED: there is no path; `err` has the reason. Thread-safe. */
GM_API gm_status gm_peer_enable(gm_device *device, gm_device *other, gm_error *err);

/* Disables the access of `device` to `other`'s memory. Copies do not enable it again by themselves, and the driver
 * stages them. Access that the program enabled without gm stays. A pair that is not enabled is no error. No copy
 * between the two may run meanwhile. */
GM_API gm_status gm_peer_disable(gm_device *device, gm_device *other, gm_error *err);

/* Makes later work of `stream` wait for a point of another device. The device waits where one CUDA or HIP driver serves
 * both devices. Elsewhere the host waits in this call. Errors: DRIVER, DEVICE_LOST, FORKED. INVALID_ARGUMENT: `point`
 * is not a point of `of`. Thread-safe. */
GM_API gm_status gm_peer_wait(gm_stream *stream, gm_device *of, const gm_point *point, gm_error *err);

/* Copies between blocks of any two devices, of any backends and contexts. Between blocks of one device it is
 * gm_block_copy. `result` may be NULL; else its struct_size is set.
 *
 * Order: `stream` belongs to the receiving device, and the copy follows its earlier work. It may also belong to the
 * sending device. The call then waits for that stream's earlier work, and until the bytes have arrived. With NULL the
 * call waits. gm does not wait for work of the other device: make `stream` wait for it (gm_peer_wait), or wait
 * yourself.
 *
 * With `out` a direct copy returns at once, and so does one that the driver stages. *out is a point of `stream`, and
 * the caller releases it with the receiving device. A copy that gm stages returns when the bytes have arrived, and its
 * point has passed.
 *
 * gm stages a copy between two backends or two contexts, and where the API has no peers. It also does so where a
 * driver's copies were found to bring nothing; the first copy of a pair tests that with 256 bytes. The
 * bytes go through the ring of a device (gm/transfer.h), and use at most four of its slots. A piece is read while the
 * one before it is written.
 *
 * While the engine is capturing `stream` gm tests and enables nothing. The driver's copy is captured as it is. A copy
 * that gm would stage is NOT_SUPPORTED. So enable and copy once before the capture.
 *
 * Errors: INVALID_ARGUMENT, OUT_OF_HOST_MEMORY, DRIVER, DEVICE_LOST, FORKED. NOT_SUPPORTED: no memory is behind a
 * device, or gm may not submit to a stream. After a failure a part of the range may be written. Thread-safe. */
GM_API gm_status gm_block_copy_peer(gm_pool *dst_pool, const gm_block *dst, uint64_t dst_offset, gm_pool *src_pool,
                                    const gm_block *src, uint64_t src_offset, uint64_t bytes, gm_stream *stream,
                                    gm_point *out, gm_peer_result *result, gm_error *err);

GM_END_DECLS

#endif
