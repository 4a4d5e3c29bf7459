/* Compute buffers of what makes images. The engine is stable-diffusion.cpp. It planned its graphs of FLUX.1, SD 3,
 * SD 3.5, FLUX.2, Chroma, Qwen-Image and of decoders for images of 256 to 2048 pixels. Each of these 216 buffers is
 * inside the intervals below. */
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
  bool has_mask;                    /* flash attention may have one of each token for each other one */
} image_rule;

static const image_rule image_flux = {256, 512, 26, 34, 23, 30, false};
static const image_rule image_sd3 = {154, 333, 15, 22, 10, 20, false};
/* Measured, with and without flash attention: 18.1 to 19.7 and 14.1 to 15.4 rows of FLUX.2, 14.7 to 18.4 and 12.1 to
 * 14.8 of Chroma. Both fill prompts up to 512 tokens. Qwen-Image does not: from 1024 pixels on it was 9.4 to 12.6, and
 * 7.0 to 8.0. */
static const image_rule image_flux2 = {512, 512, 34, 42, 26, 34, false};
static const image_rule image_chroma = {512, 512, 26, 36, 22, 32, true};
static const image_rule image_qwen = {8, 1024, 20, 26, 12, 19, false};

enum { IMAGE_MASK_HALVES = 8 }; /* which are gone where the mask is there */

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
  const uint64_t most = image + rule->text_most;
  uint64_t high = image_buffer(most, plain ? rule->plain_most : rule->flash_most, width, more, plain ? heads : 0);
  if (rule->has_mask && !plain) {
    high = gm__max(high, image_buffer(most, rule->flash_most - IMAGE_MASK_HALVES, width, 0, 1));
  }
  return gm__component_range(low, gm__mul_sat(high, run->images), "tokens of a prompt and order of operations vary");
}

static bool image_is_sane(uint64_t width, uint64_t head) {
  return head >= 8 && width >= head && width % head == 0 && width < 1 << 20;
}

/* A family is known by four tensors. They are the first projection, a matrix with rows of so many widths, and a norm of
 * a head. The last one no other family has. */
typedef struct image_names {
  const char *in, *wide, *head, *only;
  uint64_t widths;
} image_names;

typedef struct image_sizes {
  uint64_t width, channels, head;
} image_sizes;

static bool image_named_so(const gm__component_view *view, const image_names *names, image_sizes *out) {
  uint64_t in[2], wide[2];
  const bool has = gm__component_shape(view, names->in, 2, in) && gm__component_shape(view, names->wide, 2, wide) &&
                   gm__component_shape(view, names->head, 1, &out->head) && gm__component_has(view, names->only);
  if (!has || !image_is_sane(in[0], out->head)) return false;
  out->width = in[0];
  out->channels = in[1];
  return wide[0] == names->widths * in[0] && wide[1] == in[0];
}

/* In the names of the model's authors, or in those of diffusers. */
static bool image_named(const gm__component_view *view, const image_names names[2], image_sizes *out) {
  return image_named_so(view, &names[0], out) || image_named_so(view, &names[1], out);
}

static bool image_estimate(const image_rule *rule, const image_sizes *of, const gm_component_settings *run,
                           gm_component *out) {
  out->compute = image_denoiser(rule, of->width, of->width / of->head, 2 * of->head, run);
  return true;
}

/* FLUX.1. Its first projection takes 64 numbers for each token; with a control image 128, with a mask 384. The first
 * matrix of a single block makes queries, keys, values, and four widths of the feed-forward part. */
bool gm__component_flux(const gm__component_view *view, const gm_component_settings *run, gm_component *out) {
  static const image_names names[] = {
      {"img_in.weight", "single_blocks.0.linear1.weight", "single_blocks.0.norm.key_norm.scale",
       "vector_in.in_layer.weight", 7},
      {"x_embedder.weight", "single_transformer_blocks.0.proj_mlp.weight",
       "single_transformer_blocks.0.attn.norm_k.weight", "time_text_embed.text_embedder.linear_1.weight", 4}};
  image_sizes of;
  if (!image_named(view, names, &of)) return false;
  if (of.channels != 64 && of.channels != 128 && of.channels != 384) return false;
  return image_estimate(&image_flux, &of, run, out);
}

/* Chroma: FLUX.1 with a small network in place of what each block makes of time and prompt. */
bool gm__component_chroma(const gm__component_view *view, const gm_component_settings *run, gm_component *out) {
  static const image_names names[] = {
      {"img_in.weight", "single_blocks.0.linear1.weight", "single_blocks.0.norm.key_norm.scale",
       "distilled_guidance_layer.in_proj.weight", 7},
      {"x_embedder.weight", "single_transformer_blocks.0.proj_mlp.weight",
       "single_transformer_blocks.0.attn.norm_k.weight", "distilled_guidance_layer.in_proj.weight", 4}};
  image_sizes of;
  if (!image_named(view, names, &of) || of.channels != 64) return false;
  return image_estimate(&image_chroma, &of, run, out);
}

/* FLUX.2: all blocks share what they make of the time. The first matrix of a single block makes queries, keys, values,
 * and twice three widths of a feed-forward part with a gate. */
bool gm__component_flux2(const gm__component_view *view, const gm_component_settings *run, gm_component *out) {
  static const image_names names[] = {
      {"img_in.weight", "single_blocks.0.linear1.weight", "single_blocks.0.norm.key_norm.scale",
       "double_stream_modulation_img.lin.weight", 9},
      {"x_embedder.weight", "single_transformer_blocks.0.attn.to_qkv_mlp_proj.weight",
       "single_transformer_blocks.0.attn.norm_k.weight", "double_stream_modulation_img.linear.weight", 9}};
  image_sizes of;
  if (!image_named(view, names, &of) || of.channels != 128) return false;
  return image_estimate(&image_flux2, &of, run, out);
}

/* Qwen-Image: blocks of one kind, in which text and image have matrices of their own. All engines use one naming. */
bool gm__component_qwen_image(const gm__component_view *view, const gm_component_settings *run, gm_component *out) {
  static const image_names names = {"img_in.weight", "transformer_blocks.0.img_mlp.net.0.proj.weight",
                                    "transformer_blocks.0.attn.norm_added_k.weight",
                                    "transformer_blocks.0.txt_mlp.net.2.weight", 4};
  image_sizes of;
  if (!image_named_so(view, &names, &of) || of.channels != 64) return false;
  return image_estimate(&image_qwen, &of, run, out);
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
