/* Requests of every sort: gm_explain refuses what gm_alloc refuses as INVALID, tells every other refusal as it was, and
 * promises nothing. Whole under AddressSanitizer; every other build takes a sample (support/sample.h), the same one for
 * each device of a program. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_REQUEST_SWEEP_H
#define GM_TESTS_SUPPORT_REQUEST_SWEEP_H

#include <string.h>

#include "gm/copy.h"
#include "gm/device.h"
#include "gm/pool.h"
#include "support/explained.h"
#include "support/sample.h"

enum { SWEEP_BYTES = 5000, SWEEP_FLAGS = 6 };

/* One request in so many is in the sample. Primes: sets of flags are numbers in which each bit is a flag. */
static inline unsigned sweep_one_in(void) { return sample_is_full() ? 1 : getenv("TESTS_FEW") ? 11 : 3; }

/* Whether request number `index` is in this run's sample, which is drawn once: what two devices served can be compared.
 */
static inline bool sweep_takes(unsigned index) {
  static uint64_t from;
  static bool drawn;
  if (!drawn) from = sample_is_full() ? 0 : sample_random() % sweep_one_in();
  drawn = true;
  return index % sweep_one_in() == from;
}

/* If a sweep serves `all` requests or more, the sample serves so many. */
static inline unsigned sweep_least(unsigned all) { return sample_is_full() ? all : all / sweep_one_in() / 2; }

static inline bool sweep_has_block(gm_acquire answer) { return answer <= GM_ACQUIRE_NEEDS_BARRIER; }

/* `stream`: one that gm may submit to. */
static inline void sweep_check_zero(gm_pool *pool, const gm_block *block, gm_stream *stream) {
  static unsigned char seen[SWEEP_BYTES], none[SWEEP_BYTES];
  gm_error err;
  memset(seen, 1, sizeof seen);
  if (gm_block_read(pool, block, 0, seen, sizeof seen, stream, NULL, &err)) fail_msg("%s", err.message);
  assert_memory_equal(seen, none, sizeof seen);
  memset(seen, 2, sizeof seen);
  if (gm_block_write(pool, block, 0, seen, sizeof seen, stream, NULL, &err)) fail_msg("%s", err.message);
}

/* Returns whether it was served. A stream that is not the reader is given no work, and keeps no block busy. */
static inline bool sweep_one(gm_pool *pool, const gm_request *request, gm_stream *reader) {
  gm_block block;
  const gm_acquire answer = explained_alloc(pool, request, &block);
  if (answer == GM_ACQUIRE_FAILED) {
    fail_msg("flags 0x%x, must_be %d, %s stream: %s", request->flags, (int)request->must_be,
             request->stream ? "a" : "no", explained(pool, request).text);
  }
  if (!sweep_has_block(answer)) return false;
  if (request->flags & GM_ZERO && reader) sweep_check_zero(pool, &block, request->stream ? request->stream : reader);
  const bool silent = request->stream && request->stream != reader;
  assert_int_equal(gm_free(pool, &block, silent ? NULL : request->stream), GM_OK);
  return true;
}

/* Sets of flags and places, twice each: new memory and pooled memory. How many were served. */
static inline unsigned sweep_pool(gm_pool *pool, gm_stream *stream, gm_stream *reader) {
  static const uint32_t flags[SWEEP_FLAGS] = {GM_ZERO,         GM_INSERT_WAIT, GM_COMMIT,
                                              GM_HOST_VISIBLE, GM_ALLOW_SPANS, GM_POOLED_ONLY};
  unsigned served = 0;
  for (unsigned set = 0; set < 1u << SWEEP_FLAGS; set++) {
    for (int place = GM_DEVICE_LOCAL; place <= GM_DEVICE_ACCESSIBLE; place++) {
      gm_request request = {.bytes = SWEEP_BYTES, .stream = stream, .must_be = (gm_must_be)place};
      if (!sweep_takes(set + (unsigned)place)) continue;
      for (unsigned i = 0; i < SWEEP_FLAGS; i++) request.flags |= set >> i & 1 ? flags[i] : 0;
      for (int turn = 0; turn < 2; turn++) served += sweep_one(pool, &request, reader);
    }
  }
  return served;
}

/* The block is what its request wished for. */
static inline void sweep_check_wish(gm_pool *pool, const gm_request *request, const gm_block *block) {
  gm_memory_type type = {.struct_size = sizeof type};
  gm_memory memory;
  uint64_t offset;
  assert_int_equal(gm_block_memory(pool, block, &memory, &offset), GM_OK);
  assert_int_equal(gm_device_memory_type(gm_pool_device(pool), memory.type, &type, NULL), GM_OK);
  assert_int_equal(request->require & ~type.flags, 0);
  assert_true(!request->memory_types || request->memory_types >> memory.type & 1);
  if (request->flags & GM_MAPPED) {
    unsigned char *host = NULL;
    assert_int_equal(gm_block_host(pool, block, (void **)&host, NULL), GM_OK);
    assert_int_equal(gm_block_invalidate(pool, block, 0, 8, NULL), GM_OK);
    host[0] = host[block->bytes - 1] = 1;
    assert_int_equal(gm_block_flush(pool, block, 0, block->bytes, NULL), GM_OK);
  }
  if (request->flags & GM_DEDICATED) assert_true(block->bytes < SWEEP_BYTES + 256);
}

