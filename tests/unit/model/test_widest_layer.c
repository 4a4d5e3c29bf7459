/* The sizes of layers, and the widest of them. */
#include "support/layer_scene.h"

/* The largest of each member, over the layers that engines load. */
static void test_the_widest_layer(void **state) {
  (void)state;
  static const uint32_t cached[] = {4, 2, 0, 1}, widths[] = {7, 99, 5, 100};
  scene self;
  scene_begin(&self, "granitehybrid", 4, 6);
  scene_list(&self, "attention.head_count_kv", cached, 4);
  scene_list(&self, "feed_forward_length", widths, 4);
  scene_number(&self, "ssm.conv_kernel", 4);
  scene_number(&self, "ssm.inner_size", 128);
  scene_number(&self, "ssm.state_size", 16);
  scene_number(&self, "nextn_predict_layers", 1);
  gm_model_config config = scene_config(&self);
  const gm_layer_kind widest = gm_model_widest_layer(&config);
  assert_int_equal(widest.flags, GM_LAYER_ATTENDS | GM_LAYER_RECURRENT);
  assert_int_equal(widest.heads, HEADS);
  assert_int_equal(widest.kv_heads, 4);
  assert_int_equal(widest.intermediate, 99); /* the layer of 100 predicts */
  assert_int_equal(widest.inner_size, 128);
  assert_int_equal(widest.state_elements, 16 * 128);
  config.struct_size = 3;
  assert_int_equal(gm_model_widest_layer(&config).heads, 0);
  assert_int_equal(gm_model_widest_layer(NULL).heads, 0);
}

/* A layer with experts has no feed-forward part beside them. The shared ones are as wide together as they are stated,
 * or as so many experts. */
static void test_widths_of_experts(void **state) {
  (void)state;
  for (int stated = 0; stated < 2; stated++) {
    scene self;
    scene_begin(&self, "bailingmoe2", 3, 6 + (uint64_t)stated);
    scene_number(&self, "feed_forward_length", 96);
    scene_number(&self, "expert_count", 16);
    scene_number(&self, "expert_used_count", 4);
    scene_number(&self, "expert_feed_forward_length", 24);
    scene_number(&self, "expert_shared_count", 2);
    scene_number(&self, "leading_dense_block_count", 1);
    if (stated) scene_number(&self, "expert_shared_feed_forward_length", 40);
    const gm_model_config config = scene_config(&self);
    const gm_layer_kind *dense = gm__layer_at(&config, 0), *sparse = gm__layer_at(&config, 1);
    assert_int_equal(dense->intermediate, 96);
    assert_int_equal(dense->experts, 0);
    assert_int_equal(sparse->intermediate, 0);
    assert_int_equal(sparse->experts, 16);
    assert_int_equal(sparse->experts_used, 4);
    assert_int_equal(sparse->expert_intermediate, 24);
    assert_int_equal(sparse->shared_intermediate, stated ? 40 : 48);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_widest_layer),
      cmocka_unit_test(test_widths_of_experts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
