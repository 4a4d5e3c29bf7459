/* select_backend_for_model, and init_backend_with_memory_check: a backend on which a model fits, or what was tried and
 * why not.
 *
 *   select_backend EXPECTED      the backend that the test has a card of 40 GiB for */
#include "example.h"
#include "gm/estimate.h"

static gm_status open_for_model(gm_context *ctx, const gm_model_dims *dims, uint64_t max_seq_len, uint32_t dtype_bytes,
                                gm_device **out, gm_error *why) {
  const uint64_t bytes = gm_estimate_inference_memory(dims, max_seq_len, dtype_bytes).total_bytes;
  return gm_open_for_bytes(ctx, "auto", bytes, out, why); /* the message says what was tried, and why not */
}

int main(int argc, char **argv) {
  const gm_model_dims mistral = {
      .hidden = 4096, .intermediate = 14336, .layers = 32, .vocab = 32000, .heads = 32, .kv_heads = 8};
  const uint64_t bytes = gm_estimate_inference_memory(&mistral, 4096, 4).total_bytes;
  gm_context *ctx;
  gm_device *device;
  gm_selection chosen = {.struct_size = sizeof chosen};
  DO(gm_context_create(NULL, &ctx, &err));
  DO(gm_select_backend_for_bytes(ctx, bytes, NULL, &chosen, &err));
  printf("model requires %.2f GB: use %s on device %" PRIu32 "\n", (double)bytes / (1 << 30), chosen.id.backend,
         chosen.device);
  CLAIM(strcmp(chosen.id.backend, argc > 1 ? argv[1] : "cuda") == 0);

  DO(open_for_model(ctx, &mistral, 4096, 4, &device, &err)); /* init_backend_with_memory_check */
  CLAIM(strcmp(gm_device_get_info(device)->backend, chosen.id.backend) == 0);
  DO(gm_device_close(device, &err));

  CLAIM(gm_open_for_bytes(ctx, "auto", UINT64_C(1) << 50, &device, &err) == GM_ERR_NOT_FOUND);
  CLAIM(strstr(err.message, chosen.id.backend)); /* each backend, and why it failed */
  printf("failed: %s\n", err.message);
  DO(gm_context_destroy(ctx, &err));
  return 0;
}
