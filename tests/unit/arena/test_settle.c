/* Free memory that a stream was the last to use becomes everybody's once the stream is done. However many pieces that
 * are, a request moves some of them, and others use the pool in between. Moved pieces are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "backends/null/null_backend.h"
#include "core/arena/free_chunks.h"
#include "core/arena/settle.h"
#include "core/base/thread_here.h"
#include "core/device/device.h"
#include "core/pool/pool.h"
#include "gm/stream.h"
#include "support/pool_bench.h"

#define MIB (UINT64_C(1) << 20)

enum { BLOCKS = 16384, BYTES = 4096, KEPT = 512 };

/* Blocks of quick lists become free first: some builds count these, too. */
enum { PIECE = GM__SETTLE_PIECE + KEPT };

static struct {
  size_t moved, piece, most, pieces; /* chunks that became free of their streams: in all, since the lock was entered */
  void (*between)(void);
} moves;

static void moves_count(size_t count) {
  moves.moved += count;
  moves.piece += count;
  if (moves.piece > moves.most) moves.most = moves.piece;
}

void __real_gm__free_chunk_free(gm__arena *arena, uint32_t number, gm__stream_cache *cache);
void __wrap_gm__free_chunk_free(gm__arena *arena, uint32_t number, gm__stream_cache *cache);
void __wrap_gm__free_chunk_free(gm__arena *arena, uint32_t number, gm__stream_cache *cache) {
  moves_count(1);
  __real_gm__free_chunk_free(arena, number, cache);
}

uint32_t __real_gm__free_chunk_put(gm__arena *arena, uint32_t number, const gm__last_use *use, bool mixes);
uint32_t __wrap_gm__free_chunk_put(gm__arena *arena, uint32_t number, const gm__last_use *use, bool mixes);
uint32_t __wrap_gm__free_chunk_put(gm__arena *arena, uint32_t number, const gm__last_use *use, bool mixes) {
  const uint32_t joined = __real_gm__free_chunk_put(arena, number, use, mixes);
  moves_count(1 + (size_t)joined);
  return joined;
}

void __real_gm__bias_breathe(gm__bias_lock *lock, const void *self);
void __wrap_gm__bias_breathe(gm__bias_lock *lock, const void *self);
void __wrap_gm__bias_breathe(gm__bias_lock *lock, const void *self) {
  void (*between)(void) = moves.between;
  const size_t most = moves.most;
  moves.pieces++;
  gm__bias_lock_out(lock);
  moves.between = NULL; /* what happens in between counts as nothing */
  if (between) between();
  moves.between = between;
  gm__bias_lock_in(lock, self);
  moves.most = most;
  moves.piece = 0;
}

static void moves_begin(void) { moves.moved = moves.piece = moves.most = moves.pieces = 0; }

/* ---- the pool: 64 MiB of it, in blocks that touch ---- */

static pool_bench bench;
static gm_stream *streams[2];
static gm_block blocks[BLOCKS];
static bool out[BLOCKS];

static gm_acquire ask(uint64_t bytes, gm_stream *stream, gm_block *block) {
  const gm_request request = {.bytes = bytes, .stream = stream};
  return gm_alloc(bench.pool, &request, block);
}

static void give(int at, gm_stream *stream) {
  assert_int_equal(gm_free(bench.pool, &blocks[at], stream), GM_OK);
  out[at] = false;
}

static void scene_open(bool no_vmm) {
  const gm_pool_params params = {.struct_size = sizeof params, .no_vmm = no_vmm, .max_bytes = BLOCKS * (uint64_t)BYTES};
  moves.between = NULL;
  pool_bench_open_device(&bench, "null", "null:capacity=1G,latency=1000000000");
  pool_bench_ok(gm_config_set(bench.ctx, "segment_size", "64M", err));
  pool_bench_ok(gm_pool_create(bench.device, &params, &bench.pool, err));
  for (int i = 0; i < 2; i++) pool_bench_ok(gm_stream_create(bench.device, &streams[i], err));
  for (int i = 0; i < BLOCKS; i++) {
    assert_in_range(ask(BYTES, streams[i % 2], &blocks[i]), GM_ACQUIRE_OK, GM_ACQUIRE_FRESH);
    out[i] = true;
  }
}

