/* Safetensors files with the shapes of published diffusion models, text encoders and Whisper: headers without data.
 * Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_COMPONENT_FILES_H
#define GM_TESTS_SUPPORT_COMPONENT_FILES_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gm/model.h"
#include "support/safetensors_bytes.h"
#include "support/test_folder.h"

typedef struct header {
  char text[32768];
  size_t length;
  uint64_t at; /* the end of the data */
} header;

/* An f16 tensor; dimensions are separated by commas, outermost first. */
static inline void header_add(header *self, const char *prefix, const char *name, const char *shape) {
  uint64_t bytes = 2;
  for (const char *at = shape; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) bytes *= strtoull(at, NULL, 10);
  const char *open = self->length ? "," : "{";
  self->length +=
      (size_t)snprintf(self->text + self->length, sizeof self->text - self->length,
                       "%s\"%s%s\":{\"dtype\":\"F16\",\"shape\":[%s],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", open,
                       prefix, name, shape, self->at, self->at + bytes);
  assert_true(self->length < sizeof self->text - 1);
  self->at += bytes;
}

static inline const char *header_write(header *self, const char *name) {
  memcpy(self->text + self->length, "}", 2);
  safetensors_bytes file = safetensors_bytes_make(self->text, strlen(self->text), 0, 0);
  const char *path = temp_folder_write(&folder, name, file.bytes, file.length);
  safetensors_bytes_free(&file);
  return path;
}

static inline gm_model *header_open(header *self) {
  gm_model *model = NULL;
  assert_int_equal(gm_model_open_header(NULL, header_write(self, "x.safetensors"), &model, NULL), GM_OK);
  return model;
}

/* ---- published shapes ---- */

static inline const char *shape_of(unsigned a, unsigned b) {
  static char texts[4][32];
  static unsigned next;
  char *text = texts[next++ % 4];
  snprintf(text, sizeof texts[0], b ? "%u,%u" : "%u", a, b);
  return text;
}

static inline void add_flux(header *to, const char *prefix, unsigned width) {
  header_add(to, prefix, "img_in.weight", shape_of(width, 64));
  header_add(to, prefix, "vector_in.in_layer.weight", shape_of(width, 768));
  header_add(to, prefix, "single_blocks.0.linear1.weight", shape_of(7 * width, width));
  header_add(to, prefix, "single_blocks.0.norm.key_norm.scale", shape_of(128, 0));
}

static inline void add_flux_diffusers(header *to, unsigned width) {
  header_add(to, "", "x_embedder.weight", shape_of(width, 64));
  header_add(to, "", "time_text_embed.text_embedder.linear_1.weight", shape_of(width, 768));
  header_add(to, "", "single_transformer_blocks.0.proj_mlp.weight", shape_of(4 * width, width));
  header_add(to, "", "single_transformer_blocks.0.attn.norm_k.weight", shape_of(128, 0));
}

static inline void add_chroma(header *to, unsigned width) {
  header_add(to, "", "img_in.weight", shape_of(width, 64));
  header_add(to, "", "distilled_guidance_layer.in_proj.weight", "5120,64");
  header_add(to, "", "single_blocks.0.linear1.weight", shape_of(7 * width, width));
  header_add(to, "", "single_blocks.0.norm.key_norm.scale", "128");
}

static inline void add_chroma_diffusers(header *to, unsigned width) {
  header_add(to, "", "x_embedder.weight", shape_of(width, 64));
  header_add(to, "", "distilled_guidance_layer.in_proj.weight", "5120,64");
  header_add(to, "", "single_transformer_blocks.0.proj_mlp.weight", shape_of(4 * width, width));
  header_add(to, "", "single_transformer_blocks.0.attn.norm_k.weight", "128");
}

static inline void add_flux2(header *to, unsigned width) {
  header_add(to, "", "img_in.weight", shape_of(width, 128));
  header_add(to, "", "double_stream_modulation_img.lin.weight", shape_of(6 * width, width));
  header_add(to, "", "single_blocks.0.linear1.weight", shape_of(9 * width, width));
  header_add(to, "", "single_blocks.0.norm.key_norm.scale", "128");
}

static inline void add_flux2_diffusers(header *to, unsigned width) {
  header_add(to, "", "x_embedder.weight", shape_of(width, 128));
  header_add(to, "", "double_stream_modulation_img.linear.weight", shape_of(6 * width, width));
  header_add(to, "", "single_transformer_blocks.0.attn.to_qkv_mlp_proj.weight", shape_of(9 * width, width));
  header_add(to, "", "single_transformer_blocks.0.attn.norm_k.weight", "128");
}

static inline void add_qwen_image(header *to) {
  header_add(to, "", "img_in.weight", "3072,64");
  header_add(to, "", "transformer_blocks.0.img_mlp.net.0.proj.weight", "12288,3072");
  header_add(to, "", "transformer_blocks.0.txt_mlp.net.2.weight", "3072,12288");
  header_add(to, "", "transformer_blocks.0.attn.norm_added_k.weight", "128");
}

