/* Transfers: many copies under way at once, as one future. A copy goes between blocks of one device, or between host
 * memory and a block.
 *
 * Host memory that the device cannot reach by itself goes through the device's ring. That is page-locked memory of at
 * most 64 MiB, made at the first use, and kept until the device closes. A device that shares its memory with the host
 * takes the bytes directly, and so does every device from memory of gm_host_register. Memory of a pool is named as a
 * block.
 *
 * gm makes no thread for transfers. gm_transfer_start submits all copies, and waits only while the ring is full. Bytes
 * that come down through the ring reach the program's memory in poll and wait. The copies of a transfer have no order
 * among themselves. All follow the earlier work of their stream. Memory at both ends stays valid until the transfer is
 * done, and what is copied from stays unchanged.
 *
 * A copy between host and device may name a codec. Its bytes change on the host, so fewer go over the link, or fewer
 * lie on the device. Such a copy goes through the ring. A codec with `chunk` works part by part, and so does "planes"
 * where the packed bytes are the host's. Another piece is whole. Where it is larger than a slot it needs as much host
 * memory beside the ring as it has bytes on the device.
 *
 * Every call may answer INVALID_ARGUMENT and FORKED. Each comment has only the other statuses. All are thread-safe but
 * gm_transfer_release. */
#ifndef GM_TRANSFER_H
#define GM_TRANSFER_H

#include "gm/codec.h"
#include "gm/copy.h"

GM_BEGIN_DECLS

typedef struct gm_transfer gm_transfer; /* copies under way */

enum { GM_TRANSFER_WHY_SIZE = 256 };
#define GM_TRANSFER_ALL UINT64_MAX /* in place of the number of a copy: all copies */

/* One end of a copy: `offset` bytes into a block, or into host memory. Either `block`, with its pool, or `host` is set.
 * gm only reads host memory that a copy comes from. Never grows. */
typedef struct gm_end {
  gm_pool *pool;         /* of the block */
  const gm_block *block; /* copied: it need not outlive the call */
  void *host;
  uint64_t offset;      /* bytes */
  uint64_t reserved[2]; /* 0 */
} gm_end;

/* One copy. At least one end is a block. Blocks are of one device; gm_block_copy_peer copies between devices. */
typedef struct gm_copy {
  uint32_t struct_size; /* that of the first copy of an array holds for all */
  gm_end to, from;
  uint64_t bytes; /* with `codec`: of the block's end */
  /* Changes the bytes on the host, which is one end then: on their way up into the ring, on their way down from it.
   * Both ends have bytes. Borrowed until the transfer is done. It runs in calls that use transfers of this device, and
   * must not call gm with one. NULL: the bytes stay as they are. */
  const gm_codec *codec;
  uint64_t host_bytes; /* with `codec`: of the host's end */
  /* On the way down, of a codec whose piece is whole: where gm writes how many bytes came, at most host_bytes. NULL: it
   * must be exactly so many. On the way up a codec makes exactly `bytes`. */
  uint64_t *out_host_bytes;
  gm_codec_way codec_way;
  /* From the host, with gm_codec_find("bf16") or "fp16": floats of 16 bits go over the link, and the block gets floats
   * of 32 bits. `bytes` are those of the latter. ENCODE: the host has floats of 32 bits too, and their error is that of
   * the codec. DECODE: it has those of 16 bits, and nothing is lost. A kernel of the device makes them whole; where
   * there is none, the host does, and the link saves nothing (gm_transfer_stats). to.offset is a multiple of 4. */
  bool expand;
  /* A strided copy: a box whose offsets count from those of the ends. `bytes` are those of all its rows. It goes as one
   * copy, past the ring, and arrives as a whole. Borrowed until the transfer is done. It has no codec. NULL: the bytes
   * lie next to each other at both ends. */
  const gm_rect *rect;
} gm_copy;

/* How a transfer goes. Zero-initialised with struct_size set, it is valid. */
typedef struct gm_transfer_params {
  uint32_t struct_size;
  bool no_wait; /* gm_transfer_start does not wait for the ring. Poll and wait submit what is left */
  /* The order on the device. NULL: the device's default stream, else one of gm's own. A device without any stream
   * copies in the call. */
  gm_stream *stream;
  /* For an engine whose queue gm may not submit to. gm calls it for each piece, from the calling thread, and holds no
   * lock. The engine records that copy, keeps `ticket`, and answers with gm_transfer_passed. The piece's blocks and
   * offsets are the caller's, and its host memory may be a slot of the ring. A strided copy is one piece with its
   * `rect`. *piece is valid during the call. False: the engine cannot, and the transfer fails with CANCELLED. It must
   * not call gm with this transfer. NULL: gm submits.
   */
  bool (*record)(void *user, const gm_copy *piece, uint64_t ticket);
  void *user; /* of `record` */
  /* An ended transfer of as many copies of the same bytes each: gm moves only what had not arrived there. A codec goes
   * on at the chunk that had not arrived; a piece that is whole goes again. It is not needed after the call. NULL:
   * everything is moved. */
  const gm_transfer *resume;
} gm_transfer_params;

