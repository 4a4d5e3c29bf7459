/* A chain of steps over one state. In the one way the state stays on the device, and is copied at the begin and at the
 * end. In the other it comes down to the host after each step and goes up again before the next. Both end with the same
 * state. Wall time and processor time of both, the orders in turn, and the median of their ratios.
 *
 *   gm_chain_bench [--steps N] [--bytes N] [--runs N] */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "gm/copy.h"
#include "gm/native_opencl.h"
#include "gm/size.h"

enum { MOST_RUNS = 99 };

typedef struct chain {
  uint64_t steps, bytes, runs;
  cl_command_queue queue;
  cl_program program;
  cl_kernel kernel;
  gm_context *context;
  gm_device *device;
  gm_stream *stream;
  gm_pool *pool;
  gm_block state;
  float *host, *kept, *carried; /* the first state, and the last of each way */
  gm_error err;
} chain;

static const char *const chain_source =
    "__kernel void relax(__global float *x, ulong at) {\n"
    "  size_t i = get_global_id(0);\n"
    "  x[at + i] = x[at + i] * 0.5f + 1.0f;\n"
    "}\n";

static int failed(const chain *c, const char *what) {
  fprintf(stderr, "%s: %s: %s\n", what, gm_status_name(c->err.status), c->err.message);
  return 1;
}

static int said(cl_int code, const char *what) {
  if (code != CL_SUCCESS) fprintf(stderr, "%s: OpenCL answered %d\n", what, code);
  return code != CL_SUCCESS;
}

static int submit_step(chain *c, cl_mem memory, cl_ulong at) {
  const size_t items = c->bytes / sizeof(float);
  if (said(clSetKernelArg(c->kernel, 0, sizeof memory, &memory), "clSetKernelArg")) return 1;
  if (said(clSetKernelArg(c->kernel, 1, sizeof at, &at), "clSetKernelArg")) return 1;
  return said(clEnqueueNDRangeKernel(c->queue, c->kernel, 1, NULL, &items, NULL, 0, NULL, NULL), "the kernel");
}

static int put(chain *c, const float *from) {
  c->err.status = gm_block_write(c->pool, &c->state, 0, from, c->bytes, c->stream, NULL, &c->err);
  return c->err.status == GM_OK ? 0 : failed(c, "gm_block_write");
}

static int get(chain *c, float *to) {
  c->err.status = gm_block_read(c->pool, &c->state, 0, to, c->bytes, c->stream, NULL, &c->err);
  return c->err.status == GM_OK ? 0 : failed(c, "gm_block_read");
}

/* carry: over the host after each step. */
static int run_chain(chain *c, bool carry, float *last) {
  gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}};
  if (gm_block_native(c->pool, &c->state, &native.head, &c->err) != GM_OK) return failed(c, "gm_block_native");
  const cl_mem memory = (cl_mem)native.memory; /* NOLINT(performance-no-int-to-ptr) */
  if (put(c, c->host)) return 1;
  for (uint64_t i = 0; i < c->steps; i++) {
    if (submit_step(c, memory, native.offset / sizeof(float))) return 1;
    if (carry && i + 1 < c->steps && (get(c, last) || put(c, last))) return 1;
  }
  return get(c, last);
}

/* --- time --- */

static double seconds_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

typedef struct times {
  double wall, processor;
} times;

static int time_chain(chain *c, bool carry, times *out) {
  const times since = {seconds_of(CLOCK_MONOTONIC), seconds_of(CLOCK_PROCESS_CPUTIME_ID)};
  const int bad = run_chain(c, carry, carry ? c->carried : c->kept);
  out->wall = seconds_of(CLOCK_MONOTONIC) - since.wall;
  out->processor = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - since.processor;
  return bad;
}

static int by_size(const void *one, const void *other) {
  const double a = *(const double *)one, b = *(const double *)other;
  return (a > b) - (a < b);
}

static double median(double *values, uint64_t count) {
  qsort(values, count, sizeof *values, by_size);
  return values[count / 2];
}

static int time_all(chain *c) {
  static double wall[MOST_RUNS], processor[MOST_RUNS], kept_wall[MOST_RUNS], carried_wall[MOST_RUNS];
  for (uint64_t run = 0; run <= c->runs; run++) { /* the first is not counted */
    times kept, carried;
    const bool first = run % 2 == 0;
    if (time_chain(c, first, first ? &carried : &kept) || time_chain(c, !first, first ? &kept : &carried)) return 1;
    if (memcmp(c->kept, c->carried, c->bytes) != 0) {
      fprintf(stderr, "the two ways end with different states\n");
      return 1;
    }
    if (!run) continue;
    kept_wall[run - 1] = kept.wall, carried_wall[run - 1] = carried.wall;
    wall[run - 1] = carried.wall / kept.wall;
    processor[run - 1] = carried.processor / kept.processor;
  }
  printf("| %llu | %llu | %.1f | %.1f | %.1f | %.1f |\n", (unsigned long long)c->steps, (unsigned long long)c->bytes,
         1e3 * median(kept_wall, c->runs), 1e3 * median(carried_wall, c->runs), median(wall, c->runs),
         median(processor, c->runs));
  return 0;
}

