#include "core/staging/planes.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/little.h"
#include "core/base/saturate.h"
#include "core/base/zstd.h"
#include "core/staging/convert.h"
#include "core/staging/literals.h"

enum {
  PLANES_HEAD = 24,
  PLANES_CHUNK_HEAD = 16,
  PLANES_VERSION = 1,
  PLANES_PLAIN = 0,
  PLANES_PACKED = 1,
  PLANES_LEVEL = -131072, /* no search: a frame with matches has sequences, and gm unpacks literals alone faster */
  PLANES_LEAST_MATCH = 7,
  PLANES_PLAIN_LEVEL = 1 /* where this zstd has not the mode of literals */
};

static const unsigned char planes_magic[8] = {'g', 'm', 'p', 'l', 'a', 'n', 'e', 's'};

static uint32_t planes_chunk_bytes(uint64_t left) {
  return left < GM__PLANES_CHUNK ? (uint32_t)left : (uint32_t)GM__PLANES_CHUNK;
}

static uint64_t planes_checksum(const unsigned char *head, uint64_t place) {
  const uint64_t checksum = gm__checksum(head, 8, place);
  return gm__checksum(head + PLANES_CHUNK_HEAD, (uint32_t)gm__le_get(head, 4), checksum);
}

/* --- what both ways need: the upper plane of a chunk, and one context of zstd, made when it is first needed --- */

typedef struct gm__planes_work {
  const gm__zstd *zstd;
  gm__zstd_encoder *encoder;
  gm__zstd_decoder *decoder;
  size_t bytes; /* of this struct, with the plane */
  gm__literals literals;
  unsigned char upper[];
} planes_work;

static gm_status planes_no_memory(const char *op, gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for the work of the codec `planes`");
}

/* For pieces of `plain` bytes. */
static gm_status planes_begin(const char *op, uint64_t plain, planes_work **out, gm_error *err) {
  const size_t bytes = sizeof(planes_work) + planes_chunk_bytes(plain) / 2;
  planes_work *work = *out = gm__alloc_plain(NULL, bytes);
  if (!work) return planes_no_memory(op, err);
  work->encoder = NULL;
  work->decoder = NULL;
  work->bytes = bytes;
  return GM_OK;
}

static void planes_end(planes_work *work, unsigned char *window) {
  gm__release(NULL, window, GM__PLANES_CHUNK);
  if (!work) return;
  if (work->encoder) work->zstd->encoder_free(work->encoder);
  if (work->decoder) work->zstd->decoder_free(work->decoder);
  gm__release(NULL, work, work->bytes);
}

/* Memory for a chunk of which a part begins or ends within it. */
static gm_status planes_need_window(unsigned char **window, const char *op, gm_error *err) {
  if (!*window) *window = gm__alloc_plain(NULL, GM__PLANES_CHUNK);
  return *window ? GM_OK : planes_no_memory(op, err);
}

/* --- encoding --- */

static const char planes_encode_op[] = "gm_codec_encode", planes_decode_op[] = "gm_codec_decode";

uint64_t gm__planes_most(void *user, uint64_t bytes) {
  (void)user;
  const uint64_t chunks = bytes / GM__PLANES_CHUNK + (bytes % GM__PLANES_CHUNK != 0);
  const uint64_t heads = PLANES_HEAD + chunks * PLANES_CHUNK_HEAD;
  return bytes < UINT64_MAX - heads ? bytes + heads : UINT64_MAX;
}

/* The mode of literals is not a stable part of zstd. Where it is refused, a level that packs literals serves. */
static gm_status planes_make_encoder(planes_work *work, gm_error *err) {
  work->zstd = gm__zstd_open(err);
  if (!work->zstd) return GM_ERR_NOT_SUPPORTED;
  const gm__zstd *zstd = work->zstd;
  work->encoder = zstd->encoder_new();
  if (!work->encoder) return planes_no_memory(planes_encode_op, err);
  zstd->encoder_set(work->encoder, GM__ZSTD_LEVEL, PLANES_LEVEL);
  zstd->encoder_set(work->encoder, GM__ZSTD_LEAST_MATCH, PLANES_LEAST_MATCH);
  if (zstd->is_error(zstd->encoder_set(work->encoder, GM__ZSTD_LITERALS, GM__ZSTD_LITERALS_HUFFMAN))) {
    zstd->encoder_set(work->encoder, GM__ZSTD_LEVEL, PLANES_PLAIN_LEVEL);
  }
  return GM_OK;
}

