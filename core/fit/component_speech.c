/* Whisper, as whisper.cpp runs it: 30 seconds of sound are 1500 positions of the encoder, and the decoder has 448. Its
 * compute buffers of five sizes, tiny to large, were measured with and without flash attention. They are the sums below
 * to the last 10 KB. Other versions order their operations otherwise, so 10 % off on either side may be right. */
#include <stdio.h>

#include "core/base/saturate.h"
#include "core/fit/component_parts.h"

enum { SPEECH_HEAD = 64, SPEECH_CELLS = 256, SPEECH_MOST = 1 << 20, SPEECH_BEAMS = 5 };

typedef struct speech_dims {
  uint64_t width, mels, sounds, tokens, vocab, layers; /* layers of the decoder */
} speech_dims;

/* Names of Hugging Face, with and without its outer prefix, and of OpenAI. A layer's number stands between two parts.
 */
static const struct {
  const char *convolution, *sounds, *tokens, *vocab, *layer, *layer_end;
} speech_names[] = {
    {"model.encoder.conv1.weight", "model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight",
     "model.decoder.embed_tokens.weight", "model.decoder.layers.", ".fc1.weight"},
    {"encoder.conv1.weight", "encoder.embed_positions.weight", "decoder.embed_positions.weight",
     "decoder.embed_tokens.weight", "decoder.layers.", ".fc1.weight"},
    {"encoder.conv1.weight", "encoder.positional_embedding", "decoder.positional_embedding",
     "decoder.token_embedding.weight", "decoder.blocks.", ".mlp.0.weight"}};

static uint64_t speech_layers(const gm__component_view *view, size_t naming) {
  char name[96];
  uint64_t layers = 0;
  for (; layers < GM_MODEL_LAYERS_MAX; layers++) {
    snprintf(name, sizeof name, "%s%llu%s", speech_names[naming].layer, (unsigned long long)layers,
             speech_names[naming].layer_end);
    if (!gm__component_has(view, name)) break;
  }
  return layers;
}

static bool speech_is_sane(const speech_dims *dims) {
  const uint64_t numbers[] = {dims->width, dims->mels, dims->sounds, dims->tokens, dims->vocab, dims->layers};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    if (!numbers[i] || numbers[i] >= SPEECH_MOST) return false;
  }
  return dims->width % SPEECH_HEAD == 0;
}

static bool speech_read(const gm__component_view *view, size_t naming, speech_dims *out) {
  uint64_t convolution[3], sounds[2], tokens[2], vocab[2];
  if (!gm__component_shape(view, speech_names[naming].convolution, 3, convolution) ||
      !gm__component_shape(view, speech_names[naming].sounds, 2, sounds) ||
      !gm__component_shape(view, speech_names[naming].tokens, 2, tokens) ||
      !gm__component_shape(view, speech_names[naming].vocab, 2, vocab)) {
    return false;
  }
  *out = (speech_dims){.width = sounds[1],
                       .mels = convolution[1],
                       .sounds = sounds[0],
                       .tokens = tokens[0],
                       .vocab = vocab[0],
                       .layers = speech_layers(view, naming)};
  return convolution[0] == out->width && tokens[1] == out->width && vocab[1] == out->width && speech_is_sane(out);
}

/* Keys and values in f16, of the decoder's layers for tokens and for sounds, and once as the encoder's own. Several
 * beams have room for two more. */
static uint64_t speech_cache(const speech_dims *dims, uint64_t beams) {
  const uint64_t tokens = gm__round_up(dims->tokens, SPEECH_CELLS), sounds = gm__round_up(dims->sounds, SPEECH_CELLS);
  const uint64_t own = gm__mul_sat(tokens, beams > 1 ? beams + 2 : 1);
  const uint64_t cells = gm__add_sat(gm__mul_sat(dims->layers, gm__add_sat(own, sounds)), sounds);
  return gm__mul_sat(4 * dims->width, cells);
}

/* The engine has four buffers beside each other, in f32. One is for two convolutions over twice the positions, with
 * their input and its copies. The encoder has seven rows, or four and the scores of all heads. One row is for the
 * positions that the decoder looks at. The decoder has the logits of a whole text, and two rows. */
static uint64_t speech_compute(const speech_dims *dims, bool plain) {
  const uint64_t width = dims->width, heads = width / SPEECH_HEAD;
  const uint64_t row = gm__mul_sat(4 * dims->sounds, width);
  const uint64_t scores = gm__mul_sat(4 * heads, dims->sounds * dims->sounds);
  const uint64_t convolutions = gm__add_sat(4 * row, gm__mul_sat(2 * dims->sounds, 10 * dims->mels));
  const uint64_t plain_encoder = gm__add_sat(scores, 4 * row);
  const uint64_t encoder = plain ? gm__max(plain_encoder, 7 * row) : 7 * row;
  const uint64_t decoder = gm__mul_sat(4 * dims->tokens, dims->vocab + 2 * width);
  return gm__add_sat(gm__add_sat(convolutions, encoder), gm__add_sat(row, decoder));
}

bool gm__component_whisper(const gm__component_view *view, const gm_component_settings *run, gm_component *out) {
  speech_dims dims = {.width = 0};
  size_t naming = 0;
  const size_t namings = sizeof speech_names / sizeof *speech_names;
  while (naming < namings && !speech_read(view, naming, &dims)) naming++;
  if (naming == namings) return false;
  const uint64_t bytes = speech_compute(&dims, run->plain_attention);
  const uint64_t least = speech_cache(&dims, run->beams ? run->beams : 1);
  const uint64_t most = speech_cache(&dims, run->beams ? run->beams : SPEECH_BEAMS);
  out->cache = gm__component_range(least, most, "beams: 1 at first, and up to 5 where a text is tried again");
  out->cache.range.bytes = most; /* as the engine's program asks for */
  out->compute = gm__component_range(bytes / 10 * 9, gm__add_sat(bytes, bytes / 10),
                                     "versions of the engine order operations otherwise");
  out->compute.range.bytes = bytes;
  return true;
}
