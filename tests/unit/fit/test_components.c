/* Components: which there are, what they weigh, and whether what the engines took is inside the intervals. Models are
 * headers with the shapes of published ones. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gm/components.h"
#include "support/component_files.h"
#include "support/gguf_bytes.h"
#include "test_data.h"

/* ---- asking ---- */

typedef struct answer {
  gm_component items[GM_COMPONENTS_MAX];
  uint32_t count;
} answer;

static answer ask(header *of, gm_component_settings run) {
  answer out = {.count = 99};
  gm_model *model = header_open(of);
  run.struct_size = sizeof run;
  assert_int_equal(gm_estimate_components(model, &run, out.items, GM_COMPONENTS_MAX, &out.count, NULL), GM_OK);
  gm_model_close(model);
  return out;
}

static gm_component ask_one(header *of, gm_component_settings run, const char *family) {
  const answer out = ask(of, run);
  assert_int_equal(out.count, 1);
  assert_string_equal(out.items[0].family, family);
  return out.items[0];
}

/* ---- what engines took ---- */

typedef struct taken {
  char model[32];
  unsigned width, height;
  uint64_t text;
  char attention[8];
  uint64_t bytes;
} taken;

/* Intervals that hold everything would pass, too: at usual sizes they are narrow. */
static void taken_check(const taken *one, gm_component_settings run) {
  header file;
  const char *family = component_model(&file, one->model);
  const gm_component got = ask_one(&file, run, family);
  const gm_memory_range *range = &got.compute.range;
  if (one->bytes < range->low || one->bytes > range->high) {
    fail_msg("%s %ux%u %s: %" PRIu64 " is not in %" PRIu64 " to %" PRIu64, one->model, one->width, one->height,
             one->attention, one->bytes, range->low, range->high);
  }
  assert_int_equal(got.compute.standing, GM_STANDING_INTERVAL);
  assert_true(got.compute.reason[0]);
  const bool is_usual = one->width >= 1024 || strcmp(family, "whisper") == 0;
  if (is_usual && (double)(range->high - range->low) > 0.25 * (double)(range->high + range->low)) {
    fail_msg("%s %ux%u %s: %" PRIu64 " to %" PRIu64 " is too wide", one->model, one->width, one->height, one->attention,
             range->low, range->high);
  }
}

/* The caches of Whisper, printed in units of 10 kB, three of them. */
static void taken_check_cache(const taken *one, gm_component_settings run) {
  header file;
  run.beams = 1;
  component_model(&file, one->model);
  const gm_component got = ask_one(&file, run, "whisper");
  assert_int_equal(got.cache.standing, GM_STANDING_EXACT);
  assert_in_range(got.cache.range.bytes, one->text - 15000, one->text + 15000);
}

static void test_what_engines_took_is_inside(void **state) {
  (void)state;
  char line[512];
  int count = 0;
  FILE *file = fopen(GM_TEST_DATA "/components.txt", "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file)) {
    taken one;
    if (line[0] == '#') continue;
    assert_int_equal(sscanf(line, "%31s %u %u %" SCNu64 " %7s %" SCNu64, one.model, &one.width, &one.height, &one.text,
                            one.attention, &one.bytes),
                     6);
    const gm_component_settings run = {
        .width = one.width, .height = one.height, .plain_attention = strcmp(one.attention, "plain") == 0};
    taken_check(&one, run);
    if (strncmp(one.model, "whisper", 7) == 0) taken_check_cache(&one, run);
    count++;
  }
  fclose(file);
  assert_true(count > 250);
}

/* ---- names ---- */

