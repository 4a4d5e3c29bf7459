/* Inside of a transfer. One thread at a time drives it: it alone touches the members "of the driver", and holds no lock
 * then. Copies go in the caller's order. They are cut and joined into loads: each is a range of copies with one point,
 * and at most one slot of the ring. Loads end in the order in which they were submitted. */
#ifndef GM_CORE_TRANSFER_TRANSFER_H
#define GM_CORE_TRANSFER_TRANSFER_H

#include <stdatomic.h>
#include <stddef.h>

#include "core/base/thread.h"
#include "core/block/access.h"
#include "core/block/span_copy.h"
#include "core/device/device.h"
#include "core/staging/planes.h"
#include "core/staging/ring.h"
#include "gm/transfer.h"

enum { GM__TRANSFER_LOADS = 16, GM__TRANSFER_JOINS = 256, GM__TRANSFER_PACKS = 1024 };

/* From so many runs on the device scatters them, in so many bytes of its own for each slot of the ring. */
enum { GM__TRANSFER_SCATTERS = 32, GM__TRANSFER_ROOM = 512 << 10 };

typedef enum gm__transfer_way {
  GM__TRANSFER_UP,
  GM__TRANSFER_DOWN,
  GM__TRANSFER_INSIDE,
  GM__TRANSFER_WAYS
} gm__transfer_way;

typedef enum gm__transfer_path {
  GM__TRANSFER_DIRECT,  /* by a copy of its own, from and to the caller's memory */
  GM__TRANSFER_HOST,    /* by the host, as soon as the stream is done; else DIRECT */
  GM__TRANSFER_BOX,     /* strided, from and to the caller's memory, whole */
  GM__TRANSFER_PACKED,  /* through the ring, with others as one copy */
  GM__TRANSFER_STAGED,  /* through the ring, by a copy of its own */
  GM__TRANSFER_EXPANDED /* through the ring, one copy at a time, in half of the bytes if the device can */
} gm__transfer_path;

/* The codec of a copy, and how its ends are cut. */
typedef struct gm__transfer_codec {
  const gm_codec *codec;
  gm_codec_way way;
  bool roomy;   /* a piece is larger than a slot: it lies in a room of the transfer, and is cut anywhere */
  bool flows;   /* it is larger, and its codec works in parts: it needs no room */
  bool by_host; /* of GM__TRANSFER_EXPANDED: no kernel of the device does it */
  bool expands; /* the caller asks that the device makes its floats whole */
  uint64_t host_bytes;
  uint64_t *out_host_bytes;
  uint64_t chunk, host_chunk; /* on the device and on the host; of a whole piece all bytes */
  uint64_t cut;               /* a copy is cut after a multiple of so many bytes of the device's end */
  uint64_t waiting;           /* bytes that came down, and are no piece yet */
} gm__transfer_codec;

/* All of them, with the rooms. */
typedef struct gm__transfer_codecs {
  uint64_t most, count;
  unsigned char *room[2]; /* up and down; NULL: none is needed */
  uint64_t room_bytes[2];
  gm__planes_reader reader; /* of the piece on its way up: one after the other */
  gm__planes_writer writer; /* of the one on its way down */
  gm__transfer_codec codec[];
} gm__transfer_codecs;

/* The caller's request. */
typedef struct gm__transfer_ends {
  gm_end to, from; /* their block pointers are to the copy's own blocks, or NULL */
  uint64_t bytes;
} gm__transfer_ends;

/* A copy of the caller, checked. */
typedef struct gm__transfer_copy {
  gm__transfer_ends what;
  gm__transfer_codec *codec; /* NULL: the bytes stay as they are */
  gm_block to, from;
  union {
    gm_memory memory;    /* of its one block, as it was checked, and where it begins there: gm__transfer_open */
    const gm_rect *rect; /* of GM__TRANSFER_BOX, the caller's */
  };
  uint64_t memory_at;
  uint64_t arrived; /* bytes from its begin on */
  uint64_t place;   /* of a packed copy in its slot */
  gm__transfer_way way;
  gm__transfer_path path;
  bool one_memory; /* its block is not in several */
  bool hosted;     /* the host addresses the block */
} gm__transfer_copy;

/* A packed copy and the memory of its block. */
typedef struct gm__transfer_row {
  gm__access access;
  uint64_t copy;
} gm__transfer_row;

/* Packed copies that are next to each other on the device. */
typedef struct gm__transfer_run {
  gm_memory memory;
  uint64_t offset, bytes; /* in `memory` */
  uint64_t place;         /* in the slot */
} gm__transfer_run;

