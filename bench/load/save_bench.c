/* Saving a model, beside plain writing of as many bytes, from as much memory, in the same run. All ways reserve room,
 * wait for the disk and rename. Their order is another one in each round, because free memory and the disk's own cache
 * favour who comes first. Wall time depends on what else the machine does, so processor seconds stand beside it.
 *
 * usage: gm_save_bench [--bytes N[K|M|G]] [--tensors N] [--runs N] [--folder PATH] */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "gm/context.h"
#include "gm/save.h"

enum { BENCH_RUNS_MAX = 64, BENCH_PATH = 512, BENCH_THREADS = 4, BENCH_PIECE = 4 << 20, BENCH_HEADER = 1 << 20 };

typedef enum bench_way { WAY_DIRECT, WAY_CACHE, WAY_BLOCKS, WAY_GGUF, WAY_FILE, WAY_OWN, WAYS } bench_way;

static const char *const way_names[WAYS] = {
    "plain, past the cache, 4 threads", "plain, through the cache",  "gm_model_save from blocks, safetensors",
    "gm_model_save from blocks, GGUF",  "gm_model_save from a file", "gm_model_save from a file of gm's"};

typedef struct save_bench {
  uint64_t bytes, tensors;
  unsigned runs;
  const char *base;
  char folder[BENCH_PATH], source[BENCH_PATH + 32], own[BENCH_PATH + 32], side[BENCH_PATH + 32],
      target[BENCH_PATH + 32];
  unsigned char *memory; /* of all bytes */
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;
  gm_model *model, *own_model; /* the second: of `own`, which gm saved, so its data begin at a page */
  gm_loaded_model *loaded;
  double wall[WAYS][BENCH_RUNS_MAX], processor[WAYS][BENCH_RUNS_MAX]; /* seconds */
  char why[128];
} save_bench;

static double seconds_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool fail(const char *what, const char *why) {
  return fprintf(stderr, "gm_save_bench: %s: %s\n", what, why), false;
}

/* ---- plain writing ---- */

typedef struct plain_job {
  int fd;
  uint64_t bytes;
  _Atomic uint64_t next;
  _Atomic bool failed;
} plain_job;

typedef struct plain_thread {
  plain_job *job;
  const unsigned char *memory;
  pthread_t id;
} plain_thread;

static void *plain_run(void *arg) {
  const plain_thread *self = arg;
  plain_job *job = self->job;
  for (uint64_t at; (at = atomic_fetch_add(&job->next, BENCH_PIECE)) < job->bytes;) {
    const uint64_t left = job->bytes - at, bytes = left < BENCH_PIECE ? left : BENCH_PIECE;
    if (pwrite(job->fd, self->memory + at, bytes, (off_t)at) != (ssize_t)bytes) job->failed = true;
  }
  return NULL;
}

static bool plain_threads(const save_bench *bench, plain_job *job, int count) {
  plain_thread threads[BENCH_THREADS];
  int started = 0;
  for (; started < count; started++) {
    threads[started] = (plain_thread){.job = job, .memory = bench->memory};
    if (pthread_create(&threads[started].id, NULL, plain_run, &threads[started]) != 0) break;
  }
  for (int i = 0; i < started; i++) pthread_join(threads[i].id, NULL);
  return started == count && !job->failed;
}