/* How far a transfer is, and how it went. Times are in seconds. */
typedef struct gm_transfer_stats {
  uint32_t struct_size;   /* set by the caller */
  gm_status status;       /* the first failure; GM_OK: none so far */
  uint64_t copies;        /* in all */
  uint64_t total_bytes;   /* of all copies */
  uint64_t useful_bytes;  /* that have arrived, with those of `resume` */
  uint64_t failed_copy;   /* the copy that failed first; GM_TRANSFER_ALL: none, or no single one */
  uint64_t failed_offset; /* bytes from the begin of that copy, at which its first lost piece begins */
  uint64_t link_bytes;    /* that gm submitted for the way between host and device; not what the host copied itself */
  uint64_t link_copies;   /* in so many submissions */
  uint64_t staged_bytes;  /* of `link_bytes`: through the ring */
  double seconds;         /* from gm_transfer_start to the end, or until now */
  double stalled;         /* of that: gm waited for a slot of the ring */
  /* Busy time of each way: from the moment when its next copies could begin to the one when gm saw their end. A caller
   * that polls late sees a late end. Waits for earlier work of the stream count, and so does the work of codecs. A
   * stream has one order, so the ways of a transfer do not run beside each other. */
  double up, down, inside;
  double overhead; /* share of `seconds` in which no copy was under way: 0 to 1 */
  /* Bytes of each way in its busy time, as a share of what gm_transfer_measure said. 0: it was not measured before the
   * transfer began, or nothing went that way. */
  double up_utilisation, down_utilisation;
  uint64_t device_expanded;       /* of copies with `expand`: bytes of `useful_bytes` that the device made whole */
  uint64_t host_expanded;         /* and that the host did */
  char why[GM_TRANSFER_WHY_SIZE]; /* why the ring is smaller than it could be, or not page-locked; "": it is neither */
} gm_transfer_stats;

/* The rates of the ways between the host and a device, in bytes per second. */
typedef struct gm_transfer_links {
  uint32_t struct_size; /* set by the caller */
  double up;
  double down;
} gm_transfer_links;

/* Measures both ways of a device: 64 MiB through the ring, the best of three times. It is done once; later calls answer
 * the same, until the device closes. gm keeps the rates in a file of the user (`links.folder`), so later processes need
 * not measure until the driver or the slot changes. Other work of the device makes the figures smaller. NOT_SUPPORTED:
 * gm makes no streams on this device. OUT_OF_HOST_MEMORY, OUT_OF_DEVICE_MEMORY, DRIVER, DEVICE_LOST. */
GM_API gm_status gm_transfer_measure(gm_device *device, gm_transfer_links *out, gm_error *err);

/* Measures both ways whatever is known of them, and keeps the better rate of each: for rates that were measured while
 * others worked. Errors: those of gm_transfer_measure. */
GM_API gm_status gm_transfer_measure_again(gm_device *device, gm_transfer_links *out, gm_error *err);

/* Totals of what transfers, loads, saves, pipelines and copies between devices have moved between the host and a device
 * since it was opened. Buffers, values of stores and pools that sleep count, where they take page-locked slots. Copies
 * of gm_block_write and gm_block_read by the program do not count, nor those that the host does. */
typedef struct gm_transfer_totals {
  uint32_t struct_size; /* set by the caller */
  uint64_t users;       /* that have begun: transfers, loads by device, reads of saves, runs of pipelines, copies */
  uint64_t up_bytes;    /* that were submitted for the way up, and down */
  uint64_t down_bytes;
  uint64_t up_copies; /* in so many submissions */
  uint64_t down_copies;
  uint64_t useful_bytes; /* of all these bytes: those that somebody asked for, not what lay between small pieces */
  double seconds;        /* in which at least one user was under way */
  /* The rest is 0 until gm_transfer_measure has measured the device's links. */
  double up, down;                         /* seconds for which these bytes keep each way busy, at its measured rate */
  double up_utilisation, down_utilisation; /* `up` and `down` as shares of `seconds` */
  double overhead; /* share of `seconds` that is left where the ways are busy one after the other: 0 to 1 */
  double overlap;  /* `up` and `down` beside each other, as a share of what could be: (up + down - seconds) / the
                      smaller of both, 0 to 1 */
} gm_transfer_totals;

