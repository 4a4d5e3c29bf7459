/* The models that the engine of examples/minilm refuses, as they are none of its own, and a host without memory.
 * Made-up models of one layer.
 *
 *   test_minilm_refusals cpu|opencl|opencl-gm */
#include "minilm/scene.h"

#include <math.h>

#include "minilm/tiny_model.h"
#include "support/counted_services.h"
#include "support/test_folder.h"

static const int32_t ids[] = {1, 4, 0};

static gm_status open_once(const char *path, gm_error *err) {
  const minilm_params params = scene_params(path);
  minilm m;
  const gm_status status = minilm_open(&m, &params, err);
  if (status == GM_OK)
    scene_close(&m);
  else
    assert_null(m.ctx);
  return status;
}

static void expect_unit(const float *out) {
  double sum = 0;
  for (int i = 0; i < TINY_WIDTH; i++) sum += (double)out[i] * (double)out[i];
  assert_true(fabs(sum - 1) < 1e-5);
}

static void test_right_model(void **state) {
  const minilm_params params = scene_params(tiny_write(&folder, TINY_NONE, TINY_RIGHT));
  float out[TINY_WIDTH];
  minilm m;
  (void)state;
  scene_open(&m, &params);
  assert_int_equal(m.dims.layers, 1);
  assert_int_equal(m.dims.heads, 1);
  assert_int_equal(m.dims.inner, TINY_INNER);
  assert_int_equal(minilm_embed(&m, ids, 3, out, NULL), GM_OK);
  expect_unit(out);
  scene_close(&m);
}

static void test_each_tensor_wrong(void **state) {
  const tiny_wrong ways[] = {TINY_MISSING, TINY_SHAPE, TINY_HALF};
  gm_error err;
  (void)state;
  for (size_t way = 0; way < sizeof ways / sizeof ways[0]; way++) {
    for (int i = 0; i < TINY_TENSORS; i++) {
      const char *path = tiny_write(&folder, i, ways[way]);
      if (open_once(path, &err) != GM_ERR_FORMAT) fail_msg("way %zu of %s is accepted", way, tiny_tensors[i].name);
    }
  }
}

static void write_config(const char *text) { temp_folder_write(&folder, "config.json", text, strlen(text)); }

static void test_config_beside_the_model(void **state) {
  const minilm_params params = scene_params(tiny_write(&folder, TINY_NONE, TINY_RIGHT));
  float out[TINY_WIDTH];
  minilm m;
  (void)state;
  write_config("{\"model_type\":\"bert\",\"hidden_size\":32,\"num_hidden_layers\":1,\"num_attention_heads\":2}");
  scene_open(&m, &params);
  assert_int_equal(m.dims.heads, 2);
  assert_int_equal(minilm_embed(&m, ids, 3, out, NULL), GM_OK);
  expect_unit(out);
  scene_close(&m);
  write_config("{\"model_type\":\"bert\",\"hidden_size\":64,\"num_hidden_layers\":1,\"num_attention_heads\":2}");
  assert_int_equal(open_once(params.model, NULL), GM_ERR_FORMAT);
  write_config("{\"model_type\":\"bert\",\"hidden_size\":32,\"num_hidden_layers\":1,\"num_attention_heads\":3}");
  assert_int_equal(open_once(params.model, NULL), GM_ERR_FORMAT);
  write_config("{\"model_type\":");
  assert_int_equal(open_once(params.model, NULL), GM_ERR_FORMAT);
}

static void test_no_model(void **state) {
  gm_error err;
  (void)state;
  assert_int_equal(open_once(temp_folder_join(&folder, "none.safetensors"), &err), GM_ERR_NOT_FOUND);
  temp_folder_write(&folder, "text.safetensors", "not a model, but a text", 23);
  assert_int_equal(open_once(temp_folder_join(&folder, "text.safetensors"), &err), GM_ERR_FORMAT);
  const char other[] =
      "\x40\0\0\0\0\0\0\0{\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}          abcd";
  temp_folder_write(&folder, "other.safetensors", other, 8 + 0x40 + 4);
  assert_int_equal(open_once(temp_folder_join(&folder, "other.safetensors"), &err), GM_ERR_FORMAT);
  assert_non_null(strstr(err.message, "embeddings.word_embeddings.weight"));
}

static void test_no_backend(void **state) {
  minilm_params params = scene_params(tiny_write(&folder, TINY_NONE, TINY_RIGHT));
  minilm m;
  (void)state;
  params.backend = "abacus";
  assert_int_equal(minilm_open(&m, &params, NULL), GM_ERR_NOT_SUPPORTED);
  params.backend = scene_backend;
  params.platform = "no such platform";
  assert_int_equal(minilm_open(&m, &params, NULL), strcmp(scene_backend, "cpu") == 0 ? GM_OK : GM_ERR_UNAVAILABLE);
  scene_close(&m);
}

/* GM_OK or OUT_OF_HOST_MEMORY. */
static gm_status embed_with(const char *path, const gm_services *services) {
  minilm_params params = scene_params(path);
  float out[TINY_WIDTH];
  gm_error err = {.status = GM_OK};
  minilm m;
  params.services = services;
  gm_status status = minilm_open(&m, &params, &err);
  if (status) return status;
  status = minilm_embed(&m, ids, 3, out, &err);
  if (status == GM_OK)
    expect_unit(out);
  else
    assert_int_equal(scene_stats(m.work_pool).active, 0);
  scene_close(&m);
  return status;
}

/* A request that fails may be one that gm can do without. */
static void test_each_host_allocation_fails(void **state) {
  const char *path = tiny_write(&folder, TINY_NONE, TINY_RIGHT);
  unsigned refused = 0;
  (void)state;
  for (size_t n = 1;; n++) {
    counted_services host;
    counted_services_init(&host);
    host.fail_at = n;
    host.fail_count = 1;
    const gm_status status = embed_with(path, &host.services);
    counted_services_check(&host);
    assert_true(status == GM_OK || status == GM_ERR_OUT_OF_HOST_MEMORY);
    refused += status != GM_OK;
    if (atomic_load(&host.calls) < n) break; /* none failed */
  }
  assert_true(refused > 50);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_setup, folder_teardown)

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(test_right_model), IN_FOLDER(test_each_tensor_wrong), IN_FOLDER(test_config_beside_the_model),
      IN_FOLDER(test_no_model),    IN_FOLDER(test_no_backend),        IN_FOLDER(test_each_host_allocation_fails),
  };
  folder_setup(NULL);
  const int absent = scene_begin(argc, argv, tiny_write(&folder, TINY_NONE, TINY_RIGHT));
  folder_teardown(NULL);
  return absent ? absent : cmocka_run_group_tests(tests, NULL, NULL);
}