/* One model, in its own names and in those of diffusers. */
static void test_both_namings_are_one_model(void **state) {
  (void)state;
  header own = {.length = 0}, diffusers = own, own_vae = own, diffusers_vae = own;
  add_flux(&own, "", 3072);
  add_flux_diffusers(&diffusers, 3072);
  const gm_component a = ask_one(&own, (gm_component_settings){.width = 512}, "flux");
  const gm_component b = ask_one(&diffusers, (gm_component_settings){.width = 512}, "flux");
  assert_int_equal(a.compute.range.low, b.compute.range.low);
  assert_int_equal(a.compute.range.high, b.compute.range.high);
  header chroma = {.length = 0}, chroma_diffusers = chroma, flux2 = chroma, flux2_diffusers = chroma;
  add_chroma(&chroma, 3072);
  add_chroma_diffusers(&chroma_diffusers, 3072);
  add_flux2(&flux2, 4096);
  add_flux2_diffusers(&flux2_diffusers, 4096);
  const gm_component g = ask_one(&chroma, (gm_component_settings){.width = 512}, "chroma");
  const gm_component h = ask_one(&chroma_diffusers, (gm_component_settings){.width = 512}, "chroma");
  const gm_component i = ask_one(&flux2, (gm_component_settings){.width = 512}, "flux2");
  const gm_component j = ask_one(&flux2_diffusers, (gm_component_settings){.width = 512}, "flux2");
  assert_int_equal(g.compute.range.high, h.compute.range.high);
  assert_int_equal(i.compute.range.high, j.compute.range.high);
  add_vae(&own_vae, "");
  add_vae_diffusers(&diffusers_vae);
  const gm_component c = ask_one(&own_vae, (gm_component_settings){.width = 512}, "vae");
  const gm_component d = ask_one(&diffusers_vae, (gm_component_settings){.width = 512}, "vae");
  assert_int_equal(c.compute.range.low, d.compute.range.low);
  assert_int_equal(c.compute.range.high, d.compute.range.high);
  header own_unet = {.length = 0}, diffusers_unet = own_unet;
  const gm_component_settings plain = {.width = 512, .plain_attention = true};
  add_unet(&own_unet, true);
  add_unet_diffusers(&diffusers_unet);
  const gm_component e = ask_one(&own_unet, plain, "unet"), f = ask_one(&diffusers_unet, plain, "unet");
  assert_int_equal(e.compute.range.low, f.compute.range.low);
  assert_int_equal(e.compute.range.high, f.compute.range.high);
}

/* All components of one file; what is in none of them counts apart. */
static void test_a_file_holds_several_components(void **state) {
  (void)state;
  header file = {.length = 0};
  add_flux(&file, "model.diffusion_model.", 3072);
  add_vae(&file, "first_stage_model.");
  add_t5(&file, "text_encoders.t5xxl.transformer.");
  add_clip(&file, "text_encoders.clip_l.transformer.", 768);
  header_add(&file, "", "alphas_cumprod", "1000");
  const answer got = ask(&file, (gm_component_settings){.width = 0});
  static const struct {
    const char *name, *family;
    gm_component_kind kind;
  } wanted[] = {{"model.diffusion_model", "flux", GM_COMPONENT_DENOISER},
                {"first_stage_model", "vae", GM_COMPONENT_IMAGE_DECODER},
                {"text_encoders.t5xxl", "t5", GM_COMPONENT_TEXT_ENCODER},
                {"text_encoders.clip_l", "clip", GM_COMPONENT_TEXT_ENCODER},
                {"others", "", GM_COMPONENT_OTHER}};
  uint64_t bytes = 0, parameters = 0;
  assert_int_equal(got.count, 5);
  for (uint32_t i = 0; i < 5; i++) {
    assert_string_equal(got.items[i].name, wanted[i].name);
    assert_string_equal(got.items[i].family, wanted[i].family);
    assert_int_equal(got.items[i].kind, wanted[i].kind);
    bytes += got.items[i].weight_bytes;
    parameters += got.items[i].parameters;
  }
  assert_int_equal(bytes, file.at);
  assert_int_equal(parameters, file.at / 2);
  assert_int_equal(got.items[0].weight_bytes, 2 * (3072 * 64 + 3072 * 768 + 7 * 3072 * 3072 + 128));
  assert_int_equal(got.items[4].compute.standing, GM_STANDING_EXACT); /* rows of numbers compute nothing */
  assert_int_equal(got.items[4].compute.range.bytes, 0);
  assert_int_equal(got.items[4].compute.range.low, 0);
}

