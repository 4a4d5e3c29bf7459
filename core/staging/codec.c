#include "core/staging/codec.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/staging/convert.h"
#include "core/staging/planes.h"

/* --- gm's own: floats of 16 bits --- */

static uint64_t codec_half(void *user, uint64_t bytes) {
  (void)user;
  return bytes / 2;
}

static gm_status codec_no_room(const char *op, uint64_t bytes, uint64_t capacity, gm_error *err) {
  return gm__fail(err, GM_ERR_OVER_LIMIT, op, "the result has %" PRIu64 " bytes, there is room for %" PRIu64, bytes,
                  capacity);
}

static gm_status codec_narrow(gm__convert_run run, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                              uint64_t *out_bytes, gm_error *err) {
  if (bytes / 2 > capacity) return codec_no_room("gm_codec_encode", bytes / 2, capacity, err);
  run(to, from, (size_t)(bytes / 4));
  *out_bytes = bytes / 2;
  return GM_OK;
}

static gm_status codec_widen(gm__convert_run run, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                             uint64_t *out_bytes, gm_error *err) {
  static const char op[] = "gm_codec_decode";
  if (bytes % 2) return gm__fail(err, GM_ERR_FORMAT, op, "%" PRIu64 " bytes are no numbers of 2 bytes", bytes);
  if (bytes > capacity / 2) return codec_no_room(op, bytes > UINT64_MAX / 2 ? UINT64_MAX : bytes * 2, capacity, err);
  run(to, from, (size_t)(bytes / 2));
  *out_bytes = bytes * 2;
  return GM_OK;
}

static gm_status codec_encode_bf16(void *user, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                                   uint64_t *out_bytes, gm_error *err) {
  (void)user;
  return codec_narrow(gm__convert_way_here()->bf16_from_fp32, from, bytes, to, capacity, out_bytes, err);
}

static gm_status codec_decode_bf16(void *user, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                                   uint64_t *out_bytes, gm_error *err) {
  (void)user;
  return codec_widen(gm__convert_way_here()->fp32_from_bf16, from, bytes, to, capacity, out_bytes, err);
}

static gm_status codec_encode_fp16(void *user, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                                   uint64_t *out_bytes, gm_error *err) {
  (void)user;
  return codec_narrow(gm__convert_way_here()->fp16_from_fp32, from, bytes, to, capacity, out_bytes, err);
}

static gm_status codec_decode_fp16(void *user, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                                   uint64_t *out_bytes, gm_error *err) {
  (void)user;
  return codec_widen(gm__convert_way_here()->fp32_from_fp16, from, bytes, to, capacity, out_bytes, err);
}

static const gm_codec codec_table[] = {
    {sizeof(gm_codec), 4, "bf16", NULL, codec_half, codec_encode_bf16, codec_decode_bf16, 4},
    {sizeof(gm_codec), 4, "fp16", NULL, codec_half, codec_encode_fp16, codec_decode_fp16, 4},
    {sizeof(gm_codec), 1, "planes", NULL, gm__planes_most, gm__planes_encode, gm__planes_decode, 0},
};

const gm_codec *gm_codec_find(const char *name) {
  for (size_t i = 0; name && i < sizeof codec_table / sizeof *codec_table; i++) {
    if (strcmp(codec_table[i].name, name) == 0) return &codec_table[i];
  }
  return NULL;
}

/* --- any codec --- */

static gm_status codec_take(const gm_codec *codec, const char *op, gm_codec *own, gm_error *err) {
  const gm_status status = gm__sized_in(own, sizeof *own, codec, op, "codec", err);
  if (status) return status;
  if (!own->name) return gm__bad_argument(err, op, "the codec has no `name`");
  if (own->most && own->encode && own->decode) return GM_OK;
  return gm__bad_argument(err, op, "the codec `%.64s` has no `%s`", own->name,
                          !own->most     ? "most"
                          : !own->encode ? "encode"
                                         : "decode");
}

static gm_status codec_check_plain(const gm_codec *codec, const char *op, uint64_t bytes, gm_error *err) {
  if (codec->unit < 2 || bytes % codec->unit == 0) return GM_OK;
  return gm__bad_argument(err, op, "the codec `%.64s` takes multiples of %u bytes, not %" PRIu64, codec->name,
                          codec->unit, bytes);
}

gm_status gm_codec_most(const gm_codec *codec, uint64_t bytes, uint64_t *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_codec_most";
  gm_codec own;
  gm_status status = codec_take(codec, op, &own, err);
  if (status == GM_OK && !out) status = gm__bad_argument(err, op, "`out` is NULL");
  if (status == GM_OK) status = codec_check_plain(&own, op, bytes, err);
  if (status) return status;
  const uint64_t most = own.most(own.user, bytes);
  if (most == UINT64_MAX) {
    return gm__fail(err, GM_ERR_OVER_LIMIT, op, "the codec `%.64s` does not encode %" PRIu64 " bytes", own.name, bytes);
  }
  *out = most;
  return GM_OK;
}