/* The totals of a device. INVALID_ARGUMENT, FORKED. */
GM_API gm_status gm_device_transfer_totals(gm_device *device, gm_transfer_totals *out, gm_error *err);

/* Starts `count` copies. Before the first one moves, gm checks all of them: a wrong one is INVALID_ARGUMENT that names
 * it, and nothing has moved. A later failure is the transfer's: gm_transfer_wait tells it. `params` may be NULL. The
 * caller releases *out.
 *
 * BUSY: with `no_wait`, and the ring has no slot for the first piece; nothing has moved. It is the answer, too, while
 * the engine captures the stream. NOT_SUPPORTED: gm may not submit to `stream`, and there is no `record`. A device
 * without a stream cannot copy from block to block either. OUT_OF_HOST_MEMORY, DEVICE_LOST. */
GM_API gm_status gm_transfer_start(gm_device *device, const gm_copy *copies, uint64_t count,
                                   const gm_transfer_params *params, gm_transfer **out, gm_error *err);

/* Does what can be done without a wait, and tells how far the transfer is. *out_done: it has ended. `out` and
 * `out_done` may be NULL. The answer is GM_OK until the transfer fails, then its first failure. */
GM_API gm_status gm_transfer_poll(gm_transfer *transfer, gm_transfer_stats *out, bool *out_done, gm_error *err);

/* Waits until the transfer has ended, and answers how. UINT64_MAX waits without limit. `out` may be NULL. TIMEOUT:
 * `timeout_ns` nanoseconds passed first. With `record`, too: it waits for answers of the engine. CANCELLED; whatever
 * gm_block_write, gm_block_read, gm_block_copy, gm_codec_encode and gm_codec_decode answer. FORMAT also: a codec made
 * another number of bytes than the copy says. After a failure some copies may have arrived: see gm_transfer_stats. */
GM_API gm_status gm_transfer_wait(gm_transfer *transfer, uint64_t timeout_ns, gm_transfer_stats *out, gm_error *err);

/* Makes later work of `stream`, of the same device, follow one copy, or all (GM_TRANSFER_ALL). The host waits only
 * until the copy is submitted. Bytes for the host are in the program's memory after gm_transfer_wait alone.
 * NOT_SUPPORTED: the engine records the copies, and their order is its own. The first failure of the transfer. */
GM_API gm_status gm_transfer_before(gm_transfer *transfer, uint64_t copy, gm_stream *stream, gm_error *err);

/* The engine's answer to `record`: the piece's copy is done when `point` has passed. NULL: it is done. The point stays
 * the caller's, and may be released at once. An imported point lives until it has passed. NOT_FOUND: no piece with this
 * ticket awaits an answer. NOT_SUPPORTED: the backend cannot keep a point, and this one has not passed. */
GM_API gm_status gm_transfer_passed(gm_transfer *transfer, uint64_t ticket, const gm_point *point, gm_error *err);

/* Submits nothing more. Copies that are under way end first. A transfer of which all was submitted ends as without
 * this call. It waits for nothing. NULL does nothing. */
GM_API void gm_transfer_cancel(gm_transfer *transfer);

/* Cancels the transfer, waits for what is under way, and gives all back. NULL is GM_OK. BUSY: pieces that were given to
 * `record` have no answer yet; the transfer is cancelled and still there. After the loss of the device nothing is
 * waited for. In a forked child it gives the child's memory back. */
GM_API gm_status gm_transfer_release(gm_transfer *transfer, gm_error *err);

/* Expands `count` floats of 16 bits in one block to floats of 32 bits in a block of the same device. `codec` is
 * gm_codec_find("bf16") or gm_codec_find("fp16"). The result has the bits of its decoder, so nothing is lost here;
 * gm/codec.h has the bound of what its encoder loses. gm never expands by itself.
 *
 * A kernel of gm's own does it on the device: on OpenCL, Vulkan, CUDA and HIP. Where there is none, gm reads the
 * numbers, expands them on the host and writes them, in the order of the stream. The call waits then, and *out has
 * passed. *out_by_host tells (may be NULL). src_offset is a multiple of 2 and dst_offset of 4, both in bytes. `stream`
 * and `out` are as for gm_block_copy. INVALID_ARGUMENT: also another codec, and ranges that share bytes. Other errors:
 * those of gm_block_copy and gm_block_read. OUT_OF_HOST_MEMORY. */
GM_API gm_status gm_block_expand(gm_pool *dst_pool, const gm_block *dst, uint64_t dst_offset, gm_pool *src_pool,
                                 const gm_block *src, uint64_t src_offset, uint64_t count, const gm_codec *codec,
                                 gm_stream *stream, gm_point *out, bool *out_by_host, gm_error *err);

GM_END_DECLS

#endif