/* A denoiser that is much like FLUX.1, and is not, has exact weights and an unknown buffer. */
static void test_what_is_not_known_is_unknown(void **state) {
  (void)state;
  header file = {.length = 0};
  header_add(&file, "model.diffusion_model.", "img_in.weight", "3072,128");
  header_add(&file, "model.diffusion_model.", "single_blocks.0.linear1.weight", "27648,3072"); /* 9 widths: FLUX.2 */
  header_add(&file, "model.diffusion_model.", "single_blocks.0.norm.key_norm.scale", "128");
  const answer got = ask(&file, (gm_component_settings){.width = 0});
  assert_int_equal(got.count, 1);
  assert_string_equal(got.items[0].family, "");
  assert_int_equal(got.items[0].kind, GM_COMPONENT_DENOISER);
  assert_int_equal(got.items[0].weight_bytes, file.at);
  assert_int_equal(got.items[0].compute.standing, GM_STANDING_UNKNOWN);
  assert_true(got.items[0].compute.range.high == UINT64_MAX && got.items[0].compute.reason[0]);
}

static void test_other_models_have_no_components(void **state) {
  (void)state;
  header llama = {.length = 0}, whole_t5 = llama;
  header_add(&llama, "", "model.embed_tokens.weight", "32000,4096");
  header_add(&llama, "", "vae.decoder.conv_in.weight", "8,8,3,3");
  assert_int_equal(ask(&llama, (gm_component_settings){.width = 0}).count, 0);
  add_t5(&whole_t5, "");
  header_add(&whole_t5, "", "decoder.block.0.layer.0.SelfAttention.q.weight", "4096,4096");
  assert_int_equal(ask(&whole_t5, (gm_component_settings){.width = 0}).count, 0);
  /* CLIP with its eyes, and a network that only steers a denoiser. */
  header clip = {.length = 0}, control = clip;
  add_clip(&clip, "", 768);
  header_add(&clip, "", "vision_model.encoder.layers.0.mlp.fc1.weight", "4096,1024");
  assert_int_equal(ask(&clip, (gm_component_settings){.width = 0}).count, 0);
  header_add(&control, "", "conv_in.weight", "320,4,3,3");
  header_add(&control, "", "down_blocks.0.resnets.0.conv1.weight", "320,320,3,3");
  header_add(&control, "", "down_blocks.1.resnets.0.conv1.weight", "640,320,3,3");
  header_add(&control, "", "mid_block.resnets.0.conv1.weight", "1280,1280,3,3");
  header_add(&control, "down_blocks.0.attentions.0.transformer_blocks.0.", "attn1.to_q.weight", "320,320");
  header_add(&control, "down_blocks.0.attentions.0.transformer_blocks.0.", "attn2.to_k.weight", "320,768");
  assert_int_equal(ask(&control, (gm_component_settings){.width = 0}).count, 0);
}

static void gguf_open(gguf_bytes *file, gm_model **out) {
  const char *path = temp_folder_write(&folder, "x.gguf", file->bytes, file->length);
  assert_int_equal(gm_model_open_header(NULL, path, out, NULL), GM_OK);
  gguf_bytes_free(file);
}

/* A GGUF file has its dimensions innermost first, and says its architecture. */
static void test_gguf_is_read_as_safetensors_are(void **state) {
  (void)state;
  gguf_bytes file;
  gm_model *model = NULL;
  answer got;
  header same = {.length = 0};
  add_sd3(&same, "", 1536);
  const gm_component wanted = ask_one(&same, (gm_component_settings){.width = 0}, "sd3");
  gguf_bytes_begin(&file, 3, 2, 1);
  gguf_bytes_text(&file, "general.architecture", "sd3");
  gguf_bytes_tensor(&file, "x_embedder.proj.weight", 1, 0, 4, (uint64_t)2, (uint64_t)2, (uint64_t)16, (uint64_t)1536);
  gguf_bytes_tensor(&file, "joint_blocks.0.x_block.mlp.fc1.weight", 8, 196608, 2, (uint64_t)1536, (uint64_t)6144);
  gguf_open(&file, &model);
  assert_int_equal(gm_estimate_components(model, NULL, got.items, GM_COMPONENTS_MAX, &got.count, NULL), GM_OK);
  gm_model_close(model);
  assert_int_equal(got.count, 1);
  assert_string_equal(got.items[0].family, "sd3");
  assert_int_equal(got.items[0].compute.range.low, wanted.compute.range.low);
  assert_int_equal(got.items[0].compute.range.high, wanted.compute.range.high);
  assert_int_equal(got.items[0].weight_bytes, 196608 + 6144 * (1536 / 32 * 34)); /* q8_0 */
}