static inline void add_sd3(header *to, const char *prefix, unsigned width) {
  char patch[32];
  snprintf(patch, sizeof patch, "%u,16,2,2", width);
  header_add(to, prefix, "x_embedder.proj.weight", patch);
  header_add(to, prefix, "joint_blocks.0.x_block.mlp.fc1.weight", shape_of(4 * width, width));
}

/* Keys and values of the prompt in `count` blocks. */
static inline void add_unet_text(header *to, const char *block, unsigned count, const char *shape) {
  char name[96];
  for (unsigned i = 1; i <= count; i++) {
    snprintf(name, sizeof name, "%s.1.transformer_blocks.%u.attn2.to_k.weight", block, i);
    header_add(to, "", name, shape);
    snprintf(name, sizeof name, "%s.1.transformer_blocks.%u.attn2.to_v.weight", block, i);
    header_add(to, "", name, shape);
  }
}

/* SD 1 has attention from the first level on, SDXL from the second. */
static inline void add_unet(header *to, bool is_xl) {
  header_add(to, "", "input_blocks.0.0.weight", "320,4,3,3");
  header_add(to, "", "input_blocks.3.0.op.weight", "320,320,3,3");
  header_add(to, "", "input_blocks.6.0.op.weight", "640,640,3,3");
  if (!is_xl) header_add(to, "", "input_blocks.9.0.op.weight", "1280,1280,3,3");
  header_add(to, "", "middle_block.0.in_layers.2.weight", "1280,1280,3,3");
  header_add(to, "", "output_blocks.0.0.in_layers.2.weight", "1280,2560,3,3");
  header_add(to, "", "output_blocks.2.1.conv.weight", "1280,1280,3,3");
  header_add(to, "", is_xl ? "output_blocks.3.0.in_layers.2.weight" : "output_blocks.6.0.in_layers.2.weight",
             "640,1920,3,3");
  header_add(to, "", "output_blocks.5.2.conv.weight", is_xl ? "640,640,3,3" : "1280,1280,3,3");
  if (!is_xl) header_add(to, "", "output_blocks.8.2.conv.weight", "640,640,3,3");
  header_add(to, "", is_xl ? "output_blocks.6.0.in_layers.2.weight" : "output_blocks.9.0.in_layers.2.weight",
             "320,960,3,3");
  if (is_xl) {
    add_unet_text(to, "input_blocks.5", 10, "640,2048");
    add_unet_text(to, "middle_block", 60, "1280,2048");
  } else {
    add_unet_text(to, "input_blocks.2", 5, "320,768");
    add_unet_text(to, "input_blocks.5", 5, "640,768");
    add_unet_text(to, "middle_block", 6, "1280,768");
  }
  const char *const block = is_xl ? "input_blocks.4.1.transformer_blocks.0." : "input_blocks.1.1.transformer_blocks.0.";
  header_add(to, block, "attn1.to_q.weight", is_xl ? "640,640" : "320,320");
  header_add(to, block, "attn2.to_k.weight", is_xl ? "640,2048" : "320,768");
}

static inline void add_unet_diffusers(header *to) {
  header_add(to, "", "conv_in.weight", "320,4,3,3");
  header_add(to, "", "down_blocks.0.resnets.0.conv1.weight", "320,320,3,3");
  header_add(to, "", "down_blocks.1.resnets.0.conv1.weight", "640,320,3,3");
  header_add(to, "", "down_blocks.2.resnets.0.conv1.weight", "1280,640,3,3");
  header_add(to, "", "mid_block.resnets.0.conv1.weight", "1280,1280,3,3");
  header_add(to, "", "up_blocks.0.resnets.0.conv1.weight", "1280,2560,3,3");
  header_add(to, "", "up_blocks.1.resnets.0.conv1.weight", "640,1920,3,3");
  header_add(to, "", "up_blocks.1.upsamplers.0.conv.weight", "640,640,3,3");
  header_add(to, "", "up_blocks.2.resnets.0.conv1.weight", "320,960,3,3");
  for (unsigned i = 1; i <= 70; i++) {
    char block[96];
    snprintf(block, sizeof block, "mid_block.attentions.0.transformer_blocks.%u.attn2.", i);
    header_add(to, block, "to_k.weight", i <= 10 ? "640,2048" : "1280,2048");
    header_add(to, block, "to_v.weight", i <= 10 ? "640,2048" : "1280,2048");
  }
  header_add(to, "down_blocks.1.attentions.0.transformer_blocks.0.", "attn1.to_q.weight", "640,640");
  header_add(to, "down_blocks.1.attentions.0.transformer_blocks.0.", "attn2.to_k.weight", "640,2048");
}

