/* Persistent kernels: the state stays on the device over 1000 steps, and one copy gets the result. */
#include "example.h"
#include "gm/relocation.h"

int main(int argc, char **argv) {
  const example e = example_open(argc > 1 ? argv[1] : "cpu", NULL);
  const gm_buffer_params params = {.struct_size = sizeof params,
                                   .request = {.bytes = 1 << 16, .flags = GM_EVICTABLE | GM_ZERO}};
  gm_buffer *state;
  gm_stream *stream;
  gm_block block;
  DO(gm_stream_create(e.device, &stream, &err));
  DO(gm_buffer_create(e.pool, &params, &state, &err));
  DO(gm_buffer_set_persistent(state, true, &err)); /* it leaves the device last */
  DO(gm_buffer_lock(state, &block, &err));
  const gm_stats before = example_stats(e.pool);
  for (uint32_t step = 1; step <= 1000;
       step++) { /* evolve_kernel: here a fill on the stream, which the host awaits not */
    gm_point done;
    DO(gm_block_fill(e.pool, &block, 4 * (step % 1000), 4, &step, 4, stream, &done, &err));
    gm_point_release(e.device, &done);
  }
  DO(gm_buffer_unlock(state, stream, &err));
  CLAIM(gm_buffer_location(state) == GM_LOCATION_DEVICE);
  CLAIM(example_stats(e.pool).allocs == before.allocs);
  static uint32_t result[1000];
  DO(gm_buffer_read(state, 0, result, sizeof result, stream, &err)); /* only the final result */
  for (uint32_t i = 1; i < 1000; i++) CLAIM(result[i] == i);
  CLAIM(result[0] == 1000);
  gm_buffer_release(state, stream);
  DO(gm_stream_close(stream, &err));
  puts("1000 steps, one copy");
  return example_close(e);
}
