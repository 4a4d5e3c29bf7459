/* Plans of recorded lifetimes, and of random ones: how far from what lives at once, and how long planning takes.
 *
 * usage: gm_plan_bench [--random COUNT] [--training COUNT] [TRACE...] */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gm/plan.h"
#include "gm/trace.h"

typedef struct lives {
  gm_plan_tensor *tensors;
  uint64_t *ids; /* rising */
  uint64_t count, capacity;
} lives;

/* The time of this process, so that others on the machine count less. */
static double seconds_now(void) { return (double)clock() / CLOCKS_PER_SEC; }

static gm_status stop(gm_status status, const char *name, const gm_error *err) {
  if (status != GM_OK) fprintf(stderr, "%s: %s: %s\n", name, err->op, err->message);
  return status;
}

static int lives_grow(lives *l) {
  if (l->count < l->capacity) return 1;
  l->capacity = l->capacity ? l->capacity * 2 : 4096;
  gm_plan_tensor *tensors = realloc(l->tensors, l->capacity * sizeof *tensors);
  if (tensors) l->tensors = tensors;
  uint64_t *ids = realloc(l->ids, l->capacity * sizeof *ids);
  if (ids) l->ids = ids;
  return tensors && ids;
}

/* An event is an operation. A block that is never freed lives to the end. */
static gm_status lives_read(lives *l, gm_trace *trace, gm_error *err) {
  gm_trace_event event = {.struct_size = sizeof event, .kind = GM_TRACE_MARK};
  for (uint64_t op = 0; event.kind != GM_TRACE_END; op++) {
    gm_status status = gm_trace_next(trace, &event, err);
    if (status != GM_OK) return status;
    if (event.kind == GM_TRACE_ALLOC) {
      if (!lives_grow(l)) return GM_ERR_OUT_OF_HOST_MEMORY;
      l->ids[l->count] = event.id;
      l->tensors[l->count++] = (gm_plan_tensor){event.bytes, 256, op, UINT64_MAX, 0};
    } else if (event.kind == GM_TRACE_FREE) {
      uint64_t low = 0, high = l->count;
      while (high - low > 1) *(l->ids[(low + high) / 2] <= event.id ? &low : &high) = (low + high) / 2;
      l->tensors[low].last_op = op - 1;
    }
  }
  return GM_OK;
}

static uint64_t next_random(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
  return *state >> 33;
}

/* A step of training. Each operation forward makes an activation that its gradient reads last, and a passing block. The
 * first activation is read at the very end. Each operation backward makes a gradient and a passing block. Sizes come
 * from a few layers that repeat. */
static int lives_training(lives *l, uint64_t count) {
  uint64_t state = 5, sizes[24], ops = count / 2, half = ops / 2;
  for (int i = 0; i < 24; i++) sizes[i] = 256 + (next_random(&state) & 0xffffff);
  for (uint64_t op = 0; op < ops; op++) {
    uint64_t passing = sizes[(op + 7) % 24] >> 2, kept = sizes[op % 24], life = op < half ? ops - 1 - op : op + 1;
    if (!lives_grow(l)) return 0;
    l->tensors[l->count++] = (gm_plan_tensor){kept, 256, op, life, 0};
    if (!lives_grow(l)) return 0;
    l->tensors[l->count++] = (gm_plan_tensor){passing, 256, op, op + next_random(&state) % 4, 0};
  }
  return 1;
}

/* Sizes of every magnitude up to 16 MiB, lives of every magnitude up to 4096 operations. */
static int lives_random(lives *l, uint64_t count) {
  uint64_t state = 3;
  for (uint64_t i = 0; i < count; i++) {
    uint64_t draw[4];
    for (int k = 0; k < 4; k++) draw[k] = next_random(&state);
    uint64_t life = (draw[0] & 0xfff) >> draw[1] % 12, bytes = (256 + (draw[2] & 0xffffff)) >> draw[3] % 24;
    if (!lives_grow(l)) return 0;
    l->tensors[l->count++] = (gm_plan_tensor){bytes + 1, 256, i, i + life, 0};
  }
  return 1;
}

static gm_status lives_plan(const lives *l, const char *name) {
  uint64_t *offsets = calloc(l->count + 1, sizeof *offsets), live = 0, peaks[2] = {0};
  double took[2], check = 0;
  gm_error err = {.op = "calloc", .message = "no memory"};
  gm_status status = offsets ? gm_plan_peak_live(NULL, l->tensors, l->count, &live, &err) : GM_ERR_OUT_OF_HOST_MEMORY;
  for (int policy = GM_PLAN_ENGINE; policy <= GM_PLAN_BEST && status == GM_OK; policy++) {
    double from = seconds_now();
    status = gm_plan_make(NULL, (gm_plan_policy)policy, l->tensors, l->count, offsets, &peaks[policy], &err);
    took[policy] = seconds_now() - from;
    from = seconds_now();
    if (status == GM_OK) status = gm_plan_check(NULL, l->tensors, l->count, offsets, NULL, &err);
    check = seconds_now() - from;
  }
  free(offsets);
  if (status != GM_OK) return stop(status, name, &err);
  const char *slash = strrchr(name, '/');
  double least = live ? (double)live : 1;
  printf("%-40.40s %8" PRIu64 " %10.3f   %8.4f %7.3f s   %8.4f %7.3f s   %7.3f s\n", slash ? slash + 1 : name, l->count,
         (double)live / (1 << 30), (double)peaks[0] / least, took[0], (double)peaks[1] / least, took[1], check);
  return GM_OK;
}

static gm_status bench_trace(const char *path) {
  lives l = {0};
  gm_trace *trace = NULL;
  gm_error err = {.op = "realloc", .message = "no memory"};
  gm_status status = gm_trace_open(NULL, path, &trace, &err);
  if (status == GM_OK) status = lives_read(&l, trace, &err);
  gm_trace_close(trace);
  status = status == GM_OK ? lives_plan(&l, path) : stop(status, path, &err);
  free(l.tensors);
  free(l.ids);
  return status;
}

static gm_status bench_made(const char *name, int (*make)(lives *, uint64_t), const char *text) {
  lives l = {0};
  uint64_t count = strtoull(text, NULL, 10);
  gm_status status = make(&l, count) ? lives_plan(&l, name) : GM_ERR_OUT_OF_HOST_MEMORY;
  free(l.tensors);
  free(l.ids);
  return status;
}

int main(int argc, char **argv) {
  gm_status status = GM_OK;
  if (argc < 2) return fprintf(stderr, "usage: %s [--random COUNT] [--training COUNT] [TRACE...]\n", argv[0]), 2;
  printf("%-40s %8s %10s   %-18s   %-18s   %s\n", "lifetimes", "tensors", "live GiB", "engine / live", "best / live",
         "check");
  for (int i = 1; i < argc && status == GM_OK; i++) {
    bool random = strcmp(argv[i], "--random") == 0, training = strcmp(argv[i], "--training") == 0;
    if ((random || training) && i + 1 == argc) break;
    if (random) {
      status = bench_made("random", lives_random, argv[++i]);
    } else if (training) {
      status = bench_made("training", lives_training, argv[++i]);
    } else {
      status = bench_trace(argv[i]);
    }
  }
  return status == GM_OK ? 0 : 1;
}