static bool plain_save(const save_bench *bench, bool direct) {
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | (direct ? O_DIRECT : 0);
  const int folder = open(bench->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  plain_job job = {.fd = open(bench->side, flags, 0600), .bytes = bench->bytes};
  bool good = folder >= 0 && job.fd >= 0 && posix_fallocate(job.fd, 0, (off_t)bench->bytes) == 0;
  good = good && plain_threads(bench, &job, direct ? BENCH_THREADS : 1) && fdatasync(job.fd) == 0;
  good = good && rename(bench->side, bench->target) == 0 && fsync(folder) == 0;
  if (job.fd >= 0) close(job.fd);
  if (folder >= 0) close(folder);
  return good || fail(bench->side, "cannot be written");
}

/* ---- gm ---- */

static bool gm_save(save_bench *bench, const gm_model *model, const gm_loaded_model *loaded, const char *end) {
  char path[BENCH_PATH + 64];
  gm_error err = {0};
  gm_save_result result = {.struct_size = sizeof result};
  snprintf(path, sizeof path, "%s%s", bench->target, end);
  const gm_status status = gm_model_save(model, loaded, path, NULL, &result, &err);
  snprintf(bench->why, sizeof bench->why, "%s", result.why);
  unlink(path);
  return status == GM_OK || fail("gm_model_save", err.message);
}

static bool way_run(save_bench *bench, bench_way way) {
  switch (way) {
    case WAY_DIRECT: return plain_save(bench, true);
    case WAY_CACHE: return plain_save(bench, false);
    case WAY_BLOCKS: return gm_save(bench, bench->model, bench->loaded, "");
    case WAY_GGUF: return gm_save(bench, bench->model, bench->loaded, ".gguf");
    case WAY_OWN: return gm_save(bench, bench->own_model, NULL, "");
    default: return gm_save(bench, bench->model, NULL, "");
  }
}

static bool way_measure(save_bench *bench, bench_way way, unsigned round) {
  sync();
  const double wall = seconds_of(CLOCK_MONOTONIC), processor = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
  const bool good = way_run(bench, way);
  bench->wall[way][round] = seconds_of(CLOCK_MONOTONIC) - wall;
  bench->processor[way][round] = seconds_of(CLOCK_PROCESS_CPUTIME_ID) - processor;
  unlink(bench->target);
  return good;
}

/* Each way once. Every round begins with another one, and every second round goes backwards. So no way always follows
 * the same one. */
static bool bench_round(save_bench *bench, unsigned round) {
  bool good = true;
  for (unsigned i = 0; i < WAYS && good; i++) {
    const unsigned at = round % 2 ? WAYS - 1 - i : i;
    good = way_measure(bench, (bench_way)((round + at) % WAYS), round);
  }
  return good;
}

/* ---- the program ---- */

/* A file that gm saves, in the page cache. */
static gm_status own_make(save_bench *bench, gm_error *err) {
  gm_status status = gm_model_save(bench->model, bench->loaded, bench->own, NULL, NULL, err);
  FILE *file = status ? NULL : fopen(bench->own, "rb");
  while (file && fread(bench->memory, 1, BENCH_PIECE, file) == BENCH_PIECE) {}
  if (file) fclose(file);
  return status ? status : gm_model_open(NULL, bench->own, &bench->own_model, err);
}

/* A model of `tensors` tensors, which are rows of one pattern. */
static bool source_write(save_bench *bench) {
  FILE *file = fopen(bench->source, "wb");
  char *text = malloc(BENCH_HEADER);
  int length = 0;
  if (!file || !text) return fail(bench->source, "cannot be made");
  const uint64_t each = bench->bytes / bench->tensors;
  for (uint64_t i = 0; i < bench->tensors && length < BENCH_HEADER - 256; i++) {
    length += snprintf(text + length, 256,
                       "%s\"blk.%" PRIu64 ".w\":{\"dtype\":\"I8\",\"shape\":[%" PRIu64 "],\"data_offsets\":[%" PRIu64
                       ",%" PRIu64 "]}",
                       i ? "," : "{", i, each, i * each, (i + 1) * each);
  }
  length += snprintf(text + length, 2, "}");
  for (int i = 0; i < 8; i++) fputc((int)((uint64_t)length >> 8 * i & 255), file);
  fwrite(text, 1, (size_t)length, file);
  for (uint64_t left = bench->bytes, part; left > 0; left -= part) {
    part = left < BENCH_PIECE ? left : BENCH_PIECE;
    fwrite(bench->memory + (bench->bytes - left), 1, part, file);
  }
  free(text);
  return fclose(file) == 0 || fail(bench->source, "cannot be written");
}

static bool bench_open(save_bench *bench) {
  gm_error err = {0};
  snprintf(bench->source, sizeof bench->source, "%s/source", bench->folder);
  snprintf(bench->own, sizeof bench->own, "%s/own", bench->folder);
  snprintf(bench->side, sizeof bench->side, "%s/side", bench->folder);
  snprintf(bench->target, sizeof bench->target, "%s/target", bench->folder);
  const size_t bytes = (size_t)bench->bytes;
  bench->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (bench->memory == MAP_FAILED) return fail("memory", "is missing");
  for (size_t i = 0; i < bytes; i++) bench->memory[i] = (unsigned char)(i * 2654435761U >> 24);
  if (!source_write(bench)) return false;
  gm_status status = gm_context_create(NULL, &bench->ctx, &err);
  if (!status) status = gm_device_open_index(bench->ctx, "cpu", 0, &bench->device, &err);
  if (!status) status = gm_pool_create(bench->device, NULL, &bench->pool, &err);
  if (!status) status = gm_model_open(NULL, bench->source, &bench->model, &err);
  if (!status) status = gm_model_load(bench->model, bench->pool, NULL, &bench->loaded, NULL, &err);
  if (!status) status = own_make(bench, &err);
  return status == GM_OK || fail(err.op, err.message);
}

static void bench_close(save_bench *bench) {
  gm_loaded_model_release(bench->loaded, NULL);
  gm_model_close(bench->model);
  gm_model_close(bench->own_model);
  if (bench->pool) gm_pool_destroy(bench->pool, NULL);
  if (bench->device) gm_device_close(bench->device, NULL);
  if (bench->ctx) gm_context_destroy(bench->ctx, NULL);
  unlink(bench->source);
  unlink(bench->own);
  unlink(bench->side);
  rmdir(bench->folder);
}

static int compare_seconds(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, unsigned count) {
  qsort(values, count, sizeof *values, compare_seconds);
  return values[count / 2];
}

/* The median of what plain writing took over what `way` took in the same round. */
static double ratio_of(const save_bench *bench, int way) {
  double ratios[BENCH_RUNS_MAX];
  for (unsigned i = 0; i < bench->runs; i++) ratios[i] = bench->wall[WAY_DIRECT][i] / bench->wall[way][i];
  return median(ratios, bench->runs);
}

static void bench_print(save_bench *bench) {
  const double gb = (double)bench->bytes / 1e9;
  double ratios[WAYS];
  for (int way = 0; way < WAYS; way++) ratios[way] = ratio_of(bench, way);
  printf("%-40s %8s %8s %8s %14s\n", "way", "GB/s", "best", "ratio", "cpu s per GB");
  for (int way = 0; way < WAYS; way++) {
    const double wall = median(bench->wall[way], bench->runs);
    printf("%-40s %8.2f %8.2f %8.2f %14.3f\n", way_names[way], gb / wall, gb / bench->wall[way][0], ratios[way],
           median(bench->processor[way], bench->runs) / gb);
  }
  printf("%.2f GB, %u rounds%s%s\n", gb, bench->runs, bench->why[0] ? "; gm: " : "", bench->why);
}

static uint64_t parse_number(const char *text) {
  char *end = NULL;
  const uint64_t value = strtoull(text, &end, 10);
  return value << (*end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0);
}

static bool parse(int argc, char **argv, save_bench *bench) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--bytes") == 0) bench->bytes = parse_number(argv[i + 1]);
    if (strcmp(argv[i], "--tensors") == 0) bench->tensors = parse_number(argv[i + 1]);
    if (strcmp(argv[i], "--runs") == 0) bench->runs = (unsigned)parse_number(argv[i + 1]);
    if (strcmp(argv[i], "--folder") == 0) bench->base = argv[i + 1];
  }
  const bool good = argc % 2 == 1 && bench->tensors && bench->tensors <= 4000 && bench->runs &&
                    bench->runs <= BENCH_RUNS_MAX && bench->bytes >= 4096 * bench->tensors;
  if (good) bench->bytes = bench->bytes / bench->tensors / 4096 * 4096 * bench->tensors; /* whole pages */
  return good || fail("usage", "[--bytes N[K|M|G]] [--tensors 1 to 4000] [--runs 1 to 64] [--folder PATH]");
}

int main(int argc, char **argv) {
  static save_bench bench = {.bytes = UINT64_C(768) << 20, .tensors = 160, .runs = 9};
  bench.base = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
  if (!parse(argc, argv, &bench)) return 2;
  if (snprintf(bench.folder, sizeof bench.folder, "%s/gm-save-XXXXXX", bench.base) >= (int)sizeof bench.folder)
    return 2;
  if (!mkdtemp(bench.folder)) return fail(bench.folder, "cannot be made"), 1;
  bool good = bench_open(&bench);
  for (unsigned round = 0; round < bench.runs && good; round++) {
    good = bench_round(&bench, round);
  }
  if (good) bench_print(&bench);
  bench_close(&bench);
  return good ? 0 : 1;
}
