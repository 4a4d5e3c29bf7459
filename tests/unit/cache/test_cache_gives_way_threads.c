/* A pool's requests evict tensors of a cache, and tensor sets, while other threads take and give leases back. A leased
 * object keeps its bytes, and every tensor is released once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>

#include "gm/cache.h"
#include "gm/copy.h"
#include "gm/tensor_sets.h"
#include "support/pool_bench.h"
#include "support/random.h"
#include "support/temp_folder.h"

/* The tensors of all keys are twice what the pool has. */
enum { KEYS = 16, USERS = 3, ROUNDS = 120, TENSOR_BYTES = 4 << 10, CAP_BYTES = 8 * TENSOR_BYTES };

typedef struct tensor {
  gm_block block;
  void *host;
  unsigned char is;
} tensor;

typedef struct scene {
  pool_bench bench;
  gm_cache *cache;
  gm_tensor_sets *sets;
  temp_folder folder;
  char files[KEYS][256];
  atomic_int made, released, wrong, refused;
} scene;

static bool tensor_is(const tensor *t, unsigned char byte) {
  const unsigned char *bytes = t->host;
  return t->is == byte && bytes[0] == byte && memcmp(bytes, bytes + 1, TENSOR_BYTES - 1) == 0;
}

/* Memory full of one byte. */
static bool take(scene *s, unsigned char byte, tensor *out) {
  const gm_request request = {.bytes = TENSOR_BYTES, .flags = GM_MAPPED};
  if (!gm_acquired(gm_alloc(s->bench.pool, &request, &out->block))) return false;
  if (gm_block_host(s->bench.pool, &out->block, &out->host, NULL)) abort();
  out->is = byte;
  memset(out->host, byte, TENSOR_BYTES);
  return true;
}

/* NULL: everything in the pool is in use. */
static tensor *tensor_new(scene *s, unsigned char byte) {
  tensor *t = calloc(1, sizeof *t);
  if (!t) return NULL;
  if (!take(s, byte, t)) {
    atomic_fetch_add(&s->refused, 1);
    free(t);
    return NULL;
  }
  atomic_fetch_add(&s->made, 1);
  return t;
}

static void tensor_end(void *user, void *object, uint64_t bytes) {
  scene *s = user;
  tensor *t = object;
  if (bytes != TENSOR_BYTES || !tensor_is(t, t->is)) atomic_fetch_add(&s->wrong, 1);
  memset(t->host, 0xee, TENSOR_BYTES);
  if (gm_free(s->bench.pool, &t->block, NULL)) atomic_fetch_add(&s->wrong, 1);
  free(t);
  atomic_fetch_add(&s->released, 1);
}

/* ---- users of a cache and of tensor sets ---- */

static gm_cache_lease *find_or_make(scene *s, unsigned char key) {
  gm_cache_lease *lease = NULL;
  if (gm_cache_get(s->cache, &key, 1, &lease, NULL, NULL) == GM_OK) return lease;
  tensor *t = tensor_new(s, key);
  if (!t || gm_cache_put(s->cache, &key, 1, t, TENSOR_BYTES, &lease, NULL) == GM_OK) return lease;
  tensor_end(s, t, TENSOR_BYTES);
  return NULL;
}

static void use_cache(scene *s, unsigned char key) {
  gm_cache_lease *lease = find_or_make(s, key);
  if (lease && !tensor_is(gm_cache_lease_object(lease), key)) atomic_fetch_add(&s->wrong, 1);
  gm_cache_return(lease);
}

static gm_status make_set(void *user, const char *path, void **out_set, uint64_t *out_bytes, gm_error *err) {
  (void)err;
  *out_set = tensor_new(user, (unsigned char)atoi(strrchr(path, '/') + 1));
  *out_bytes = TENSOR_BYTES;
  return *out_set ? GM_OK : GM_ERR_OUT_OF_DEVICE_MEMORY;
}

static void use_sets(scene *s, unsigned char key) {
  gm_tensor_set *set = NULL;
  if (gm_tensor_sets_get(s->sets, s->files[key], &set, NULL)) return;
  if (!tensor_is(gm_tensor_set_object(set), key)) atomic_fetch_add(&s->wrong, 1);
  gm_tensor_set_return(set);
}

typedef struct user {
  scene *s;
  uint64_t seed;
} user;

