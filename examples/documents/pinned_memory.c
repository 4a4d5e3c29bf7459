/* Pinned memory: the host writes page-locked memory, and goes on while it is copied to the device. */
#include "example.h"

enum { BYTES = 1 << 20 };

/* On a card this is page-locked memory. GM_MEMORY_PINNED in place of GM_MEMORY_SYSTEM insists on that. It is refused
 * where host and device have one memory. */
static gm_acquire alloc_pinned(gm_pool *pool, uint64_t bytes, gm_block *out) {
  const gm_request request = {.bytes = bytes,
                              .flags = GM_MAPPED,
                              .must_be = GM_DEVICE_ACCESSIBLE,
                              .usage = GM_USAGE_TRANSFER,
                              .require = GM_MEMORY_SYSTEM};
  return gm_alloc(pool, &request, out);
}

int main(int argc, char **argv) {
  const example e = example_open(argc > 1 ? argv[1] : "cuda", NULL);
  static unsigned char back[BYTES];
  gm_block pinned;
  gm_stream *stream;
  gm_point arrived;
  void *host;
  DO(gm_stream_create(e.device, &stream, &err));
  CLAIM(gm_acquired(alloc_pinned(e.pool, BYTES, &pinned)));
  const gm_block gpu = example_alloc(e.pool, BYTES, stream);
  DO(gm_block_host(e.pool, &pinned, &host, &err));
  memset(host, 7, BYTES);
  DO(gm_block_flush(e.pool, &pinned, 0, BYTES, &err));
  DO(gm_block_copy(e.pool, &gpu, 0, e.pool, &pinned, 0, BYTES, stream, &arrived, &err)); /* memcpy_htod_async */
  puts("the CPU works meanwhile");                                                       /* do_cpu_work() */
  DO(gm_point_wait(e.device, &arrived, UINT64_MAX, &err));                               /* synchronize() */
  gm_point_release(e.device, &arrived);
  DO(gm_block_read(e.pool, &gpu, 0, back, BYTES, stream, NULL, &err));
  for (int i = 0; i < BYTES; i++) CLAIM(back[i] == 7);
  gm_free(e.pool, &pinned, stream);
  gm_free(e.pool, &gpu, stream);
  DO(gm_stream_close(stream, &err));
  return example_close(e);
}
