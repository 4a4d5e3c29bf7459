/* A codec as a stage: what pipelines and transfers ask of one, and one turn of it with a message that says where. Pure
 * but for the codec, and thread-safe. */
#ifndef GM_CORE_STAGING_CODEC_H
#define GM_CORE_STAGING_CODEC_H

#include "gm/codec.h"

/* Checks the codec and its direction, as gm_codec_most does. `name` is that of the caller's parameter. */
gm_status gm__codec_check(const gm_codec *codec, gm_codec_way way, const char *name, const char *op, gm_error *err);

/* The plain and the encoded bytes of a chunk; 0 and 0: a piece is whole. REQUIRES: gm__codec_check. Errors are those of
 * gm_codec_most for a chunk. */
gm_status gm__codec_chunk(const gm_codec *codec, uint64_t *out_plain, uint64_t *out_encoded, gm_error *err);

typedef struct gm__codec_turn {
  const gm_codec *codec;
  gm_codec_way way;
  const char *op;
  const char *of; /* what the turn's input is counted in, and how many bytes of it came before */
  uint64_t before;
} gm__codec_turn;

/* Encodes or decodes, and adds the time to *seconds, if that is not NULL. Errors are those of the codec; the message
 * names it and the byte. */
gm_status gm__codec_turn_run(const gm__codec_turn *turn, const void *from, uint64_t bytes, void *to, uint64_t capacity,
                             uint64_t *out_bytes, double *seconds, gm_error *err);

#endif
