/* Codecs of copies: what fits, and a part's turn between the program's memory and a slot. */
#include <inttypes.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/staging/codec.h"
#include "core/transfer/transfer.h"

/* Invariants. A slot has bytes of the device's end alone. A piece that is whole and fits in a slot never lies in two.
 */

/* --- what fits --- */

static gm_status codec_check_none(const gm_copy *asked, const char *op, gm_error *err) {
  const char *name = asked->host_bytes       ? "host_bytes"
                     : asked->expand         ? "expand"
                     : asked->out_host_bytes ? "out_host_bytes"
                     : asked->codec_way      ? "codec_way"
                                             : NULL;
  return name ? gm__bad_argument(err, op, "`%s` needs `codec`", name) : GM_OK;
}

static gm_status codec_check_ends(const gm__transfer_copy *copy, const gm_copy *asked, const char *op, gm_error *err) {
  if (copy->way == GM__TRANSFER_INSIDE) return gm__bad_argument(err, op, "`codec` needs an end on the host");
  if (!asked->bytes || !asked->host_bytes) {
    return gm__bad_argument(err, op, "`codec` needs `%s`", asked->bytes ? "host_bytes" : "bytes");
  }
  if (copy->way == GM__TRANSFER_UP && asked->out_host_bytes) {
    return gm__bad_argument(err, op, "`out_host_bytes` is for a copy to the host");
  }
  return gm__codec_check(asked->codec, asked->codec_way, "codec", op, err);
}

/* Plain bytes may be of a number that the codec does not take. */
static gm_status codec_check_plain(const gm__transfer_copy *copy, const gm_copy *asked, const char *op, gm_error *err) {
  const bool up = copy->way == GM__TRANSFER_UP, encodes = asked->codec_way == GM_CODEC_ENCODE;
  uint64_t most;
  gm_error why = {.status = GM_OK};
  if (!encodes) return GM_OK;
  const gm_status status = gm_codec_most(asked->codec, up ? asked->host_bytes : asked->bytes, &most, &why);
  return status ? gm__fail(err, status, op, "`codec`: %s", why.message) : GM_OK;
}

static gm_status codec_cut(const gm__transfer_copy *copy, gm__transfer_codec *codec, const char *op, gm_error *err) {
  const uint64_t bytes = copy->what.bytes;
  uint64_t plain, encoded;
  gm_error why = {.status = GM_OK};
  const gm_status status = gm__codec_chunk(codec->codec, &plain, &encoded, &why);
  if (status) return gm__fail(err, status, op, "`codec`: %s", why.message);
  const bool plain_on_host = (codec->way == GM_CODEC_ENCODE) == (copy->way == GM__TRANSFER_UP);
  codec->chunk = !plain ? bytes : plain_on_host && !codec->expands ? encoded : plain;
  codec->host_chunk = !plain ? codec->host_bytes : plain_on_host ? plain : encoded;
  codec->cut = codec->chunk;
  const uint64_t chunks = bytes / codec->chunk;
  if (bytes % codec->chunk == 0 && codec->host_bytes % codec->host_chunk == 0 &&
      codec->host_bytes / codec->host_chunk == chunks) {
    return GM_OK;
  }
  return gm__bad_argument(err, op,
                          "the codec `%.64s` has %" PRIu64 " bytes on the host for %" PRIu64
                          " in the block. "
                          "`host_bytes` is %" PRIu64 " and `bytes` %" PRIu64,
                          codec->codec->name, codec->host_chunk, codec->chunk, codec->host_bytes, bytes);
}

/* Memory for the codecs of as many copies as may have one. */
static gm_status codec_new(gm_transfer *t, const gm__transfer_copy *copy, gm__transfer_codec **out, const char *op,
                           gm_error *err) {
  if (!t->codecs) {
    const uint64_t most = t->count - (uint64_t)(copy - t->copies);
    const uint64_t bytes = gm__add_sat(sizeof *t->codecs, gm__mul_sat(most, sizeof *t->codecs->codec));
    t->codecs = bytes < SIZE_MAX ? gm__alloc(gm__context_services(t->device->ctx), (size_t)bytes) : NULL;
    if (!t->codecs) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for the codecs");
    t->codecs->most = most;
  }
  *out = &t->codecs->codec[t->codecs->count++];
  return GM_OK;
}

gm_status gm__transfer_plan_codec(gm_transfer *t, gm__transfer_copy *copy, const gm_copy *asked, const char *op,
                                  gm_error *err) {
  gm__transfer_codec *codec = NULL;
  copy->codec = NULL;
  if (!asked->codec) return codec_check_none(asked, op, err);
  gm_status status = codec_check_ends(copy, asked, op, err);
  if (!status) status = gm__transfer_plan_expand(copy, asked, op, err);
  if (!status) status = codec_check_plain(copy, asked, op, err);
  if (!status) status = codec_new(t, copy, &codec, op, err);
  if (status) return status;
  *codec = (gm__transfer_codec){.codec = asked->codec,
                                .way = asked->codec_way,
                                .expands = asked->expand,
                                .host_bytes = asked->host_bytes,
                                .out_host_bytes = asked->out_host_bytes};
  copy->codec = codec;
  return codec_cut(copy, codec, op, err);
}

