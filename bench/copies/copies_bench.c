/* Many small copies between host memory and blocks of one device, in four ways. Each copy waits. Or copies have points,
 * and there is one wait at the end. Or they are a transfer (gm/transfer.h). One copy of all bytes is the bound. Each
 * figure is the median of --runs runs of a few milliseconds, of which the fastest call counts. The ways take turns, and
 * each run begins with another one. The blocks lie in an order of their own in the pool. Microseconds.
 *
 * usage: gm_copies_bench [BACKEND] [--runs N] [--down] [--irregular] [--bytes N] [--copies N]
 * With --irregular the blocks differ in size, so their places have no equal steps. The last two options choose the rows
 * of that size, and of that number of copies. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gm/context.h"
#include "gm/device.h"
#include "gm/transfer.h"

enum { WAYS = 4, RUNS_MOST = 99, COUNT_MOST = 1000, REPEATS_US = 4000, STEP = 7 /* prime to all counts */ };
static const char *const way_names[WAYS] = {"each waits", "one wait", "transfer", "one copy"};

typedef struct bench {
  gm_device *device;
  gm_pool *pool;
  gm_stream *stream;
  gm_block blocks[COUNT_MOST], whole;
  gm_copy copies[COUNT_MOST];
  unsigned char *host;
  uint64_t bytes, count;
  uint64_t only_bytes, only_count; /* 0: all */
  bool down, irregular;
} bench;

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

static gm_status one(const bench *b, const gm_block *block, uint64_t at, uint64_t bytes, gm_stream *stream,
                     gm_point *out) {
  return b->down ? gm_block_read(b->pool, block, 0, b->host + at, bytes, stream, out, NULL)
                 : gm_block_write(b->pool, block, 0, b->host + at, bytes, stream, out, NULL);
}

static gm_status each_waits(bench *b) {
  gm_status status = GM_OK;
  for (uint64_t i = 0; i < b->count && !status; i++) {
    status = one(b, &b->blocks[i], i * b->bytes, b->bytes, b->stream, NULL);
  }
  return status;
}

static gm_status one_wait(bench *b) {
  gm_status status = GM_OK;
  gm_point point = {0};
  for (uint64_t i = 0; i < b->count && !status; i++) {
    gm_point_release(b->device, &point);
    status = one(b, &b->blocks[i], i * b->bytes, b->bytes, b->stream, &point);
  }
  if (!status) status = gm_point_wait(b->device, &point, UINT64_MAX, NULL);
  gm_point_release(b->device, &point);
  return status;
}

static gm_status as_transfer(bench *b) {
  const gm_transfer_params params = {.struct_size = sizeof params, .stream = b->stream};
  gm_transfer *transfer = NULL;
  gm_status status = gm_transfer_start(b->device, b->copies, b->count, &params, &transfer, NULL);
  if (!status) status = gm_transfer_wait(transfer, UINT64_MAX, NULL, NULL);
  const gm_status released = gm_transfer_release(transfer, NULL);
  return status ? status : released;
}

static gm_status one_copy(bench *b) { return one(b, &b->whole, 0, b->bytes * b->count, b->stream, NULL); }

static gm_status (*const ways[WAYS])(bench *b) = {each_waits, one_wait, as_transfer, one_copy};

static gm_status make(bench *b) {
  const gm_request whole = {.bytes = b->bytes * b->count};
  bool made = gm_acquired(gm_alloc(b->pool, &whole, &b->whole));
  for (uint64_t i = 0; i < b->count; i++) {
    const gm_request request = {.bytes = b->irregular ? b->bytes + i * i % 13 * b->bytes : b->bytes};
    made = made && gm_acquired(gm_alloc(b->pool, &request, &b->blocks[i * STEP % b->count]));
  }
  for (uint64_t i = 0; i < b->count; i++) {
    const gm_end block = {.pool = b->pool, .block = &b->blocks[i]}, host = {.host = b->host, .offset = i * b->bytes};
    b->copies[i] = (gm_copy){.struct_size = sizeof b->copies[i],
                             .to = b->down ? host : block,
                             .from = b->down ? block : host,
                             .bytes = b->bytes};
  }
  return made ? GM_OK : GM_ERR_OUT_OF_DEVICE_MEMORY;
}

