/* A context and a remote tier on it. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_REMOTE_BENCH_H
#define GM_TESTS_SUPPORT_REMOTE_BENCH_H

#include "support/redis_server.h"
#include "support/tier_suite.h"

static inline gm_context *remote_context(const gm_services *services) {
  gm_context *ctx = NULL;
  const gm_context_params params = {.struct_size = sizeof params, .services = services, .ignore_environment = true};
  assert_int_equal(gm_context_create(&params, &ctx, NULL), GM_OK);
  return ctx;
}

/* `timeout_ms`: 0 is the tier's own. */
static inline gm_tier *remote_open(gm_context *ctx, const char *where, uint64_t timeout_ms) {
  const gm_tier_params params = {.struct_size = sizeof params, .timeout_ns = timeout_ms * 1000000};
  gm_error err = {.status = GM_OK};
  gm_tier *tier = NULL;
  gm_status status = GM_ERR_TIMEOUT;
  for (int i = 0; i < 40 && status == GM_ERR_TIMEOUT; i++) { /* a slow machine is none of the test's concern */
    status = gm_tier_open(ctx, "remote", where, &params, &tier, &err);
  }
  if (status) fail_msg("%s: %s", err.op, err.message);
  return tier;
}

static inline void remote_close(gm_tier *tier, gm_context *ctx) {
  assert_int_equal(gm_tier_close(tier, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static inline gm_tier_stats remote_stats(gm_tier *tier) {
  gm_tier_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(gm_tier_get_stats(tier, &stats, NULL), GM_OK);
  return stats;
}

static inline uint64_t remote_now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Bytes that only this seed gives. The caller frees them. */
static inline unsigned char *remote_bytes(uint64_t seed, size_t count) {
  unsigned char *bytes = malloc(count + 8);
  assert_non_null(bytes);
  for (size_t i = 0; i < count; i += 8) {
    const uint64_t word = test_random(&seed);
    memcpy(bytes + i, &word, 8);
  }
  return bytes;
}

static inline gm_status remote_put_seed(gm_tier *tier, const char *key, uint64_t seed, size_t count, gm_error *err) {
  unsigned char *bytes = remote_bytes(seed, count);
  const gm_tier_part part = {bytes, count};
  const gm_status status = gm_tier_put(tier, key, strlen(key), &part, 1, err);
  free(bytes);
  return status;
}

static inline void remote_expect_seed(gm_tier *tier, const char *key, uint64_t seed, size_t count) {
  unsigned char *bytes = remote_bytes(seed, count);
  tier_expect(tier, key, strlen(key), bytes, count);
  free(bytes);
}

#endif
