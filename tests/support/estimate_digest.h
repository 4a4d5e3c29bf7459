/* A digest of the figures that gm says about a model, which can be printed as well: dimensions, ranges and parts. */
#ifndef GM_TESTS_SUPPORT_ESTIMATE_DIGEST_H
#define GM_TESTS_SUPPORT_ESTIMATE_DIGEST_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "gm/estimate.h"

/* FNV-1a of the figures so far, which are printed where `shows`. */
typedef struct digest {
  uint64_t sum;
  bool shows;
} digest;

static const digest digest_none = {.sum = UINT64_C(14695981039346656037)};

static inline void digest_bytes(digest *self, const void *bytes, size_t length) {
  for (size_t i = 0; i < length; i++) {
    self->sum = (self->sum ^ ((const unsigned char *)bytes)[i]) * UINT64_C(1099511628211);
  }
}

static inline void put(digest *self, const char *name, uint64_t value) {
  digest_bytes(self, &value, sizeof value);
  if (self->shows) printf(" %s=%" PRIu64, name, value);
}

static inline void put_text(digest *self, const char *name, const char *text) {
  digest_bytes(self, text, strlen(text) + 1);
  if (self->shows) printf(" %s=\"%s\"", name, text);
}

static inline void put_range(digest *self, const char *name, const gm_memory_range *range) {
  put(self, name, range->bytes);
  put(self, "low", range->low);
  put(self, "high", range->high);
}

static inline void put_part(digest *self, const char *name, const gm_estimate_part *part) {
  put(self, name, part->standing);
  put_range(self, "bytes", &part->range);
  put_text(self, "why", part->reason);
}

static inline void put_head(digest *self, const char *what, int number) {
  if (self->shows) printf("\n%s %d:", what, number);
}

/* ---- dimensions ---- */

static inline void put_kind(digest *self, const gm_layer_kind *kind) {
  const struct {
    const char *name;
    uint64_t value;
  } of[] = {{"flags", kind->flags},
            {"heads", kind->heads},
            {"kv_heads", kind->kv_heads},
            {"key", kind->key_size},
            {"value", kind->value_size},
            {"query", kind->query_size},
            {"result", kind->result_size},
            {"query_rank", kind->query_rank},
            {"rotated", kind->rotated_size},
            {"indexer", kind->indexer_size},
            {"indexer_value", kind->indexer_value_size},
            {"indexer_top", kind->indexer_top},
            {"experts", kind->experts},
            {"used", kind->experts_used},
            {"conv_kernel", kind->conv_kernel},
            {"state", kind->state_size},
            {"inner", kind->inner_size},
            {"window", kind->window},
            {"intermediate", kind->intermediate},
            {"expert", kind->expert_intermediate},
            {"shared", kind->shared_intermediate},
            {"conv_elements", kind->conv_elements},
            {"state_elements", kind->state_elements},
            {"parameters", kind->parameters},
            {"expert_parameters", kind->expert_parameters}};
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) put(self, of[i].name, of[i].value);
}

static inline void put_config(digest *self, const gm_model_config *config) {
  put_head(self, "dimensions", 0);
  put_text(self, "architecture", config->architecture);
  const uint64_t of[] = {config->hidden,
                         config->layers,
                         config->vocab,
                         config->context,
                         config->encoder_layers,
                         config->encoder_only,
                         config->tied_embeddings,
                         config->weight_type,
                         config->parameters_counted,
                         config->embedding_parameters,
                         config->output_parameters,
                         config->other_parameters,
                         (uint64_t)(config->matrix_bits * 1000),
                         config->experts_quantised,
                         config->layer_embedding,
                         config->indexer_block};
  for (size_t i = 0; i < sizeof of / sizeof *of; i++) put(self, "", of[i]);
  put_text(self, "uncounted", config->uncounted);
  put_text(self, "unsure", config->unsure);
  for (uint32_t i = 0; i < config->kind_count; i++) {
    put_head(self, "kind", (int)i);
    put_kind(self, &config->kinds[i]);
  }
  const gm_layer_kind widest = gm_model_widest_layer(config);
  put_head(self, "widest", 0);
  put_kind(self, &widest);
  digest_bytes(self, config->kind_of, config->layers);
}

#endif
