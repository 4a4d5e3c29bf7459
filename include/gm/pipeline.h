/* Pipelines: data that comes piece by piece goes through a device, and its results come back. Each piece is read, goes
 * up, is worked on (step), comes down, and is written. Several pieces are on their way at a time: the device works on
 * one, the next goes up, and the last comes down. A codec may change a piece on the host, before it goes up and after
 * it came down.
 *
 * The program reads, steps and writes by callbacks, on the thread that calls gm_pipeline_run, _push or _flush. A step
 * only submits its work. The program's state between steps stays in blocks of its own on the device.
 *
 * Bytes go through page-locked host memory in slots (a ring) which the pipeline owns. A piece waits until a slot is
 * free; nothing else holds a source back. Where the system locks no memory the slots are ordinary memory; then stages
 * overlap less, and gm_pipeline_stats.why says so. */
#ifndef GM_PIPELINE_H
#define GM_PIPELINE_H

#include "gm/codec.h"
#include "gm/file.h"
#include "gm/managed.h"
#include "gm/pool.h"
#include "gm/request.h"

GM_BEGIN_DECLS

/* Used by one thread at a time, except gm_pipeline_cancel. It borrows its device, pools and stream. */
typedef struct gm_pipeline gm_pipeline;

/* One piece, for `step`. gm alone makes one: later versions add members at its end. */
typedef struct gm_pipeline_item {
  uint64_t index;     /* 0 for the first piece of the pipeline */
  uint64_t bytes;     /* of input: what `source` gave; with in_codec, what that made of it */
  uint64_t out_bytes; /* of output; gm_pipeline_params.out_bytes before `step`, which may lower it */
  gm_block in;        /* the input, at its first byte; of in_pool */
  gm_block out;       /* where the output goes; of out_pool. All zero where the pipeline has no output */
  gm_stream *stream;  /* `step` submits here. NULL: the device has no streams, and the step ends in the callback */
  gm_point done;      /* zero before `step`. A step that submits to a queue of its own sets the point after its work;
                         gm releases it */
} gm_pipeline_item;

/* A part of a file at one end of a pipeline. The pipeline borrows the file until it is destroyed. Never
 * grows. */
typedef struct gm_pipeline_file {
  gm_file *file;   /* NULL: this end has no file */
  uint64_t offset; /* of the first byte, in bytes */
  uint64_t bytes;  /* `from`: how many; 0: up to the file's end. `to`: the most; 0: without limit */
} gm_pipeline_file;

/* A part of managed memory. Never grows. */
typedef struct gm_managed_range {
  gm_managed *managed; /* NULL: none */
  uint64_t offset, bytes;
} gm_managed_range;

