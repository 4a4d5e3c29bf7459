/* The file of a disk tier, open to be read: nothing in it is changed. */
#ifndef GM_TOOLS_GMEM_STORE_TIER_FILE_H
#define GM_TOOLS_GMEM_STORE_TIER_FILE_H

#include "gm/tier.h"

/* One key. The contents of `bytes` may be anything. */
typedef struct tier_key {
  void *bytes;
  size_t count;
  uint64_t value_bytes;
} tier_key;

/* Zeroed: nothing is open. */
typedef struct tier_file {
  gm_tier *tier;
  tier_key *keys; /* in the order of their bytes */
  size_t count, room;
  gm_tier_stats stats; /* as they were after opening */
} tier_file;

/* Opens the file and lists its keys. The caller closes it, also after a failure. */
gm_status tier_file_open(tier_file *file, gm_context *ctx, const char *path, gm_error *err);
gm_status tier_file_close(tier_file *file, gm_error *err);

/* Reads a whole value, which checks its checksums. `done` is raised by the bytes that were read. */
gm_status tier_file_check(tier_file *file, const tier_key *key, uint64_t *done, gm_error *err);

/* How the file keeps a value. Fails as gm_tier_value_open does. */
gm_status tier_file_describe(const tier_file *file, const tier_key *key, gm_tier_value_info *out);

/* The name of a codec. */
const char *tier_codec_name(gm_tier_codec codec);

/* The key for people and for JSON, to be freed: bytes other than printable ASCII, and the backslash, are "\x5c". NULL:
 * no memory. */
char *tier_key_text(const tier_key *key);

#endif