/* How many bytes the two planes of a chunk take; 0: they gain too little, or there is no room. */
static uint32_t planes_pack(planes_work *work, const unsigned char *from, uint32_t bytes, unsigned char *to,
                            uint64_t room) {
  const uint32_t half = bytes / 2;
  uint32_t most = bytes - (bytes * 3 + 99) / 100;
  if (most > room) most = (uint32_t)room;
  if (bytes % 2 || most <= half) return 0;
  gm__convert_way_here()->split(to, work->upper, from, half);
  const size_t packed = work->zstd->encode(work->encoder, to + half, most - half, work->upper, half);
  return work->zstd->is_error(packed) ? 0 : half + (uint32_t)packed;
}

static gm_status planes_no_room(uint64_t capacity, gm_error *err) {
  return gm__fail(err, GM_ERR_OVER_LIMIT, planes_encode_op,
                  "the piece does not fit in %" PRIu64 " bytes; gm_codec_most tells what always does", capacity);
}

/* Returns the bytes that the chunk takes with its head; 0: there is no room. */
static uint64_t planes_encode_chunk(planes_work *work, const unsigned char *from, uint32_t bytes, uint64_t place,
                                    unsigned char *to, uint64_t room) {
  if (room < PLANES_CHUNK_HEAD) return 0;
  uint32_t stored = planes_pack(work, from, bytes, to + PLANES_CHUNK_HEAD, room - PLANES_CHUNK_HEAD);
  gm__le_put(to + 4, stored ? PLANES_PACKED : PLANES_PLAIN, 4);
  if (!stored) {
    if (bytes > room - PLANES_CHUNK_HEAD) return 0;
    memcpy(to + PLANES_CHUNK_HEAD, from, bytes);
    stored = bytes;
  }
  gm__le_put(to, stored, 4);
  gm__le_put(to + 8, planes_checksum(to, place), 8);
  return PLANES_CHUNK_HEAD + stored;
}

/* The head, of which the writer knows all before the first chunk. */
static gm_status planes_write_head(gm__planes_writer *writer, gm_error *err) {
  if (writer->capacity < PLANES_HEAD) return planes_no_room(writer->capacity, err);
  memcpy(writer->to, planes_magic, sizeof planes_magic);
  gm__le_put(writer->to + 8, PLANES_VERSION, 4);
  gm__le_put(writer->to + 12, gm__checksum_kind_here(), 4);
  gm__le_put(writer->to + 16, writer->total, 8);
  writer->put = PLANES_HEAD;
  return GM_OK;
}

gm_status gm__planes_write_begin(gm__planes_writer *writer, uint64_t total, void *to, uint64_t capacity,
                                 gm_error *err) {
  *writer = (gm__planes_writer){.to = to, .capacity = capacity, .total = total};
  gm_status status = planes_begin(planes_encode_op, total, &writer->work, err);
  if (status == GM_OK) status = planes_make_encoder(writer->work, err);
  return status == GM_OK ? planes_write_head(writer, err) : status;
}

void gm__planes_write_end(gm__planes_writer *writer) {
  planes_end(writer->work, writer->window);
  *writer = (gm__planes_writer){.work = NULL};
}

static gm_status planes_write_chunk(gm__planes_writer *writer, const unsigned char *from, uint32_t bytes,
                                    gm_error *err) {
  const uint64_t took = planes_encode_chunk(writer->work, from, bytes, writer->place, writer->to + writer->put,
                                            writer->capacity - writer->put);
  if (!took) return planes_no_room(writer->capacity, err);
  writer->place += bytes;
  writer->put += took;
  writer->held = 0;
  return GM_OK;
}

