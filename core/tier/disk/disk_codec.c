#include "core/tier/disk/disk_codec.h"

#include <stddef.h>

#include "core/base/alloc.h"
#include "core/base/optional.h"
#include "core/base/zstd.h"

/* zstd's own default is 3. A tier is written while somebody waits for memory, so it takes the fastest level. */
enum { CODEC_ZSTD_LEVEL = 1 };

/* The calls that gm makes, as in lz4.h. */
typedef struct codec_lz4 {
  int (*state_bytes)(void);
  int (*pack)(void *state, const char *from, char *to, int bytes, int capacity, int acceleration);
  int (*unpack)(const char *from, char *to, int packed, int capacity);
} codec_lz4;

#ifdef GM_HAVE_LZ4
static codec_lz4 codec_lz4_calls;
static void codec_lz4_load(void);
static const gm__symbol codec_lz4_symbols[] = {{"LZ4_sizeofState", offsetof(codec_lz4, state_bytes), true},
                                               {"LZ4_compress_fast_extState", offsetof(codec_lz4, pack), true},
                                               {"LZ4_decompress_safe", offsetof(codec_lz4, unpack), true}};
static gm__optional codec_lz4_library = GM__OPTIONAL("lz4", "liblz4.so.1", "GM_LZ4_LIBRARY", "install liblz4",
                                                     codec_lz4_symbols, &codec_lz4_calls, codec_lz4_load);

static void codec_lz4_load(void) { gm__optional_load(&codec_lz4_library); }

/* NULL: it is missing. */
static const codec_lz4 *codec_lz4_open(void) { return gm__optional_open(&codec_lz4_library, NULL); }
#else
static const codec_lz4 *codec_lz4_open(void) { return NULL; }
#endif

/* LZ4's own function has this state on the stack, which may be small. */
static uint32_t codec_pack_lz4(const void *from, uint32_t bytes, void *to) {
  const codec_lz4 *lz4 = codec_lz4_open();
  if (!lz4) return 0;
  const size_t size = (size_t)lz4->state_bytes();
  void *state = gm__alloc(NULL, size);
  const int packed = state ? lz4->pack(state, from, to, (int)bytes, (int)bytes - 1, 1) : 0;
  if (state) gm__release(NULL, state, size);
  return packed > 0 ? (uint32_t)packed : 0;
}

static bool codec_unpack_lz4(const void *from, uint32_t packed, void *to, uint32_t bytes) {
  const codec_lz4 *lz4 = codec_lz4_open();
  return lz4 && lz4->unpack(from, to, (int)packed, (int)bytes) == (int)bytes;
}

/* A context for each chunk, as zstd's own plain calls have it. */
#ifdef GM_HAVE_ZSTD
static const gm__zstd *codec_zstd(void) { return gm__zstd_open(NULL); }

static uint32_t codec_pack_zstd(const void *from, uint32_t bytes, void *to) {
  const gm__zstd *zstd = codec_zstd();
  gm__zstd_encoder *encoder = zstd ? zstd->encoder_new() : NULL;
  if (!encoder) return 0;
  zstd->encoder_set(encoder, GM__ZSTD_LEVEL, CODEC_ZSTD_LEVEL);
  const size_t packed = zstd->encode(encoder, to, bytes - 1, from, bytes);
  zstd->encoder_free(encoder);
  return zstd->is_error(packed) ? 0 : (uint32_t)packed;
}

static bool codec_unpack_zstd(const void *from, uint32_t packed, void *to, uint32_t bytes) {
  const gm__zstd *zstd = codec_zstd();
  gm__zstd_decoder *decoder = zstd ? zstd->decoder_new() : NULL;
  if (!decoder) return false;
  const size_t plain = zstd->decode(decoder, to, bytes, from, packed);
  zstd->decoder_free(decoder);
  return plain == bytes;
}
#else
static const gm__zstd *codec_zstd(void) { return NULL; }
#endif

bool gm__disk_codec_is_there(gm_tier_codec codec) {
  if (codec == GM_TIER_CODEC_LZ4) return codec_lz4_open() != NULL;
  if (codec == GM_TIER_CODEC_ZSTD) return codec_zstd() != NULL;
  return codec == GM_TIER_CODEC_NONE || codec == GM_TIER_CODEC_AUTO;
}

const char *gm__disk_codec_name(gm_tier_codec codec) {
  switch (codec) {
    case GM_TIER_CODEC_AUTO: return "auto";
    case GM_TIER_CODEC_NONE: return "none";
    case GM_TIER_CODEC_LZ4: return "lz4";
    case GM_TIER_CODEC_ZSTD: return "zstd";
    default: return "?";
  }
}

gm_tier_codec gm__disk_codec_choose(gm_tier_codec asked, const void *sample, uint32_t bytes, void *room) {
  if (asked != GM_TIER_CODEC_AUTO) return asked;
  const gm_tier_codec codec = gm__disk_codec_is_there(GM_TIER_CODEC_LZ4)    ? GM_TIER_CODEC_LZ4
                              : gm__disk_codec_is_there(GM_TIER_CODEC_ZSTD) ? GM_TIER_CODEC_ZSTD
                                                                            : GM_TIER_CODEC_NONE;
  const uint32_t packed = gm__disk_pack(codec, sample, bytes, room);
  return packed && packed <= bytes - bytes / 10 ? codec : GM_TIER_CODEC_NONE;
}

uint32_t gm__disk_pack(gm_tier_codec codec, const void *from, uint32_t bytes, void *to) {
  if (bytes < 2) return 0;
  if (codec == GM_TIER_CODEC_LZ4) return codec_pack_lz4(from, bytes, to);
#ifdef GM_HAVE_ZSTD
  if (codec == GM_TIER_CODEC_ZSTD) return codec_pack_zstd(from, bytes, to);
#endif
  (void)codec, (void)from, (void)to;
  return 0;
}

bool gm__disk_unpack(gm_tier_codec codec, const void *from, uint32_t packed, void *to, uint32_t bytes) {
  if (codec == GM_TIER_CODEC_LZ4) return codec_unpack_lz4(from, packed, to, bytes);
#ifdef GM_HAVE_ZSTD
  if (codec == GM_TIER_CODEC_ZSTD) return codec_unpack_zstd(from, packed, to, bytes);
#endif
  (void)codec, (void)from, (void)packed, (void)to, (void)bytes;
  return false;
}
