/* Folders of diffusers: every component counts, and a folder that is not whole has no answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gm/components.h"
#include "support/component_files.h"
#include "support/fail_each.h"

static void put(const char *name, const char *text) { temp_folder_write(&folder, name, text, strlen(text)); }

/* FLUX.1 as it is published; what has no weights has no folder here. */
static const char whole[] =
    "{\"_class_name\": \"FluxPipeline\", \"_diffusers_version\": \"0.30.0\",\n"
    " \"scheduler\": [\"diffusers\", \"FlowMatchEulerDiscreteScheduler\"],\n"
    " \"text_encoder\": [\"transformers\", \"CLIPTextModel\"],\n"
    " \"text_encoder_2\": [\"transformers\", \"T5EncoderModel\"],\n"
    " \"tokenizer\": [\"transformers\", \"CLIPTokenizer\"],\n"
    " \"tokenizer_2\": [\"transformers\", \"T5TokenizerFast\"],\n"
    " \"image_encoder\": [null, null], \"requires_safety_checker\": true,\n"
    " \"feature_extractor\": [\"transformers\", \"CLIPImageProcessor\"],\n"
    " \"transformer\": [\"diffusers\", \"FluxTransformer2DModel\"],\n"
    " \"vae\": [\"diffusers\", \"AutoencoderKL\"]}\n";

static uint64_t make_whole(void) {
  header files[4] = {{.length = 0}};
  static const char *const folders[] = {"text_encoder", "text_encoder_2", "transformer", "vae"};
  static const char *const names[] = {"text_encoder/model.safetensors", "text_encoder_2/model.safetensors",
                                      "transformer/diffusion_pytorch_model.safetensors",
                                      "vae/diffusion_pytorch_model.safetensors"};
  uint64_t bytes = 0;
  add_clip(&files[0], "", 768);
  add_t5(&files[1], "");
  add_flux_diffusers(&files[2], 3072);
  add_vae_diffusers(&files[3]);
  for (int i = 0; i < 4; i++) {
    temp_folder_dir(&folder, folders[i]);
    header_write(&files[i], names[i]);
    bytes += files[i].at;
  }
  put("model_index.json", whole);
  return bytes;
}

static gm_status ask(gm_component *out, uint32_t capacity, uint32_t *count, gm_error *err) {
  const gm_component_settings run = {.struct_size = sizeof run, .width = 512, .height = 512};
  return gm_estimate_pipeline(NULL, folder.path, &run, out, capacity, count, err);
}

static void test_every_component_counts(void **state) {
  (void)state;
  static const char *const names[] = {"text_encoder", "text_encoder_2", "transformer", "vae"};
  static const char *const families[] = {"clip", "t5", "flux", "vae"};
  gm_component out[4];
  uint32_t count = 0;
  uint64_t bytes = 0;
  const uint64_t wanted = make_whole();
  assert_int_equal(ask(out, 4, &count, NULL), GM_OK);
  assert_int_equal(count, 4);
  for (int i = 0; i < 4; i++) {
    assert_string_equal(out[i].name, names[i]);
    assert_string_equal(out[i].family, families[i]);
    assert_int_equal(out[i].compute.standing, GM_STANDING_INTERVAL);
    bytes += out[i].weight_bytes;
  }
  assert_int_equal(bytes, wanted);
}

/* Its folder tells what a component of no known family is. */
static void test_a_strange_component_is_unknown(void **state) {
  (void)state;
  gm_component out[GM_COMPONENTS_MAX];
  uint32_t count = 0;
  header file = {.length = 0};
  header_add(&file, "", "blocks.0.attn.weight", "8,8");
  make_whole();
  header_write(&file, "transformer/diffusion_pytorch_model.safetensors");
  assert_int_equal(ask(out, GM_COMPONENTS_MAX, &count, NULL), GM_OK);
  assert_int_equal(out[2].kind, GM_COMPONENT_DENOISER);
  assert_string_equal(out[2].family, "");
  assert_int_equal(out[2].weight_bytes, 128);
  assert_int_equal(out[2].compute.standing, GM_STANDING_UNKNOWN);
}

/* `count` keeps what it was. */
static void refused(gm_status wanted, const char *message) {
  gm_component out[GM_COMPONENTS_MAX];
  uint32_t count = 77;
  gm_error err = {.status = GM_OK};
  const gm_status status = ask(out, GM_COMPONENTS_MAX, &count, &err);
  if (status != wanted || !strstr(err.message, message)) fail_msg("%s: %s", gm_status_name(status), err.message);
  assert_int_equal(count, 77);
  assert_string_equal(err.op, "gm_estimate_pipeline");
}

static void test_a_missing_part_is_named(void **state) {
  (void)state;
  char path[256];
  make_whole();
  snprintf(path, sizeof path, "%s/text_encoder_2/model.safetensors", folder.path);
  assert_int_equal(remove(path), 0);
  refused(GM_ERR_NOT_FOUND, "component text_encoder_2: ");
  snprintf(path, sizeof path, "%s/text_encoder_2", folder.path);
  assert_int_equal(remove(path), 0);
  refused(GM_ERR_NOT_FOUND, "component text_encoder_2: ");
  put("model_index.json", "{\"a\": [\"d\", \"A\"]}"); /* one letter is a name */
  refused(GM_ERR_NOT_FOUND, "component a: ");
}

