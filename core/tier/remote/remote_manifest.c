#include "core/tier/remote/remote_manifest.h"

#include <string.h>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/little.h"

/* Invariant: numbers of a manifest that gm__manifest_peek took fit each other. */

enum { AT_KIND = 8, AT_CHUNKS = 12, AT_VALUE = 16, AT_VERSION = 24, AT_CHECKSUM = 40 };

static const char manifest_magic[8] = {'g', 'm', 't', 'i', 'e', 'r', '1', '\n'};

size_t gm__manifest_bytes(const gm__manifest *manifest) {
  const size_t rest = manifest->chunks ? (size_t)manifest->chunks * GM__MANIFEST_ENTRY : (size_t)manifest->value_bytes;
  return GM__MANIFEST_HEAD + rest;
}

uint32_t gm__manifest_chunks_of(uint64_t value_bytes) {
  if (value_bytes <= GM__REMOTE_INLINE) return 0;
  return (uint32_t)((value_bytes + GM__REMOTE_CHUNK - 1) / GM__REMOTE_CHUNK);
}

uint32_t gm__manifest_chunk_bytes(const gm__manifest *manifest, uint32_t index) {
  const uint64_t left = manifest->value_bytes - (uint64_t)index * GM__REMOTE_CHUNK;
  return left < GM__REMOTE_CHUNK ? (uint32_t)left : GM__REMOTE_CHUNK;
}

/* The checksum of all but itself, and of the key. */
static uint64_t manifest_sum(const unsigned char *bytes, size_t count, const void *key, size_t key_bytes) {
  const uint64_t seed = gm__checksum(bytes, AT_CHECKSUM, gm__checksum(key, key_bytes, 0));
  return gm__checksum(bytes + GM__MANIFEST_HEAD, count - GM__MANIFEST_HEAD, seed);
}

void gm__manifest_finish(unsigned char *out, const gm__manifest *manifest, const void *key, size_t key_bytes) {
  memcpy(out, manifest_magic, sizeof manifest_magic);
  gm__le_put(out + AT_KIND, gm__checksum_kind_here(), 4);
  gm__le_put(out + AT_CHUNKS, manifest->chunks, 4);
  gm__le_put(out + AT_VALUE, manifest->value_bytes, 8);
  memcpy(out + AT_VERSION, manifest->version, GM__MANIFEST_VERSION);
  gm__le_put(out + AT_CHECKSUM, manifest_sum(out, gm__manifest_bytes(manifest), key, key_bytes), 8);
}

bool gm__manifest_peek(const void *head, size_t bytes, gm__manifest *out) {
  const unsigned char *in = head;
  if (bytes < GM__MANIFEST_HEAD || memcmp(in, manifest_magic, sizeof manifest_magic) != 0) return false;
  out->value_bytes = gm__le_get(in + AT_VALUE, 8);
  out->chunks = (uint32_t)gm__le_get(in + AT_CHUNKS, 4);
  memcpy(out->version, in + AT_VERSION, GM__MANIFEST_VERSION);
  return out->value_bytes <= (uint64_t)GM__REMOTE_CHUNKS_MOST * GM__REMOTE_CHUNK &&
         out->chunks == gm__manifest_chunks_of(out->value_bytes);
}

gm_status gm__manifest_read(const void *bytes, size_t count, const void *key, size_t key_bytes, gm__manifest *out,
                            const char *op, gm_error *err) {
  const unsigned char *in = bytes;
  if (count < GM__MANIFEST_HEAD || memcmp(in, manifest_magic, sizeof manifest_magic) != 0) {
    return gm__fail(err, GM_ERR_FORMAT, op, "what the server has under that key is no value of gm");
  }
  const uint64_t kind = gm__le_get(in + AT_KIND, 4);
  if (kind != (uint64_t)gm__checksum_kind_here() && (kind == GM__CHECKSUM_XXH3 || kind == GM__CHECKSUM_MIX)) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "a gm that was built %s xxHash wrote the value",
                    kind == GM__CHECKSUM_XXH3 ? "with" : "without");
  }
  if (gm__manifest_peek(bytes, count, out) && count == gm__manifest_bytes(out) &&
      gm__le_get(in + AT_CHECKSUM, 8) == manifest_sum(in, count, key, key_bytes)) {
    return GM_OK;
  }
  return gm__fail(err, GM_ERR_DAMAGED, op, "the value on the server is damaged");
}

void gm__manifest_set_checksum(unsigned char *manifest, uint32_t index, uint64_t checksum) {
  gm__le_put(manifest + GM__MANIFEST_HEAD + (size_t)index * GM__MANIFEST_ENTRY, checksum, 8);
}

uint64_t gm__manifest_checksum(const void *manifest, uint32_t index) {
  return gm__le_get((const unsigned char *)manifest + GM__MANIFEST_HEAD + (size_t)index * GM__MANIFEST_ENTRY, 8);
}

uint64_t gm__manifest_chunk_checksum(uint32_t index, const void *bytes, size_t count) {
  return gm__checksum(bytes, count, (uint64_t)index + 1);
}
