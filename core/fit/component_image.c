/* Compute buffers of what makes images. The engine is stable-diffusion.cpp. It planned its graphs of FLUX.1, SD 3,
 * SD 3.5 and of their decoders for images of 256 to 2048 pixels. Each of these 126 buffers is inside the intervals
 * below. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/saturate.h"
#include "core/fit/component_parts.h"

/* ---- denoisers ---- */

/* A token's activations are so many rows of the model's width, in f32. Tokens are those of image and text, and an image
 * has one for 16 by 16 pixels. Without flash attention every token has a score for each other one, in each head, beside
 * fewer rows. The rows are in halves. */
typedef struct image_rule {
  uint64_t text_least, text_most;   /* tokens of a prompt, as engines pad it */
  uint64_t flash_least, flash_most; /* measured: 13.6 to 16.5 rows of FLUX.1, 8.0 to 10.2 of SD 3 */
  uint64_t plain_least, plain_most; /* measured: 12.1 to 13.3, and 5.3 to 9.1 */
} image_rule;

static const image_rule image_flux = {256, 512, 26, 34, 23, 30}, image_sd3 = {154, 333, 15, 22, 10, 20};

static uint64_t image_over(uint64_t number, uint64_t by) { return (number + by - 1) / by; }

static uint64_t image_buffer(uint64_t tokens, uint64_t halves, uint64_t width, uint64_t more, uint64_t scored_heads) {
  const uint64_t rows = gm__add_sat(gm__mul_sat(halves, width) / 2, more);
  const uint64_t scores = gm__mul_sat(scored_heads, gm__mul_sat(tokens, tokens));
  return gm__mul_sat(4, gm__add_sat(gm__mul_sat(tokens, rows), scores));
}

/* `more`: numbers of each token that do not grow with the width. */
static gm_estimate_part image_denoiser(const image_rule *rule, uint64_t width, uint64_t heads, uint64_t more,
                                       const gm_component_settings *run) {
  const uint64_t image = image_over(run->width, 16) * image_over(run->height, 16);
  const bool plain = run->plain_attention;
  const uint64_t low = image_buffer(image + rule->text_least, plain ? rule->plain_least : rule->flash_least, width,
                                    more, plain ? heads : 0);
  const uint64_t high = image_buffer(image + rule->text_most, plain ? rule->plain_most : rule->flash_most, width, more,
                                     plain ? heads : 0);
  return gm__component_range(low, gm__mul_sat(high, run->images), "tokens of a prompt and order of operations vary");
}

static bool image_is_sane(uint64_t width, uint64_t head) {
  return head >= 8 && width >= head && width % head == 0 && width < 1 << 20;
}

/* FLUX.1. Its first projection takes 64 numbers for each token; with a control image 128, with a mask 384. The first
 * matrix of a single block makes queries, keys, values, and four widths of the feed-forward part. */
bool gm__component_flux(const gm__component_view *view, const gm_component_settings *run, gm_component *out) {
  uint64_t in[2], wide[2], head[1];
  const bool own = gm__component_shape(view, "img_in.weight", 2, in) &&
                   gm__component_shape(view, "single_blocks.0.linear1.weight", 2, wide) &&
                   gm__component_shape(view, "single_blocks.0.norm.key_norm.scale", 1, head) &&
                   gm__component_has(view, "vector_in.in_layer.weight");
  const bool diffusers = !own && gm__component_shape(view, "x_embedder.weight", 2, in) &&
                         gm__component_shape(view, "single_transformer_blocks.0.proj_mlp.weight", 2, wide) &&
                         gm__component_shape(view, "single_transformer_blocks.0.attn.norm_k.weight", 1, head) &&
                         gm__component_has(view, "time_text_embed.text_embedder.linear_1.weight");
  if (!own && !diffusers) return false;
  const uint64_t width = in[0];
  if (!image_is_sane(width, head[0]) || wide[0] != (own ? 7 : 4) * width || wide[1] != width) return false;
  if (in[1] != 64 && in[1] != 128 && in[1] != 384) return false;
  out->compute = image_denoiser(&image_flux, width, width / head[0], 2 * head[0], run);
  return true;
}

/* SD 3 and 3.5: heads of 64 numbers, and patches of 2 by 2 of 16 channels. */
bool gm__component_sd3(const gm__component_view *view, const gm_component_settings *run, gm_component *out) {
  uint64_t in[4], wide[2];
  const bool own = gm__component_shape(view, "x_embedder.proj.weight", 4, in) &&
                   gm__component_shape(view, "joint_blocks.0.x_block.mlp.fc1.weight", 2, wide);
  const bool diffusers = !own && gm__component_shape(view, "pos_embed.proj.weight", 4, in) &&
                         gm__component_shape(view, "transformer_blocks.0.ff.net.0.proj.weight", 2, wide) &&
                         gm__component_has(view, "transformer_blocks.0.attn.add_q_proj.weight");
  if (!own && !diffusers) return false;
  if (!image_is_sane(in[0], 64) || in[1] != 16 || in[2] != 2 || in[3] != 2) return false;
  if (wide[0] != 4 * in[0] || wide[1] != in[0]) return false;
  out->compute = image_denoiser(&image_sd3, in[0], in[0] / 64, 0, run);
  return true;
}

/* ---- decoders of images ---- */

enum { VAE_LEVELS = 8, VAE_SLACK = 2 << 20 };

