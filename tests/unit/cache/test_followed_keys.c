/* Keys of the configuration that change while a cache, or tensor sets, live: the next call follows them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "gm/config.h"
#include "gm/tensor_sets.h"
#include "support/cache_things.h"
#include "support/temp_folder.h"

enum { THINGS = 64 };

static thing things[THINGS];

static void configure(gm_context *ctx, const char *key, const char *value) {
  assert_int_equal(gm_config_set(ctx, key, value, NULL), GM_OK);
}

static gm_status put(gm_cache *cache, size_t i, gm_cache_lease **lease) {
  return gm_cache_put(cache, &i, sizeof i, &things[i], things[i].bytes, lease, NULL);
}

static gm_cache *open_things(gm_context **ctx, uint64_t entries) {
  memset(things, 0, sizeof things);
  *ctx = open_context(NULL);
  return open_cache(*ctx, GM_CACHE_S3FIFO, entries, 0, NULL);
}

static void test_a_cache_shrinks_and_grows(void **state) {
  (void)state;
  gm_context *ctx;
  gm_cache *cache = open_things(&ctx, 0);
  for (size_t i = 0; i < 32; i++) assert_int_equal(put(cache, i, NULL), GM_OK);
  assert_int_equal(stats_of(cache).entries, 32);
  configure(ctx, "gpu.memory.cache_size", "10");
  assert_int_equal(put(cache, 32, NULL), GM_OK);
  assert_int_equal(stats_of(cache).entries, 10);
  assert_int_equal(released(things, THINGS), 23);
  configure(ctx, "gpu.memory.cache_size", "20");
  for (size_t i = 33; i < 64; i++) assert_int_equal(put(cache, i, NULL), GM_OK);
  assert_int_equal(stats_of(cache).entries, 20);
  close_all(ctx, cache);
  assert_int_equal(released(things, THINGS), THINGS);
}

static void test_what_is_held_stays(void **state) {
  (void)state;
  gm_context *ctx;
  gm_cache_lease *leases[4];
  gm_cache *cache = open_things(&ctx, 0);
  for (size_t i = 0; i < 4; i++) assert_int_equal(put(cache, i, &leases[i]), GM_OK);
  configure(ctx, "gpu.memory.cache_size", "2");
  assert_int_equal(put(cache, 5, NULL), GM_ERR_OVER_LIMIT);
  assert_int_equal(stats_of(cache).entries, 4);
  for (size_t i = 0; i < 4; i++) gm_cache_return(leases[i]);
  assert_int_equal(put(cache, 5, NULL), GM_OK);
  assert_int_equal(stats_of(cache).entries, 2);
  configure(ctx, "gpu.memory.cache_size", "0");
  assert_int_equal(put(cache, 6, NULL), GM_ERR_OVER_LIMIT);
  assert_int_equal(stats_of(cache).entries, 0);
  close_all(ctx, cache);
}

static void test_a_bound_of_the_program_stays(void **state) {
  (void)state;
  gm_context *ctx;
  gm_cache *cache = open_things(&ctx, 8);
  for (size_t i = 0; i < 8; i++) assert_int_equal(put(cache, i, NULL), GM_OK);
  configure(ctx, "gpu.memory.cache_size", "2");
  assert_int_equal(put(cache, 9, NULL), GM_OK);
  assert_int_equal(stats_of(cache).entries, 8);
  close_all(ctx, cache);
}

/* ---- threads ---- */

typedef struct putter {
  gm_cache *cache;
  size_t from;
} putter;

static void *put_many(void *arg) {
  const putter *p = arg;
  for (size_t i = 0; i < THINGS / 2; i++) assert_int_equal(put(p->cache, p->from + i, NULL), GM_OK);
  return NULL;
}

/* The last value counts, whichever thread read which one. */
static void test_threads_agree_on_the_last_value(void **state) {
  (void)state;
  for (int scene = 0; scene < 50; scene++) {
    gm_context *ctx;
    gm_cache *cache = open_things(&ctx, 0);
    pthread_t threads[2];
    putter putters[2] = {{cache, 0}, {cache, THINGS / 2}};
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, put_many, &putters[i]), 0);
    for (int most = 30; most > 4; most--) {
      char text[8];
      snprintf(text, sizeof text, "%d", most);
      configure(ctx, "gpu.memory.cache_size", text);
    }
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    assert_int_equal(put(cache, 0, NULL), GM_OK);
    assert_true(stats_of(cache).entries <= 5);
    close_all(ctx, cache);
  }
}

