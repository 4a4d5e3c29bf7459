/* estimate_model_memory, estimate_kv_cache_memory, estimate_inference_memory: Mistral 7B in FP32 and FP16. */
#include "example.h"
#include "gm/estimate.h"

#define GIB(bytes) ((double)(bytes) / (1 << 30))

int main(void) {
  const gm_model_dims mistral = {
      .hidden = 4096, .intermediate = 14336, .layers = 32, .vocab = 32000, .heads = 32, .kv_heads = 8};
  const gm_inference_memory fp32 = gm_estimate_inference_memory(&mistral, 4096, 4);
  const gm_inference_memory fp16 = gm_estimate_inference_memory(&mistral, 4096, 2);
  printf("FP32: %.2f GB, FP16: %.2f GB\n", GIB(fp32.total_bytes), GIB(fp16.total_bytes));
  printf("  Model: %.2f GB, KV cache: %.2f GB, activations: %.2f MB\n", GIB(fp16.model_bytes), GIB(fp16.kv_cache_bytes),
         1024 * GIB(fp16.activation_bytes));
  CLAIM(gm_estimate_parameters(&mistral) == UINT64_C(7241732096)); /* as the model's own file counts them */
  CLAIM(fp32.model_bytes == 4 * UINT64_C(7241732096) && gm_estimate_model_memory(&mistral, 4) == fp32.model_bytes);
  CLAIM(fp16.kv_cache_bytes == UINT64_C(512) << 20);
  CLAIM(gm_estimate_kv_cache_memory(32, 8, 4096 / 32, 4096, 2) == fp16.kv_cache_bytes);
  CLAIM(fp16.total_bytes == fp16.model_bytes + fp16.kv_cache_bytes + fp16.activation_bytes);
  return 0;
}
