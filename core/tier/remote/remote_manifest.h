/* The bytes under a value's key on a server: a manifest. A small value lies in it. A larger one lies in chunks, under
 * keys of their own, and the manifest has their checksums. Pure: no memory of its own. The bytes from a server are
 * hostile.
 *
 * Numbers are little-endian. A head of GM__MANIFEST_HEAD bytes stands first:
 *
 *   at  0   8   "gmtier1\n"
 *   at  8   4   the kind of checksum
 *   at 12   4   the number of chunks
 *   at 16   8   the value's bytes
 *   at 24  16   the version
 *   at 40   8   the checksum of all the rest, and of the key
 *
 * Then come 8 bytes for each chunk, its checksum; or, without chunks, the value itself. */
#ifndef GM_CORE_TIER_REMOTE_MANIFEST_H
#define GM_CORE_TIER_REMOTE_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gm/status.h"

enum {
  GM__MANIFEST_HEAD = 48,
  GM__MANIFEST_ENTRY = 8,
  GM__MANIFEST_VERSION = 16,
  GM__REMOTE_CHUNK = 1 << 20,       /* bytes of a value in one chunk; the last one may have less */
  GM__REMOTE_INLINE = 1 << 15,      /* bytes of the largest value that lies in its manifest */
  GM__REMOTE_CHUNKS_MOST = 1 << 20, /* so the largest value has 2^40 bytes */
};

typedef struct gm__manifest {
  uint64_t value_bytes;
  uint32_t chunks; /* 0: the value lies in the manifest */
  unsigned char version[GM__MANIFEST_VERSION];
} gm__manifest;

/* The bytes of the manifest. */
size_t gm__manifest_bytes(const gm__manifest *manifest);

/* 0 for a value that lies in its manifest. */
uint32_t gm__manifest_chunks_of(uint64_t value_bytes);

/* The bytes of chunk `index`. */
uint32_t gm__manifest_chunk_bytes(const gm__manifest *manifest, uint32_t index);

/* Fills the head of a manifest whose rest is there already. */
void gm__manifest_finish(unsigned char *out, const gm__manifest *manifest, const void *key, size_t key_bytes);

/* Reads a head alone, unchecked but for the numbers in it. False: it is none. */
bool gm__manifest_peek(const void *head, size_t bytes, gm__manifest *out);

/* Reads a whole manifest of the key. FORMAT: something else stands there. NOT_SUPPORTED: a gm with another kind of
 * checksum wrote it. DAMAGED. */
gm_status gm__manifest_read(const void *bytes, size_t count, const void *key, size_t key_bytes, gm__manifest *out,
                            const char *op, gm_error *err);

void gm__manifest_set_checksum(unsigned char *manifest, uint32_t index, uint64_t checksum);
uint64_t gm__manifest_checksum(const void *manifest, uint32_t index);

/* The checksum of a chunk. Equal bytes in another chunk have another one. */
uint64_t gm__manifest_chunk_checksum(uint32_t index, const void *bytes, size_t count);

#endif