static void test_a_broken_part_is_named(void **state) {
  (void)state;
  make_whole();
  put("vae/diffusion_pytorch_model.safetensors", "version https://git-lfs.github.com/spec/v1\n");
  refused(GM_ERR_FORMAT, "component vae: ");
}

static void test_bad_indices_are_refused(void **state) {
  (void)state;
  static const struct {
    const char *text, *message;
  } bad[] = {{"", "byte 0"},
             {"[]", "byte 0"},
             {"{}", "no component"},
             {"{\"_class_name\": [\"x\", \"Model\"]}", "no component"},
             {"{\"tokenizer\": [\"transformers\", \"CLIPTokenizer\"]}", "no component"},
             {"{\"vae\": [null, null]}", "no component"},
             {"{\"vae\": [\"diffusers\"]}", "no component"},
             {"{\"vae\": [\"diffusers\", \"A\"", "byte"},
             {"{\"vae\": [\"diffusers\", \"A\"], \"vae\": [\"diffusers\", \"A\"]}", "twice"},
             {"{\"../vae\": [\"diffusers\", \"A\"]}", "no name"},
             {"{\"..\": [\"diffusers\", \"A\"]}", "no name"},
             {"{\"\": [\"diffusers\", \"A\"]}", "no name"},
             {"{\"0123456789012345678901234567890123456789012345678901234567890123\": [\"d\", \"A\"]}", "no name"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    put("model_index.json", bad[i].text);
    refused(GM_ERR_FORMAT, bad[i].message);
  }
  char *large = calloc(1, 70000);
  assert_non_null(large);
  memset(large, ' ', 69999);
  put("model_index.json", large);
  refused(GM_ERR_FORMAT, "65536");
  free(large);
}

static void test_no_index_and_too_little_room(void **state) {
  (void)state;
  gm_component out[3];
  uint32_t count = 0;
  gm_error err;
  refused(GM_ERR_NOT_FOUND, "model_index.json");
  make_whole();
  assert_int_equal(ask(out, 3, &count, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "`capacity` is 3, for 4"));
  assert_int_equal(gm_estimate_pipeline(NULL, "", NULL, out, 3, &count, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_estimate_pipeline(NULL, folder.path, NULL, NULL, 3, &count, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_estimate_pipeline(NULL, folder.path, NULL, out, 3, NULL, &err), GM_ERR_INVALID_ARGUMENT);
  const gm_component_settings wide = {.struct_size = sizeof wide, .width = UINT32_MAX};
  assert_int_equal(gm_estimate_pipeline(NULL, folder.path, &wide, out, 3, &count, &err), GM_ERR_INVALID_ARGUMENT);
}

/* Asks for the folder by a path of so many bytes: slashes lead nowhere. */
static gm_status ask_at_length(size_t bytes, gm_error *err) {
  gm_component out[GM_COMPONENTS_MAX];
  uint32_t count = 0;
  char path[5000];
  const size_t length = (size_t)snprintf(path, sizeof path, "%s", folder.path);
  memset(path + length, '/', bytes - length);
  path[bytes] = 0;
  *err = (gm_error){.status = GM_OK};
  return gm_estimate_pipeline(NULL, path, NULL, out, GM_COMPONENTS_MAX, &count, err);
}

/* The longest path of a system has 4095 bytes, with the name of the file or folder. */
static void test_the_longest_path(void **state) {
  (void)state;
  const size_t to_index = 4095 - strlen("/model_index.json"), to_name = 4095 - strlen("/transformer_of_great_size");
  gm_error err;
  make_whole();
  assert_int_equal(ask_at_length(to_index, &err), GM_ERR_IO); /* the names of files in folders are longer */
  assert_non_null(strstr(err.message, "component text_encoder: "));
  assert_int_equal(ask_at_length(to_index + 1, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "more than 4096 bytes"));
  put("model_index.json", "{\"transformer_of_great_size\": [\"d\", \"A\"]}");
  assert_int_equal(ask_at_length(to_name, &err), GM_ERR_NOT_FOUND); /* there is no such folder */
  assert_non_null(strstr(err.message, "component transformer_of_great_size: "));
  assert_int_equal(ask_at_length(to_name + 1, &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "more than 4096 bytes"));
}

static gm_status attempt(const gm_services *services) {
  gm_component out[4];
  uint32_t count = 0;
  return gm_estimate_pipeline(services, folder.path, NULL, out, 4, &count, NULL);
}

static void test_every_request_for_memory_may_fail(void **state) {
  (void)state;
  make_whole();
  fail_each_allocation(attempt, 20);
}

int main(void) {
#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)
  const struct CMUnitTest tests[] = {
      IN_A_FOLDER(test_every_component_counts),  IN_A_FOLDER(test_a_strange_component_is_unknown),
      IN_A_FOLDER(test_a_missing_part_is_named), IN_A_FOLDER(test_a_broken_part_is_named),
      IN_A_FOLDER(test_bad_indices_are_refused), IN_A_FOLDER(test_no_index_and_too_little_room),
      IN_A_FOLDER(test_the_longest_path),        IN_A_FOLDER(test_every_request_for_memory_may_fail)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
