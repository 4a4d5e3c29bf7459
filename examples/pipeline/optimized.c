#include "optimized.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gm/copy.h"

static float evolve_weights[STATES * INPUTS], post_weights[STATES * STATES], zeros[STATES];

int optimized_failed(const optimized *o, const char *what) {
  fprintf(stderr, "%s: %s: %s\n", what, gm_status_name(o->err.status), o->err.message);
  return 1;
}

int optimized_adopt(optimized *o, const gm_native_device *device, const gm_native_stream *queue) {
  if (gm_context_create(NULL, &o->context, &o->err) != GM_OK) return optimized_failed(o, "gm_context_create");
  if (gm_device_adopt(o->context, device, &o->device, &o->err) != GM_OK) return optimized_failed(o, "adopt");
  if (gm_stream_adopt(o->device, queue, &o->stream, &o->err) != GM_OK) return optimized_failed(o, "the queue");
  return 0;
}

static float noise(uint32_t index) { return (float)(index * UINT32_C(2654435761) >> 20) / 4096.0f - 0.5f; }

static void make_frame(uint32_t frame, float *out) {
  for (uint32_t i = 0; i < INPUTS; i++) out[i] = noise(frame * INPUTS + i);
}

static void make_weights(void) {
  for (uint32_t i = 0; i < STATES * INPUTS; i++) evolve_weights[i] = noise(i + 7) / 16.0f;
  for (uint32_t i = 0; i < STATES * STATES; i++) post_weights[i] = noise(i + 99) / 8.0f;
}

/* --- the stages --- */

static gm_status read_frame(void *user, void *host, uint64_t most, uint64_t *out_bytes) {
  optimized *o = user;
  if (o->frames_read == FRAMES) return GM_OK;
  make_frame(o->frames_read++, host);
  *out_bytes = most;
  return GM_OK;
}

/* Only submits: the next frame is already on its way. */
static gm_status step_frame(void *user, gm_pipeline_item *item, gm_error *err) {
  optimized *o = user;
  gm_block *now = &o->state[item->index % 2], *next = &o->state[(item->index + 1) % 2];
  const dense_call evolve = {&item->in, &o->evolve, now, next, INPUTS, STATES, 0};
  const dense_call post = {next, &o->post, &o->zero, &item->out, STATES, STATES, 1};
  if (o->step_begins(o->engine, item->stream, item->index)) return GM_ERR_DRIVER;
  if (o->dense(o->engine, o->pool, &evolve) || o->dense(o->engine, o->pool, &post)) return GM_ERR_DRIVER;
  return o->step_ends(o->engine, item->stream, &item->done, err);
}

static gm_status write_frame(void *user, const void *host, uint64_t bytes, uint64_t index) {
  optimized *o = user;
  memcpy(o->got[index], host, (size_t)bytes);
  o->frames_written++;
  return GM_OK;
}

/* --- plain C --- */

static void dense(const float *x, const float *w, const float *b, float *y, uint32_t inputs, int relu) {
  for (uint32_t column = 0; column < STATES; column++) {
    float sum = b[column];
    for (uint32_t i = 0; i < inputs; i++) sum += x[i] * w[column * inputs + i];
    y[column] = relu && sum < 0.0f ? 0.0f : sum;
  }
}

static double worst_of(double worst, const float *got, const float *want) {
  for (uint32_t i = 0; i < STATES; i++) {
    const double difference = fabs((double)got[i] - want[i]);
    if (!(difference <= worst)) worst = difference; /* NaN is the worst */
  }
  return worst;
}

static double compare(const optimized *o, const float *last) {
  float frame[INPUTS], state[STATES] = {0}, next[STATES], result[STATES];
  double worst = 0;
  for (uint32_t i = 0; i < FRAMES; i++) {
    make_frame(i, frame);
    dense(frame, evolve_weights, state, next, INPUTS, 0);
    memcpy(state, next, sizeof state);
    dense(state, post_weights, zeros, result, STATES, 1);
    worst = worst_of(worst, o->got[i], result);
  }
  return worst_of(worst, last, state);
}

