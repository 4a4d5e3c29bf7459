/* 16 layers of 1 MiB on a pool of 4 MiB: those that are not in use go to a file. A second run finds them there.
 *
 *   store FILE */
#include <gm/store_all.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 16, LAYER_BYTES = 1 << 20 };

typedef struct engine {
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
  gm_tier *disk;
  gm_store *store;
} engine;

static gm_status engine_open(engine *e, const char *file, gm_error *err) {
  const gm_pool_params pool = {.struct_size = sizeof pool, .max_bytes = 4 << 20};
  gm_status status = gm_context_create(NULL, &e->ctx, err);
  if (!status) status = gm_device_open_index(e->ctx, "cpu", 0, &e->device, err);
  if (!status) status = gm_pool_create(e->device, &pool, &e->pool, err);
  if (!status) status = gm_tier_open(e->ctx, "disk", file, NULL, &e->disk, err);
  const gm_store_params store = {.struct_size = sizeof store,
                                 .pool = e->pool,
                                 .tiers = &e->disk,
                                 .tier_count = 1,
                                 .max_host_bytes = 2 << 20,
                                 .fallback = GM_FALLBACK_REFUSE};
  return status ? status : gm_store_create(&store, &e->store, err);
}

static void engine_close(engine *e) {
  gm_store_destroy(e->store, NULL);
  gm_tier_close(e->disk, NULL);
  gm_pool_destroy(e->pool, NULL);
  gm_device_close(e->device, NULL);
  gm_context_destroy(e->ctx, NULL);
}

static void layer_key(char key[32], int layer) { snprintf(key, 32, "model/layer/%d", layer); }

static gm_status put_layers(engine *e, gm_error *err) {
  const gm_tensor_desc desc = {.struct_size = sizeof desc, .dtype = GM_DTYPE_I8, .rank = 2, .shape = {1024, 1024}};
  char *weights = malloc(LAYER_BYTES), key[32];
  gm_status status = weights ? GM_OK : GM_ERR_OUT_OF_HOST_MEMORY;
  for (int i = 0; i < LAYERS && !status; i++) {
    layer_key(key, i);
    memset(weights, i, LAYER_BYTES);
    status = gm_store_put_tensor(e->store, key, &desc, weights, err);
  }
  free(weights);
  return status ? status : gm_store_flush(e->store, err); /* from here on they survive a crash */
}

/* The last byte of each layer. */
static gm_status add_up(engine *e, int *sum, gm_error *err) {
  gm_status status = GM_OK;
  char key[32], byte = 0;
  for (int i = 0; i < LAYERS && !status; i++) {
    gm_value *value = NULL;
    layer_key(key, i);
    status = gm_store_get(e->store, key, &value, err);
    if (!status) status = gm_value_read(value, LAYER_BYTES - 1, &byte, 1, NULL, err);
    gm_value_release(value, NULL);
    *sum += byte;
  }
  return status;
}

int main(int argc, char **argv) {
  engine e = {.ctx = NULL};
  gm_error err = {.status = GM_OK};
  gm_store_stats stats = {.struct_size = sizeof stats};
  int sum = 0;
  gm_status status = engine_open(&e, argc > 1 ? argv[1] : "store.gmtier", &err);
  if (!status) status = gm_store_get_stats(e.store, &stats, &err);
  const unsigned long long found = stats.keys;
  if (!status && !found) status = put_layers(&e, &err);
  if (!status) status = add_up(&e, &sum, &err);
  if (!status) status = gm_store_get_stats(e.store, &stats, &err);
  if (!status) {
    printf("%llu layers were there, %llu came back to the device, sum %d\n", found, (unsigned long long)stats.came_back,
           sum);
  } else {
    printf("%s: %s\n", err.op, err.message);
  }
  engine_close(&e);
  return status || sum != LAYERS * (LAYERS - 1) / 2;
}