static void test_gguf_of_another_denoiser_is_unknown(void **state) {
  (void)state;
  gguf_bytes file;
  gm_model *model = NULL;
  answer got;
  gguf_bytes_begin(&file, 3, 1, 1);
  gguf_bytes_text(&file, "general.architecture", "qwen_image");
  gguf_bytes_tensor(&file, "img_in.weight", 0, 0, 2, (uint64_t)64, (uint64_t)32);
  gguf_open(&file, &model);
  assert_int_equal(gm_estimate_components(model, NULL, got.items, GM_COMPONENTS_MAX, &got.count, NULL), GM_OK);
  gm_model_close(model);
  assert_int_equal(got.count, 1);
  assert_int_equal(got.items[0].kind, GM_COMPONENT_DENOISER);
  assert_int_equal(got.items[0].weight_bytes, 64 * 32 * 4);
  assert_int_equal(got.items[0].compute.standing, GM_STANDING_UNKNOWN);
}

/* An architecture that is a number is nobody's. */
static void test_gguf_without_a_name_has_no_components(void **state) {
  (void)state;
  gguf_bytes file;
  gm_model *model = NULL;
  answer got = {.count = 9};
  gguf_bytes_begin(&file, 3, 1, 1);
  gguf_bytes_u32(&file, "general.architecture", 7);
  gguf_bytes_tensor(&file, "img_in.weight", 0, 0, 2, (uint64_t)64, (uint64_t)32);
  gguf_open(&file, &model);
  assert_int_equal(gm_estimate_components(model, NULL, got.items, GM_COMPONENTS_MAX, &got.count, NULL), GM_OK);
  gm_model_close(model);
  assert_int_equal(got.count, 0);
}

/* ---- settings ---- */

static void test_settings_change_the_buffer(void **state) {
  (void)state;
  header flux = {.length = 0}, whisper = flux;
  add_flux(&flux, "", 3072);
  add_whisper(&whisper, 384, 4);
  const gm_component one = ask_one(&flux, (gm_component_settings){.width = 1024}, "flux");
  const gm_component wide = ask_one(&flux, (gm_component_settings){.width = 2048}, "flux");
  const gm_component four = ask_one(&flux, (gm_component_settings){.images = 4}, "flux");
  const gm_component plain = ask_one(&flux, (gm_component_settings){.plain_attention = true}, "flux");
  assert_true(wide.compute.range.low > one.compute.range.low && wide.compute.range.high > one.compute.range.high);
  assert_int_equal(four.compute.range.low, one.compute.range.low); /* one after the other, or together */
  assert_int_equal(four.compute.range.high, 4 * one.compute.range.high);
  assert_true(plain.compute.range.low > one.compute.range.high);
  const gm_component any = ask_one(&whisper, (gm_component_settings){.beams = 0}, "whisper");
  const gm_component five = ask_one(&whisper, (gm_component_settings){.beams = 5}, "whisper");
  assert_int_equal(any.cache.standing, GM_STANDING_INTERVAL);
  assert_int_equal(any.cache.range.low, 4 * 384 * (4 * (512 + 1536) + 1536));
  assert_int_equal(any.cache.range.high, 4 * 384 * (4 * (7 * 512 + 1536) + 1536));
  assert_int_equal(five.cache.range.bytes, any.cache.range.high);
}