static void unmake(bench *b) {
  for (uint64_t i = 0; i < b->count; i++) gm_free(b->pool, &b->blocks[i], NULL);
  gm_free(b->pool, &b->whole, NULL);
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* The time of the fastest call, of as many as fill some milliseconds: other programs make calls slower, never faster.
 */
static gm_status measure(bench *b, int way, double *out) {
  const double begin = now_us();
  double at = begin;
  gm_status status = GM_OK;
  *out = 1e30;
  do {
    const double before = at;
    status = ways[way](b);
    at = now_us();
    if (at - before < *out) *out = at - before;
  } while (!status && at - begin < REPEATS_US);
  return status;
}

static gm_status row(bench *b, int runs) {
  static double times[WAYS][RUNS_MOST];
  gm_status status = make(b);
  for (int way = 0; way < WAYS && !status; way++) status = ways[way](b); /* warm */
  for (int run = 0; run < runs && !status; run++) {
    for (int turn = 0; turn < WAYS && !status; turn++) {
      const int way = (run + turn) % WAYS;
      status = measure(b, way, &times[way][run]);
    }
  }
  unmake(b);
  if (status) return status;
  printf("%8" PRIu64 " %6" PRIu64, b->bytes, b->count);
  for (int way = 0; way < WAYS; way++) {
    qsort(times[way], (size_t)runs, sizeof times[way][0], by_size);
    printf(" %11.1f", times[way][runs / 2]);
  }
  const double transfer = times[2][runs / 2];
  printf("   %6.1f %6.2f\n", times[0][runs / 2] / transfer, times[1][runs / 2] / transfer);
  return GM_OK;
}

static gm_status grid(bench *b, int runs) {
  static const uint64_t sizes[] = {64, 400, 4096, 65536, 1 << 20}, counts[] = {1, 4, 16, 100, 1000};
  gm_status status = GM_OK;
  printf("%8s %6s", "bytes", "copies");
  for (int way = 0; way < WAYS; way++) printf(" %11s", way_names[way]);
  printf("   times faster than the first two\n");
  for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
    for (size_t c = 0; c < sizeof counts / sizeof counts[0] && !status; c++) {
      b->bytes = sizes[s];
      b->count = counts[c];
      const bool chosen =
          (!b->only_bytes || b->only_bytes == b->bytes) && (!b->only_count || b->only_count == b->count);
      if (chosen && b->bytes * b->count <= 64 << 20) status = row(b, runs);
    }
  }
  return status;
}

static gm_status run(bench *b, const char *backend, int runs, gm_error *err) {
  gm_context *ctx = NULL;
  b->host = calloc(1, 64 << 20);
  gm_status status = b->host ? gm_context_create(NULL, &ctx, err) : GM_ERR_OUT_OF_HOST_MEMORY;
  if (!status) status = gm_device_open_index(ctx, backend, 0, &b->device, err);
  if (!status) status = gm_pool_create(b->device, NULL, &b->pool, err);
  if (!status) status = gm_stream_create(b->device, &b->stream, err);
  if (!status) status = grid(b, runs);
  gm_stream_close(b->stream, NULL);
  gm_pool_destroy(b->pool, NULL);
  gm_device_close(b->device, NULL);
  gm_context_destroy(ctx, NULL);
  free(b->host);
  return status;
}

int main(int argc, char **argv) {
  static bench b;
  const char *backend = "cpu";
  int runs = 9;
  gm_error err = {.message = ""};
  for (int i = 1; i < argc; i++) {
    const bool number = i + 1 < argc;
    if (!strcmp(argv[i], "--runs") && number) {
      runs = atoi(argv[++i]);
    } else if (!strcmp(argv[i], "--bytes") && number) {
      b.only_bytes = strtoull(argv[++i], NULL, 10);
    } else if (!strcmp(argv[i], "--copies") && number) {
      b.only_count = strtoull(argv[++i], NULL, 10);
    } else if (!strcmp(argv[i], "--irregular")) {
      b.irregular = true;
    } else if (!strcmp(argv[i], "--down")) {
      b.down = true;
    } else {
      backend = argv[i];
    }
  }
  if (runs < 1 || runs > RUNS_MOST) runs = 9;
  const gm_status status = run(&b, backend, runs, &err);
  if (status) fprintf(stderr, "gm_copies_bench: %s: %s\n", gm_status_name(status), err.message);
  return status ? 1 : 0;
}
