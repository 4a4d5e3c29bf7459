/* Headers and loads of model files, made on the spot and removed again. It tells how long the header takes, and how
 * fast the tensors come into host memory. In the same run it maps the same file and copies it. The file was just
 * written, so it lies in the page cache where that has room. The memory that is written to was used before. So no
 * figure is that of the system's clearing of pages.
 *
 * usage: gm_load_bench [--bytes N[K|M|G]] [--tensors N] [--runs N] [--folder PATH] */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "gm/context.h"
#include "gm/load.h"

enum { BENCH_CHUNK = 1 << 20, BENCH_RUNS_MAX = 64, BENCH_PATH = 512, BENCH_ALIGN = 64, BENCH_ENTRY = 256 };

typedef struct load_bench {
  uint64_t bytes, tensors; /* asked for */
  unsigned runs;
  const char *folder;
  uint64_t tensor_bytes; /* of each */
  char path[BENCH_PATH];
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;         /* holds on to what a load gave back */
  unsigned char *memory; /* of the bytes of all tensors, and of a header */
} load_bench;

typedef struct bench_rates {
  double mapped[BENCH_RUNS_MAX], read[BENCH_RUNS_MAX], mmap[BENCH_RUNS_MAX]; /* bytes a second */
} bench_rates;

static double seconds_now(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int fail(const char *what, const char *why) { return fprintf(stderr, "gm_load_bench: %s: %s\n", what, why), 0; }

/* ---- the files ---- */

static void put(FILE *file, uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; i++) fputc((int)(value >> 8 * i & 255), file);
}

static void put_zeros(FILE *file, uint64_t bytes, int with) {
  for (uint64_t i = 0; i < bytes; i++) fputc(with, file);
}

static void write_safetensors_header(FILE *file, const load_bench *bench) {
  char *text = NULL;
  size_t length = 0;
  FILE *json = open_memstream(&text, &length);
  if (!json) return;
  for (uint64_t i = 0; i < bench->tensors; i++) {
    uint64_t begin = i * bench->tensor_bytes;
    fprintf(json,
            "%s\"model.layers.%06" PRIu64 ".weight\":{\"dtype\":\"F16\",\"shape\":[%" PRIu64
            ",32],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
            i ? "," : "{", i, bench->tensor_bytes / 64, begin, begin + bench->tensor_bytes);
  }
  fputc('}', json);
  fclose(json);
  uint64_t padding = (8 - length % 8) % 8;
  put(file, length + padding, 8);
  fwrite(text, 1, length, file);
  put_zeros(file, padding, ' ');
  free(text);
}

static void write_gguf_header(FILE *file, const load_bench *bench) {
  static const uint32_t f16 = 1;
  char name[64];
  uint64_t at = 24;
  fwrite("GGUF", 1, 4, file);
  put(file, 3, 4);
  put(file, bench->tensors, 8);
  put(file, 0, 8);
  for (uint64_t i = 0; i < bench->tensors; i++) {
    uint64_t length = (uint64_t)snprintf(name, sizeof name, "blk.%06" PRIu64 ".ffn_up.weight", i);
    put(file, length, 8);
    fwrite(name, 1, length, file);
    put(file, 2, 4);
    put(file, 32, 8);
    put(file, bench->tensor_bytes / 64, 8);
    put(file, f16, 4);
    put(file, i * bench->tensor_bytes, 8);
    at += 8 + length + 4 + 16 + 4 + 8;
  }
  put_zeros(file, (32 - at % 32) % 32, 0);
}

static int write_file(load_bench *bench, bool gguf) {
  static unsigned char chunk[BENCH_CHUNK];
  uint32_t state = 7;
  for (size_t i = 0; i < sizeof chunk; i++) chunk[i] = (unsigned char)((state = state * 1664525 + 1013904223) >> 24);
  FILE *file = fopen(bench->path, "wb");
  if (!file) return fail(bench->path, "cannot be made");
  (gguf ? write_gguf_header : write_safetensors_header)(file, bench);
  for (uint64_t left = bench->tensors * bench->tensor_bytes; left > 0;) {
    size_t part = left < sizeof chunk ? (size_t)left : sizeof chunk;
    fwrite(chunk, 1, part, file);
    left -= part;
  }
  bool good = !ferror(file);
  good = fclose(file) == 0 && good;
  return good ? 1 : fail(bench->path, "could not be written");
}

/* ---- the runs ---- */

static uint64_t bench_memory(const load_bench *bench) {
  return bench->tensors * (bench->tensor_bytes + BENCH_ENTRY) + BENCH_CHUNK;
}

/* Map, copy all of it, unmap: bytes a second; 0 on failure. */
static double run_mapped(const load_bench *bench) {
  int fd = open(bench->path, O_RDONLY | O_CLOEXEC);
  off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
  size_t bytes = end > 0 && (uint64_t)end <= bench_memory(bench) ? (size_t)end : 0;
  double from = seconds_now();
  void *file = bytes ? mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  if (file != MAP_FAILED) {
    memcpy(bench->memory, file, bytes);
    munmap(file, bytes);
  }
  double took = seconds_now() - from;
  if (fd >= 0) close(fd);
  return file != MAP_FAILED ? (double)bytes / took : 0;
}