/* An image has a token for 16 by 16 pixels, or for what is left of them. */
static void test_sizes_are_rounded_up(void **state) {
  (void)state;
  header flux = {.length = 0}, vae = flux;
  add_flux(&flux, "", 3072);
  add_vae(&vae, "");
  const gm_component_settings run = {.width = 1009, .height = 1017};
  const gm_component odd = ask_one(&flux, run, "flux"),
                     even = ask_one(&flux, (gm_component_settings){.width = 0}, "flux");
  assert_int_equal(odd.compute.range.low, even.compute.range.low);
  const gm_component odd_vae = ask_one(&vae, (gm_component_settings){.width = 1017, .height = 1017}, "vae");
  assert_int_equal(odd_vae.compute.range.low, UINT64_C(256) * 22 * 1024 * 1024);
  /* The largest image overflows nothing. */
  const gm_component_settings huge = {
      .width = GM_IMAGE_SIDE_MAX, .height = GM_IMAGE_SIDE_MAX, .images = UINT32_MAX, .plain_attention = true};
  const gm_component most = ask_one(&flux, huge, "flux");
  assert_true(most.compute.range.low > UINT64_C(24) * 4096 * 4096 * 4096 * 4096 * 4);
  assert_true(most.compute.range.high == UINT64_MAX);
}