/* --- all of it --- */

static int put(optimized *o, const float *values, uint64_t bytes, gm_block *out) {
  const gm_request request = {.bytes = bytes, .stream = o->stream, .flags = GM_INSERT_WAIT};
  if (!gm_acquired(gm_alloc(o->pool, &request, out))) return 1;
  o->err.status = gm_block_write(o->pool, out, 0, values, bytes, o->stream, NULL, &o->err);
  return o->err.status == GM_OK ? 0 : optimized_failed(o, "gm_block_write");
}

static int put_all(optimized *o) {
  make_weights();
  return put(o, evolve_weights, sizeof evolve_weights, &o->evolve) ||
         put(o, post_weights, sizeof post_weights, &o->post) || put(o, zeros, sizeof zeros, &o->zero) ||
         put(o, zeros, sizeof zeros, &o->state[0]) || put(o, zeros, sizeof zeros, &o->state[1]);
}

static int run_frames(optimized *o, gm_pipeline_stats *stats) {
  gm_pipeline *pipeline;
  const gm_pipeline_params params = {.struct_size = sizeof params,
                                     .depth = 3,
                                     .item_bytes = INPUTS * sizeof(float),
                                     .out_bytes = STATES * sizeof(float),
                                     .in_pool = o->pool,
                                     .stream = o->stream,
                                     .source = read_frame,
                                     .step = step_frame,
                                     .sink = write_frame,
                                     .user = o};
  if (gm_pipeline_create(o->device, &params, &pipeline, &o->err) != GM_OK) return optimized_failed(o, "create");
  const int bad = gm_pipeline_run(pipeline, stats, &o->err) == GM_OK ? 0 : optimized_failed(o, "run");
  return gm_pipeline_destroy(pipeline, &o->err) == GM_OK ? bad : optimized_failed(o, "destroy");
}

static int run_and_compare(optimized *o) {
  gm_pipeline_stats stats = {.struct_size = sizeof stats};
  float last[STATES];
  if (put_all(o) || run_frames(o, &stats)) return 1;
  /* the only copy of the state */
  if (gm_block_read(o->pool, &o->state[FRAMES % 2], 0, last, sizeof last, o->stream, NULL, &o->err) != GM_OK) {
    return optimized_failed(o, "gm_block_read");
  }
  const double worst = compare(o, last);
  printf("%s: %llu frames, %llu bytes up, %llu down, %u at a time; largest difference from plain C %.2g\n", o->name,
         (unsigned long long)stats.items, (unsigned long long)stats.up_bytes, (unsigned long long)stats.down_bytes,
         stats.depth, worst);
  if (*stats.why) printf("slots: %s\n", stats.why);
  return o->frames_written != FRAMES || !(worst < 1e-4);
}

int optimized_run(optimized *o) {
  const gm_pool_params params = {.struct_size = sizeof params, .name = "pipeline"};
  if (gm_pool_create(o->device, &params, &o->pool, &o->err) != GM_OK) return optimized_failed(o, "gm_pool_create");
  int bad = run_and_compare(o);
  const gm_block *const blocks[] = {&o->evolve, &o->post, &o->zero, &o->state[0], &o->state[1]};
  for (int i = 0; i < 5; i++) {
    if (blocks[i]->bytes && gm_free(o->pool, blocks[i], o->stream) != GM_OK) bad = 1;
  }
  return gm_pool_destroy(o->pool, &o->err) == GM_OK ? bad : optimized_failed(o, "gm_pool_destroy");
}

int optimized_close(optimized *o) {
  int bad = 0;
  if (gm_stream_close(o->stream, &o->err) != GM_OK) bad = optimized_failed(o, "gm_stream_close");
  if (gm_device_close(o->device, &o->err) != GM_OK) bad = optimized_failed(o, "gm_device_close");
  if (gm_context_destroy(o->context, &o->err) != GM_OK) bad = optimized_failed(o, "gm_context_destroy");
  printf("%s\n", bad ? "FAILED" : "ok");
  return bad;
}
