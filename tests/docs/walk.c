/* A request that finds an empty pool, one that finds a freed block, a quick free and another one. Each is in a
 * function of its own, because check_walks.py traces which files they enter. */
#include <stdio.h>
#include <stdlib.h>

#include "gm/gm.h"
#include "test_data.h"

void empty_walk(gm_pool *pool, gm_block *out);
void hit_walk(gm_pool *pool, gm_block *out);
void quick_walk(gm_pool *pool, gm_block *block);
void slow_walk(gm_pool *pool, gm_block *block);

static const gm_request walk_request = {.bytes = 5000};
static const gm_request walk_dedicated = {.bytes = 5000, .flags = GM_DEDICATED};
static gm_acquire walk_answer;

void empty_walk(gm_pool *pool, gm_block *out) { walk_answer = gm_alloc(pool, &walk_request, out); }
void hit_walk(gm_pool *pool, gm_block *out) { walk_answer = gm_alloc(pool, &walk_request, out); }
void quick_walk(gm_pool *pool, gm_block *block) { gm_free(pool, block, NULL); }
void slow_walk(gm_pool *pool, gm_block *block) { gm_free(pool, block, NULL); }

static void walk_acquired(void) {
  if (!gm_acquired(walk_answer)) exit(1);
}

static void walk_need(gm_status status, const gm_error *err) {
  if (status == GM_OK) return;
  fprintf(stderr, "%s: %s\n", err->op, err->message);
  exit(1);
}

int main(void) {
  const gm_context_params params = {.struct_size = sizeof params,
                                    .preset = "inference", /* untracked, in debug builds as well */
                                    .host_root = GM_TEST_DATA "/fault/host",
                                    .ignore_environment = true};
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
  gm_block block;
  gm_error err;
  walk_need(gm_context_create(&params, &ctx, &err), &err);
  walk_need(gm_device_open_index(ctx, "cpu", 0, &device, &err), &err);
  walk_need(gm_pool_create(device, NULL, &pool, &err), &err);
  empty_walk(pool, &block);
  walk_acquired();
  gm_free(pool, &block, NULL);
  hit_walk(pool, &block);
  walk_acquired();
  quick_walk(pool, &block);
  walk_answer = gm_alloc(pool, &walk_dedicated, &block);
  walk_acquired();
  slow_walk(pool, &block);
  walk_need(gm_pool_destroy(pool, &err), &err);
  walk_need(gm_device_close(device, &err), &err);
  walk_need(gm_context_destroy(ctx, &err), &err);
  return 0;
}
