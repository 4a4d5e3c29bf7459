/* Each bound of a dimension and of a setting: the last number that is let in, and the first that is refused by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "gm/estimate.h"

typedef struct model {
  gm_model_config config;
  gm_estimate_settings settings;
} model;

typedef struct bound {
  const char *name; /* as a refusal tells it */
  size_t at, size;  /* of a number of `model` */
  uint64_t low, high;
} bound;

#define BOUND(name, member, low, high) \
  { name, offsetof(model, member), sizeof(((model *)NULL)->member), (low), (high) }
#define KIND(member, low, high) BOUND("kinds[0]." #member, config.kinds[0].member, low, high)

static const bound bounds[] = {
    KIND(heads, 1, 4096),
    KIND(kv_heads, 0, 4096),
    KIND(key_size, 0, 1u << 17),
    KIND(value_size, 0, 1u << 16),
    KIND(query_size, 0, 1u << 16),
    KIND(result_size, 0, 1u << 16),
    KIND(query_rank, 0, 1u << 24),
    KIND(rotated_size, 0, 1u << 16),
    KIND(experts, 0, 1u << 16),
    KIND(experts_used, 0, 1u << 10),
    KIND(conv_kernel, 0, 1u << 16),
    KIND(state_size, 0, 1u << 16),
    KIND(inner_size, 0, 1u << 20),
    KIND(window, 0, 1u << 28),
    KIND(intermediate, 0, 1u << 24),
    KIND(expert_intermediate, 0, 1u << 24),
    KIND(shared_intermediate, 0, 1u << 26),
    BOUND("hidden", config.hidden, 1, 1u << 20),
    BOUND("layers", config.layers, 1, GM_MODEL_LAYERS_MAX),
    BOUND("vocab", config.vocab, 1, 1u << 26),
    BOUND("layer_embedding", config.layer_embedding, 0, 1u << 16),
    BOUND("indexer_block", config.indexer_block, 0, 1u << 20),
    BOUND("residual_streams", config.residual_streams, 0, 16),
    BOUND("residual_period", config.residual_period, 0, GM_MODEL_LAYERS_MAX),
    BOUND("expert_latent", config.expert_latent, 0, 1u << 20),
    BOUND("context", settings.context, 1, 1u << 28),
    BOUND("sequences", settings.sequences, 1, 1u << 12),
    BOUND("batch", settings.batch, 1, 1u << 28),
    BOUND("micro_batch", settings.micro_batch, 1, 1u << 18),
    BOUND("device_alignment", settings.device_alignment, 1, 1u << 20),
};

/* Zeros of these stand for usual numbers. */
static bool has_usual(const bound *self) { return self->at >= offsetof(model, settings); }

/* Whether the number is refused by its name. */
static bool is_refused(const bound *self, uint64_t number) {
  model of = {.config = {.struct_size = sizeof of.config,
                         .architecture = "llama",
                         .hidden = 64,
                         .layers = 2,
                         .vocab = 10,
                         .context = 1024,
                         .kind_count = 1,
                         .kinds = {{.flags = GM_LAYER_ATTENDS, .heads = 4, .kv_heads = 4, .intermediate = 128}}},
              .settings = {.struct_size = sizeof of.settings, .batch = 1u << 20, .context = 1u << 20}};
  of.config.kinds[0].key_size = of.config.kinds[0].value_size = 16;
  gm_memory_estimate out = {.struct_size = sizeof out};
  gm_error err = {.status = GM_OK};
  char wanted[64];
  const uint32_t small = (uint32_t)number;
  memcpy((char *)&of + self->at, self->size == sizeof small ? (const void *)&small : (const void *)&number, self->size);
  const gm_status status = gm_estimate_memory(NULL, &of.config, NULL, &of.settings, &out, &err);
  snprintf(wanted, sizeof wanted, "`%s` must be %llu to %llu", self->name, (unsigned long long)self->low,
           (unsigned long long)self->high);
  return status == GM_ERR_INVALID_ARGUMENT && strstr(err.message, wanted);
}

static void each_bound_is_where_it_is(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof bounds / sizeof *bounds; i++) {
    const bound *one = &bounds[i];
    print_message("%s\n", one->name);
    assert_false(is_refused(one, one->low));
    assert_false(is_refused(one, one->high));
    assert_true(is_refused(one, one->high + 1));
    if (one->low && !has_usual(one)) assert_true(is_refused(one, 0));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_bound_is_where_it_is),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
