/* One copy between two devices of a simulated driver, and its bytes. Needs cmocka.h included before. */
#ifndef GM_TESTS_TRANSFER_PLAYED_COPY_H
#define GM_TESTS_TRANSFER_PLAYED_COPY_H

#include "gm/peer.h"
#include "transfer/played_driver.h"

static inline gm_peer_result played_copy(const world_end *to, const world_end *from, gm_stream *stream, gm_point *out) {
  gm_peer_result result = {.struct_size = sizeof result};
  world_ok(
      gm_block_copy_peer(to->pool, &to->block, 0, from->pool, &from->block, 0, WORLD_BYTES, stream, out, &result, err));
  return result;
}

static inline void played_check_bytes(const world_end *to) {
  world_read(to);
  assert_memory_equal(world_got, world_sent, WORLD_BYTES);
}

#endif
