/* The inside of a pipeline. A lane is a block of input and one of output. Lanes are used in turn: the one that was used
 * longest ago comes next. The device, not the host, waits until a lane is free. A piece flies from its step until its
 * output has come down into a slot and the sink has taken it. */
#ifndef GM_CORE_TRANSFER_PIPELINE_H
#define GM_CORE_TRANSFER_PIPELINE_H

#include <stdatomic.h>

#include "core/device/device.h"
#include "core/staging/ring.h"
#include "gm/pipeline.h"

enum {
  GM__PIPELINE_MOST_LANES = 16,
  GM__PIPELINE_FIRST_LANES = 3, /* where gm chooses */
  GM__PIPELINE_OWN_MOST_LANES = 6
};

typedef struct gm__pipeline_lane {
  gm_block in, out;
  gm_block half;    /* floats that the device makes whole in `in`; all zero where nothing is expanded */
  gm_point stepped; /* after the last step that used it */
  gm_point came;    /* after the last copy from `out` */
} gm__pipeline_lane;

typedef struct gm__pipeline_piece { /* on its way down */
  uint64_t index, bytes;
  gm__ring_slot *slot; /* NULL: the step left no output */
  gm_point came;
} gm__pipeline_piece;

struct gm_pipeline {
  gm__object head;
  gm_device *device;
  gm_pipeline_params params; /* with out_pool, timeout_ns, read_bytes and write_bytes filled in */
  gm__ring *ring;
  gm__ring_user user;  /* of it */
  unsigned char *room; /* before in_codec, after out_codec; a slot is on the other side. NULL: no codec needs it */
  uint64_t room_bytes;
  gm_stream *up, *step, *down; /* NULL: the device has none */
  bool own_step;
  bool chooses; /* gm chooses the depth */
  bool reads;   /* it has a `source` or a file in `from` */
  uint32_t lanes, next_lane;
  gm__pipeline_lane lane[GM__PIPELINE_MOST_LANES];
  uint32_t flying, oldest; /* pieces, in order, from the oldest on */
  gm__pipeline_piece piece[GM__PIPELINE_MOST_LANES];
  uint64_t sent;
  uint64_t file_read, file_written; /* bytes of `from` and `to` that are done */
  gm_error failure;
  gm_pipeline_stats stats;
  atomic_bool cancelled;
  bool moves;                  /* it is a user of the device's link: from a call on until nothing is on its way */
  uint64_t moves_ns, moved_ns; /* since when; and how long before that */
};

/* --- pipeline_codec.c --- */

/* Checks the codecs, and fills in how much there may be before and after them. */
gm_status gm__pipeline_check_codecs(gm_pipeline_params *params, const char *op, gm_error *err);

/* The room beside the slots, and its end. */
gm_status gm__pipeline_make_room(gm_pipeline *pipeline, gm_error *err);
void gm__pipeline_free_room(gm_pipeline *pipeline);

/* Whether the host changes pieces before they go up, and the most bytes that go up. */
bool gm__pipeline_codes_in(const gm_pipeline_params *params);
uint64_t gm__pipeline_up_bytes(const gm_pipeline_params *params);

/* `bytes` bytes at `from` go into the slot by in_codec, or as they are. They may lie there already. *out_bytes: what
 * goes up. */
gm_status gm__pipeline_code_in(gm_pipeline *pipeline, const void *from, uint64_t bytes, gm__ring_slot *slot,
                               uint64_t *out_bytes, gm_error *err);

/* The sink's bytes of a piece that came down: *host and *bytes, before and after. */
gm_status gm__pipeline_code_out(gm_pipeline *pipeline, const void **host, uint64_t *bytes, gm_error *err);

/* --- pipeline_file.c --- */

/* Checks the files at both ends, and fills in how much of `from` is read. */
gm_status gm__pipeline_check_files(gm_pipeline_params *params, const char *op, gm_error *err);

/* The next bytes of `from`, at most read_bytes; 0 at its end. */
gm_status gm__pipeline_read_file(gm_pipeline *pipeline, void *host, uint64_t *out_bytes, gm_error *err);

/* The next bytes of `to`. */
gm_status gm__pipeline_write_file(gm_pipeline *pipeline, const void *host, uint64_t bytes, gm_error *err);

/* --- pipeline_flow.c --- */

/* One more lane. Answers are those of the pools. */
gm_status gm__pipeline_add_lane(gm_pipeline *pipeline, gm_error *err);

/* A slot for the next piece of input; meanwhile pieces that came down are written. TIMEOUT: none in time. Any other
 * failure is the pipeline's. */
gm_status gm__pipeline_take(gm_pipeline *pipeline, uint64_t timeout_ns, gm__ring_slot **out, gm_error *err);

/* The piece in `slot` goes up, is stepped, and starts on its way down. The slot is the ring's again. */
gm_status gm__pipeline_send(gm_pipeline *pipeline, gm__ring_slot *slot, uint64_t bytes, gm_error *err);

/* Wait until every piece is written. */
gm_status gm__pipeline_drain(gm_pipeline *pipeline, gm_error *err);

/* Note the first failure of the pipeline, and drain what it does not concern. Returns `status`. */
gm_status gm__pipeline_fail(gm_pipeline *pipeline, gm_pipeline_stage stage, uint64_t item, gm_status status,
                            gm_error *err);

/* Wait until the device is done with every lane and piece; nothing is written. */
gm_status gm__pipeline_rest(gm_pipeline *pipeline, gm_error *err);

#endif