/* All memory of the pool comes together again. */
static void scene_close(void) {
  gm_block whole;
  moves.between = NULL;
  for (int i = 0; i < BLOCKS; i++) {
    if (out[i]) give(i, NULL);
  }
  for (int i = 0; i < 2; i++) pool_bench_ok(gm_stream_sync(streams[i], err));
  assert_int_equal(ask(BLOCKS * (uint64_t)BYTES, NULL, &whole), GM_ACQUIRE_OK);
  assert_int_equal(gm_free(bench.pool, &whole, NULL), GM_OK);
  gm_pool_trim(bench.pool, 0);
  assert_int_equal(pool_bench_stats(&bench).reserved_bytes, 0);
  for (int i = 0; i < 2; i++) pool_bench_ok(gm_stream_close(streams[i], err));
  pool_bench_close(&bench);
}

/* Every second block is free, so that none is joined. */
static void free_half(void) {
  for (int i = 0; i < BLOCKS; i += 2) give(i, streams[0]);
  pool_bench_ok(gm_stream_sync(streams[0], err));
}

/* A free chunk is in the bins of the stream that used it last, also when that stream is done. Returns how many are. */
static size_t check_bins(void) {
  size_t count = 0;
  const gm__arena *arena = gm__arena_at(&bench.pool->heap.arenas, 0);
  for (uint32_t number = 1; number < gm__chunks_count(&arena->chunks); number++) {
    const gm__chunk *chunk = gm__arena_chunk(arena, number);
    const uint8_t is = gm__chunk_is(chunk);
    if ((is != GM__CHUNK_FREE && is != GM__CHUNK_QUICK) || chunk->cache >= GM__STREAM_CACHE_IDLE) continue;
    assert_int_equal(gm__arena_last_use(arena, number).streams, gm__order_bit(chunk->cache));
    count++;
  }
  return count;
}

static void test_a_request_moves_a_piece(void **state) {
  (void)state;
  for (int no_vmm = 0; no_vmm < 2; no_vmm++) {
    scene_open(no_vmm);
    free_half();
    moves_begin();
    assert_int_equal(ask(BYTES, NULL, &blocks[0]), GM_ACQUIRE_OK);
    printf("  a request moves %zu chunks\n", moves.moved);
    assert_true(moves.moved > 0 && moves.moved <= PIECE);
    assert_in_range(check_bins(), 1, BLOCKS);
    out[0] = true;
    scene_close();
  }
}

/* Nothing but all of it serves. */
static void test_a_request_that_needs_all_gets_all(void **state) {
  (void)state;
  gm_block whole;
  scene_open(false);
  for (int i = 0; i < BLOCKS; i++) give(i, streams[i % 2]);
  for (int i = 0; i < 2; i++) pool_bench_ok(gm_stream_sync(streams[i], err));
  moves_begin();
  assert_int_equal(ask(BLOCKS * (uint64_t)BYTES, NULL, &whole), GM_ACQUIRE_OK);
  printf("  %zu chunks in %zu pieces, %zu at once\n", moves.moved, moves.pieces, moves.most);
  assert_true(moves.moved >= BLOCKS - KEPT);
  assert_true(moves.most <= 2 * PIECE); /* one for the look at all streams, one for the search */
  assert_true(moves.pieces >= (BLOCKS - KEPT) / PIECE - 1);
  assert_int_equal(gm_free(bench.pool, &whole, NULL), GM_OK);
  scene_close();
}

/* Blocks come and go, on streams that are not done, while the pieces are moved. */
static void churn(void) {
  static int turn;
  turn++;
  for (int i = 0; i < 40; i++) {
    const int at = (turn * 977 + i * 131) % BLOCKS;
    if (out[at]) {
      give(at, streams[i % 2]);
    } else {
      out[at] = ask(BYTES, i % 3 ? streams[i % 2] : NULL, &blocks[at]) <= GM_ACQUIRE_FRESH;
    }
  }
}

static void test_others_use_the_pool_between_pieces(void **state) {
  (void)state;
  for (int no_vmm = 0; no_vmm < 2; no_vmm++) {
    scene_open(no_vmm);
    for (int round = 0; round < 4; round++) {
      free_half();
      moves_begin();
      moves.between = churn;
      gm_pool_trim(bench.pool, 0);
      moves.between = NULL;
      assert_true(moves.most <= PIECE);
      assert_true(round || moves.pieces > 1);
      for (int i = 0; i < BLOCKS; i++) {
        if (!out[i]) out[i] = ask(BYTES, streams[i % 2], &blocks[i]) <= GM_ACQUIRE_FRESH;
      }
    }
    scene_close();
  }
}

/* A second of work, which ends when the time is moved on. */
static void begin_work(const gm_stream *stream) {
  const gm_memory nowhere = {.handle = 1, .bytes = 64};
  gm_backend_point point;
  pool_bench_ok(gm__null_backend.fill(bench.device->handle, stream->handle, &nowhere, 0, 64, "", 1, &point, err));
}

