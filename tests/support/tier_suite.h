/* The duties of every tier, whatever it is made of. A test opens its tier and hands it to tier_suite. Needs cmocka.h
 * included before. */
#ifndef GM_TESTS_SUPPORT_TIER_SUITE_H
#define GM_TESTS_SUPPORT_TIER_SUITE_H

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gm/tier.h"
#include "support/random.h"

static inline gm_status tier_put_text(gm_tier *tier, const char *key, const char *text) {
  const gm_tier_part part = {text, strlen(text)};
  return gm_tier_put(tier, key, strlen(key), &part, 1, NULL);
}

/* The whole value is these bytes. */
static inline void tier_expect(gm_tier *tier, const void *key, size_t key_bytes, const void *bytes, uint64_t length) {
  gm_tier_value *value = NULL;
  uint64_t has = UINT64_MAX;
  gm_error err = {.status = GM_OK};
  if (gm_tier_value_open(tier, key, key_bytes, &value, &has, &err)) fail_msg("%s: %s", err.op, err.message);
  assert_int_equal(has, length);
  gm_tier_value_info info = {.struct_size = sizeof info};
  assert_int_equal(gm_tier_value_describe(value, &info, NULL), GM_OK);
  assert_int_equal(info.bytes, length);
  assert_true(info.codec == GM_TIER_CODEC_NONE ? info.stored_bytes == length : info.stored_bytes < length);
  unsigned char *read = malloc((size_t)length + 1);
  assert_non_null(read);
  if (gm_tier_value_read(value, 0, read, length, &err)) fail_msg("%s: %s", err.op, err.message);
  assert_memory_equal(read, bytes, (size_t)length);
  free(read);
  gm_tier_value_close(value);
}

static inline void tier_expect_text(gm_tier *tier, const char *key, const char *text) {
  tier_expect(tier, key, strlen(key), text, strlen(text));
}

static inline void tier_expect_none(gm_tier *tier, const void *key, size_t key_bytes) {
  gm_tier_value *value = NULL;
  assert_int_equal(gm_tier_value_open(tier, key, key_bytes, &value, NULL, NULL), GM_ERR_NOT_FOUND);
  assert_null(value);
}

static inline int tier_in_child(gm_context *ctx, gm_tier *tier) {
  if (tier_put_text(tier, "a", "child") != GM_ERR_FORKED) return 1;
  if (gm_tier_flush(tier, NULL) != GM_ERR_FORKED) return 2;
  if (gm_tier_close(tier, NULL) != GM_OK) return 3;
  return gm_context_destroy(ctx, NULL) == GM_OK ? 0 : 4;
}

/* A child that was forked can close the tier, and do nothing else with it. The parent goes on. */
static inline void tier_forks(gm_context *ctx, gm_tier *tier) {
  int status = -1;
  assert_int_equal(tier_put_text(tier, "a", "parent"), GM_OK);
  const pid_t child = fork();
  if (child == 0) _exit(tier_in_child(ctx, tier));
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  tier_expect_text(tier, "a", "parent");
}

typedef struct tier_listing {
  size_t count, most;
  uint64_t bytes;
} tier_listing;

static inline bool tier_listing_visit(void *user, const void *key, size_t key_bytes, uint64_t value_bytes) {
  tier_listing *listing = user;
  assert_non_null(key);
  assert_true(key_bytes > 0);
  listing->bytes += value_bytes;
  return ++listing->count < listing->most;
}

static inline tier_listing tier_list_of(gm_tier *tier, const char *prefix, size_t most) {
  tier_listing listing = {.most = most};
  assert_int_equal(gm_tier_list(tier, prefix, strlen(prefix), tier_listing_visit, &listing, NULL), GM_OK);
  return listing;
}

/* ---- cases: each begins and ends with an empty tier ---- */

static inline void tier_case_replaces(gm_tier *tier) {
  assert_int_equal(tier_put_text(tier, "a", "one"), GM_OK);
  assert_int_equal(tier_put_text(tier, "b", ""), GM_OK);
  tier_expect_text(tier, "a", "one");
  tier_expect_text(tier, "b", "");
  assert_int_equal(tier_put_text(tier, "a", "another one"), GM_OK);
  tier_expect_text(tier, "a", "another one");
  tier_expect_none(tier, "c", 1);
  assert_int_equal(gm_tier_remove(tier, "a", 1, NULL), GM_OK);
  assert_int_equal(gm_tier_remove(tier, "a", 1, NULL), GM_ERR_NOT_FOUND);
  tier_expect_none(tier, "a", 1);
  assert_int_equal(gm_tier_remove(tier, "b", 1, NULL), GM_OK);
}

