/* The denoiser of SD 1, SD 2 and SDXL, as stable-diffusion.cpp runs it. Its graphs of SD 1.5 and SDXL were planned for
 * images of 256 to 1536 pixels. Each of these 20 buffers is inside the intervals. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/saturate.h"
#include "core/fit/component_parts.h"

enum { UNET_BLOCKS = 32, UNET_LEVELS = 8, UNET_TEXT_SD1 = 768, UNET_HEADS_SD1 = 8, UNET_HEAD = 64, UNET_TOKENS = 77 };

/* The network halves the latent image from level to level, and doubles it again. */
typedef struct unet_plan {
  const gm__component_view *view;
  const gm_component_settings *run;
  uint32_t levels;
  bool own;                                    /* named by blocks in one row, not level by level as diffusers does */
  uint32_t down[UNET_BLOCKS], up[UNET_BLOCKS]; /* levels of those blocks */
  uint64_t inputs;                             /* of the convolution that takes most: channels and pixels */
  uint64_t scores;
  uint64_t text; /* keys and values of the prompt, of all blocks, which plain attention keeps */
  bool is_flat;  /* no tensor is of a video */
} unet_plan;

static uint64_t unet_pixels(const unet_plan *plan, uint32_t level) {
  const uint64_t scale = (uint64_t)8 << level;
  return ((plan->run->width + scale - 1) / scale) * ((plan->run->height + scale - 1) / scale);
}

static bool unet_has(const unet_plan *plan, const char *block, uint32_t number, const char *rest) {
  char name[96];
  snprintf(name, sizeof name, "%s.%u.%s", block, number, rest);
  return gm__component_has(plan->view, name);
}

/* Blocks in one row: a level begins where one halves or doubles. */
static void unet_number(unet_plan *plan) {
  uint32_t level = 0;
  for (uint32_t i = 0; i < UNET_BLOCKS; i++) {
    if (unet_has(plan, "input_blocks", i, "0.op.weight")) level++;
    plan->down[i] = level;
  }
  plan->levels = level + 1;
  for (uint32_t i = 0; i < UNET_BLOCKS; i++) {
    plan->up[i] = level;
    const bool doubles =
        unet_has(plan, "output_blocks", i, "1.conv.weight") || unet_has(plan, "output_blocks", i, "2.conv.weight");
    if (doubles && level) level--;
  }
}

static void unet_count(unet_plan *plan) {
  while (plan->levels < UNET_LEVELS && unet_has(plan, "down_blocks", plan->levels, "resnets.0.conv1.weight")) {
    plan->levels++;
  }
}

/* "up_blocks.2.": 2. UNET_BLOCKS: the name begins otherwise. */
static uint32_t unet_block(const char *name, const char *begin) {
  const size_t begun = strlen(begin);
  if (strncmp(name, begin, begun) != 0) return UNET_BLOCKS;
  char *end = NULL;
  const unsigned long number = strtoul(name + begun, &end, 10);
  return end != name + begun && *end == '.' && number < UNET_BLOCKS ? (uint32_t)number : UNET_BLOCKS;
}

/* The level at which a tensor's operation works. A tensor without a number is at the first or last one. */
static uint32_t unet_level(const unet_plan *plan, const char *name) {
  const uint32_t last = plan->levels - 1;
  if (strncmp(name, "mid", 3) == 0) return last;
  const uint32_t down = unet_block(name, plan->own ? "input_blocks." : "down_blocks.");
  const uint32_t up = unet_block(name, plan->own ? "output_blocks." : "up_blocks.");
  if (down < UNET_BLOCKS && plan->own) return plan->down[down];
  if (up < UNET_BLOCKS && plan->own) {
    const bool doubles = strstr(name, ".conv.weight") != NULL && plan->up[up] > 0;
    return plan->up[up] - (doubles ? 1 : 0);
  }
  if (down < UNET_BLOCKS) return (uint32_t)gm__min(last, down + (strstr(name, ".downsamplers.") ? 1 : 0));
  if (up < UNET_BLOCKS) return (uint32_t)gm__sub_sat(gm__sub_sat(last, up), strstr(name, ".upsamplers.") ? 1 : 0);
  return 0;
}

static void unet_convolution(unet_plan *plan, const uint64_t *shape, uint32_t level) {
  plan->inputs = gm__max(plan->inputs, gm__mul_sat(unet_pixels(plan, level), shape[1]));
}