/* ---- tensor sets ---- */

enum { FILES = 6 };

typedef struct scene {
  temp_folder folder;
  char files[FILES][256];
  gm_context *ctx;
  gm_tensor_sets *sets;
  unsigned makes;
} scene;

static gm_status make_set(void *user, const char *path, void **out_set, uint64_t *out_bytes, gm_error *err) {
  scene *s = user;
  (void)path, (void)err;
  s->makes++;
  *out_set = s;
  *out_bytes = 1;
  return GM_OK;
}

static void open_sets(scene *s, uint64_t max_sets) {
  memset(s, 0, sizeof *s);
  const gm_tensor_sets_params params = {
      .struct_size = sizeof params, .max_sets = max_sets, .make = make_set, .user = s};
  temp_folder_make(&s->folder);
  for (int i = 0; i < FILES; i++) {
    char name[16];
    snprintf(name, sizeof name, "%d.c", i);
    const char *path = temp_folder_write(&s->folder, name, "int a;", 6);
    assert_true(strlen(path) < sizeof s->files[i]);
    memcpy(s->files[i], path, strlen(path) + 1);
  }
  s->ctx = open_context(NULL);
  assert_int_equal(gm_tensor_sets_create(s->ctx, &params, &s->sets, NULL), GM_OK);
}

static void close_sets(scene *s) {
  assert_int_equal(gm_tensor_sets_destroy(s->sets, NULL), GM_OK);
  assert_int_equal(gm_context_destroy(s->ctx, NULL), GM_OK);
  temp_folder_remove(&s->folder);
}

static gm_tensor_set *get_set(scene *s, int file) {
  gm_tensor_set *set = NULL;
  assert_int_equal(gm_tensor_sets_get(s->sets, s->files[file], &set, NULL), GM_OK);
  return set;
}

static void get_each(scene *s) {
  for (int i = 0; i < FILES; i++) gm_tensor_set_return(get_set(s, i));
}

static uint64_t kept(const scene *s) {
  gm_tensor_sets_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(gm_tensor_sets_get_stats(s->sets, &stats, NULL), GM_OK);
  return stats.kept;
}

static void test_sets_shrink_and_grow(void **state) {
  (void)state;
  scene s;
  open_sets(&s, 0);
  get_each(&s);
  assert_int_equal(kept(&s), FILES);
  configure(s.ctx, "gpu.ast.max_cache_size", "2");
  get_each(&s);
  assert_int_equal(kept(&s), 2);
  configure(s.ctx, "gpu.ast.max_cache_size", "5");
  get_each(&s);
  assert_int_equal(kept(&s), 5);
  close_sets(&s);
}

static void test_sets_are_turned_off_and_on(void **state) {
  (void)state;
  scene s;
  open_sets(&s, 3); /* the program's own bound stays */
  gm_tensor_set *held = get_set(&s, 0);
  configure(s.ctx, "gpu.ast.cache_enabled", "false");
  const unsigned before = s.makes;
  get_each(&s);
  get_each(&s);
  assert_int_equal(s.makes, before + 2 * FILES);
  assert_int_equal(kept(&s), 0);
  assert_ptr_equal(gm_tensor_set_object(held), &s); /* its user has it still */
  gm_tensor_set_return(held);
  configure(s.ctx, "gpu.ast.cache_enabled", "true");
  configure(s.ctx, "gpu.ast.max_cache_size", "1");
  get_each(&s);
  assert_int_equal(kept(&s), 3);
  close_sets(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_cache_shrinks_and_grows),    cmocka_unit_test(test_what_is_held_stays),
      cmocka_unit_test(test_a_bound_of_the_program_stays), cmocka_unit_test(test_threads_agree_on_the_last_value),
      cmocka_unit_test(test_sets_shrink_and_grow),         cmocka_unit_test(test_sets_are_turned_off_and_on),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