/* Bytes `first_at` of copy `first` to `last_end` of copy `last`. */
typedef struct gm__transfer_load {
  uint64_t first, first_at, last, last_end;
  gm__ring_slot *slot; /* NULL: none, or the ring has it again */
  gm_point point;
  uint64_t ticket; /* the engine's copy; 0: gm's own */
  bool answered;   /* of a ticket */
  bool packed;     /* copies have places in the slot */
  bool expanded;   /* by the device */
  uint64_t submitted_ns;
} gm__transfer_load;

/* All of gm_transfer_stats but `why`. A transfer of one small copy fits into memory that the C library has at hand. */
typedef struct gm__transfer_figures {
  uint64_t words[(offsetof(gm_transfer_stats, why) + 7) / 8];
} gm__transfer_figures;

struct gm_transfer {
  gm__object head;
  gm_device *device;
  gm_stream *stream; /* NULL: each copy waits */
  bool (*record)(void *user, const gm_copy *piece, uint64_t ticket);
  void *record_user;
  uint64_t count;
  gm__transfer_copy *copies;
  gm__transfer_codecs *codecs; /* NULL: no copy has one */
  gm__transfer_row *rows;      /* room for a packed load; NULL: no copy is packed */
  uint64_t row_count;
  gm__ring *ring; /* NULL: no copy needs it */
  _Atomic bool cancelled;

  gm__mutex lock; /* of the members below, while there is no driver */
  gm__cond moved; /* the driver has gone, or the engine has answered */
  bool driven;
  bool ended;
  gm__transfer_figures shown;
  /* With `record` the driver, too, changes these under the lock. */
  gm__transfer_load first_load, *loads; /* `loads`: that one, or as many as may be; a second one needs them */
  uint32_t load_most, head_load, in_flight;

  gm__ring_user user; /* of the driver, from here on */
  bool fresh;         /* gm_transfer_start has checked the blocks, and has waited for nothing since then */
  uint64_t at_copy, at;
  uint64_t tickets; /* given so far */
  uint64_t begun_ns;
  uint64_t end_ns;                     /* when the last load was seen to end */
  double ceiling[GM__TRANSFER_INSIDE]; /* bytes per second, up and down; 0: not measured */
  uint64_t ended_bytes[GM__TRANSFER_WAYS];
  double busy[GM__TRANSFER_WAYS]; /* seconds of each way */
  gm_transfer_stats stats;        /* `why` stays as the plan left it */
  gm_error *failure;              /* of stats.status; NULL: none, or no host memory for it */
};

/* --- transfer_plan.c --- */

/* Checks all copies, and notes how each one goes. REQUIRES: params->resume is NULL, or it has ended. */
gm_status gm__transfer_plan(gm_transfer *t, const gm_copy *copies, const gm_transfer_params *params, const char *op,
                            gm_error *err);

/* --- transfer_codec.c --- */

/* Checks the codec of a copy, and notes it. REQUIRES: the copy has its way. */
gm_status gm__transfer_plan_codec(gm_transfer *t, gm__transfer_copy *copy, const gm_copy *asked, const char *op,
                                  gm_error *err);

/* Rooms for pieces that are larger than a slot. */
gm_status gm__transfer_make_rooms(gm_transfer *t, uint64_t slot_bytes, const char *op, gm_error *err);
void gm__transfer_free_codecs(gm_transfer *t);

/* Where a copy may be cut: after a multiple of so many bytes. */
uint64_t gm__transfer_chunk(const gm__transfer_copy *copy);

/* For the driver: bytes of a copy between the program's memory and a slot, by the copy's codec if it has one. A part of
 * a copy with a codec is whole chunks. *out_bytes: how many have reached the program. */
gm_status gm__transfer_fill(const gm_transfer *t, const gm__transfer_copy *copy, uint64_t at, uint64_t bytes,
                            unsigned char *slot, gm_error *err);
gm_status gm__transfer_empty(const gm_transfer *t, const gm__transfer_copy *copy, uint64_t at, uint64_t bytes,
                             const unsigned char *slot, uint64_t *out_bytes, gm_error *err);

/* --- transfer_expand.c --- */

/* Checks what `expand` needs. REQUIRES: the copy has its way. */
gm_status gm__transfer_plan_expand(const gm__transfer_copy *copy, const gm_copy *asked, const char *op, gm_error *err);

/* How many bytes of the block go through a slot. */
uint64_t gm__transfer_expand_most(const gm__ring_slot *slot);

/* For the driver: the host makes floats whole in a slot. */
gm_status gm__transfer_expand_fill(const gm__transfer_copy *copy, uint64_t at, uint64_t bytes, unsigned char *slot,
                                   gm_error *err);

/* For the driver: the device does. NOT_SUPPORTED: it has no kernel or no memory for it; the room of the slot that
 * gm__transfer_expand_fill writes is free, and *point may be set. After another failure nothing is under way. REQUIRES:
 * a stream, and a copy of one memory. */