static inline void add_vae(header *to, const char *prefix) {
  header_add(to, prefix, "encoder.conv_in.weight", "128,3,3,3");
  header_add(to, prefix, "decoder.conv_in.weight", "512,16,3,3");
  header_add(to, prefix, "decoder.mid.block_1.conv1.weight", "512,512,3,3");
  header_add(to, prefix, "decoder.up.3.block.0.conv1.weight", "512,512,3,3");
  header_add(to, prefix, "decoder.up.3.upsample.conv.weight", "512,512,3,3");
  header_add(to, prefix, "decoder.up.2.upsample.conv.weight", "512,512,3,3");
  header_add(to, prefix, "decoder.up.1.block.0.conv1.weight", "256,512,3,3");
  header_add(to, prefix, "decoder.up.1.upsample.conv.weight", "256,256,3,3");
  header_add(to, prefix, "decoder.up.0.block.0.conv1.weight", "128,256,3,3");
  header_add(to, prefix, "decoder.up.0.block.1.conv1.weight", "128,128,3,3");
  header_add(to, prefix, "decoder.conv_out.weight", "3,128,3,3");
}

static inline void add_vae_diffusers(header *to) {
  header_add(to, "", "decoder.conv_in.weight", "512,16,3,3");
  header_add(to, "", "decoder.mid_block.resnets.0.conv1.weight", "512,512,3,3");
  header_add(to, "", "decoder.up_blocks.0.resnets.0.conv1.weight", "512,512,3,3");
  header_add(to, "", "decoder.up_blocks.0.upsamplers.0.conv.weight", "512,512,3,3");
  header_add(to, "", "decoder.up_blocks.1.upsamplers.0.conv.weight", "512,512,3,3");
  header_add(to, "", "decoder.up_blocks.2.resnets.0.conv1.weight", "256,512,3,3");
  header_add(to, "", "decoder.up_blocks.2.upsamplers.0.conv.weight", "256,256,3,3");
  header_add(to, "", "decoder.up_blocks.3.resnets.0.conv1.weight", "128,256,3,3");
  header_add(to, "", "decoder.conv_out.weight", "3,128,3,3");
}

static inline void add_t5(header *to, const char *prefix) {
  header_add(to, prefix, "encoder.block.0.layer.0.SelfAttention.q.weight", "4096,4096");
  header_add(to, prefix, "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", "32,64");
  header_add(to, prefix, "encoder.block.0.layer.1.DenseReluDense.wi_0.weight", "10240,4096");
}

static inline void add_clip(header *to, const char *prefix, unsigned width) {
  header_add(to, prefix, "text_model.encoder.layers.0.mlp.fc1.weight", shape_of(4 * width, width));
}

static inline void add_whisper(header *to, unsigned width, unsigned layers) {
  char shape[32], name[64];
  snprintf(shape, sizeof shape, "%u,80,3", width);
  header_add(to, "", "model.encoder.conv1.weight", shape);
  header_add(to, "", "model.encoder.embed_positions.weight", shape_of(1500, width));
  header_add(to, "", "model.decoder.embed_positions.weight", shape_of(448, width));
  header_add(to, "", "model.decoder.embed_tokens.weight", shape_of(51865, width));
  for (unsigned i = 0; i < layers; i++) {
    snprintf(name, sizeof name, "model.decoder.layers.%u.fc1.weight", i);
    header_add(to, "", name, shape_of(4 * width, width));
  }
}

/* A whole model by its name, and its family. */
static inline const char *component_model(header *to, const char *name) {
  static const struct {
    const char *name;
    unsigned width, layers;
  } sizes[] = {{"flux2-dev", 6144, 0},     {"flux2-klein-4b", 3072, 0},  {"flux2-klein-9b", 4096, 0},
               {"flux", 3072, 0},          {"flux-tiny", 256, 0},        {"sd3-medium", 1536, 0},
               {"sd3.5-large", 2432, 0},   {"sd3.5-medium", 1536, 0},    {"clip-l", 768, 0},
               {"clip-g", 1280, 0},        {"whisper-tiny", 384, 4},     {"whisper-base", 512, 6},
               {"whisper-small", 768, 12}, {"whisper-medium", 1024, 24}, {"whisper-large", 1280, 32}};
  unsigned width = 0, layers = 0;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    if (strcmp(sizes[i].name, name) != 0) continue;
    width = sizes[i].width;
    layers = sizes[i].layers;
  }
  *to = (header){.length = 0};
  if (strncmp(name, "unet", 4) == 0) return add_unet(to, strcmp(name, "unet-sdxl") == 0), "unet";
  if (strncmp(name, "vae", 3) == 0) return add_vae(to, ""), "vae";
  if (strncmp(name, "flux2", 5) == 0) return add_flux2(to, width), "flux2";
  if (strncmp(name, "chroma", 6) == 0) return add_chroma(to, 3072), "chroma";
  if (strcmp(name, "qwen-image") == 0) return add_qwen_image(to), "qwen_image";
  if (strncmp(name, "flux", 4) == 0) return add_flux(to, "", width), "flux";
  if (strncmp(name, "sd3", 3) == 0) return add_sd3(to, "", width), "sd3";
  if (strncmp(name, "clip", 4) == 0) return add_clip(to, "", width), "clip";
  if (strncmp(name, "t5", 2) == 0) return add_t5(to, ""), "t5";
  assert_true(layers > 0);
  return add_whisper(to, width, layers), "whisper";
}

#endif