gm_status gm__planes_write(gm__planes_writer *writer, const void *from, uint64_t bytes, gm_error *err) {
  const unsigned char *at = from;
  gm_status status = GM_OK;
  for (uint64_t part; bytes && status == GM_OK; bytes -= part, at += part) {
    const uint32_t chunk = planes_chunk_bytes(writer->total - writer->place);
    part = gm__min(chunk - writer->held, bytes);
    if (part == chunk) {
      status = planes_write_chunk(writer, at, chunk, err);
      continue;
    }
    status = planes_need_window(&writer->window, planes_encode_op, err);
    if (status != GM_OK) break;
    memcpy(writer->window + writer->held, at, (size_t)part);
    writer->held += part;
    if (writer->held == chunk) status = planes_write_chunk(writer, writer->window, chunk, err);
  }
  return status;
}

gm_status gm__planes_encode(void *user, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                            uint64_t *out_bytes, gm_error *err) {
  (void)user;
  gm__planes_writer writer;
  gm_status status = gm__planes_write_begin(&writer, bytes, to, capacity, err);
  if (status == GM_OK) status = gm__planes_write(&writer, from, bytes, err);
  if (status == GM_OK) *out_bytes = writer.put;
  gm__planes_write_end(&writer);
  return status;
}

/* --- decoding: the piece may be anything --- */

static gm_status planes_bad(const gm__planes_reader *in, gm_error *err, const char *why) {
  return gm__fail(err, GM_ERR_FORMAT, planes_decode_op, "the chunk of byte %" PRIu64 " %s", in->place, why);
}

static gm_status planes_read_head(gm__planes_reader *in, uint64_t capacity, gm_error *err) {
  const char *const op = planes_decode_op;
  const bool known = in->left >= PLANES_HEAD && memcmp(in->at, planes_magic, sizeof planes_magic) == 0;
  if (!known) return gm__fail(err, GM_ERR_FORMAT, op, "this is no piece of the codec `planes`");
  if ((uint32_t)gm__le_get(in->at + 8, 4) != PLANES_VERSION) {
    return gm__fail(err, GM_ERR_FORMAT, op, "the piece has version %u, this gm reads %d",
                    (uint32_t)gm__le_get(in->at + 8, 4), PLANES_VERSION);
  }
  if ((uint32_t)gm__le_get(in->at + 12, 4) != (uint32_t)gm__checksum_kind_here()) {
    return gm__fail(err, GM_ERR_FORMAT, op, "the piece has checksums of kind %u, this build of gm makes kind %u",
                    (uint32_t)gm__le_get(in->at + 12, 4), (unsigned)gm__checksum_kind_here());
  }
  in->total = gm__le_get(in->at + 16, 8);
  if (in->total > capacity) {
    return gm__fail(err, GM_ERR_OVER_LIMIT, op, "the piece has %" PRIu64 " plain bytes, there is room for %" PRIu64,
                    in->total, capacity);
  }
  in->at += PLANES_HEAD;
  in->left -= PLANES_HEAD;
  return GM_OK;
}

static gm_status planes_make_decoder(planes_work *work, gm_error *err) {
  if (work->decoder) return GM_OK;
  work->zstd = gm__zstd_open(err);
  if (!work->zstd) return GM_ERR_NOT_SUPPORTED;
  work->decoder = work->zstd->decoder_new();
  return work->decoder ? GM_OK : planes_no_memory(planes_decode_op, err);
}

/* REQUIRES: the chunk's `stored` bytes are there, and their checksum is right. */
static gm_status planes_unpack(const gm__planes_reader *in, uint32_t stored, uint32_t bytes, unsigned char *to,
                               gm_error *err) {
  planes_work *work = in->work;
  const unsigned char *lower = in->at + PLANES_CHUNK_HEAD;
  const uint32_t half = bytes / 2;
  if (bytes % 2 || stored <= half) return planes_bad(in, err, "has no two planes");
  const bool fast = gm__literals_unpack(&work->literals, work->upper, half, lower + half, stored - half);
  const gm_status status = fast ? GM_OK : planes_make_decoder(work, err);
  if (status) return status;
  if (!fast && work->zstd->decode(work->decoder, work->upper, half, lower + half, stored - half) != half) {
    return planes_bad(in, err, "has an upper plane that zstd cannot unpack");
  }
  gm__convert_way_here()->join(to, lower, work->upper, half);
  return GM_OK;
}