static void *use(void *arg) {
  user *u = arg;
  for (int i = 0; i < ROUNDS; i++) {
    const unsigned char key = (unsigned char)(test_random(&u->seed) % KEYS);
    if (u->s->cache)
      use_cache(u->s, key);
    else
      use_sets(u->s, key);
  }
  return NULL;
}

/* Takes memory that the cache has to give, and writes to it. */
static void *press(void *arg) {
  scene *s = arg;
  for (int i = 0; i < ROUNDS; i++) {
    tensor t;
    if (take(s, 0xff, &t) && gm_free(s->bench.pool, &t.block, NULL)) atomic_fetch_add(&s->wrong, 1);
    sched_yield();
  }
  return NULL;
}

static void traffic(scene *s) {
  pthread_t users[USERS], presser;
  user args[USERS];
  assert_int_equal(pthread_create(&presser, NULL, press, s), 0);
  for (int i = 0; i < USERS; i++) {
    args[i] = (user){s, (uint64_t)i + 1};
    assert_int_equal(pthread_create(&users[i], NULL, use, &args[i]), 0);
  }
  for (int i = 0; i < USERS; i++) assert_int_equal(pthread_join(users[i], NULL), 0);
  assert_int_equal(pthread_join(presser, NULL), 0);
}

static void scene_open(scene *s) {
  const gm_pool_params capped = {.struct_size = sizeof capped, .no_vmm = true, .max_bytes = CAP_BYTES};
  memset(s, 0, sizeof *s);
  pool_bench_open(&s->bench, "cpu", NULL, &capped);
}

/* All keys were used, and only half of them has room: the pool's requests evicted others. */
static void scene_check(scene *s, uint64_t evictions) {
  print_message("%d made, %d refused, %d evicted\n", atomic_load(&s->made), atomic_load(&s->refused), (int)evictions);
  assert_int_equal(s->wrong, 0);
  assert_int_equal(s->released, s->made);
  assert_true(s->made > KEYS);
  assert_true(evictions >= KEYS / 2);
  assert_int_equal(pool_bench_stats(&s->bench).in_use_bytes, 0);
  pool_bench_close(&s->bench);
}

static void test_leased_tensors_keep_their_bytes(void **state) {
  (void)state;
  for (int policy = GM_CACHE_S3FIFO; policy <= GM_CACHE_LRU; policy++) {
    scene s;
    scene_open(&s);
    gm_cache_stats stats = {.struct_size = sizeof stats};
    const gm_cache_params params = {.struct_size = sizeof params,
                                    .policy = (gm_cache_policy)policy,
                                    .release = tensor_end,
                                    .user = &s,
                                    .pool = s.bench.pool};
    assert_int_equal(gm_cache_create(s.bench.ctx, &params, &s.cache, NULL), GM_OK);
    traffic(&s);
    assert_int_equal(gm_cache_get_stats(s.cache, &stats, NULL), GM_OK);
    assert_int_equal(stats.leases, 0);
    assert_int_equal(stats.held_entries, 0);
    assert_int_equal(gm_cache_destroy(s.cache, NULL), GM_OK);
    scene_check(&s, stats.evictions);
  }
}

static void test_sets_in_use_keep_their_bytes(void **state) {
  (void)state;
  scene s;
  scene_open(&s);
  temp_folder_make(&s.folder);
  for (int i = 0; i < KEYS; i++) {
    char name[16];
    snprintf(name, sizeof name, "%d", i);
    const char *path = temp_folder_write(&s.folder, name, "x", 1);
    assert_true(strlen(path) < sizeof s.files[i]);
    memcpy(s.files[i], path, strlen(path) + 1);
  }
  const gm_tensor_sets_params params = {
      .struct_size = sizeof params, .make = make_set, .release = tensor_end, .user = &s, .pool = s.bench.pool};
  assert_int_equal(gm_tensor_sets_create(s.bench.ctx, &params, &s.sets, NULL), GM_OK);
  traffic(&s);
  gm_tensor_sets_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(gm_tensor_sets_get_stats(s.sets, &stats, NULL), GM_OK);
  assert_int_equal(gm_tensor_sets_destroy(s.sets, NULL), GM_OK);
  scene_check(&s, (uint64_t)(s.made - (int)stats.kept));
  temp_folder_remove(&s.folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_leased_tensors_keep_their_bytes),
      cmocka_unit_test(test_sets_in_use_keep_their_bytes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