/* Keys are bytes: with NUL, of the greatest length, one the beginning of another. */
static inline void tier_case_keys(gm_tier *tier) {
  static char longest[GM_TIER_KEY_MOST + 1];
  memset(longest, 'x', sizeof longest);
  const gm_tier_part part = {"v", 1};
  assert_int_equal(gm_tier_put(tier, "k\0one", 5, &part, 1, NULL), GM_OK);
  assert_int_equal(gm_tier_put(tier, "k\0two", 5, NULL, 0, NULL), GM_OK);
  assert_int_equal(gm_tier_put(tier, longest, GM_TIER_KEY_MOST, &part, 1, NULL), GM_OK);
  assert_int_equal(gm_tier_put(tier, longest, GM_TIER_KEY_MOST - 1, NULL, 0, NULL), GM_OK);
  tier_expect(tier, "k\0one", 5, "v", 1);
  tier_expect(tier, "k\0two", 5, "", 0);
  tier_expect_none(tier, "k", 1);
  tier_expect(tier, longest, GM_TIER_KEY_MOST, "v", 1);
  assert_int_equal(gm_tier_put(tier, longest, sizeof longest, &part, 1, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_put(tier, "", 0, &part, 1, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_put(tier, NULL, 1, &part, 1, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(tier_list_of(tier, "k", 99).count, 2);
  assert_int_equal(tier_list_of(tier, "", 99).count, 4);
  assert_int_equal(gm_tier_remove(tier, "k\0one", 5, NULL), GM_OK);
  assert_int_equal(gm_tier_remove(tier, "k\0two", 5, NULL), GM_OK);
  assert_int_equal(gm_tier_remove(tier, longest, GM_TIER_KEY_MOST, NULL), GM_OK);
  assert_int_equal(gm_tier_remove(tier, longest, GM_TIER_KEY_MOST - 1, NULL), GM_OK);
}

static inline void tier_case_parts(gm_tier *tier) {
  const gm_tier_part parts[] = {{"ab", 2}, {NULL, 0}, {"c", 1}, {"def", 3}};
  assert_int_equal(gm_tier_put(tier, "parts", 5, parts, 4, NULL), GM_OK);
  tier_expect_text(tier, "parts", "abcdef");
  const gm_tier_part wrong[] = {{"a", 1}, {NULL, 1}}, large[] = {{"a", INT64_MAX}, {"b", 1}};
  assert_int_equal(gm_tier_put(tier, "parts", 5, wrong, 2, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_put(tier, "parts", 5, large, 2, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_put(tier, "parts", 5, NULL, 1, NULL), GM_ERR_INVALID_ARGUMENT);
  tier_expect_text(tier, "parts", "abcdef");
  assert_int_equal(gm_tier_remove(tier, "parts", 5, NULL), GM_OK);
}

/* An open value stays as it was, through a replacement and a removal. */
static inline void tier_case_open_values(gm_tier *tier) {
  char read[8] = "";
  gm_tier_value *first = NULL, *second = NULL;
  assert_int_equal(tier_put_text(tier, "a", "first"), GM_OK);
  assert_int_equal(gm_tier_value_open(tier, "a", 1, &first, NULL, NULL), GM_OK);
  assert_int_equal(tier_put_text(tier, "a", "second"), GM_OK);
  assert_int_equal(gm_tier_value_open(tier, "a", 1, &second, NULL, NULL), GM_OK);
  assert_int_equal(gm_tier_remove(tier, "a", 1, NULL), GM_OK);
  assert_int_equal(gm_tier_value_read(first, 0, read, 5, NULL), GM_OK);
  assert_memory_equal(read, "first", 5);
  assert_int_equal(gm_tier_value_read(second, 2, read, 4, NULL), GM_OK);
  assert_memory_equal(read, "cond", 4);
  assert_int_equal(gm_tier_value_read(second, 3, read, 4, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_value_read(second, 7, read, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_value_read(second, 6, read, 0, NULL), GM_OK);
  assert_int_equal(gm_tier_value_read(second, 0, NULL, 1, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_close(tier, NULL), GM_ERR_BUSY);
  gm_tier_value_close(first);
  gm_tier_value_close(second);
  gm_tier_value_close(NULL);
}

/* Values of many sizes, replaced and removed at random, beside a plain list of what should be there. */
static inline void tier_case_random(gm_tier *tier, uint64_t seed, int steps, uint64_t largest) {
  enum { KEYS = 24 };
  struct {
    unsigned char *bytes;
    uint64_t length;
  } model[KEYS] = {{NULL, 0}};
  for (int i = 0; i < steps; i++) {
    const unsigned char key[2] = {'k', (unsigned char)(test_random(&seed) % KEYS)};
    unsigned char **bytes = &model[key[1]].bytes;
    if (test_random(&seed) % 4 == 0) {
      assert_int_equal(gm_tier_remove(tier, key, 2, NULL), *bytes ? GM_OK : GM_ERR_NOT_FOUND);
      free(*bytes);
      *bytes = NULL;
      continue;
    }
    if (*bytes) tier_expect(tier, key, 2, *bytes, model[key[1]].length);
    const uint64_t length = test_log_uniform(&seed, largest), cut = test_random(&seed) % (length + 1);
    unsigned char *fresh = malloc((size_t)length);
    assert_non_null(fresh);
    for (uint64_t at = 0; at < length; at++) fresh[at] = (unsigned char)(test_random(&seed) >> (i % 2 ? 8 : 62));
    const gm_tier_part parts[] = {{fresh, cut}, {fresh + cut, length - cut}};
    assert_int_equal(gm_tier_put(tier, key, 2, parts, 2, NULL), GM_OK);
    free(*bytes);
    *bytes = fresh;
    model[key[1]].length = length;
  }
  size_t count = 0;
  for (int i = 0; i < KEYS; i++) {
    const unsigned char key[2] = {'k', (unsigned char)i};
    if (!model[i].bytes) continue;
    tier_expect(tier, key, 2, model[i].bytes, model[i].length);
    count++;
  }
  assert_int_equal(tier_list_of(tier, "k", KEYS + 1).count, count);
  for (int i = 0; i < KEYS; i++) {
    const unsigned char key[2] = {'k', (unsigned char)i};
    if (model[i].bytes) assert_int_equal(gm_tier_remove(tier, key, 2, NULL), GM_OK);
    free(model[i].bytes);
  }
}

static inline void tier_case_figures(gm_tier *tier) {
  gm_tier_stats before = {.struct_size = sizeof before}, after = {.struct_size = sizeof after};
  assert_int_equal(gm_tier_get_stats(tier, &before, NULL), GM_OK);
  assert_int_equal(before.values, 0);
  assert_int_equal(before.value_bytes, 0);
  assert_int_equal(tier_put_text(tier, "a", "12345"), GM_OK);
  assert_int_equal(tier_put_text(tier, "a", "123"), GM_OK);
  assert_int_equal(tier_put_text(tier, "b", "4567"), GM_OK);
  tier_expect_text(tier, "a", "123");
  tier_expect_none(tier, "none", 4);
  assert_int_equal(gm_tier_remove(tier, "b", 1, NULL), GM_OK);
  assert_int_equal(gm_tier_flush(tier, NULL), GM_OK);
  assert_int_equal(gm_tier_get_stats(tier, &after, NULL), GM_OK);
  assert_int_equal(after.values, 1);
  assert_int_equal(after.value_bytes, 3);
  assert_true(after.stored_bytes >= 1);
  assert_int_equal(after.puts - before.puts, 3);
  assert_int_equal(after.gets - before.gets, 1);
  assert_int_equal(after.misses - before.misses, 1);
  assert_int_equal(after.removes - before.removes, 1);
  assert_int_equal(after.damaged, 0);
  assert_int_equal(gm_tier_remove(tier, "a", 1, NULL), GM_OK);
}

/* `largest`: bytes of the largest random value. */
static inline void tier_suite(gm_tier *tier, uint64_t seed, int steps, uint64_t largest) {
  tier_case_replaces(tier);
  tier_case_keys(tier);
  tier_case_parts(tier);
  tier_case_open_values(tier);
  tier_case_figures(tier);
  tier_case_random(tier, seed, steps, largest);
  assert_int_equal(tier_list_of(tier, "", 1).count, 0);
}

#endif