/* --- rooms --- */

static gm_status codec_make_room(gm_transfer *t, gm__transfer_way way, uint64_t bytes, const char *op, gm_error *err) {
  gm__transfer_codecs *all = t->codecs;
  if (!bytes) return GM_OK;
  if (bytes <= SIZE_MAX) all->room[way] = gm__alloc(gm__context_services(t->device->ctx), (size_t)bytes);
  all->room_bytes[way] = bytes;
  if (all->room[way]) return GM_OK;
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op,
                  "no host memory for a piece of %" PRIu64 " bytes, which its codec does not cut", bytes);
}

/* Plain bytes lie in the block, and packed ones on the host. */
static bool codec_flows(const gm__transfer_copy *copy) {
  const gm__transfer_codec *codec = copy->codec;
  const bool is_planes = codec->codec->decode == gm__planes_decode && codec->codec->encode == gm__planes_encode;
  return is_planes && (codec->way == GM_CODEC_DECODE) == (copy->way == GM__TRANSFER_UP);
}

gm_status gm__transfer_make_rooms(gm_transfer *t, uint64_t slot_bytes, const char *op, gm_error *err) {
  uint64_t bytes[GM__TRANSFER_INSIDE] = {0};
  for (uint64_t i = 0; i < t->count && t->codecs; i++) {
    gm__transfer_codec *codec = t->copies[i].codec;
    if (!codec || codec->chunk <= slot_bytes) continue;
    codec->chunk = t->copies[i].what.bytes;
    codec->host_chunk = codec->host_bytes;
    codec->flows = codec_flows(&t->copies[i]);
    codec->roomy = !codec->flows;
    codec->cut = codec->flows && slot_bytes >= GM__PLANES_CHUNK ? GM__PLANES_CHUNK : 1;
    if (codec->flows) continue;
    bytes[t->copies[i].way] = gm__max(bytes[t->copies[i].way], codec->chunk);
  }
  const gm_status status = codec_make_room(t, GM__TRANSFER_UP, bytes[GM__TRANSFER_UP], op, err);
  return status ? status : codec_make_room(t, GM__TRANSFER_DOWN, bytes[GM__TRANSFER_DOWN], op, err);
}

void gm__transfer_free_codecs(gm_transfer *t) {
  const gm_services *services = gm__context_services(t->device->ctx);
  gm__transfer_codecs *all = t->codecs;
  if (!all) return;
  gm__planes_read_end(&all->reader);
  gm__planes_write_end(&all->writer);
  for (int way = 0; way < 2; way++) gm__release(services, all->room[way], (size_t)all->room_bytes[way]);
  gm__release(services, all, sizeof *all + (size_t)all->most * sizeof *all->codec);
  t->codecs = NULL;
}

uint64_t gm__transfer_chunk(const gm__transfer_copy *copy) { return copy->codec ? copy->codec->cut : 1; }

/* --- on the way --- */

/* The host's bytes of a part, or of a piece from byte 0 of the copy on. */
static gm__codec_turn codec_turn(const gm__transfer_codec *codec, uint64_t at, const char *of) {
  return (gm__codec_turn){codec->codec, codec->way, "gm_transfer", of, at};
}

static gm_status codec_wrong(const gm__transfer_codec *codec, uint64_t made, uint64_t wanted, const char *end,
                             gm_error *err) {
  return gm__fail(err, GM_ERR_FORMAT, "gm_transfer", "`%.64s` made %" PRIu64 " bytes for the %s, which takes %" PRIu64,
                  codec->codec->name, made, end, wanted);
}

static gm_status codec_up(const gm__transfer_copy *copy, uint64_t at, uint64_t bytes, unsigned char *to,
                          gm_error *err) {
  const gm__transfer_codec *codec = copy->codec;
  const uint64_t host_at = at / codec->chunk * codec->host_chunk, host = bytes / codec->chunk * codec->host_chunk;
  const gm__codec_turn turn = codec_turn(codec, host_at, "host memory");
  uint64_t made = 0;
  const gm_status status =
      gm__codec_turn_run(&turn, gm__transfer_host(copy, host_at), host, to, bytes, &made, NULL, err);
  return status || made == bytes ? status : codec_wrong(codec, made, bytes, "block", err);
}

static gm_status codec_down(const gm__transfer_copy *copy, uint64_t at, uint64_t bytes, const unsigned char *from,
                            gm_error *err) {
  const gm__transfer_codec *codec = copy->codec;
  const uint64_t host_at = at / codec->chunk * codec->host_chunk, host = bytes / codec->chunk * codec->host_chunk;
  const gm__codec_turn turn = codec_turn(codec, at, "block's end");
  const bool whole = bytes == copy->what.bytes, last = at + bytes == copy->what.bytes;
  uint64_t made = 0;
  const gm_status status =
      gm__codec_turn_run(&turn, from, bytes, gm__transfer_host(copy, host_at), host, &made, NULL, err);
  if (status) return status;
  if (made != host && !(whole && codec->out_host_bytes)) return codec_wrong(codec, made, host, "host", err);
  if (last && codec->out_host_bytes) *codec->out_host_bytes = host_at + made;
  return GM_OK;
}

