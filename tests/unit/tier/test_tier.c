/* Tiers: their kinds, the checks before a table is called, and the tier of host memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gm/tier.h"
#include "support/child_part.h"
#include "support/fail_each.h"
#include "support/tier_suite.h"

static gm_context *open_context(const gm_services *services) {
  gm_context *ctx = NULL;
  const gm_context_params params = {.struct_size = sizeof params, .services = services, .ignore_environment = true};
  assert_int_equal(gm_context_create(&params, &ctx, NULL), GM_OK);
  return ctx;
}

static void test_the_host_tier_keeps_values(void **state) {
  (void)state;
  counted_services host;
  counted_services_init(&host);
  gm_context *ctx = open_context(&host.services);
  gm_tier *tier = NULL;
  assert_int_equal(gm_tier_open(ctx, "host", "test", NULL, &tier, NULL), GM_OK);
  assert_string_equal(gm_tier_kind(tier), "host");
  tier_suite(tier, 1, 400, 100000);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_ERR_BUSY);
  assert_int_equal(tier_put_text(tier, "left", "goes with the tier"), GM_OK);
  assert_int_equal(gm_tier_close(tier, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  counted_services_check(&host);
}

static void test_the_host_tier_has_a_bound(void **state) {
  (void)state;
  gm_context *ctx = open_context(NULL);
  gm_tier *tier = NULL;
  const gm_tier_params params = {.struct_size = sizeof params, .max_bytes = 10};
  assert_int_equal(gm_tier_open(ctx, "host", "", &params, &tier, NULL), GM_OK);
  assert_int_equal(tier_put_text(tier, "a", "12345678"), GM_OK);
  assert_int_equal(tier_put_text(tier, "b", "123"), GM_ERR_OVER_LIMIT);
  tier_expect_none(tier, "b", 1);
  assert_int_equal(tier_put_text(tier, "a", "1234567890"), GM_OK); /* what it replaces counts no more */
  assert_int_equal(tier_put_text(tier, "a", "12345678901"), GM_ERR_OVER_LIMIT);
  tier_expect_text(tier, "a", "1234567890");
  assert_int_equal(gm_tier_close(tier, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_a_reader_alone_writes_nothing(void **state) {
  (void)state;
  gm_context *ctx = open_context(NULL);
  gm_tier *tier = NULL;
  const gm_tier_params params = {.struct_size = sizeof params, .read_only = true};
  assert_int_equal(gm_tier_open(ctx, "host", "", &params, &tier, NULL), GM_OK);
  assert_int_equal(tier_put_text(tier, "a", "1"), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm_tier_remove(tier, "a", 1, NULL), GM_ERR_NOT_SUPPORTED);
  tier_expect_none(tier, "a", 1);
  assert_int_equal(gm_tier_flush(tier, NULL), GM_OK);
  assert_int_equal(gm_tier_close(tier, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

/* ---- a tier of the host program ---- */

static struct {
  int opened, closed, flushed;
  gm_status flush;
} own;

static gm_status own_open(gm_context *ctx, const char *where, const gm_tier_params *params, void **out, gm_error *err) {
  (void)ctx, (void)err;
  if (strcmp(where, "nowhere") == 0) return GM_ERR_UNAVAILABLE;
  assert_string_equal(where, "here");
  assert_string_equal(params->own, "own parameters");
  own.opened++;
  *out = &own;
  return GM_OK;
}

static void own_close(void *tier) {
  assert_ptr_equal(tier, &own);
  own.closed++;
}

static gm_status own_put(void *tier, const void *key, size_t key_bytes, const gm_tier_part *parts, size_t count,
                         gm_error *err) {
  (void)tier, (void)key, (void)key_bytes, (void)parts, (void)count, (void)err;
  return GM_ERR_IO; /* without a word */
}

static gm_status own_value_open(void *tier, const void *key, size_t key_bytes, void **out, uint64_t *bytes,
                                gm_error *err) {
  (void)tier, (void)key, (void)key_bytes, (void)err;
  *out = NULL;
  *bytes = 3;
  return GM_OK;
}

static gm_status own_value_read(void *tier, void *value, uint64_t offset, void *dst, uint64_t bytes, gm_error *err) {
  (void)tier, (void)value, (void)err;
  memcpy(dst, &"own"[offset], (size_t)bytes);
  return GM_OK;
}

static void own_value_close(void *tier, void *value) { (void)tier, (void)value; }

static gm_status own_remove(void *tier, const void *key, size_t key_bytes, gm_error *err) {
  (void)tier, (void)key, (void)key_bytes, (void)err;
  return GM_OK;
}

static gm_status own_list(void *tier, const void *prefix, size_t prefix_bytes, gm_tier_visit visit, void *user,
                          gm_error *err) {
  (void)tier, (void)prefix, (void)prefix_bytes, (void)err;
  visit(user, "own", 3, 3);
  return GM_OK;
}

static gm_status own_flush(void *tier, gm_error *err) {
  (void)tier, (void)err;
  own.flushed++;
  return own.flush;
}

static void own_stats(void *tier, gm_tier_stats *out) {
  (void)tier;
  out->values = 7;
}

static const gm_tier_ops own_ops = {.struct_size = sizeof own_ops,
                                    .abi = GM_TIER_ABI,
                                    .name = "own",
                                    .open = own_open,
                                    .close = own_close,
                                    .put = own_put,
                                    .value_open = own_value_open,
                                    .value_read = own_value_read,
                                    .value_close = own_value_close,
                                    .remove = own_remove,
                                    .list = own_list,
                                    .flush = own_flush,
                                    .stats = own_stats};

static void test_a_program_brings_a_tier(void **state) {
  (void)state;
  gm_context *ctx = open_context(NULL);
  gm_tier *tier = NULL;
  gm_error err = {.status = GM_OK};
  const gm_tier_params params = {.struct_size = sizeof params, .own = "own parameters"};
  gm_tier_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(gm_tier_open(ctx, "own", "here", &params, &tier, &err), GM_ERR_NOT_FOUND);
  assert_non_null(strstr(err.message, "host"));
  assert_int_equal(gm_tier_register(ctx, &own_ops, NULL), GM_OK);
  assert_int_equal(gm_tier_register(ctx, &own_ops, &err), GM_ERR_BUSY);
  err = (gm_error){.status = GM_OK};
  assert_int_equal(gm_tier_open(ctx, "own", "nowhere", &params, &tier, &err), GM_ERR_UNAVAILABLE);
  assert_string_equal(err.op, "gm_tier_open");
  assert_int_equal(gm_tier_open(ctx, "own", "here", &params, &tier, NULL), GM_OK);
  tier_expect(tier, "any", 3, "own", 3);
  assert_int_equal(tier_list_of(tier, "", 9).bytes, 3);
  assert_int_equal(gm_tier_get_stats(tier, &stats, NULL), GM_OK);
  assert_int_equal(stats.values, 7);
  err = (gm_error){.status = GM_OK};
  assert_int_equal(gm_tier_put(tier, "k", 1, NULL, 0, &err), GM_ERR_IO);
  assert_string_equal(err.op, "gm_tier_put");
  own.flush = GM_ERR_IO;
  assert_int_equal(gm_tier_close(tier, NULL), GM_ERR_IO); /* and it is closed */
  assert_int_equal(own.opened, 1);
  assert_int_equal(own.closed, 1);
  assert_int_equal(own.flushed, 1);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_wrong_tables_are_refused(void **state) {
  (void)state;
  static const char *const names[] = {NULL, "", "With Space", "upPer", "a-name-that-is-longer-than-31-chars"};
  gm_context *ctx = open_context(NULL);
  gm_tier_ops ops = own_ops;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    ops.name = names[i];
    assert_int_equal(gm_tier_register(ctx, &ops, NULL), GM_ERR_INVALID_ARGUMENT);
  }
  ops = own_ops;
  ops.list = NULL;
  assert_int_equal(gm_tier_register(ctx, &ops, NULL), GM_ERR_INVALID_ARGUMENT);
  for (size_t i = 0; i < sizeof ops.reserved / sizeof *ops.reserved; i++) {
    gm_error err = {.status = GM_OK};
    ops = own_ops;
    ops.reserved[i] = (void (*)(void))own_ops.close;
    assert_int_equal(gm_tier_register(ctx, &ops, &err), GM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "`ops->reserved`"));
  }
  ops = own_ops;
  ops.abi = GM_TIER_ABI + 1;
  assert_int_equal(gm_tier_register(ctx, &ops, NULL), GM_ERR_ABI_MISMATCH);
  ops = own_ops;
  ops.struct_size = 8;
  assert_int_equal(gm_tier_register(ctx, &ops, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_register(ctx, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_register(NULL, &own_ops, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_wrong_arguments_are_refused(void **state) {
  (void)state;
  gm_context *ctx = open_context(NULL);
  gm_tier *tier = NULL;
  gm_tier_params params = {.struct_size = sizeof params, .durability = (gm_tier_durability)9};
  gm_tier_stats stats = {.struct_size = 3};
  assert_int_equal(gm_tier_open(ctx, "host", "", &params, &tier, NULL), GM_ERR_INVALID_ARGUMENT);
  params = (gm_tier_params){.struct_size = sizeof params, .codec = (gm_tier_codec)9};
  assert_int_equal(gm_tier_open(ctx, "host", "", &params, &tier, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_open(ctx, NULL, "", NULL, &tier, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_open(ctx, "host", NULL, NULL, &tier, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_open(ctx, "host", "", NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_open(NULL, "host", "", NULL, &tier, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_open(ctx, "host", "", NULL, &tier, NULL), GM_OK);
  assert_int_equal(gm_tier_list(tier, NULL, 1, tier_listing_visit, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_list(tier, "a", GM_TIER_KEY_MOST + 1, tier_listing_visit, NULL, NULL),
                   GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_list(tier, NULL, 0, NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_value_open(tier, "a", 1, NULL, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_value_read(NULL, 0, NULL, 0, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_get_stats(tier, &stats, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_get_stats(NULL, &stats, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_flush(NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_close(NULL, NULL), GM_OK);
  assert_string_equal(gm_tier_kind(NULL), "");
  assert_int_equal(gm_tier_close(tier, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void open_remote_without_hiredis(temp_folder *root) {
  gm_error err = {.status = GM_OK};
  gm_tier *tier = NULL;
  gm_context *ctx = open_context(NULL);
  (void)root;
  setenv("GM_HIREDIS_LIBRARY", "/nowhere/libhiredis.so", 1);
  if (gm_tier_open(ctx, "remote", "redis://127.0.0.1:1", NULL, &tier, &err) != GM_ERR_NOT_SUPPORTED) _exit(1);
  if (tier || !strstr(err.message, "/nowhere/libhiredis.so")) _exit(2);
  if (gm_context_destroy(ctx, NULL)) _exit(3);
}

static void test_a_missing_hiredis_is_told(void **state) {
  (void)state;
#ifdef GM_HAVE_HIREDIS
  in_child(open_remote_without_hiredis, NULL);
#else
  (void)open_remote_without_hiredis;
#endif
}

static void test_a_build_without_hiredis_says_so(void **state) {
  (void)state;
  gm_context *ctx = open_context(NULL);
  gm_tier *tier = NULL;
  gm_error err = {.status = GM_OK};
  const gm_status status = gm_tier_open(ctx, "remote", "nowhere", NULL, &tier, &err);
#ifdef GM_HAVE_HIREDIS
  assert_int_equal(status, GM_ERR_INVALID_ARGUMENT);
#else
  assert_int_equal(status, GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(err.message, "GM_WITH_HIREDIS"));
#endif
  assert_null(tier);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

/* ---- host memory, threads, forks ---- */

static gm_status fill_and_close(gm_tier *tier) {
  gm_tier_value *value = NULL;
  gm_status status = tier_put_text(tier, "a", "12345");
  if (!status) status = tier_put_text(tier, "b", "12345");
  if (!status) status = tier_put_text(tier, "a", "other");
  if (!status) status = gm_tier_value_open(tier, "a", 1, &value, NULL, NULL);
  gm_tier_value_close(value);
  assert_int_equal(gm_tier_close(tier, NULL), GM_OK);
  return status;
}

static gm_status open_and_fill(const gm_services *services) {
  gm_context *ctx = NULL;
  gm_tier *tier = NULL;
  const gm_context_params params = {.struct_size = sizeof params, .services = services, .ignore_environment = true};
  gm_status status = gm_context_create(&params, &ctx, NULL);
  if (status) return status;
  status = gm_tier_register(ctx, &own_ops, NULL);
  if (!status) status = gm_tier_open(ctx, "host", "", NULL, &tier, NULL);
  if (!status) status = fill_and_close(tier);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  return status;
}

static void test_host_memory_that_is_missing_loses_nothing(void **state) {
  (void)state;
  fail_each_allocation(open_and_fill, 8);
}

static void *use_in_thread(void *arg) {
  gm_tier *tier = arg;
  for (int i = 0; i < 500; i++) {
    const char key = (char)('a' + i % 5);
    const gm_tier_part part = {"value", (uint64_t)(i % 6)};
    gm_tier_value *value = NULL;
    char read[8];
    uint64_t bytes = 0;
    gm_tier_put(tier, &key, 1, &part, 1, NULL);
    if (gm_tier_value_open(tier, &key, 1, &value, &bytes, NULL) == GM_OK) {
      if (gm_tier_value_read(value, 0, read, bytes, NULL) || memcmp(read, "value", (size_t)bytes) != 0) return arg;
      gm_tier_value_close(value);
    }
    if (i % 7 == 0) gm_tier_remove(tier, &key, 1, NULL);
  }
  return NULL;
}

static void test_threads_share_a_tier(void **state) {
  (void)state;
  gm_context *ctx = open_context(NULL);
  gm_tier *tier = NULL;
  pthread_t threads[4];
  assert_int_equal(gm_tier_open(ctx, "host", "", NULL, &tier, NULL), GM_OK);
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, use_in_thread, tier), 0);
  for (int i = 0; i < 4; i++) {
    void *wrong = NULL;
    pthread_join(threads[i], &wrong);
    assert_null(wrong);
  }
  assert_int_equal(gm_tier_close(tier, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

static void test_a_forked_child_only_closes(void **state) {
  (void)state;
  gm_context *ctx = open_context(NULL);
  gm_tier *tier = NULL;
  assert_int_equal(gm_tier_open(ctx, "host", "", NULL, &tier, NULL), GM_OK);
  tier_forks(ctx, tier);
  assert_int_equal(gm_tier_close(tier, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_host_tier_keeps_values),
      cmocka_unit_test(test_the_host_tier_has_a_bound),
      cmocka_unit_test(test_a_reader_alone_writes_nothing),
      cmocka_unit_test(test_a_program_brings_a_tier),
      cmocka_unit_test(test_wrong_tables_are_refused),
      cmocka_unit_test(test_wrong_arguments_are_refused),
      cmocka_unit_test(test_a_build_without_hiredis_says_so),
      cmocka_unit_test(test_a_missing_hiredis_is_told),
      cmocka_unit_test(test_host_memory_that_is_missing_loses_nothing),
      cmocka_unit_test(test_threads_share_a_tier),
      cmocka_unit_test(test_a_forked_child_only_closes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
