/* GPUTensorCache: get, put and clear; the tensor that was used least recently goes when the cache is full. */
#include "example.h"
#include "gm/cache.h"

static void tensor_release(void *user, void *tensor, uint64_t bytes) {
  (void)user, (void)bytes;
  gm_buffer_release(tensor, NULL);
}

static gm_status tensor_cache(gm_context *ctx, gm_pool *pool, uint64_t max_size, gm_cache **out, gm_error *why) {
  const gm_cache_params params = {.struct_size = sizeof params,
                                  .policy = GM_CACHE_LRU,
                                  .max_entries = max_size, /* 0: the key gpu.memory.cache_size, which is 100 */
                                  .release = tensor_release,
                                  .pool = pool}; /* tensors that nobody uses also go when the device is full */
  return gm_cache_create(ctx, &params, out, why);
}

static void put(gm_cache *cache, gm_pool *pool, const char *key) {
  const gm_buffer_params params = {.struct_size = sizeof params, .request = {.bytes = 1 << 20}};
  gm_buffer *tensor;
  DO(gm_buffer_create(pool, &params, &tensor, &err));
  DO(gm_cache_put(cache, key, strlen(key), tensor, 1 << 20, NULL, &err));
}

static bool get(gm_cache *cache, const char *key) {
  gm_cache_lease *lease;
  if (gm_cache_get(cache, key, strlen(key), &lease, NULL, &err) != GM_OK) return false; /* None */
  CLAIM(gm_cache_lease_object(lease));
  gm_cache_return(lease);
  return true;
}

int main(int argc, char **argv) {
  const example e = example_open(argc > 1 ? argv[1] : "cpu", NULL);
  gm_cache *cache;
  DO(tensor_cache(e.ctx, e.pool, 2, &cache, &err));
  put(cache, e.pool, "a");
  put(cache, e.pool, "b");
  CLAIM(get(cache, "a")); /* now "b" is the least recently used */
  put(cache, e.pool, "c");
  CLAIM(get(cache, "a") && !get(cache, "b") && get(cache, "c"));
  CLAIM(example_stats(e.pool).active == 2);
  DO(gm_cache_clear(cache, &err));
  CLAIM(!get(cache, "a") && example_stats(e.pool).active == 0);
  DO(gm_cache_destroy(cache, &err));
  puts("the least recently used tensor went");
  return example_close(e);
}
