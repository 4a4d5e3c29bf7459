/* The needs of a 7-billion-parameter model, from six dimensions: parameters, weights, cache, activations. */
#include <inttypes.h>
#include <stdio.h>

#include "gm/estimate.h"
#include "gm/size.h"

static void print_bytes(const char *what, uint64_t bytes) {
  char text[24];
  gm_format_bytes(bytes, text, sizeof text);
  printf("  %-12s %15" PRIu64 "  %s\n", what, bytes, text);
}

static void print_run(const gm_model_dims *dims, const char *type, uint32_t element_bytes) {
  gm_inference_memory memory = gm_estimate_inference_memory(dims, 4096, element_bytes);
  printf("%s, 4096 tokens of context:\n", type);
  print_bytes("weights", memory.model_bytes);
  print_bytes("cache", memory.kv_cache_bytes);
  print_bytes("activations", memory.activation_bytes);
  print_bytes("total", memory.total_bytes);
}

int main(void) {
  const gm_model_dims mistral = {
      .hidden = 4096, .intermediate = 14336, .layers = 32, .vocab = 32000, .heads = 32, .kv_heads = 8};
  printf("Mistral 7B: %" PRIu64 " parameters\n", gm_estimate_parameters(&mistral));
  print_run(&mistral, "fp32", 4);
  print_run(&mistral, "fp16", 2);
  return 0;
}