static inline bool sweep_one_wish(gm_pool *pool, const gm_request *request) {
  gm_block block;
  const gm_acquire answer = explained_alloc(pool, request, &block);
  if (answer == GM_ACQUIRE_FAILED) fail_msg("%s", explained(pool, request).text);
  if (!sweep_has_block(answer)) return false;
  sweep_check_wish(pool, request, &block);
  assert_int_equal(gm_free(pool, &block, NULL), GM_OK);
  return true;
}

/* Wishes for every flag and for some sets of types, with dedicated and mapped blocks. How many were served. */
static inline unsigned sweep_wishes(gm_pool *pool) {
  static const uint32_t flags[] = {0,
                                   GM_DEDICATED,
                                   GM_MAPPED,
                                   GM_DEDICATED | GM_MAPPED,
                                   GM_DEDICATED | GM_POOLED_ONLY,
                                   GM_DEDICATED | GM_ALLOW_SPANS,
                                   GM_MAPPED | GM_HOST_VISIBLE};
  static const uint32_t types[] = {0, 1, 2, 3, UINT32_C(1) << 31};
  unsigned served = 0;
  for (unsigned bit = 0; bit < 14; bit++) { /* 12: a bit that is no flag; 13: none */
    for (unsigned set = 0; set < 5; set++) {
      for (unsigned i = 0; i < 7; i++) {
        if (!sweep_takes(bit * 35 + set * 7 + i)) continue;
        const gm_request request = {.bytes = SWEEP_BYTES,
                                    .flags = flags[i],
                                    .must_be = (bit + set + i) & 1 ? GM_DEVICE_LOCAL : GM_DEVICE_ACCESSIBLE,
                                    .memory_types = types[set],
                                    .prefer = i & 1 ? GM_MEMORY_SYSTEM : 0,
                                    .require = bit < 13 ? UINT32_C(1) << bit : 0};
        for (int turn = 0; turn < 2; turn++) served += sweep_one_wish(pool, &request);
      }
    }
  }
  return served;
}

/* A refusal by a backend itself is named after the call that was made, not after the backend or a driver's entry. */
static inline void sweep_names(gm_device *device, gm_pool *pool) {
  gm_native_device native = {sizeof native, GM_API_METAL};
  const gm_native_stream queue = {sizeof queue, GM_API_METAL};
  gm_native_memory memory = {sizeof memory, GM_API_METAL};
  const gm_request request = {.bytes = SWEEP_BYTES};
  gm_block block, wrapped;
  gm_stream *stream = NULL;
  gm_error err;
  assert_true(sweep_has_block(gm_alloc(pool, &request, &block)));
  assert_int_not_equal(gm_device_native(device, &native, &err), GM_OK);
  assert_string_equal(err.op, "gm_device_native");
  assert_int_not_equal(gm_stream_adopt(device, &queue, &stream, &err), GM_OK);
  assert_string_equal(err.op, "gm_stream_adopt");
  assert_int_not_equal(gm_block_native(pool, &block, &memory, &err), GM_OK);
  assert_string_equal(err.op, "gm_block_native");
  assert_int_not_equal(gm_block_wrap(pool, &memory, &wrapped, &err), GM_OK);
  assert_string_equal(err.op, "gm_block_wrap");
  assert_int_equal(gm_free(pool, &block, NULL), GM_OK);
}

/* All of it on pools of both strategies and, where the device has them, with zones and patterns. `reader`: reads blocks
 * back that were asked for without a stream; NULL: the device's memory has no contents. */
static inline unsigned sweep_device(gm_device *device, gm_stream *stream, gm_stream *reader) {
  unsigned served = 0;
  for (unsigned i = 0; i < 4; i++) {
    const gm_pool_params params = {.struct_size = sizeof params,
                                   .strategy = i & 1 ? GM_STRATEGY_BUCKET : GM_STRATEGY_BEST_FIT,
                                   .debug = i & 2 ? GM_DEBUG_POISON : 0,
                                   .red_zone_bytes = i & 2 ? 64 : 0};
    gm_error err = {.status = GM_OK};
    gm_pool *pool;
    const gm_status status = gm_pool_create(device, &params, &pool, &err);
    if (i & 2 && status == GM_ERR_NOT_SUPPORTED) {
      assert_string_equal(err.op, "gm_pool_create");
      assert_non_null(strstr(err.message, "red zones and patterns"));
      continue;
    }
    if (status) fail_msg("%s: %s", err.op, err.message);
    sweep_names(device, pool);
    served += sweep_pool(pool, NULL, reader);
    served += sweep_pool(pool, stream, reader);
    served += sweep_wishes(pool);
    if (gm_pool_destroy(pool, &err)) fail_msg("%s", err.message);
  }
  return served;
}

#endif