/* How a pipeline is made. Zero-initialised with struct_size, item_bytes, in_pool and step set, it is valid. */
typedef struct gm_pipeline_params {
  uint32_t struct_size;
  uint32_t depth;      /* pieces on the device at a time, 1 to 16. 0: gm begins with 3, and adds some while the device
                          has nothing to do */
  uint64_t item_bytes; /* > 0; the most bytes of a piece of input on the device */
  uint64_t out_bytes;  /* the most bytes of a piece of output on the device; 0: nothing comes down */
  gm_pool *in_pool;    /* of the pipeline's device */
  gm_pool *out_pool;   /* of the same device; NULL: in_pool */
  gm_request request;  /* for every block; `bytes` and `stream` must be 0; GM_INSERT_WAIT is implied */
  gm_stream *stream;   /* for `step`; NULL: one of gm's own. Where gm may make no stream, all stages use this one */
  uint64_t timeout_ns; /* nanoseconds that gm waits for one piece; then TIMEOUT. 0: without limit */

  /* Reads the next piece into `host`, at most `most` bytes, and sets *out_bytes. 0 bytes: there are no more. NULL:
   * `from` has them, or the program uses gm_pipeline_push. */
  gm_status (*source)(void *user, void *host, uint64_t most, uint64_t *out_bytes);
  /* Submits the work on one piece to item->stream, and returns. Pieces come in order. */
  gm_status (*step)(void *user, gm_pipeline_item *item, gm_error *err);
  /* Takes the output of one piece, in order. `host` is valid until it returns. With out_bytes there
   * must be a `sink` or a `to`. */
  gm_status (*sink)(void *user, const void *host, uint64_t bytes, uint64_t index);
  void *user; /* of all callbacks. They must not throw, nor call this pipeline but for gm_pipeline_cancel */

  /* Codecs, borrowed until the pipeline is destroyed. They run on the thread of the callbacks. `in_codec` changes what
   * `source` gave or the program pushed, into a slot; its result goes up. `out_codec` changes what came down; its
   * result is what `sink` gets. A piece without output does not go through it. NULL: the bytes stay as they are. */
  const gm_codec *in_codec;
  const gm_codec *out_codec;
  gm_codec_way in_way, out_way;
  /* With `in_codec` gm_codec_find("bf16") or "fp16": floats of 16 bits go up, and `step` gets floats of 32 bits, at
   * most item_bytes, a multiple of 4. ENCODE: the pieces before are floats of 32 bits too, and their error is that of
   * the codec. DECODE: they are those of 16 bits, and nothing is lost. gm_block_expand makes them whole on the device.
   * Each piece there takes half of item_bytes more. Where there is no kernel the host does it, and the call waits:
   * gm_pipeline_stats tells. */
  bool expand;
  uint64_t read_bytes;  /* needed with in_codec: the most bytes of a piece before it. Encoded they must fit in
                           item_bytes: gm_codec_most tells */
  uint64_t write_bytes; /* of out_codec: the most bytes of a piece after it. 0, with ENCODE: what gm_codec_most tells */

  /* Files in place of callbacks. `from`, of gm_file_open, is read in pieces of item_bytes, with in_codec read_bytes;
   * the last may be shorter. `to`, of gm_file_create, gets the outputs side by side, in order; the program commits it.
   */
  gm_pipeline_file from; /* in place of `source` */
  gm_pipeline_file to;   /* in place of `sink` */

  /* Managed memory that the step of a piece uses: a part of weights that are larger than the device, say. *range is all
   * zero before the call, and stays so where the piece uses none. gm prefetches it to the device before the piece goes
   * up, beside the steps of earlier pieces. Work that the step submits to item->stream follows that. NULL: no piece
   * uses any. */
  gm_status (*needs)(void *user, uint64_t index, gm_managed_range *range);
} gm_pipeline_params;

typedef enum gm_pipeline_stage {
  GM_STAGE_NONE = 0,
  GM_STAGE_READ = 1,
  GM_STAGE_UP = 2,
  GM_STAGE_STEP = 3,
  GM_STAGE_DOWN = 4,
  GM_STAGE_WRITE = 5,
  GM_STAGE_IN_CODEC = 6,  /* between READ and UP */
  GM_STAGE_OUT_CODEC = 7, /* between DOWN and WRITE */
  GM_STAGE_PREFETCH = 8   /* of `needs`; before UP */
} gm_pipeline_stage;

/* The figures of a pipeline since it was made. Times are seconds of the calling thread, by the system's steady
 * clock. */
typedef struct gm_pipeline_stats {
  uint32_t struct_size;
  gm_status status;          /* of the first failure; GM_OK: there was none */
  gm_pipeline_stage failed;  /* its stage; NONE without a failure, and for a cancelled pipeline */
  uint32_t depth;            /* pieces that may be on the device at a time, now */
  uint64_t failed_item;      /* the piece of the first failure */
  uint64_t items;            /* pieces that went through all stages */
  uint64_t up_bytes;         /* that were submitted to go up */
  uint64_t down_bytes;       /* that came down, of pieces that were written */
  uint64_t host_bytes;       /* of the slots, and of the room that codecs need beside them */
  double read;               /* in `source`, in reads of `from`, and in copies of gm_pipeline_push */
  double step;               /* in `step` */
  double write;              /* in `sink`, and in writes of `to` */
  double stalled;            /* waiting for a slot, or for a piece to come down */
  double seconds;            /* in calls of this pipeline, whole */
  char why[256];             /* why the slots are fewer, or not page-locked; "": they are as wanted */
  uint64_t read_bytes;       /* that `source` or `from` gave, or the program pushed: before in_codec */
  uint64_t written_bytes;    /* that `sink` or `to` took: after out_codec */
  double in_codec;           /* in in_codec */
  double out_codec;          /* in out_codec */
  uint64_t prefetched_bytes; /* that `needs` named */
  /* Shares of the time from a call on until nothing was on its way. 0 until gm_transfer_measure has measured the links.
   */
  double up_utilisation, down_utilisation; /* the share for which each way is busy with its bytes at that rate */
  double overlap;                          /* both ways beside each other, as a share of what could be: 0 to 1 */
  uint64_t device_expanded;                /* with `expand`: bytes of input that the device made whole */
  uint64_t host_expanded;                  /* and that the host did */
} gm_pipeline_stats;

