/* Records what a pool does and reads the trace back: record FILE. */
#include <stdio.h>

#include "gm/tools.h"

/* Does as an engine would: two buffers live through a step, and one for each layer. */
static void run_step(gm_pool *pool) {
  void *hidden = gm_malloc(pool, 1 << 20, NULL), *scores = gm_malloc(pool, 300000, NULL);
  for (int layer = 0; layer < 4; layer++) gm_free_ptr(pool, gm_malloc(pool, 4 << 20, NULL), 0, NULL);
  gm_free_ptr(pool, scores, 0, NULL);
  gm_free_ptr(pool, hidden, 0, NULL);
}

static gm_status record(gm_pool *pool, const char *path, gm_error *err) {
  gm_recording recording = {.struct_size = sizeof recording};
  gm_status status = gm_pool_record_begin(pool, path, err);
  if (status) return status;
  for (int step = 0; step < 3; step++) {
    run_step(pool);
    gm_pool_record_mark(pool, "step", NULL);
  }
  status = gm_pool_record_end(pool, &recording, err);
  if (!status) printf("%d allocations, %d already alive\n", (int)recording.allocs, (int)recording.already_alive);
  return status;
}

int main(int argc, char **argv) {
  gm_context *ctx = NULL;
  gm_device *device = NULL;
  gm_pool *pool = NULL;
  gm_error err = {.status = GM_OK};
  gm_trace_profile profile = {.struct_size = sizeof profile};
  if (argc != 2) return fprintf(stderr, "usage: record FILE\n"), 2;
  if (gm_context_create(NULL, &ctx, &err) || gm_open_for_bytes(ctx, "auto", 16 << 20, &device, &err) ||
      gm_pool_create(device, NULL, &pool, &err))
    return fprintf(stderr, "%s\n", err.message), 1;
  void *weights = gm_malloc(pool, 8 << 20, NULL);
  const gm_status status = record(pool, argv[1], &err);
  gm_free_ptr(pool, weights, 0, NULL);
  if (status || gm_trace_profile_read(NULL, argv[1], &profile, &err)) return fprintf(stderr, "%s\n", err.message), 1;
  printf("at most %d KiB alive\n", (int)(profile.peak_live_bytes / 1024));
  return gm_pool_destroy(pool, &err) || gm_device_close(device, &err) || gm_context_destroy(ctx, &err);
}
