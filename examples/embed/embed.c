#include <stdio.h>
#include <stdlib.h>

#include "gm/gm.h"

static void need(gm_status status, const gm_error *err) {
  if (status == GM_OK) return;
  fprintf(stderr, "%s: %s\n", err->op, err->message);
  exit(1);
}

int main(void) {
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
  gm_error err;
  need(gm_context_create(NULL, &ctx, &err), &err);
  need(gm_open_for_bytes(ctx, "auto", 64 << 20, &device, &err), &err); /* the best device with 64 MiB to spare */
  need(gm_pool_create(device, NULL, &pool, &err), &err);

  float weights[1024] = {1, 2, 3}, back[1024];
  gm_request request = {.bytes = sizeof weights, .tag = gm_tag(ctx, "weights"), .flags = GM_INSERT_WAIT};
  gm_explanation why = {.struct_size = sizeof why};
  gm_block block;
  if (!gm_acquired(gm_alloc(pool, &request, &block))) {
    gm_explain(pool, &request, &why, NULL);
    return fprintf(stderr, "%s\n", why.text), 1;
  }
  need(gm_block_write(pool, &block, 0, weights, sizeof weights, NULL, NULL, &err), &err);
  need(gm_block_read(pool, &block, 0, back, sizeof back, NULL, NULL, &err), &err);
  printf("%s: wrote %g, read %g\n", gm_device_get_info(device)->name, (double)weights[1], (double)back[1]);

  gm_free(pool, &block, NULL);
  need(gm_pool_destroy(pool, &err), &err);
  need(gm_device_close(device, &err), &err);
  need(gm_context_destroy(ctx, &err), &err);
  return 0;
}