/* Each of the two ends within the address space, and apart from one another. */
static gm_status codec_check_ranges(const char *op, const void *from, uint64_t bytes, const void *to, uint64_t capacity,
                                    gm_error *err) {
  const uintptr_t a = (uintptr_t)from, b = (uintptr_t)to;
  if ((!from && bytes) || (!to && capacity)) return gm__bad_argument(err, op, "`%s` is NULL", from ? "to" : "from");
  if (bytes > UINTPTR_MAX - a || capacity > UINTPTR_MAX - b) {
    return gm__bad_argument(err, op, "`%s` is no range of memory", bytes > UINTPTR_MAX - a ? "bytes" : "capacity");
  }
  if (bytes && capacity && a < b + capacity && b < a + bytes) {
    return gm__bad_argument(err, op, "the ranges of `from` and `to` overlap");
  }
  return GM_OK;
}

/* A program's hook may fail without a word, and may say that it wrote more than there is room for. */
static gm_status codec_answer(const gm_codec *codec, const char *op, gm_status status, uint64_t wrote,
                              uint64_t capacity, gm_error *why, gm_error *err) {
  if (status && why->status != status) {
    return gm__fail(err, status, op, "the codec `%.64s` answered %s", codec->name, gm_status_name(status));
  }
  if (status && err) *err = *why;
  if (status || wrote <= capacity) return status;
  return gm__fail(err, GM_ERR_OVER_LIMIT, op,
                  "the codec `%.64s` says that it wrote %" PRIu64 " bytes, there is room for %" PRIu64, codec->name,
                  wrote, capacity);
}

static gm_status codec_run(const gm_codec *codec, const char *op, gm_codec_run run, const void *from, uint64_t bytes,
                           void *to, uint64_t capacity, uint64_t *out_bytes, gm_error *err) {
  gm_status status = codec_check_ranges(op, from, bytes, to, capacity, err);
  if (status) return status;
  if (!out_bytes) return gm__bad_argument(err, op, "`out_bytes` is NULL");
  gm_error why = {.status = GM_OK};
  uint64_t wrote = 0;
  status = run(codec->user, from, bytes, to, capacity, &wrote, &why);
  status = codec_answer(codec, op, status, wrote, capacity, &why, err);
  if (status == GM_OK) *out_bytes = wrote;
  return status;
}

gm_status gm_codec_encode(const gm_codec *codec, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                          uint64_t *out_bytes, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_codec_encode";
  gm_codec own;
  gm_status status = codec_take(codec, op, &own, err);
  if (status == GM_OK) status = codec_check_plain(&own, op, bytes, err);
  return status ? status : codec_run(&own, op, own.encode, from, bytes, to, capacity, out_bytes, err);
}

gm_status gm_codec_decode(const gm_codec *codec, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                          uint64_t *out_bytes, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_codec_decode";
  gm_codec own;
  const gm_status status = codec_take(codec, op, &own, err);
  return status ? status : codec_run(&own, op, own.decode, from, bytes, to, capacity, out_bytes, err);
}

/* --- a codec as a stage --- */

/* A codec that only decodes needs all of its hooks, too. */
gm_status gm__codec_check(const gm_codec *codec, gm_codec_way way, const char *name, const char *op, gm_error *err) {
  uint64_t most;
  gm_error why = {.status = GM_OK};
  if (way != GM_CODEC_ENCODE && way != GM_CODEC_DECODE) {
    return gm__bad_argument(err, op, "the way of `%s` is %d", name, (int)way);
  }
  const gm_status status = gm_codec_most(codec, 0, &most, &why);
  return status == GM_OK ? GM_OK : gm__fail(err, status, op, "`%s`: %s", name, why.message);
}

gm_status gm__codec_chunk(const gm_codec *codec, uint64_t *out_plain, uint64_t *out_encoded, gm_error *err) {
  gm_codec own;
  gm_status status = codec_take(codec, "gm_codec", &own, err);
  *out_plain = *out_encoded = 0;
  if (status || !own.chunk) return status;
  status = gm_codec_most(codec, own.chunk, out_encoded, err);
  if (status) return status;
  *out_plain = own.chunk;
  return *out_encoded ? GM_OK : gm__bad_argument(err, "gm_codec", "a chunk of the codec `%.64s` is empty", own.name);
}

gm_status gm__codec_turn_run(const gm__codec_turn *turn, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                             uint64_t *out_bytes, double *seconds, gm_error *err) {
  gm_error why = {.status = GM_OK};
  const uint64_t since = seconds ? gm__now_ns() : 0;
  const gm_status status = turn->way == GM_CODEC_ENCODE
                               ? gm_codec_encode(turn->codec, from, bytes, to, capacity, out_bytes, &why)
                               : gm_codec_decode(turn->codec, from, bytes, to, capacity, out_bytes, &why);
  if (seconds) *seconds += (double)(gm__now_ns() - since) / 1e9;
  if (status == GM_OK) return GM_OK;
  return gm__fail_native(err, status, why.native_code, turn->op, "`%.64s`, from byte %" PRIu64 " of the %s on: %s",
                         turn->codec->name, turn->before, turn->of, why.message);
}