gm_status gm__transfer_expand(const gm_transfer *t, const gm__transfer_copy *copy, uint64_t at, uint64_t bytes,
                              const gm__ring_slot *slot, gm_point *point, gm_error *err);

/* --- transfer_end.c --- */

/* One end of a copy: `bytes` from its offset on. The block's record becomes the copy's own, `block`. *out is what a
 * block is of. */
gm_status gm__transfer_plan_end(const gm_transfer *t, gm_end *end, gm_block *block, uint64_t bytes, const char *name,
                                const char *op, gm__span_copy *out, gm_error *err);

/* --- transfer_box.c --- */

/* Checks a strided copy, and notes its way. REQUIRES: it has a box. */
gm_status gm__transfer_plan_box(gm_transfer *t, gm__transfer_copy *copy, const gm_copy *asked, const char *op,
                                gm_error *err);

/* Submits it. For the driver. */
gm_status gm__transfer_submit_box(const gm_transfer *t, const gm__transfer_copy *copy, gm_point *point, gm_error *err);

/* --- transfer_measure.c --- */

/* Up to which size the device copies small pieces faster packed than one by one; 0: never. Measured once for each
 * device. REQUIRES: the staging of the device is open. */
uint64_t gm__transfer_small_bytes(gm_device *device);

/* Up to which size the device scatters small pieces faster than it copies them one by one; 0: never. *out_memory is the
 * device's memory for it. Measured once for each device, when a transfer first wants it. REQUIRES: as above. */
uint64_t gm__transfer_scatter_bytes(gm_device *device, gm__ring *ring, gm_memory *out_memory);

/* --- transfer_scatter.c: for the driver --- */

/* Whether the device scatters these runs itself; *out_beside is the memory for it, beside the slot. */
bool gm__transfer_scatters(const gm_transfer *t, const gm__ring_slot *slot, const gm__transfer_run *runs,
                           uint64_t count, gm__access *out_beside);

/* Copies between a slot, where each run has its place, and the runs: one copy, and one submission of the device's.
 * After a failure something may be under way. REQUIRES: gm__transfer_scatters. */
gm_status gm__transfer_scatter(const gm_transfer *t, const gm__ring_slot *slot, bool up, const gm__access *beside,
                               const gm__transfer_run *runs, uint64_t count, gm_point *point, gm_error *err);

/* --- transfer_pack.c: for the driver --- */

/* Where the bytes of a copy are, or go, on the host. */
unsigned char *gm__transfer_host(const gm__transfer_copy *copy, uint64_t at);

/* The memory behind a range of the one block of a copy that goes up or down. REQUIRES: it is one memory. */
gm_status gm__transfer_open(const gm_transfer *t, const gm__transfer_copy *copy, uint64_t at, uint64_t bytes,
                            gm__access *out, gm_error *err);

/* Submits a packed load: copies next to each other, or in equal steps, become one. Nothing of it is under way after a
 * failure; *out_failed is the copy. NOT_SUPPORTED: more than a quarter of the copies would be left, so the slot is of
 * no use. */
gm_status gm__transfer_pack(gm_transfer *t, gm__transfer_load *load, uint64_t *out_failed, gm_error *err);

/* --- transfer_load.c: all for the driver --- */

/* Has everything been submitted, or will nothing more be? */
bool gm__transfer_submitted(const gm_transfer *t);

/* Submits until copy `until` has been, or everything (GM_TRANSFER_ALL). GM_OK also where the transfer has failed.
 * TIMEOUT: the ring had no slot in time, or as many loads as may be are under way. */
gm_status gm__transfer_submit(gm_transfer *t, uint64_t until, uint64_t deadline);

/* Ends what is under way, in its order. TIMEOUT: not all in time. */
gm_status gm__transfer_settle(gm_transfer *t, uint64_t deadline);

/* Ends the oldest load, if it needs no answer of the engine. TIMEOUT also: there is no such load. */
gm_status gm__transfer_settle_one(gm_transfer *t, uint64_t deadline);

/* Ends what gm submitted, and what the engine has answered for. TIMEOUT: there is a piece without an answer. */
gm_status gm__transfer_settle_answered(gm_transfer *t);

/* The first failure stays. */
void gm__transfer_fail(gm_transfer *t, uint64_t copy, uint64_t offset, const gm_error *why);

/* --- transfer_figures.c: for the driver --- */

/* The load has been seen to end now. Loads run one after the other. */
void gm__transfer_time(gm_transfer *t, const gm__transfer_load *load);

/* Fills in the times of the stats, as of `now`. */
void gm__transfer_times(gm_transfer *t, uint64_t now);

#endif
