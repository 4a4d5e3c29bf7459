/* A script that puts, removes and flushes values of a disk tier, notes what was promised, and checks what is left.
 * Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_DISK_SCRIPT_H
#define GM_TESTS_SUPPORT_DISK_SCRIPT_H

#include "support/disk_bench.h"
#include "support/random.h"

enum {
  SCRIPT_KEYS = 5,
  SCRIPT_LARGEST = (1 << 20) + 64,
  SCRIPT_WHOLE = 100000 /* values this large are of one size */
};

/* Versions of a key: odd ones are values, with the others it is removed. */
typedef struct script_promises {
  int begun[SCRIPT_KEYS];   /* the last version that was begun */
  int done[SCRIPT_KEYS];    /* the last one that was answered GM_OK */
  int flushed[SCRIPT_KEYS]; /* the last one before a flush that was answered GM_OK */
  int opened;
} script_promises;

typedef struct disk_script {
  gm_tier_durability durability;
  uint64_t seed, largest;
  int steps, keys; /* at most SCRIPT_KEYS */
} disk_script;

static inline uint64_t script_seed(const disk_script *script, int key, int version) {
  return script->seed * 1000003 + (uint64_t)key * 1009 + (uint64_t)version;
}

static inline uint64_t script_size(const disk_script *script, int key, int version) {
  uint64_t seed = script_seed(script, key, version);
  return script->largest >= SCRIPT_WHOLE ? script->largest : test_log_uniform(&seed, script->largest) - 1;
}

/* The bytes of a version of a key, made anew. They stay until the next call. */
static inline unsigned char *script_bytes(const disk_script *script, int key, int version) {
  static unsigned char bytes[SCRIPT_LARGEST + 8];
  uint64_t seed = script_seed(script, key, version) ^ 1;
  const uint64_t count = script_size(script, key, version);
  if (count > SCRIPT_LARGEST) abort();
  const bool large = count >= SCRIPT_WHOLE; /* mostly zeros, which cost less */
  memset(bytes, large ? 0 : version * 16 + key + 1, (size_t)count);
  for (uint64_t i = 0; i < count; i += large ? 65536 : 512) { /* what a lost write leaves is never right */
    const uint64_t word = test_random(&seed) | 1;
    memcpy(bytes + i, &word, 8);
  }
  return bytes;
}

static inline gm_status script_put(const disk_script *script, gm_tier *tier, int key, int version) {
  const char name = (char)('a' + key);
  const uint64_t bytes = script_size(script, key, version);
  const unsigned char *data = script_bytes(script, key, version);
  const gm_tier_part parts[] = {{data, bytes / 3}, {data + bytes / 3, bytes - bytes / 3}};
  return gm_tier_put(tier, &name, 1, parts, 2, NULL);
}

static inline gm_status script_step(const disk_script *script, gm_tier *tier, int step, script_promises *promises) {
  uint64_t seed = script->seed + (uint64_t)step * 77;
  const int key = (int)(test_random(&seed) % (uint64_t)script->keys);
  const char name = (char)('a' + key);
  if (test_random(&seed) % 5 == 0) {
    const gm_status status = gm_tier_flush(tier, NULL);
    if (!status) memcpy(promises->flushed, promises->done, sizeof promises->done);
    return status;
  }
  const bool removes = promises->done[key] % 2 == 1 && test_random(&seed) % 4 == 0;
  const int next = promises->begun[key] + 1, version = removes == (next % 2 == 0) ? next : next + 1;
  promises->begun[key] = version;
  const gm_status status = removes ? gm_tier_remove(tier, &name, 1, NULL) : script_put(script, tier, key, version);
  if (!status) promises->done[key] = version;
  if (!status && script->durability == GM_TIER_DURABLE_AT_PUT) promises->flushed[key] = version;
  return status;
}

/* Runs the script. Returns the first failure; it goes on behind it. */
static inline gm_status script_run(const disk_script *script, gm_context *ctx, const char *path,
                                   script_promises *promises) {
  gm_tier *tier = NULL;
  const gm_tier_params params = {
      .struct_size = sizeof params, .durability = script->durability, .codec = GM_TIER_CODEC_NONE};
  gm_status status = gm_tier_open(ctx, "disk", path, &params, &tier, NULL);
  if (status) return status;
  promises->opened = 1;
  for (int step = 0; step < script->steps; step++) {
    const gm_status stepped = script_step(script, tier, step, promises);
    if (stepped && !status) status = stepped;
  }
  const gm_status closed = gm_tier_close(tier, NULL);
  if (!closed) memcpy(promises->flushed, promises->done, sizeof promises->done);
  return status ? status : closed;
}

static inline bool script_value_is(const disk_script *script, gm_tier_value *value, uint64_t has, int key,
                                   int version) {
  static unsigned char read[SCRIPT_LARGEST];
  if (has != script_size(script, key, version)) return false;
  assert_int_equal(gm_tier_value_read(value, 0, read, has, NULL), GM_OK);
  return memcmp(read, script_bytes(script, key, version), (size_t)has) == 0;
}

/* The version from `from` to `to` that the key has. Fails the test where it has none of them. */
static inline int script_version(const disk_script *script, gm_tier *tier, int key, int from, int to) {
  const char name = (char)('a' + key);
  gm_tier_value *value = NULL;
  uint64_t has = 0;
  const gm_status status = gm_tier_value_open(tier, &name, 1, &value, &has, NULL);
  int version = to;
  if (status) assert_int_equal(status, GM_ERR_NOT_FOUND);
  while (version >= from) {
    if (version % 2 == 0 ? status == GM_ERR_NOT_FOUND : !status && script_value_is(script, value, has, key, version)) {
      break;
    }
    version--;
  }
  gm_tier_value_close(value);
  if (version < from) fail_msg("key %c: not one of its versions %d to %d", name, from, to);
  return version;
}

/* Every key has one of its versions, and the tier goes on. `kept` are those that may not be lost. Where `out` is not
 * NULL, it gets the versions that are there. */
static inline void script_check(const disk_script *script, gm_context *ctx, const char *path, const int *kept,
                                const int *begun, int *out) {
  gm_tier *tier = NULL;
  gm_error err = {.status = GM_OK};
  const gm_tier_params params = {.struct_size = sizeof params, .durability = GM_TIER_DURABLE_AT_FLUSH};
  if (gm_tier_open(ctx, "disk", path, &params, &tier, &err)) fail_msg("%s: %s", err.op, err.message);
  for (int key = 0; key < script->keys; key++) {
    const int version = script_version(script, tier, key, kept[key], begun[key]);
    if (out) out[key] = version;
  }
  assert_int_equal(tier_put_text(tier, "later", "value"), GM_OK);
  tier_expect_text(tier, "later", "value");
  disk_bench_end(tier);
}

#endif
