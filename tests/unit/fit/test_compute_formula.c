/* Compute buffers of an architecture without a row, term by term, on round numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "gm/estimate.h"

enum { HIDDEN = 64, HEADS = 8, HEAD = 8, TOKENS = 512, CELLS = 1024, VOCAB = 10 };

static gm_memory_estimate estimate_of(const char *architecture, uint32_t second_layer, bool plain_attention) {
  const gm_layer_kind attends = {.flags = GM_LAYER_ATTENDS,
                                 .heads = HEADS,
                                 .kv_heads = HEADS,
                                 .key_size = HEAD,
                                 .value_size = HEAD,
                                 .intermediate = 1};
  gm_model_config config = {.struct_size = sizeof config,
                            .hidden = HIDDEN,
                            .layers = 2,
                            .vocab = VOCAB,
                            .context = CELLS,
                            .kind_count = 2,
                            .kind_of = {0, 1},
                            .kinds = {attends, attends}};
  config.kinds[1].flags = second_layer;
  if (second_layer == GM_LAYER_RECURRENT) config.kinds[1].state_elements = HEADS * HEAD * HEAD;
  snprintf(config.architecture, sizeof config.architecture, "%s", architecture);
  const gm_estimate_settings settings = {.struct_size = sizeof settings,
                                         .context = CELLS,
                                         .batch = TOKENS,
                                         .outputs = 1,
                                         .plain_attention = plain_attention};
  gm_memory_estimate out = {.struct_size = sizeof out};
  gm_error err = {0};
  if (gm_estimate_memory(NULL, &config, NULL, &settings, &out, &err)) fail_msg("%s", err.message);
  return out;
}

/* The mask, the residual's row, queries, keys and values of all tokens. */
static uint64_t attention_without_scores(uint64_t mask_bytes) {
  return mask_bytes * CELLS * TOKENS + UINT64_C(4) * HIDDEN * TOKENS +
         UINT64_C(4) * TOKENS * (2 * HEADS * HEAD + HIDDEN + 2 * HIDDEN);
}

static void test_scores_of_plain_attention(void **state) {
  (void)state;
  assert_int_equal(estimate_of("arctic", GM_LAYER_ATTENDS, false).device_compute.bytes, attention_without_scores(2));
  const uint64_t keys = UINT64_C(8) * TOKENS * HIDDEN, scores = UINT64_C(4) * TOKENS * CELLS * HEADS;
  assert_int_equal(estimate_of("arctic", GM_LAYER_ATTENDS, true).device_compute.bytes,
                   attention_without_scores(4) + keys + scores);
}

/* A slope for each head, decays of queries and of keys, and those between any two tokens. */
static void test_inputs_of_linear_attention(void **state) {
  (void)state;
  const gm_memory_estimate linear = estimate_of("minimax-01", GM_LAYER_RECURRENT, false);
  const gm_memory_estimate other = estimate_of("arctic", GM_LAYER_RECURRENT, false);
  assert_int_equal(linear.host_compute.bytes - other.host_compute.bytes,
                   4 * HEADS + 2 * UINT64_C(4) * HEADS * TOKENS + UINT64_C(4) * HEADS * TOKENS * TOKENS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_scores_of_plain_attention),
      cmocka_unit_test(test_inputs_of_linear_attention),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
