/* How long a pool takes to grow by 40 MiB on the CPU: prints the median of nine growths in microseconds. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <gm/gm.h>

#define GROWTHS 9

static double now_us(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec * 1e6 + (double)at.tv_nsec / 1e3;
}

static int ascending(const void *left, const void *right) {
  const double a = *(const double *)left, b = *(const double *)right;
  return (a > b) - (a < b);
}

int main(void) {
  const gm_context_params params = {.struct_size = sizeof params, .preset = "inference"};
  const gm_request request = {.bytes = 40 << 20};
  double took[GROWTHS];
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
  gm_error err = {0};
  if (gm_context_create(&params, &ctx, &err) != GM_OK || gm_device_open_index(ctx, "cpu", 0, &device, &err) != GM_OK) {
    return fprintf(stderr, "%s\n", err.message), 1;
  }
  for (int i = 0; i < GROWTHS; i++) {
    gm_block block;
    if (gm_pool_create(device, NULL, &pool, &err) != GM_OK) return fprintf(stderr, "%s\n", err.message), 1;
    const double start = now_us();
    const gm_acquire answer = gm_alloc(pool, &request, &block);
    took[i] = now_us() - start;
    if (!gm_acquired(answer)) return fprintf(stderr, "no memory\n"), 1;
    gm_free(pool, &block, NULL);
    if (gm_pool_destroy(pool, &err) != GM_OK) return fprintf(stderr, "%s\n", err.message), 1;
  }
  qsort(took, GROWTHS, sizeof *took, ascending);
  printf("%.1f\n", took[GROWTHS / 2]);
  gm_device_close(device, &err);
  gm_context_destroy(ctx, &err);
  return 0;
}
