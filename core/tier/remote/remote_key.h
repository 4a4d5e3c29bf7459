/* The names of a tier's keys on the server: PREFIX:v:KEY for a manifest, PREFIX:c:VERSION:INDEX for a chunk. So the
 * chunks of a value are spread over the slots of a cluster. Pure. */
#ifndef GM_CORE_TIER_REMOTE_KEY_H
#define GM_CORE_TIER_REMOTE_KEY_H

#include "core/tier/remote/remote_manifest.h"
#include "core/tier/remote/remote_where.h"
#include "gm/tier.h"

typedef struct gm__remote_key {
  size_t bytes;
  char text[GM__REMOTE_PREFIX + 4 + GM_TIER_KEY_MOST];
} gm__remote_key;

typedef struct gm__remote_chunk_key {
  size_t bytes;
  char text[GM__REMOTE_PREFIX + 4 + 2 * GM__MANIFEST_VERSION + 16];
} gm__remote_chunk_key;

void gm__remote_key_make(gm__remote_key *out, const char *prefix, const void *key, size_t key_bytes);
void gm__remote_chunk_key_make(gm__remote_chunk_key *out, const char *prefix, const unsigned char *version,
                               uint32_t index);

#endif
