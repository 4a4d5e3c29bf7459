/* Unified memory: the CPU writes it and the device uses it, without a copy where both have one memory. */
#include "example.h"
#include "gm/managed.h"

enum { BYTES = 1 << 20 };

int main(int argc, char **argv) {
  const example e = example_open(argc > 1 ? argv[1] : "cpu", NULL);
  const gm_managed_params params = {.struct_size = sizeof params, .bytes = BYTES, .zero = true};
  gm_managed *unified;
  gm_stream *stream;
  gm_managed_info info = {.struct_size = sizeof info};
  DO(gm_stream_create(e.device, &stream, &err));
  DO(gm_managed_create(e.pool, &params, &unified, &err)); /* alloc_unified */
  float *data = gm_managed_host(unified);
  data[0] = 1; /* the CPU writes directly */
  DO(gm_managed_prefetch(unified, GM_MANAGED_ON_DEVICE, 0, BYTES, stream, NULL, &err));
  const float two = 2; /* process_on_gpu_unified: here a fill of the device changes the second number */
  DO(gm_block_fill(e.pool, gm_managed_block(unified), sizeof two, sizeof two, &two, sizeof two, stream, NULL, &err));
  DO(gm_managed_prefetch(unified, GM_MANAGED_ON_HOST, 0, BYTES, stream, NULL, &err));
  CLAIM(data[0] == 1 && data[1] == 2 && data[2] == 0);
  DO(gm_managed_get_info(unified, &info, &err));
  static const char *const kinds[] = {"the driver migrates it", "one memory, no copies", "a copy on each side"};
  printf("%s\n", kinds[info.kind]);
  DO(gm_managed_destroy(unified, stream, &err));
  DO(gm_stream_close(stream, &err));
  return example_close(e);
}
