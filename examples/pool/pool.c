#include <stdio.h>

#include "gm/gm.h"

int main(void) {
  gm_context *ctx = NULL;
  gm_device *device = NULL;
  gm_pool *pool = NULL;
  gm_error err = {.status = GM_OK};
  if (gm_context_create(NULL, &ctx, &err) || gm_open_for_bytes(ctx, "auto", 1 << 20, &device, &err) ||
      gm_pool_create(device, NULL, &pool, &err))
    return fprintf(stderr, "%s\n", err.message), 1;
  void *pointer = gm_malloc(pool, 1000, NULL);
  printf("%s\n", pointer ? "1000 bytes" : "no memory");
  gm_free_ptr(pool, pointer, 1000, NULL);
  return gm_pool_destroy(pool, &err) || gm_device_close(device, &err) || gm_context_destroy(ctx, &err);
}
