/* NVLink optimization: enable_peer_access, and a copy from one GPU to the other one. */
#include "example.h"
#include "gm/peer.h"

enum { BYTES = 1 << 20 };

int main(int argc, char **argv) {
  const example first = example_open(argc > 1 ? argv[1] : "cuda", NULL);
  example second = {first.ctx, NULL, NULL};
  DO(gm_device_open_index(first.ctx, argc > 1 ? argv[1] : "cuda", 1, &second.device, &err));
  DO(gm_pool_create(second.device, NULL, &second.pool, &err));
  const gm_block from = example_alloc(first.pool, BYTES, NULL), to = example_alloc(second.pool, BYTES, NULL);
  static unsigned char back[BYTES];
  gm_peer_result result = {.struct_size = sizeof result};
  DO(gm_block_fill(first.pool, &from, 0, BYTES, "p", 1, NULL, NULL, &err));
  DO(gm_peer_enable(second.device, first.device, &err));
  DO(gm_block_copy_peer(second.pool, &to, 0, first.pool, &from, 0, BYTES, NULL, NULL, &result, &err)); /* memcpy_peer */
  CLAIM(result.route == GM_PEER_DIRECT);
  DO(gm_block_read(second.pool, &to, 0, back, BYTES, NULL, NULL, &err));
  for (int i = 0; i < BYTES; i++) CLAIM(back[i] == 'p');
  gm_free(first.pool, &from, NULL);
  gm_free(second.pool, &to, NULL);
  DO(gm_pool_destroy(second.pool, &err));
  DO(gm_device_close(second.device, &err));
  puts("the bytes went directly");
  return example_close(first);
}