static void refused(const gm_model *model, gm_component_settings run, const char *message) {
  gm_component out[1];
  uint32_t count = 7;
  gm_error err;
  assert_int_equal(gm_estimate_components(model, &run, out, 1, &count, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(count, 7);
  if (!strstr(err.message, message)) fail_msg("%s", err.message);
}

static void test_bad_arguments_are_refused(void **state) {
  (void)state;
  header file = {.length = 0};
  gm_component out[1];
  uint32_t count = 0;
  gm_error err;
  add_flux(&file, "model.diffusion_model.", 256);
  header_add(&file, "", "vae.x", "1");
  gm_model *model = header_open(&file);
  refused(model, (gm_component_settings){.struct_size = 3}, "struct_size");
  refused(model, (gm_component_settings){.struct_size = sizeof(gm_component_settings), .width = GM_IMAGE_SIDE_MAX + 1},
          "65537 by 0 pixels");
  refused(model, (gm_component_settings){.struct_size = sizeof(gm_component_settings), .height = UINT32_MAX}, "pixels");
  refused(model, (gm_component_settings){.struct_size = sizeof(gm_component_settings)}, "`capacity` is 1, for 2");
  assert_int_equal(gm_estimate_components(NULL, NULL, out, 1, &count, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_estimate_components(model, NULL, NULL, 1, &count, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_estimate_components(model, NULL, out, 1, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  gm_model_close(model);
}

/* ---- shapes from strangers ---- */

/* Names as they should be, and shapes that no such model has: unknown, or of no known family. Never a figure. */
static void test_strange_shapes_are_no_family(void **state) {
  (void)state;
  static const char *const widths[] = {"0,64", "1099511627776,64", "3073,64", "3072,65", "3072"};
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
    header file = {.length = 0};
    header_add(&file, "", "img_in.weight", widths[i]);
    header_add(&file, "", "vector_in.in_layer.weight", "3072,768");
    header_add(&file, "", "single_blocks.0.linear1.weight", "21504,3072");
    header_add(&file, "", "single_blocks.0.norm.key_norm.scale", "128");
    assert_int_equal(ask(&file, (gm_component_settings){.width = 0}).count, 0);
  }
  header deep = {.length = 0}, flat = deep, whisper = deep;
  add_vae(&deep, "");
  header_add(&deep, "", "decoder.up.4000000000.block.0.conv1.weight", "8,8,3,3");
  assert_int_equal(ask(&deep, (gm_component_settings){.width = 0}).count, 0);
  header_add(&flat, "", "decoder.up.0.block.0.conv1.weight", "0,0,3,3");
  assert_int_equal(ask(&flat, (gm_component_settings){.width = 0}).count, 0);
  header video = {.length = 0}, endless = video;
  add_unet(&video, true);
  header_add(&video, "", "input_blocks.1.0.time_stack.in_layers.2.weight", "320,320,3,1,1");
  assert_int_equal(ask(&video, (gm_component_settings){.width = 0}).count, 0);
  header_add(&endless, "", "input_blocks.0.0.weight", "320,4,3,3");
  header_add(&endless, "", "middle_block.0.in_layers.2.weight", "8,8,3,3");
  header_add(&endless, "", "output_blocks.0.0.in_layers.2.weight", "8,8,3,3");
  for (int i = 0; i < 32; i++) {
    char name[64];
    snprintf(name, sizeof name, "input_blocks.%d.0.op.weight", i);
    header_add(&endless, "", name, "8,8,3,3");
  }
  assert_int_equal(ask(&endless, (gm_component_settings){.width = 0}).count, 0);
  add_whisper(&whisper, 400, 1); /* no heads of 64 */
  assert_int_equal(ask(&whisper, (gm_component_settings){.width = 0}).count, 0);
}

/* The levels of SD's naming are told by the tensors that halve the image. */
static void test_a_unet_has_2_to_8_levels(void **state) {
  (void)state;
  for (int halved = 0; halved < 10; halved++) {
    header file = {.length = 0};
    header_add(&file, "", "input_blocks.0.0.weight", "320,4,3,3");
    header_add(&file, "", "middle_block.0.in_layers.2.weight", "320,320,3,3");
    header_add(&file, "", "output_blocks.0.0.in_layers.2.weight", "320,640,3,3");
    header_add(&file, "input_blocks.1.1.transformer_blocks.0.", "attn1.to_q.weight", "320,320");
    header_add(&file, "input_blocks.1.1.transformer_blocks.0.", "attn2.to_k.weight", "320,768");
    for (int i = 1; i <= halved; i++) {
      char name[64];
      snprintf(name, sizeof name, "input_blocks.%d.0.op.weight", 3 * i);
      header_add(&file, "", name, "320,320,3,3");
    }
    assert_int_equal(ask(&file, (gm_component_settings){.width = 0}).count, halved >= 1 && halved <= 7);
  }
}

/* More prefixes than there is room for: nothing is lost. */
static void test_many_prefixes_are_all_counted(void **state) {
  (void)state;
  header file = {.length = 0};
  char name[160];
  add_flux(&file, "model.diffusion_model.", 256);
  for (int i = 0; i < 40; i++) {
    snprintf(name, sizeof name, "text_encoders.n%d.w", i);
    header_add(&file, "", name, "2,2");
  }
  snprintf(name, sizeof name, "text_encoders.%0100d.w", 7); /* longer than a name may be */
  header_add(&file, "", name, "2,2");
  const answer got = ask(&file, (gm_component_settings){.width = 0});
  uint64_t bytes = 0;
  assert_int_equal(got.count, GM_COMPONENTS_MAX);
  for (uint32_t i = 0; i < got.count; i++) bytes += got.items[i].weight_bytes;
  assert_int_equal(bytes, file.at);
  assert_string_equal(got.items[GM_COMPONENTS_MAX - 1].name, "others");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_engines_took_is_inside),
                                     cmocka_unit_test(test_both_namings_are_one_model),
                                     cmocka_unit_test(test_a_file_holds_several_components),
                                     cmocka_unit_test(test_what_is_not_known_is_unknown),
                                     cmocka_unit_test(test_other_models_have_no_components),
                                     cmocka_unit_test(test_gguf_is_read_as_safetensors_are),
                                     cmocka_unit_test(test_gguf_of_another_denoiser_is_unknown),
                                     cmocka_unit_test(test_gguf_without_a_name_has_no_components),
                                     cmocka_unit_test(test_settings_change_the_buffer),
                                     cmocka_unit_test(test_sizes_are_rounded_up),
                                     cmocka_unit_test(test_bad_arguments_are_refused),
                                     cmocka_unit_test(test_strange_shapes_are_no_family),
                                     cmocka_unit_test(test_a_unet_has_2_to_8_levels),
                                     cmocka_unit_test(test_many_prefixes_are_all_counted)};
  return cmocka_run_group_tests(tests, folder_setup, folder_teardown);
}
