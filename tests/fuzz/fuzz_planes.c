/* Any bytes as a piece of the codec "planes", as they are and with checksums that fit. They are refused, or they are
 * plain bytes that come back once more. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/checksum.h"
#include "fuzz/fuzz.h"
#include "gm/codec.h"

enum { ROOM = 4096, HEAD = 24, CHUNK_HEAD = 16, CHUNK = 256 << 10 };

static void encode_again(const gm_codec *codec, const unsigned char *plain, uint64_t bytes) {
  static unsigned char piece[ROOM + 1024], back[ROOM];
  uint64_t most = 0, encoded = 0, decoded = 0;
  const gm_status status = gm_codec_encode(codec, plain, bytes, piece, sizeof piece, &encoded, NULL);
  if (status == GM_ERR_NOT_SUPPORTED) return;
  fuzz_require(status == GM_OK);
  fuzz_require(gm_codec_most(codec, bytes, &most, NULL) == GM_OK && encoded <= most);
  fuzz_require(gm_codec_decode(codec, piece, encoded, back, sizeof back, &decoded, NULL) == GM_OK);
  fuzz_require(decoded == bytes && memcmp(back, plain, bytes) == 0);
}

static void decode(const unsigned char *piece, uint64_t bytes) {
  const gm_codec *codec = gm_codec_find("planes");
  unsigned char *plain = malloc(ROOM); /* so that a sanitizer sees a write behind it */
  uint64_t got = UINT64_MAX;
  gm_error err = {.status = GM_OK};
  fuzz_require(plain != NULL);
  memset(plain, 0, ROOM);
  const gm_status status = gm_codec_decode(codec, piece, bytes, plain, ROOM, &got, &err);
  fuzz_require((status == GM_OK) == (got <= ROOM));
  fuzz_require(status == GM_OK || (err.status == status && err.message[0]));
  if (status == GM_OK) encode_again(codec, plain, got);
  free(plain);
}

static uint64_t get(const unsigned char *at, int bytes) {
  uint64_t number = 0;
  for (int i = bytes; i-- > 0;) number = number << 8 | at[i];
  return number;
}

static void put(unsigned char *at, uint64_t number, int bytes) {
  for (int i = 0; i < bytes; i++) at[i] = (unsigned char)(number >> 8 * i);
}

/* Somebody hostile can do this, too. */
static void seal(unsigned char *piece, uint64_t bytes) {
  uint64_t place = 0;
  if (bytes >= HEAD) put(piece + 12, gm__checksum_kind_here(), 4);
  for (uint64_t at = HEAD; bytes >= CHUNK_HEAD && at <= bytes - CHUNK_HEAD; place += CHUNK) {
    unsigned char *chunk = piece + at;
    const uint64_t stored = get(chunk, 4);
    if (stored > bytes - at - CHUNK_HEAD) return;
    put(chunk + 8, gm__checksum(chunk + CHUNK_HEAD, stored, gm__checksum(chunk, 8, place)), 8);
    at += CHUNK_HEAD + stored;
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length) {
  decode(bytes, length);
  unsigned char *sealed = malloc(length ? length : 1);
  fuzz_require(sealed != NULL);
  if (length) memcpy(sealed, bytes, length);
  seal(sealed, length);
  decode(sealed, length);
  free(sealed);
  return 0;
}