/* A convolution takes 22 bytes of each channel and pixel, for its copies and its input. The tensors kept for the way
 * back take 2 to 15 more. Without flash attention there are scores beside 8 to 16 bytes, and the prompt's keys and
 * values at most. */
static gm_estimate_part unet_compute(const unet_plan *plan) {
  const bool plain = plan->run->plain_attention;
  uint64_t low = gm__mul_sat(plan->inputs, 24), high = gm__mul_sat(plan->inputs, 37);
  if (plain) {
    low = gm__max(low, gm__add_sat(plan->scores, gm__mul_sat(plan->inputs, 8)));
    high = gm__max(high, gm__add_sat(plan->scores, gm__mul_sat(plan->inputs, 16)));
    high = gm__add_sat(high, plan->text);
  }
  return gm__component_range(low, gm__mul_sat(high, plan->run->images),
                             "what is kept for the way back, and the order of operations, vary");
}

/* SD 1 has eight heads in every layer, others one for 64 channels. The text's width tells. */
static void unet_attention(unet_plan *plan, const uint64_t *query, const char *name, uint32_t level) {
  char keys[256];
  uint64_t text[2];
  const size_t stem = strlen(name) - strlen("attn1.to_q.weight");
  if (stem >= 200) return;
  snprintf(keys, sizeof keys, "%.*sattn2.to_k.weight", (int)stem, name);
  if (!gm__component_shape(plan->view, keys, 2, text)) return;
  const uint64_t heads = text[1] == UNET_TEXT_SD1 ? UNET_HEADS_SD1 : query[0] / UNET_HEAD;
  const uint64_t pixels = unet_pixels(plan, level);
  plan->scores = gm__max(plan->scores, gm__mul_sat(gm__mul_sat(4, heads), gm__mul_sat(pixels, pixels)));
}

static bool unet_ends(const char *name, const char *end) {
  const size_t length = strlen(name), end_length = strlen(end);
  return length > end_length && strcmp(name + length - end_length, end) == 0;
}

static void unet_tensor(unet_plan *plan, const gm_tensor_info *tensor, const char *name) {
  const uint32_t level = unet_level(plan, name);
  plan->is_flat = plan->is_flat && tensor->rank < 5;
  if (tensor->rank == 4 && tensor->shape[2] == 3 && tensor->shape[3] == 3) unet_convolution(plan, tensor->shape, level);
  if (tensor->rank != 2) return;
  if (unet_ends(name, "attn1.to_q.weight")) unet_attention(plan, tensor->shape, name, level);
  if (unet_ends(name, "attn2.to_k.weight") || unet_ends(name, "attn2.to_v.weight")) {
    plan->text = gm__add_sat(plan->text, gm__mul_sat(UINT64_C(4) * UNET_TOKENS, tensor->shape[0]));
  }
}

static void unet_visit(unet_plan *plan) {
  gm_tensor_info tensor = {.struct_size = sizeof tensor};
  const size_t prefix = strlen(plan->view->prefix);
  for (uint64_t i = 0; i < gm_model_tensor_count(plan->view->model); i++) {
    if (gm_model_tensor(plan->view->model, i, &tensor, NULL) != GM_OK) continue;
    if (strncmp(tensor.name, plan->view->prefix, prefix) == 0) unet_tensor(plan, &tensor, tensor.name + prefix);
  }
}

bool gm__component_unet(const gm__component_view *view, const gm_component_settings *run, gm_component *out) {
  uint64_t shape[4];
  unet_plan plan = {.view = view, .run = run, .is_flat = true};
  plan.own = gm__component_shape(view, "input_blocks.0.0.weight", 4, shape) &&
             gm__component_shape(view, "middle_block.0.in_layers.2.weight", 4, shape) &&
             gm__component_has(view, "output_blocks.0.0.in_layers.2.weight");
  const bool diffusers = !plan.own && gm__component_shape(view, "conv_in.weight", 4, shape) &&
                         gm__component_shape(view, "mid_block.resnets.0.conv1.weight", 4, shape) &&
                         gm__component_has(view, "up_blocks.0.resnets.0.conv1.weight");
  if (!plan.own && !diffusers) return false;
  (plan.own ? unet_number : unet_count)(&plan);
  if (plan.levels < 2 || plan.levels > UNET_LEVELS) return false;
  unet_visit(&plan);
  if (!plan.inputs || !plan.scores || !plan.is_flat) return false;
  out->compute = unet_compute(&plan);
  return true;
}