/* --- pieces of planes, in parts --- */

static gm_status flow_fail(gm_status status, const char *end, const gm_error *why, gm_error *err) {
  if (status == GM_OK) return GM_OK;
  return gm__fail_native(err, status, why->native_code, "gm_transfer", "`planes`, from byte 0 of the %s on: %s", end,
                         why->message);
}

static gm_status flow_up(const gm_transfer *t, const gm__transfer_copy *copy, uint64_t at, uint64_t bytes,
                         unsigned char *to, gm_error *err) {
  const uint64_t all = copy->what.bytes;
  gm__planes_reader *reader = &t->codecs->reader;
  gm_error why = {.status = GM_OK};
  gm_status status = GM_OK;
  if (!at) {
    gm__planes_read_end(reader);
    status = gm__planes_read_begin(reader, gm__transfer_host(copy, 0), copy->codec->host_bytes, all, &why);
    if (status == GM_OK && reader->total != all) return codec_wrong(copy->codec, reader->total, all, "block", err);
  }
  if (status == GM_OK) status = gm__planes_read(reader, to, bytes, &why);
  return flow_fail(status, "host memory", &why, err);
}

static gm_status flow_down(const gm_transfer *t, const gm__transfer_copy *copy, const unsigned char *from,
                           uint64_t bytes, gm_error *err) {
  gm__transfer_codec *codec = copy->codec;
  gm__planes_writer *writer = &t->codecs->writer;
  gm_error why = {.status = GM_OK};
  gm_status status = GM_OK;
  if (!codec->waiting) {
    gm__planes_write_end(writer);
    status = gm__planes_write_begin(writer, copy->what.bytes, gm__transfer_host(copy, 0), codec->host_bytes, &why);
  }
  if (status == GM_OK) status = gm__planes_write(writer, from, bytes, &why);
  if (status != GM_OK) return flow_fail(status, "block's end", &why, err);
  codec->waiting += bytes;
  if (codec->waiting != copy->what.bytes) return GM_OK;
  if (writer->put != codec->host_bytes && !codec->out_host_bytes) {
    return codec_wrong(codec, writer->put, codec->host_bytes, "host", err);
  }
  if (codec->out_host_bytes) *codec->out_host_bytes = writer->put;
  return GM_OK;
}

/* How many bytes are a whole piece now. */
static uint64_t codec_whole(const gm__transfer_copy *copy) {
  gm__transfer_codec *codec = copy->codec;
  if (codec->waiting != copy->what.bytes) return 0;
  codec->waiting = 0;
  return copy->what.bytes;
}

/* --- a part --- */

gm_status gm__transfer_fill(const gm_transfer *t, const gm__transfer_copy *copy, uint64_t at, uint64_t bytes,
                            unsigned char *slot, gm_error *err) {
  if (!copy->codec) {
    memcpy(slot, gm__transfer_host(copy, at), (size_t)bytes);
    return GM_OK;
  }
  if (copy->codec->expands) return gm__transfer_expand_fill(copy, at, bytes, slot, err);
  if (copy->codec->flows) return flow_up(t, copy, at, bytes, slot, err);
  if (!copy->codec->roomy) return codec_up(copy, at, bytes, slot, err);
  unsigned char *room = t->codecs->room[GM__TRANSFER_UP]; /* of one copy after the other */
  const gm_status status = at ? GM_OK : codec_up(copy, 0, copy->what.bytes, room, err);
  if (!status) memcpy(slot, room + at, (size_t)bytes);
  return status;
}

gm_status gm__transfer_empty(const gm_transfer *t, const gm__transfer_copy *copy, uint64_t at, uint64_t bytes,
                             const unsigned char *slot, uint64_t *out_bytes, gm_error *err) {
  gm__transfer_codec *codec = copy->codec;
  gm_status status = GM_OK;
  *out_bytes = bytes;
  if (!codec) {
    memcpy(gm__transfer_host(copy, at), slot, (size_t)bytes);
  } else if (codec->flows) {
    status = flow_down(t, copy, slot, bytes, err);
    if (status == GM_OK) *out_bytes = codec_whole(copy);
  } else if (!codec->roomy) {
    status = codec_down(copy, at, bytes, slot, err);
  } else {
    memcpy(t->codecs->room[GM__TRANSFER_DOWN] + at, slot, (size_t)bytes);
    codec->waiting += bytes;
    *out_bytes = codec_whole(copy);
    if (*out_bytes) status = codec_down(copy, 0, copy->what.bytes, t->codecs->room[GM__TRANSFER_DOWN], err);
  }
  if (status) *out_bytes = 0;
  return status;
}
