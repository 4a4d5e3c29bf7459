/* Four vectors, and room for two on the device. The host computes on those that fell back.
 *
 *   fallback BACKEND */
#include <gm/gm.h>
#include <stdio.h>

enum { VECTORS = 4, FLOATS = 1 << 20, ROOM = 9 << 20 };

typedef struct engine {
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
  gm_buffer *vectors[VECTORS];
} engine;

static gm_status engine_open(engine *e, const char *backend, gm_error *err) {
  const gm_pool_params pool = {.struct_size = sizeof pool, .max_bytes = ROOM};
  const gm_buffer_params vector = {
      .struct_size = sizeof vector, .request = {.bytes = FLOATS * sizeof(float)}, .fallback = GM_FALLBACK_HOST};
  gm_status status = gm_context_create(NULL, &e->ctx, err);
  if (!status) status = gm_device_open_index(e->ctx, backend, 0, &e->device, err);
  if (!status) status = gm_pool_create(e->device, &pool, &e->pool, err);
  for (int i = 0; i < VECTORS && !status; i++) status = gm_buffer_create(e->pool, &vector, &e->vectors[i], err);
  return status;
}

static void engine_close(engine *e) {
  for (int i = 0; i < VECTORS; i++) gm_buffer_release(e->vectors[i], NULL);
  gm_pool_destroy(e->pool, NULL);
  gm_device_close(e->device, NULL);
  gm_context_destroy(e->ctx, NULL);
}

/* The kernel of the host: the squares of 0, 1, 2 and so on. */
static gm_status squares(gm_buffer *vector, gm_error *err) {
  void *host = NULL;
  gm_status status = gm_buffer_lock(vector, NULL, err); /* it stays where it is */
  if (status) return status;
  status = gm_buffer_host(vector, &host, err);
  float *numbers = host;
  for (int i = 0; i < FLOATS && !status; i++) numbers[i] = (float)i * (float)i;
  const gm_status ended = gm_buffer_unlock(vector, NULL, status ? NULL : err); /* the pointer is of no use any more */
  return status ? status : ended;
}

/* Computes on the vectors that fell, and counts those that are right. */
static gm_status compute(engine *e, int *fell, int *right, gm_error *err) {
  gm_status status = GM_OK;
  for (int i = 0; i < VECTORS && !status; i++) {
    float last = 0;
    if (gm_buffer_location(e->vectors[i]) == GM_LOCATION_DEVICE) continue; /* a kernel of the device would run here */
    ++*fell;
    status = squares(e->vectors[i], err);
    if (!status) status = gm_buffer_read(e->vectors[i], (FLOATS - 1) * sizeof last, &last, sizeof last, NULL, err);
    *right += last == (float)(FLOATS - 1) * (float)(FLOATS - 1);
  }
  return status;
}

int main(int argc, char **argv) {
  engine e = {.ctx = NULL};
  gm_error err = {.status = GM_OK};
  int fell = 0, right = 0;
  gm_status status = engine_open(&e, argc > 1 ? argv[1] : "cpu", &err);
  if (!status) status = compute(&e, &fell, &right, &err);
  if (status) fprintf(stderr, "%s: %s\n", gm_status_name(status), err.message);
  engine_close(&e);
  printf("%d vectors fell back, %d of them are right\n", fell, right);
  return status || fell == 0 || right != fell;
}