/* Makes a pipeline: its blocks, its streams, and a ring that is empty until the first piece. The caller destroys *out.
 *
 * Errors: INVALID_ARGUMENT: also for a codec without a name or a hook, and for a room that its results do not fit in.
 * So is a file beside a callback of the same end, a file for the other way, and a range behind the end of `from`.
 * OVER_LIMIT: a codec cannot encode pieces so large. OUT_OF_HOST_MEMORY. Those of gm_explain for the blocks, and those
 * of gm_stream_create. NOT_SUPPORTED: gm may make no stream on the device, and there is no `stream`. FORKED. */
GM_API gm_status gm_pipeline_create(gm_device *device, const gm_pipeline_params *params, gm_pipeline **out,
                                    gm_error *err);

/* Runs from the first piece until `source` or `from` has no more, and waits until all is written. It may be called
 * again, for a source that has more later. `out` may be NULL.
 *
 * After a failure the pieces that were on the device still come down and are written, in order, up to the piece that
 * failed. Then the pipeline is at its end: every later call answers the same status. The message names stage and piece.
 * That of a codec also names the byte of the source or of the output at which its piece begins.
 *
 * Errors: those of the callbacks, of gm_codec_encode and gm_codec_decode, of gm_block_write, gm_block_read,
 * gm_stream_wait, gm_file_read and gm_file_write, whose messages name file and byte. FORMAT also: a piece has no bytes
 * left after in_codec. OVER_LIMIT also: the outputs are more than to.bytes. INVALID_ARGUMENT: there is neither `source`
 * nor `from`; `source` gave more than `most`; `step` raised out_bytes. TIMEOUT: see timeout_ns. CANCELLED. FORKED. */
GM_API gm_status gm_pipeline_run(gm_pipeline *pipeline, gm_pipeline_stats *out, gm_error *err);

/* Sends one piece of `bytes` (at most item_bytes; with in_codec, read_bytes) on its way. gm copies it, so `host` is the
 * caller's again on return. BUSY: timeout_ns is 0 and no slot is free. TIMEOUT: none came free in so many nanoseconds.
 * Then nothing was sent, and the call may be repeated. UINT64_MAX waits without limit. Other errors: as
 * gm_pipeline_run. INVALID_ARGUMENT: the pipeline has a `source` or reads a file, or `bytes` is 0 or too large. */
GM_API gm_status gm_pipeline_push(gm_pipeline *pipeline, const void *host, uint64_t bytes, uint64_t timeout_ns,
                                  gm_error *err);

/* Waits until every piece that was sent is written. Errors: as gm_pipeline_run. `out` may be NULL. */
GM_API gm_status gm_pipeline_flush(gm_pipeline *pipeline, gm_pipeline_stats *out, gm_error *err);

/* Has the pipeline send no further piece: its calls answer CANCELLED, after what was on the device has been written.
 * From any thread, also within a callback. NULL does nothing. */
GM_API void gm_pipeline_cancel(gm_pipeline *pipeline);

/* Waits until the device is done with the pipeline's memory, writes nothing more, and gives everything back. NULL is
 * GM_OK. TIMEOUT: a step has not ended within timeout_ns; the pipeline is still there, and the call can be repeated.
 * Other errors: those of the wait; then, too. */
GM_API gm_status gm_pipeline_destroy(gm_pipeline *pipeline, gm_error *err);

GM_END_DECLS

#endif
