/* Lanes: how bytes get into memory that the host does not write straight. There is one for each device and stream of a
 * load. It has a ring of slots, which files are read into, and copies from them that overlap the reads. Only rooms are
 * thread-safe. */
#ifndef GM_CORE_LOAD_LOAD_LANE_H
#define GM_CORE_LOAD_LOAD_LANE_H

#include "core/file/read.h"
#include "core/staging/ring.h"
#include "gm/load.h"

typedef struct gm__load_lane {
  gm_device *device;
  gm_stream *asked;  /* of the requests */
  gm_stream *stream; /* that, else the device's default one; NULL: there is none, and copies wait */
  gm__ring *ring;
  gm__read_room room; /* its slots */
  bool moves;         /* it is a user of the device's link */
  struct gm__load_lane *next;
} gm__load_lane;

typedef struct gm__load_lanes {
  const gm_services *services;
  uint64_t slot_bytes;
  uint32_t slots; /* of each lane, at most */
  gm__load_lane *first;
} gm__load_lanes;

/* Where a block's bytes go. */
typedef struct gm__load_target {
  gm_pool *pool;
  const gm_block *block;
  uint64_t at, bytes;
} gm__load_target;

/* The lane of a device and a stream, NULL for none. It is made if there is none yet. OUT_OF_HOST_MEMORY. */
gm_status gm__load_lane_of(gm__load_lanes *lanes, gm_device *device, gm_stream *stream, gm__load_lane **out,
                           gm_error *err);

/* Copies bytes into a block. Where *point is not NULL the copy may still run: the bytes stay until it has
 * passed. The point replaces the one that is there. Errors: those of gm_block_write. */
gm_status gm__load_lane_write(const gm__load_lane *lane, const gm__load_target *target, const unsigned char *data,
                              gm_point *point, gm_error *err);

/* Waits for the copies of all lanes. Errors: those of gm_stream_sync. */
gm_status gm__load_lanes_sync(gm__load_lanes *lanes, gm_error *err);

/* Host memory that they have. */
uint64_t gm__load_lanes_host_bytes(const gm__load_lanes *lanes);

/* Waits for their copies, and ends all lanes. */
void gm__load_lanes_end(gm__load_lanes *lanes);

#endif