/* Open, load, close: bytes a second; 0 on failure. */
static double run_load(const load_bench *bench, gm_load_path path, gm_error *err) {
  gm_model *model = NULL;
  gm_loaded_model *loaded = NULL;
  gm_load_params params = {.struct_size = sizeof params, .path = path};
  gm_load_result result = {.struct_size = sizeof result};
  double from = seconds_now();
  gm_status status = gm_model_open(NULL, bench->path, &model, err);
  if (status == GM_OK) status = gm_model_load(model, bench->pool, &params, &loaded, &result, err);
  gm_model_close(model);
  double took = seconds_now() - from;
  gm_loaded_model_release(loaded, NULL);
  return status == GM_OK ? (double)result.bytes / took : 0;
}

static int compare_rates(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, unsigned count) {
  qsort(values, count, sizeof *values, compare_rates);
  return values[count / 2];
}

static double header_seconds(const load_bench *bench, gm_error *err) {
  double times[BENCH_RUNS_MAX];
  for (unsigned i = 0; i < bench->runs; i++) {
    gm_model *model = NULL;
    double from = seconds_now();
    if (gm_model_open_header(NULL, bench->path, &model, err) != GM_OK) return -1;
    times[i] = seconds_now() - from;
    gm_model_close(model);
  }
  return median(times, bench->runs);
}

static int run_format(load_bench *bench, bool gguf) {
  static bench_rates rates;
  gm_error err = {.message = "nothing was loaded"};
  double header = header_seconds(bench, &err);
  if (header < 0) return fail(err.op, err.message);
  run_load(bench, GM_LOAD_PATH_READ, &err); /* the pool gets its memory */
  for (unsigned i = 0; i < bench->runs; i++) {
    rates.mapped[i] = run_mapped(bench);
    rates.read[i] = run_load(bench, GM_LOAD_PATH_READ, &err);
    rates.mmap[i] = run_load(bench, GM_LOAD_PATH_MMAP, &err);
    if (rates.mapped[i] <= 0) return fail(bench->path, "cannot be mapped");
    if (rates.read[i] <= 0 || rates.mmap[i] <= 0) return fail(err.op, err.message);
  }
  double mapped = median(rates.mapped, bench->runs), read = median(rates.read, bench->runs);
  double through = median(rates.mmap, bench->runs);
  printf("%-12s %7" PRIu64 " %8.3f %10.3f %14.2f %8.2f %5.2f x %8.2f %5.2f x\n", gguf ? "GGUF" : "safetensors",
         bench->tensors, (double)(bench->tensors * bench->tensor_bytes) / 1e9, header * 1e3, mapped / 1e9, read / 1e9,
         read / mapped, through / 1e9, through / mapped);
  return 1;
}

/* ---- the program ---- */

static uint64_t parse_number(const char *text) {
  char *end = NULL;
  uint64_t value = strtoull(text, &end, 10);
  unsigned shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
  return value << shift;
}

static int parse(int argc, char **argv, load_bench *bench) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--bytes") == 0) bench->bytes = parse_number(argv[i + 1]);
    if (strcmp(argv[i], "--tensors") == 0) bench->tensors = parse_number(argv[i + 1]);
    if (strcmp(argv[i], "--runs") == 0) bench->runs = (unsigned)parse_number(argv[i + 1]);
    if (strcmp(argv[i], "--folder") == 0) bench->folder = argv[i + 1];
  }
  bool good = argc % 2 == 1 && bench->tensors && bench->runs && bench->runs <= BENCH_RUNS_MAX;
  if (good) bench->tensor_bytes = bench->bytes / bench->tensors / BENCH_ALIGN * BENCH_ALIGN;
  if (good && bench->tensor_bytes) return 1;
  return fail("usage", "[--bytes N[K|M|G]] [--tensors N] [--runs 1 to 64] [--folder PATH]");
}

static int run_all(load_bench *bench) {
  int good = 1;
  printf("%-12s %7s %8s %10s %14s %8s %7s %8s %7s\n", "format", "tensors", "GB", "header ms", "map+copy GB/s", "read",
         "ratio", "mmap", "ratio");
  for (int gguf = 0; gguf < 2 && good; gguf++) {
    snprintf(bench->path, sizeof bench->path, "%s/model.%s", bench->folder, gguf ? "gguf" : "safetensors");
    good = write_file(bench, gguf != 0) && run_format(bench, gguf != 0);
    unlink(bench->path);
  }
  return good;
}

int main(int argc, char **argv) {
  load_bench bench = {.bytes = UINT64_C(1700) << 20, .tensors = 200, .runs = 5, .folder = getenv("TMPDIR")};
  char folder[BENCH_PATH];
  gm_error err;
  if (!bench.folder) bench.folder = "/tmp";
  if (!parse(argc, argv, &bench)) return 2;
  if (snprintf(folder, sizeof folder, "%s/gm-load-XXXXXX", bench.folder) >= (int)sizeof folder - 32) return 2;
  if (!mkdtemp(folder)) return fail(folder, "cannot be made"), 1;
  bench.folder = folder;
  int good = gm_context_create(NULL, &bench.ctx, &err) == GM_OK;
  good = good && gm_device_open_index(bench.ctx, "cpu", 0, &bench.device, &err) == GM_OK;
  good = good && gm_pool_create(bench.device, NULL, &bench.pool, &err) == GM_OK;
  if (!good) fail(err.op, err.message);
  bench.memory = good ? malloc(bench_memory(&bench)) : NULL;
  if (bench.memory) memset(bench.memory, 1, bench_memory(&bench));
  good = bench.memory && run_all(&bench);
  free(bench.memory);
  if (bench.pool) gm_pool_destroy(bench.pool, NULL);
  if (bench.device) gm_device_close(bench.device, NULL);
  if (bench.ctx) gm_context_destroy(bench.ctx, NULL);
  rmdir(folder);
  return good ? 0 : 1;
}
