/* The longest calls of gm_cache and gm_store beside many keys. Each row has the mean and the longest call, by the time
 * of the thread. The last column has the most pages of memory that one call was the first to touch: it depends on no
 * machine.
 *
 *   gm_keys_bench [--keys N] [--file PATH]
 *
 * There are 1000000 keys unless --keys says otherwise. The file, of a tier "disk", is made and removed. Calls that
 * visit all keys by their meaning (clear, list, destroy) are one row each. */
#include <gm/cache.h>
#include <gm/device.h>
#include <gm/pool.h>
#include <gm/store.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { KEY_ROOM = 32, VALUE_BYTES = 64 };

static uint32_t keys = 1000000;

/* ---- rows ---- */

typedef struct row {
  const char *name;
  uint64_t begin, all, most, calls; /* nanoseconds of the thread */
  long first, pages;
} row;

static uint64_t own_ns(void) {
  struct timespec at;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
  return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

static long own_pages(void) {
  struct rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_minflt : 0;
}

static void row_begin(row *r) {
  r->first = own_pages();
  r->begin = own_ns();
}

static void row_end(row *r) {
  const uint64_t took = own_ns() - r->begin;
  const long pages = own_pages() - r->first;
  r->all += took;
  r->calls++;
  if (took > r->most) r->most = took;
  if (pages > r->pages) r->pages = pages;
}

static void row_say(const row *r) {
  if (!r->calls) return;
  printf("| %s | %llu | %.0f | %.1f | %ld |\n", r->name, (unsigned long long)r->calls,
         (double)r->all / (double)r->calls, (double)r->most / 1e3, r->pages);
}

/* ---- calls ---- */

typedef struct scene {
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
  gm_cache *cache;
  gm_tier *tier;
  gm_store *store;
  uint32_t number; /* of the key of this call */
  gm_error err;
} scene;

typedef gm_status (*scene_call)(scene *s, const char *key);

static void need(const char *what, gm_status status, const scene *s) {
  if (!status) return;
  fprintf(stderr, "gm_keys_bench: %s: %s: %s\n", what, gm_status_name(status), s->err.message);
  exit(1);
}

static const char *key_of(uint32_t number, char out[KEY_ROOM]) {
  snprintf(out, KEY_ROOM, "layers/%u/%u", number % 1024, number);
  return out;
}

/* The call once for each of the keys [first, end), whose neighbours do not come one after the other. */
static void each(scene *s, const char *name, scene_call call, uint32_t first, uint32_t end) {
  row r = {.name = name};
  char key[KEY_ROOM];
  for (uint64_t i = 0; i < end - first; i++) {
    s->number = first + (uint32_t)(i * 7919 % (end - first));
    key_of(s->number, key);
    row_begin(&r);
    const gm_status status = call(s, key);
    row_end(&r);
    need(name, status, s);
  }
  row_say(&r);
}

static void once(scene *s, const char *name, scene_call call) {
  row r = {.name = name};
  row_begin(&r);
  const gm_status status = call(s, "layers");
  row_end(&r);
  need(name, status, s);
  row_say(&r);
}

/* ---- the cache ---- */

static gm_status cache_put(scene *s, const char *key) {
  return gm_cache_put(s->cache, key, strlen(key), &keys, VALUE_BYTES, NULL, &s->err);
}

static gm_status cache_get(scene *s, const char *key) {
  gm_cache_lease *lease;
  void *object;
  const gm_status status = gm_cache_get(s->cache, key, strlen(key), &lease, &object, &s->err);
  if (!status) gm_cache_return(lease);
  return status;
}

static gm_status cache_keep(scene *s, const char *key) {
  return gm_cache_keep(s->cache, key, strlen(key), true, &s->err);
}

static gm_status cache_let_go(scene *s, const char *key) {
  return gm_cache_keep(s->cache, key, strlen(key), false, &s->err);
}

static gm_status cache_remove(scene *s, const char *key) {
  const gm_status status = gm_cache_remove(s->cache, key, strlen(key), &s->err);
  return status == GM_ERR_NOT_FOUND ? GM_OK : status; /* it was evicted */
}

static gm_status cache_clear(scene *s, const char *key) {
  (void)key;
  return gm_cache_clear(s->cache, &s->err);
}

static void bench_cache(scene *s, gm_cache_policy policy, const char *name) {
  const gm_cache_params params = {.struct_size = sizeof params, .policy = policy, .max_entries = keys};
  need("gm_cache_create", gm_cache_create(s->ctx, &params, &s->cache, &s->err), s);
  printf("\n%s, %u keys\n\n| call | calls | mean ns | longest us | most pages |\n|---|---|---|---|---|\n", name, keys);
  each(s, "gm_cache_put", cache_put, 0, keys);
  each(s, "gm_cache_get", cache_get, 0, keys);
  each(s, "gm_cache_keep", cache_keep, 0, keys / 2);
  each(s, "gm_cache_put that evicts, half are kept", cache_put, keys, keys + keys / 4);
  each(s, "gm_cache_keep, false", cache_let_go, 0, keys / 2);
  each(s, "gm_cache_put that evicts", cache_put, keys + keys / 4, 2 * keys);
  each(s, "gm_cache_remove", cache_remove, 2 * keys - keys / 8, 2 * keys);
  once(s, "gm_cache_clear", cache_clear);
  need("gm_cache_destroy", gm_cache_destroy(s->cache, &s->err), s);
}

/* ---- the store ---- */

static gm_status store_put(scene *s, const char *key) {
  static const unsigned char bytes[VALUE_BYTES];
  const gm_tensor_desc desc = {.struct_size = sizeof desc, .dtype = GM_DTYPE_U8, .rank = 1, .shape = {VALUE_BYTES}};
  return gm_store_put_tensor(s->store, key, &desc, bytes, &s->err);
}

static gm_status store_get(scene *s, const char *key) {
  gm_value *value;
  const gm_status status = gm_store_get(s->store, key, &value, &s->err);
  if (!status) gm_value_release(value, NULL);
  return status;
}

static gm_status store_exists(scene *s, const char *key) {
  bool has;
  return gm_store_exists(s->store, key, &has, &s->err);
}

static gm_status store_copy(scene *s, const char *key) {
  char to[KEY_ROOM];
  return gm_store_copy(s->store, key, key_of(s->number + keys, to), &s->err);
}

static gm_status store_move(scene *s, const char *key) {
  char to[KEY_ROOM];
  return gm_store_move(s->store, key, key_of(s->number + keys, to), &s->err);
}

static gm_status store_demote_key(scene *s, const char *key) { return gm_store_demote_key(s->store, key, &s->err); }
static gm_status store_delete(scene *s, const char *key) { return gm_store_delete(s->store, key, &s->err); }

static gm_status store_demote(scene *s, const char *key) {
  uint64_t bytes;
  (void)key;
  return gm_store_demote(s->store, VALUE_BYTES, &bytes, &s->err);
}

static bool see_none(void *user, const char *key) {
  (void)user, (void)key;
  return false;
}

static gm_status store_list_one(scene *s, const char *key) {
  return gm_store_list(s->store, key, see_none, NULL, &s->err);
}

static gm_status store_stats(scene *s, const char *key) {
  gm_store_stats stats = {.struct_size = sizeof stats};
  (void)key;
  return gm_store_get_stats(s->store, &stats, &s->err);
}

static gm_status store_flush(scene *s, const char *key) {
  (void)key;
  return gm_store_flush(s->store, &s->err);
}

static gm_status store_clear(scene *s, const char *key) { return gm_store_clear(s->store, key, &s->err); }

static void bench_store_calls(scene *s) {
  const uint32_t part = keys / 8;
  each(s, "gm_store_put_tensor", store_put, 0, keys);
  each(s, "gm_store_get", store_get, 0, keys);
  each(s, "gm_store_exists", store_exists, 0, keys);
  each(s, "gm_store_put_tensor again", store_put, 0, part);
  each(s, "gm_store_demote of one value", store_demote, 0, keys / 64);
  each(s, "gm_store_copy", store_copy, 0, part);
  each(s, "gm_store_move", store_move, part, 2 * part);
  each(s, "gm_store_demote_key", store_demote_key, 2 * part, 3 * part);
  each(s, "gm_store_get of what went down", store_get, 2 * part, 3 * part);
  each(s, "gm_store_list of one key", store_list_one, 3 * part, 4 * part);
  each(s, "gm_store_delete", store_delete, 3 * part, 4 * part);
  once(s, "gm_store_get_stats", store_stats);
}

static void store_open(scene *s) {
  const gm_store_params params = {
      .struct_size = sizeof params, .pool = s->pool, .tiers = &s->tier, .tier_count = s->tier ? 1 : 0};
  need("gm_store_create", gm_store_create(&params, &s->store, &s->err), s);
}

static void bench_store(scene *s, const char *name) {
  printf("\n%s, %u keys\n\n| call | calls | mean ns | longest us | most pages |\n|---|---|---|---|---|\n", name, keys);
  store_open(s);
  bench_store_calls(s);
  if (s->tier) once(s, "gm_store_flush", store_flush);
  if (s->tier) once(s, "gm_store_flush again", store_flush);
  once(s, "gm_store_clear", store_clear);
  need("gm_store_destroy", gm_store_destroy(s->store, &s->err), s);
}

/* ---- main ---- */

static void open_pool(scene *s) {
  need("gm_context_create", gm_context_create(NULL, &s->ctx, &s->err), s);
  need("gm_device_open_index", gm_device_open_index(s->ctx, "cpu", 0, &s->device, &s->err), s);
  need("gm_pool_create", gm_pool_create(s->device, NULL, &s->pool, &s->err), s);
}

static void close_pool(scene *s) {
  need("gm_pool_destroy", gm_pool_destroy(s->pool, &s->err), s);
  need("gm_device_close", gm_device_close(s->device, &s->err), s);
  need("gm_context_destroy", gm_context_destroy(s->ctx, &s->err), s);
}

int main(int argc, char **argv) {
  const char *file = NULL;
  scene s = {.number = 0};
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--keys") == 0) keys = (uint32_t)strtoul(argv[i + 1], NULL, 10);
    if (strcmp(argv[i], "--file") == 0) file = argv[i + 1];
  }
  if (argc % 2 == 0 || keys < 64) {
    fprintf(stderr, "usage: gm_keys_bench [--keys N] [--file PATH]\n");
    return 2;
  }
  open_pool(&s);
  bench_cache(&s, GM_CACHE_S3FIFO, "gm_cache, S3-FIFO");
  bench_cache(&s, GM_CACHE_LRU, "gm_cache, LRU");
  bench_store(&s, "gm_store");
  if (file) {
    need("gm_tier_open", gm_tier_open(s.ctx, "disk", file, NULL, &s.tier, &s.err), &s);
    bench_store(&s, "gm_store over a disk tier");
    need("gm_tier_close", gm_tier_close(s.tier, &s.err), &s);
    unlink(file);
  }
  close_pool(&s);
  return 0;
}
