/* Packing of a value's chunks. lz4 and zstd are opened at run time, unless gm was built without them. Thread-safe. */
#ifndef GM_CORE_TIER_DISK_CODEC_H
#define GM_CORE_TIER_DISK_CODEC_H

#include <stdbool.h>
#include <stdint.h>

#include "gm/tier.h"

bool gm__disk_codec_is_there(gm_tier_codec codec);
const char *gm__disk_codec_name(gm_tier_codec codec);

/* The codec for a value that begins with `bytes` at `sample`. AUTO becomes the fastest codec that is there, if it makes
 * the sample smaller by a tenth, else NONE. `room` has `bytes` bytes, and is overwritten. */
gm_tier_codec gm__disk_codec_choose(gm_tier_codec asked, const void *sample, uint32_t bytes, void *room);

/* Packs `bytes` at `from` into `to`, which has as many. Returns the bytes of the result; 0: it is not smaller. */
uint32_t gm__disk_pack(gm_tier_codec codec, const void *from, uint32_t bytes, void *to);

/* Unpacks into exactly `bytes` at `to`. False: that is not what was packed. The input may be anything. */
bool gm__disk_unpack(gm_tier_codec codec, const void *from, uint32_t packed, void *to, uint32_t bytes);

#endif