/* A decoder works at as many sizes as it has levels, from the latent image up to the whole one at level 0. */
typedef struct vae_plan {
  const gm_component_settings *run;
  uint32_t levels;
  uint64_t low, high;
  uint64_t channels; /* at the latent size, where each pixel attends to all */
} vae_plan;

/* "up.2." and "up_blocks.1." behind "decoder.": the block's number. */
static bool vae_block(const char *name, uint32_t *out, bool *out_rises) {
  static const char *const heads[] = {"up.", "up_blocks."};
  for (int i = 0; i < 2; i++) {
    const size_t begun = strlen(heads[i]);
    if (strncmp(name, heads[i], begun) != 0) continue;
    char *end = NULL;
    const unsigned long number = strtoul(name + begun, &end, 10);
    *out = (uint32_t)(number < VAE_LEVELS ? number : VAE_LEVELS);
    *out_rises = i == 1; /* its first block is the one of the latent size */
    return end != name + begun && *end == '.';
  }
  return false;
}

/* The level at which a tensor's operation works, or `levels` where it is not at one. */
static uint32_t vae_level(const char *name, uint32_t levels) {
  uint32_t block = 0;
  bool rises = false;
  if (strncmp(name, "conv_out.", 9) == 0) return 0;
  if (strncmp(name, "conv_in.", 8) == 0 || strncmp(name, "mid", 3) == 0) return levels - 1;
  if (!vae_block(name, &block, &rises) || block >= levels) return levels;
  const uint32_t level = rises ? levels - 1 - block : block;
  return strstr(name, ".upsample") && level ? level - 1 : level;
}

/* Pixels at a level. The latent image is rounded up. */
static uint64_t vae_pixels(const vae_plan *plan, uint32_t level) {
  const uint64_t least = (uint64_t)1 << (plan->levels - 1);
  return (image_over(plan->run->width, least) << (plan->levels - 1 - level)) *
         (image_over(plan->run->height, least) << (plan->levels - 1 - level));
}

/* A convolution of 3 by 3 takes 9 copies of its input in f16, beside the input in f32 and what passes it by. */
static void vae_convolution(vae_plan *plan, const gm_tensor_info *tensor, uint32_t level) {
  const uint64_t *shape = tensor->shape;
  if (level >= plan->levels || tensor->rank != 4 || shape[2] != 3 || shape[3] != 3) return;
  const uint64_t inputs = gm__mul_sat(vae_pixels(plan, level), shape[1]);
  plan->low = gm__max(plan->low, gm__mul_sat(inputs, 4 + 2 * 9));
  plan->high = gm__max(plan->high, gm__mul_sat(inputs, 8 + 2 * 9));
  if (level + 1 == plan->levels && shape[0] == shape[1]) plan->channels = gm__max(plan->channels, shape[0]);
}

/* Visit the tensors of the decoder. Without levels they are counted, else they are planned. */
static void vae_visit(const gm__component_view *view, vae_plan *plan, bool counts) {
  gm_tensor_info tensor = {.struct_size = sizeof tensor};
  const size_t prefix = strlen(view->prefix);
  for (uint64_t i = 0; i < gm_model_tensor_count(view->model); i++) {
    uint32_t block = 0;
    bool rises = false;
    if (gm_model_tensor(view->model, i, &tensor, NULL) != GM_OK) continue;
    if (strncmp(tensor.name, view->prefix, prefix) != 0) continue;
    if (strncmp(tensor.name + prefix, "decoder.", 8) != 0) continue;
    const char *name = tensor.name + prefix + 8;
    if (!counts) {
      vae_convolution(plan, &tensor, vae_level(name, plan->levels));
    } else if (vae_block(name, &block, &rises)) {
      plan->levels = (uint32_t)gm__max(plan->levels, block + 1);
    }
  }
}

/* The scores of the latent pixels count at most, where an engine's flash attention has no heads so wide. */
static void vae_attend(vae_plan *plan) {
  const uint64_t pixels = vae_pixels(plan, plan->levels - 1), row = gm__mul_sat(4, plan->channels);
  const uint64_t scores = gm__mul_sat(4, gm__mul_sat(pixels, pixels));
  const uint64_t low = gm__add_sat(scores, gm__mul_sat(pixels, gm__mul_sat(4, row)));
  const uint64_t high = gm__add_sat(scores, gm__mul_sat(pixels, gm__mul_sat(8, row)));
  if (plan->run->plain_attention) plan->low = gm__max(plan->low, low);
  plan->high = gm__max(plan->high, high);
}

/* The decoder of SD, SDXL, SD 3 and FLUX.1. It takes 6,656 bytes for each pixel with 256 channels at the whole size.
 * Direct convolutions and tiles, which engines offer, take less. */
bool gm__component_vae(const gm__component_view *view, const gm_component_settings *run, gm_component *out) {
  uint64_t first[4];
  vae_plan plan = {.run = run};
  if (!gm__component_shape(view, "decoder.up.0.block.0.conv1.weight", 4, first) &&
      !gm__component_shape(view, "decoder.up_blocks.0.resnets.0.conv1.weight", 4, first)) {
    return false;
  }
  vae_visit(view, &plan, true);
  if (!plan.levels || plan.levels > VAE_LEVELS) return false;
  vae_visit(view, &plan, false);
  vae_attend(&plan);
  if (!plan.low) return false;
  plan.high = gm__add_sat(gm__mul_sat(plan.high, run->images), gm__add_sat(plan.high / 20, VAE_SLACK));
  out->compute = gm__component_range(plan.low, plan.high, "what passes convolutions by, and attention, vary");
  return true;
}