/* A stream that is not done joins what it freed with idle memory, for a request of its own. */
static void test_a_stream_joins_its_own_in_pieces(void **state) {
  (void)state;
  gm_block whole;
  scene_open(true);
  begin_work(streams[0]);
  for (int i = 0; i < BLOCKS; i++) give(i, i % 2 ? NULL : streams[0]);
  moves_begin();
  assert_int_equal(ask(BLOCKS * (uint64_t)BYTES, streams[0], &whole), GM_ACQUIRE_OK);
  printf("  %zu chunks are joined in %zu pieces, %zu at once\n", moves.moved, moves.pieces, moves.most);
  assert_true(moves.moved >= BLOCKS - 2 * KEPT);
  assert_true(moves.most <= 2 * PIECE);
  assert_int_equal(gm_free(bench.pool, &whole, NULL), GM_OK);
  gm__null_advance(bench.device->handle, UINT64_C(10000000000));
  scene_close();
}

/* Does the memory at the address, or any if it is 0, wait for a stream of those bits? */
static bool waits_for(uint64_t address, uint64_t slots) {
  const gm__arena *arena = gm__arena_at(&bench.pool->heap.arenas, 0);
  for (uint32_t number = 1; number < gm__chunks_count(&arena->chunks); number++) {
    const gm__chunk *chunk = gm__arena_chunk(arena, number);
    const gm__last_use use = gm__arena_last_use(arena, number);
    const bool here = !address || address - chunk->address < gm__arena_bytes(arena, chunk);
    if (gm__chunk_is(chunk) >= GM__CHUNK_FREE && here && (use.streams | use.users) & slots) return true;
  }
  return false;
}

/* A block that the closing stream used, and that the walk has not come to yet, is freed: it waits for nobody. */
static void free_used(void) {
  const gm__arena *arena = gm__arena_at(&bench.pool->heap.arenas, 0);
  const int slot = gm__order_find(&arena->order, streams[0]);
  int at = BLOCKS - 3; /* 1 beyond a multiple of 4 */
  while (at > 0 && !(out[at] && waits_for(blocks[at].address, gm__order_bit(slot)))) at -= 4;
  if (at < 0) return;
  give(at, NULL);
  assert_false(waits_for(blocks[at].address, gm__order_bit(slot)));
}

/* Blocks come and go while a stream closes, in order of the host and of the other stream. */
static void churn_beside(void) {
  static int turn;
  turn++;
  if (moves.pieces == 2) free_used();
  for (int i = 0; i < 60; i++) {
    const int at = (turn * 1237 + i * 131) % BLOCKS;
    if (out[at]) {
      give(at, i % 2 ? streams[1] : NULL);
    } else {
      out[at] = ask(BYTES, i % 3 ? streams[1] : NULL, &blocks[at]) <= GM_ACQUIRE_FRESH;
    }
  }
}

/* The next stream gets the place of the one that closed. Nothing may be taken for the next one's. */
static void close_and_follow(void) {
  gm_stream *next;
  for (int i = 1; i < BLOCKS; i += 4) {
    if (out[i]) assert_int_equal(gm_use_on(bench.pool, &blocks[i], streams[0]), GM_OK);
  }
  pool_bench_ok(gm_stream_sync(streams[0], err));
  moves_begin();
  moves.between = churn_beside;
  pool_bench_ok(gm_stream_close(streams[0], err));
  moves.between = NULL;
  assert_true(moves.pieces >= BLOCKS / PIECE);
  assert_false(waits_for(0, ~gm__arena_at(&bench.pool->heap.arenas, 0)->order.used));
  pool_bench_ok(gm_stream_create(bench.device, &next, err));
  streams[0] = next;
}

static void test_others_use_the_pool_while_a_stream_closes(void **state) {
  (void)state;
  for (int no_vmm = 0; no_vmm < 2; no_vmm++) {
    scene_open(no_vmm);
    for (int round = 0; round < 4; round++) {
      for (int i = round % 2; i < BLOCKS; i += 2) {
        if (out[i]) give(i, streams[0]);
      }
      close_and_follow();
      for (int i = 0; i < BLOCKS; i++) {
        if (!out[i]) out[i] = ask(BYTES, streams[i % 2], &blocks[i]) <= GM_ACQUIRE_FRESH;
      }
    }
    scene_close();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_request_moves_a_piece),
      cmocka_unit_test(test_a_request_that_needs_all_gets_all),
      cmocka_unit_test(test_others_use_the_pool_between_pieces),
      cmocka_unit_test(test_a_stream_joins_its_own_in_pieces),
      cmocka_unit_test(test_others_use_the_pool_while_a_stream_closes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