/* One chunk of `bytes` plain bytes, which then is read. */
static gm_status planes_read_chunk(gm__planes_reader *in, uint32_t bytes, unsigned char *to, gm_error *err) {
  gm_status status = GM_OK;
  if (in->left < PLANES_CHUNK_HEAD) return planes_bad(in, err, "is cut");
  const uint32_t stored = (uint32_t)gm__le_get(in->at, 4), kind = (uint32_t)gm__le_get(in->at + 4, 4);
  if (stored > in->left - PLANES_CHUNK_HEAD) return planes_bad(in, err, "is cut");
  if (gm__le_get(in->at + 8, 8) != planes_checksum(in->at, in->place)) {
    return planes_bad(in, err, "has another checksum than its head says");
  }
  if (kind == PLANES_PACKED) {
    status = planes_unpack(in, stored, bytes, to, err);
  } else if (kind == PLANES_PLAIN && stored == bytes) {
    memcpy(to, in->at + PLANES_CHUNK_HEAD, bytes);
  } else {
    status = planes_bad(in, err, "is of no known kind");
  }
  in->at += PLANES_CHUNK_HEAD + stored;
  in->left -= PLANES_CHUNK_HEAD + stored;
  in->place += bytes;
  return status;
}

gm_status gm__planes_read_begin(gm__planes_reader *reader, const void *from, uint64_t bytes, uint64_t capacity,
                                gm_error *err) {
  *reader = (gm__planes_reader){.at = from, .left = bytes};
  const gm_status status = planes_read_head(reader, capacity, err);
  return status == GM_OK ? planes_begin(planes_decode_op, reader->total, &reader->work, err) : status;
}

void gm__planes_read_end(gm__planes_reader *reader) {
  planes_end(reader->work, reader->window);
  *reader = (gm__planes_reader){.work = NULL};
}

/* The next chunk into the window. */
static gm_status planes_read_window(gm__planes_reader *reader, uint32_t chunk, gm_error *err) {
  gm_status status = planes_need_window(&reader->window, planes_decode_op, err);
  if (status == GM_OK) status = planes_read_chunk(reader, chunk, reader->window, err);
  if (status == GM_OK) reader->kept = reader->window_bytes = chunk;
  return status;
}

gm_status gm__planes_read(gm__planes_reader *reader, void *to, uint64_t bytes, gm_error *err) {
  unsigned char *put = to;
  gm_status status = GM_OK;
  for (uint64_t part; bytes && status == GM_OK; bytes -= part, put += part) {
    const uint32_t chunk = planes_chunk_bytes(reader->total - reader->place);
    if (!reader->kept && bytes >= chunk) {
      part = chunk;
      status = planes_read_chunk(reader, chunk, put, err);
      continue;
    }
    if (!reader->kept) status = planes_read_window(reader, chunk, err);
    part = gm__min(reader->kept, bytes); /* 0 after a failure */
    if (part) memcpy(put, reader->window + (reader->window_bytes - reader->kept), (size_t)part);
    reader->kept -= part;
  }
  if (status != GM_OK || reader->place < reader->total || !reader->left) return status;
  return gm__fail(err, GM_ERR_FORMAT, planes_decode_op, "%" PRIu64 " bytes follow the last chunk", reader->left);
}

gm_status gm__planes_decode(void *user, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                            uint64_t *out_bytes, gm_error *err) {
  (void)user;
  gm__planes_reader reader;
  gm_status status = gm__planes_read_begin(&reader, from, bytes, capacity, err);
  if (status == GM_OK) status = gm__planes_read(&reader, to, reader.total, err);
  if (status == GM_OK) *out_bytes = reader.total;
  gm__planes_read_end(&reader);
  return status;
}
