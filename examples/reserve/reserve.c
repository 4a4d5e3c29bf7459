/* Two parts of a program want the same memory. gm says yes to the first, and no to the second. The device is simulated:
 * 80 GiB, and no memory behind them. */
#include <inttypes.h>
#include <stdio.h>

#include "gm/gm.h"

#define GIB (UINT64_C(1) << 30)

static gm_reservation *hold(gm_device *device, uint64_t gib, const char *name) {
  const gm_reserve_params params = {.struct_size = sizeof params, .bytes = gib * GIB, .name = name};
  gm_reservation *held = NULL;
  const gm_status status = gm_reserve(device, &params, &held, NULL);
  printf("%s: %" PRIu64 " GiB, %s\n", name, gib, status == GM_OK ? "yes" : gm_status_name(status));
  return held;
}

/* The model's memory comes out of what was held for it. */
static void load(gm_pool *pool, const gm_reservation *held) {
  gm_reservation_info info = {.struct_size = sizeof info};
  const gm_request request = {.bytes = GIB};
  gm_block block;
  if (gm_alloc(pool, &request, &block) > GM_ACQUIRE_FRESH || gm_reservation_read(held, &info, NULL)) return;
  printf("%s: took %" PRIu64 " GiB, %" PRIu64 " left\n", info.name, info.taken_bytes / GIB, info.left_bytes / GIB);
  gm_free(pool, &block, NULL);
}

int main(void) {
  gm_context *ctx = NULL;
  gm_device *device = NULL;
  gm_pool *pool = NULL;
  gm_error err = {.status = GM_OK};
  if (gm_context_create(NULL, &ctx, &err) || gm_device_open_index(ctx, "null", 0, &device, &err) ||
      gm_pool_create(device, NULL, &pool, &err))
    return fprintf(stderr, "%s\n", err.message), 1;
  gm_reservation *model = hold(device, 60, "model"), *cache = hold(device, 40, "cache");
  if (gm_reservation_commit(model, pool, &err) == GM_OK) load(pool, model);
  gm_reservation_cancel(cache);
  gm_reservation_cancel(model);
  gm_reservation_cancel(hold(device, 40, "cache"));
  return gm_pool_destroy(pool, &err) || gm_device_close(device, &err) || gm_context_destroy(ctx, &err);
}