/* --- set-up --- */

static int open_kernel(chain *c) {
  gm_opencl_device native = {.head = {sizeof native, GM_API_OPENCL}};
  if (gm_device_native(c->device, &native.head, &c->err) != GM_OK) return failed(c, "gm_device_native");
  cl_device_id device = (cl_device_id)native.device;     /* NOLINT(performance-no-int-to-ptr) */
  const cl_context context = (cl_context)native.context; /* NOLINT(performance-no-int-to-ptr) */
  cl_int code = CL_SUCCESS;
  c->queue = clCreateCommandQueue(context, device, 0, &code);
  if (said(code, "clCreateCommandQueue")) return 1;
  c->program = clCreateProgramWithSource(context, 1, (const char **)&chain_source, NULL, &code);
  if (said(code, "clCreateProgramWithSource")) return 1;
  if (said(clBuildProgram(c->program, 1, &device, NULL, NULL, NULL), "clBuildProgram")) return 1;
  c->kernel = clCreateKernel(c->program, "relax", &code);
  return said(code, "clCreateKernel");
}

static int open_gm(chain *c) {
  const gm_pool_params params = {.struct_size = sizeof params};
  const gm_request request = {.bytes = c->bytes};
  if (gm_context_create(NULL, &c->context, &c->err) != GM_OK) return failed(c, "gm_context_create");
  if (gm_device_open_index(c->context, "opencl", 0, &c->device, &c->err) != GM_OK) return failed(c, "the device");
  if (open_kernel(c)) return 1;
  const gm_opencl_queue queue = {.head = {sizeof queue, GM_API_OPENCL}, .queue = (uintptr_t)c->queue};
  if (gm_stream_adopt(c->device, &queue.head, &c->stream, &c->err) != GM_OK) return failed(c, "gm_stream_adopt");
  if (gm_pool_create(c->device, &params, &c->pool, &c->err) != GM_OK) return failed(c, "gm_pool_create");
  if (!gm_acquired(gm_alloc(c->pool, &request, &c->state))) return failed(c, "gm_alloc");
  c->host = malloc(c->bytes), c->kept = malloc(c->bytes), c->carried = malloc(c->bytes);
  if (!c->host || !c->kept || !c->carried) return 1;
  for (uint64_t i = 0; i < c->bytes / sizeof(float); i++) c->host[i] = (float)i;
  return 0;
}

static void end(chain *c) {
  free(c->host), free(c->kept), free(c->carried);
  if (c->state.bytes) gm_free(c->pool, &c->state, c->stream);
  gm_pool_destroy(c->pool, NULL);
  gm_stream_close(c->stream, NULL);
  if (c->kernel) clReleaseKernel(c->kernel);
  if (c->program) clReleaseProgram(c->program);
  if (c->queue) clReleaseCommandQueue(c->queue);
  gm_device_close(c->device, NULL);
  gm_context_destroy(c->context, NULL);
}

static int read_options(chain *c, int argc, char **argv) {
  for (int i = 1; i < argc; i += 2) {
    uint64_t *number = NULL;
    if (!strcmp(argv[i], "--steps")) number = &c->steps;
    if (!strcmp(argv[i], "--bytes")) number = &c->bytes;
    if (!strcmp(argv[i], "--runs")) number = &c->runs;
    if (!number || i + 1 == argc || gm_parse_bytes(argv[i + 1], number) != GM_OK) {
      fprintf(stderr, "usage: gm_chain_bench [--steps N] [--bytes N] [--runs N]\n");
      return 1;
    }
  }
  return c->steps == 0 || c->bytes < sizeof(float) || c->runs == 0 || c->runs > MOST_RUNS;
}

int main(int argc, char **argv) {
  static chain c = {.steps = 1000, .bytes = 1 << 20, .runs = 9};
  if (read_options(&c, argc, argv)) return 2;
  int bad = open_gm(&c);
  if (!bad) {
    printf(
        "%s\n\n| steps | bytes of state | ms, state stays | ms, over the host | ratio | of processor time |\n"
        "|---|---|---|---|---|---|\n",
        gm_device_get_info(c.device)->name);
    bad = time_all(&c);
  }
  end(&c);
  return bad;
}
