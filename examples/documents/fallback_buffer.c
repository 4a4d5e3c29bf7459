/* FallbackBuffer: on the device or on the CPU, with a place, a length and an id. The CPU computes on one that fell. */
#include "example.h"

enum { FLOATS = 1 << 18 };

int main(int argc, char **argv) {
  const gm_pool_params params = {.struct_size = sizeof params, .max_bytes = FLOATS * sizeof(float)}; /* room for one */
  const example e = example_open(argc > 1 ? argv[1] : "cpu", &params);
  const gm_buffer_params vector = {.struct_size = sizeof vector,
                                   .request = {.bytes = FLOATS * sizeof(float)},
                                   .fallback = GM_FALLBACK_HOST,
                                   .elements = FLOATS};
  gm_buffer *gpu, *cpu;
  void *numbers;
  float last = 0;
  DO(gm_buffer_create(e.pool, &vector, &gpu, &err));
  DO(gm_buffer_create(e.pool, &vector, &cpu, &err));
  CLAIM(gm_buffer_location(gpu) == GM_LOCATION_DEVICE && gm_buffer_location(cpu) == GM_LOCATION_HOST);
  CLAIM(gm_buffer_id(gpu) != gm_buffer_id(cpu) && gm_buffer_bytes(cpu) == FLOATS * sizeof(float));

  DO(gm_buffer_lock(cpu, NULL, &err));
  DO(gm_buffer_host(cpu, &numbers, &err)); /* cpu_buffer */
  for (int i = 0; i < FLOATS; i++) ((float *)numbers)[i] = 2.0F * (float)i;
  DO(gm_buffer_unlock(cpu, NULL, &err));
  DO(gm_buffer_read(cpu, (FLOATS - 1) * sizeof last, &last, sizeof last, NULL, &err));
  CLAIM(last == 2.0F * (FLOATS - 1));
  gm_buffer_release(gpu, NULL);
  gm_buffer_release(cpu, NULL);
  puts("the second vector fell back, and the CPU computed on it");
  return example_close(e);
}
