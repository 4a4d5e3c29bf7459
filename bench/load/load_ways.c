/* How fast a model's tensors come into host memory by each way, beside the plainest peers, in one run. It makes a
 * safetensors file whose tensors begin anywhere, and one whose tensors begin at pages, and removes them again.
 *
 * Cases: "warm": the file lies in the page cache, and the memory was used before. "cold": the file was dropped from the
 * cache, some seconds before. "new": the file lies in the cache, and the memory is new. The order of the contestants
 * rotates from round to round. Each line has medians of bytes a second by the clock, and of processor seconds for each
 * GB. Its ratios are to the best peer, by the clock and by processor time. The last column is the most that the process
 * grew by meanwhile, in MiB, of all rounds: memory beyond the destination, which was there before.
 *
 * "cancel": the file was dropped from the cache, and the load is cancelled when half of it is there. The line has the
 * median and the longest time from there to the end of the call, and the rate up to there.
 *
 * usage: gm_load_ways [--bytes N[K|M|G]] [--rounds N] [--wait SECONDS] [--folder PATH] [--case warm|cold|new|cancel] */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gm/context.h"
#include "gm/save.h"
#include "uring_read.h"

enum {
  PAGE = 4096,
  TENSORS = 164,
  ROUNDS_MOST = 32,
  PATH_MOST = 512,
  DEPTH = 16,
  READ = 1 << 20,
  LARGE_READ = 16 << 20
};

typedef struct ways_bench {
  uint64_t bytes; /* of the data */
  unsigned rounds, wait;
  const char *folder, *only;
  char path[PATH_MOST], sums_path[PATH_MOST]; /* the second: of the checksum file while it is away */
  gm_context *ctx;
  gm_device *device;
  gm_pool *pool;         /* holds on to what a load gave back */
  unsigned char *memory; /* of the whole file, used before */
  uint64_t file_bytes;
} ways_bench;

typedef struct contestant {
  const char *name;
  bool peer;
  double (*run)(ways_bench *bench, const struct contestant *me); /* bytes; 0: it failed */
  gm_load_path path;
  bool verify, sums, fresh;                   /* sums: there is a checksum file; fresh: a pool of its own */
  double wall[ROUNDS_MOST], cpu[ROUNDS_MOST]; /* seconds of each GB */
  double grown;                               /* MiB, most */
} contestant;

static double seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int fail(const char *what, const char *why) { return fprintf(stderr, "gm_load_ways: %s: %s\n", what, why), 0; }

/* ---- the file ---- */

static void put_header(FILE *file, uint64_t tensor_bytes, bool aligned) {
  char *text = NULL;
  size_t length = 0;
  FILE *json = open_memstream(&text, &length);
  if (!json) return;
  for (uint64_t i = 0; i < TENSORS; i++) {
    fprintf(json,
            "%s\"t.%03" PRIu64 "\":{\"dtype\":\"U8\",\"shape\":[%" PRIu64 "],\"data_offsets\":[%" PRIu64 ",%" PRIu64
            "]}",
            i ? "," : "{", i, tensor_bytes, i * tensor_bytes, (i + 1) * tensor_bytes);
  }
  fputc('}', json);
  fclose(json);
  const uint64_t unit = aligned ? PAGE : 8;
  const uint64_t whole = (length + 8 + unit - 1) / unit * unit - 8;
  for (unsigned i = 0; i < 8; i++) fputc((int)(whole >> 8 * i & 255), file);
  fwrite(text, 1, length, file);
  for (uint64_t i = length; i < whole; i++) fputc(' ', file);
  free(text);
}

static int write_file(ways_bench *bench, bool aligned) {
  static unsigned char chunk[READ];
  const uint64_t unit = aligned ? PAGE : 2;
  const uint64_t tensor_bytes = bench->bytes / TENSORS / unit * unit + (aligned ? 0 : 2);
  uint32_t state = 7;
  for (size_t i = 0; i < sizeof chunk; i++) chunk[i] = (unsigned char)((state = state * 1664525 + 1013904223) >> 24);
  snprintf(bench->path, sizeof bench->path, "%s/%s.safetensors", bench->folder, aligned ? "aligned" : "anywhere");
  snprintf(bench->sums_path, sizeof bench->sums_path, "%s/sums", bench->folder);
  FILE *file = fopen(bench->path, "wb");
  if (!file) return fail(bench->path, "cannot be made");
  put_header(file, tensor_bytes, aligned);
  for (uint64_t left = tensor_bytes * TENSORS, part; left; left -= part) {
    part = left < sizeof chunk ? left : sizeof chunk;
    fwrite(chunk, 1, (size_t)part, file);
  }
  bench->file_bytes = (uint64_t)ftell(file);
  bool good = fflush(file) == 0 && fsync(fileno(file)) == 0;
  good = fclose(file) == 0 && good;
  return good ? 1 : fail(bench->path, "could not be written");
}

/* A checksum file beside it, with which a verified load compares: gm saves the file over itself. */
static int write_sums(ways_bench *bench) {
  gm_model *model = NULL;
  gm_error err = {.status = GM_OK};
  const gm_save_params params = {.struct_size = sizeof params, .checksums = true};
  if (gm_model_open(NULL, bench->path, &model, &err)) return fail(bench->path, err.message);
  const gm_status status = gm_model_save(model, NULL, bench->path, &params, NULL, &err);
  gm_model_close(model);
  struct stat st;
  if (status != GM_OK || stat(bench->path, &st) != 0) return fail(bench->path, err.message);
  bench->file_bytes = (uint64_t)st.st_size;
  return 1;
}

/* Puts the checksum file beside the file, or takes it away. */
static void move_sums(const ways_bench *bench, bool away) {
  char beside[PATH_MOST + 8];
  snprintf(beside, sizeof beside, "%s.gmsum", bench->path);
  (void)rename(away ? beside : bench->sums_path, away ? bench->sums_path : beside);
}

/* ---- peers ---- */

static double run_pread(ways_bench *bench, const contestant *me) {
  (void)me;
  const int fd = open(bench->path, O_RDONLY | O_CLOEXEC);
  uint64_t at = 0;
  for (ssize_t got = 1; fd >= 0 && at < bench->file_bytes && got > 0; at += got > 0 ? (uint64_t)got : 0) {
    const uint64_t left = bench->file_bytes - at;
    got = pread(fd, bench->memory + at, left < LARGE_READ ? left : LARGE_READ, (off_t)at);
  }
  if (fd >= 0) close(fd);
  return at == bench->file_bytes ? (double)at : 0;
}

static double run_mapped(ways_bench *bench, const contestant *me) {
  (void)me;
  const int fd = open(bench->path, O_RDONLY | O_CLOEXEC);
  void *file = fd < 0 ? MAP_FAILED : mmap(NULL, bench->file_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (fd >= 0) close(fd);
  if (file == MAP_FAILED) return 0;
  memcpy(bench->memory, file, bench->file_bytes);
  munmap(file, bench->file_bytes);
  return (double)bench->file_bytes;
}

static double run_populated(ways_bench *bench, const contestant *me) {
  unsigned char *used = bench->memory;
  void *fresh =
      mmap(NULL, bench->file_bytes + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (fresh == MAP_FAILED) return 0;
  bench->memory = fresh;
  const double bytes = run_pread(bench, me);
  bench->memory = used;
  munmap(fresh, bench->file_bytes + PAGE);
  return bytes;
}

typedef struct direct_job {
  const ways_bench *bench;
  int fd;
  atomic_ullong next;
  atomic_bool failed;
} direct_job;

static void *direct_work(void *arg) {
  direct_job *job = arg;
  for (;;) {
    const uint64_t at = atomic_fetch_add(&job->next, READ);
    if (at >= job->bench->file_bytes) return NULL;
    const uint64_t left = job->bench->file_bytes - at, wanted = left < READ ? left : READ;
    const ssize_t got = pread(job->fd, job->bench->memory + at, (wanted + PAGE - 1) / PAGE * PAGE, (off_t)at);
    if (got < 0 || (uint64_t)got < wanted) atomic_store(&job->failed, true);
  }
}

/* The disk's own speed: 16 reads of 1 MiB at a time, past the page cache, as the blocks lie. */
static double run_direct(ways_bench *bench, const contestant *me) {
  (void)me;
  direct_job job = {.bench = bench, .fd = open(bench->path, O_RDONLY | O_CLOEXEC | O_DIRECT)};
  pthread_t threads[DEPTH];
  int started = 0;
  if (job.fd < 0) return 0;
  while (started < DEPTH && pthread_create(&threads[started], NULL, direct_work, &job) == 0) started++;
  for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
  close(job.fd);
  return started && !atomic_load(&job.failed) ? (double)bench->file_bytes : 0;
}

/* io_uring reads as many at a time, in one thread. Where the system refuses it, by threads; the line says so. */
static double run_uring(ways_bench *bench, const contestant *me) {
  const int fd = open(bench->path, O_RDONLY | O_CLOEXEC | O_DIRECT);
  const bool good = fd >= 0 && uring_read(fd, bench->memory, bench->file_bytes, READ, DEPTH);
  if (fd >= 0) close(fd);
  if (!good) fail("io_uring", "refused, threads read instead");
  return good ? (double)bench->file_bytes : run_direct(bench, me);
}

/* ---- gm ---- */

static double load_into(ways_bench *bench, const contestant *me, gm_pool *pool) {
  gm_model *model = NULL;
  gm_loaded_model *loaded = NULL;
  gm_load_params params = {.struct_size = sizeof params, .path = me->path, .verify = me->verify};
  gm_load_result result = {.struct_size = sizeof result};
  gm_error err;
  gm_status status = gm_model_open(NULL, bench->path, &model, &err);
  if (status == GM_OK) status = gm_model_load(model, pool, &params, &loaded, &result, &err);
  gm_model_close(model);
  gm_loaded_model_release(loaded, NULL);
  return status == GM_OK ? (double)result.bytes : fail(err.op, err.message);
}

static double run_gm(ways_bench *bench, const contestant *me) {
  gm_pool *pool = bench->pool;
  gm_error err;
  if (me->fresh && gm_pool_create(bench->device, NULL, &pool, &err) != GM_OK) return fail(err.op, err.message);
  const double bytes = load_into(bench, me, pool);
  if (me->fresh) gm_pool_destroy(pool, NULL);
  return bytes;
}

/* ---- rounds ---- */

static void drop_cache(const ways_bench *bench) {
  const int fd = open(bench->path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  close(fd);
  sleep(bench->wait);
}

/* A figure of /proc/self/status, in MiB; 0: it is not there. */
static double status_mib(const char *name) {
  char line[256];
  double kib = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file)) {
    if (strncmp(line, name, strlen(name)) == 0) kib = strtod(line + strlen(name) + 1, NULL);
  }
  if (file) fclose(file);
  return kib / 1024;
}

/* The process's peak is what it has now. */
static void forget_peak(void) {
  const int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  if (write(fd, "5", 1) != 1) fail("clear_refs", "the peak stays");
  close(fd);
}

static int run_one(ways_bench *bench, contestant *one, unsigned round, bool cold) {
  move_sums(bench, !one->sums);
  if (cold) drop_cache(bench);
  forget_peak();
  const double before = status_mib("VmRSS");
  const double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
  const double bytes = one->run(bench, one);
  one->wall[round] = (seconds(CLOCK_MONOTONIC) - wall) / bytes * 1e9;
  one->cpu[round] = (seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu) / bytes * 1e9;
  const double grown = status_mib("VmHWM") - before;
  if (grown > one->grown) one->grown = grown;
  return bytes > 0 ? 1 : fail(one->name, "failed");
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *values, unsigned count) {
  qsort(values, count, sizeof *values, compare);
  return values[count / 2];
}

static const char *file_name(const ways_bench *bench) {
  return strstr(bench->path, "aligned") ? "aligned" : "anywhere";
}

static void print_case(const ways_bench *bench, const char *name, contestant *all, unsigned count) {
  double best = 0, best_cpu = 0;
  for (unsigned i = 0; i < count; i++) {
    const double wall = median(all[i].wall, bench->rounds), cpu = median(all[i].cpu, bench->rounds);
    all[i].wall[0] = wall;
    all[i].cpu[0] = cpu;
    if (!all[i].peer) continue;
    if (best == 0 || wall < best) best = wall;
    if (best_cpu == 0 || cpu < best_cpu) best_cpu = cpu;
  }
  for (unsigned i = 0; i < count; i++) {
    printf("%-6s %-9s %-22s %7.2f GB/s %7.3f s/GB %6.2f x %6.2f x %7.1f MiB\n", name, file_name(bench), all[i].name,
           1 / all[i].wall[0], all[i].cpu[0], best / all[i].wall[0], best_cpu / all[i].cpu[0], all[i].grown);
  }
  fflush(stdout);
}

static int run_case(ways_bench *bench, const char *name, contestant *all, unsigned count) {
  if (bench->only && strcmp(bench->only, name) != 0) return 1;
  for (unsigned round = 0; round < bench->rounds; round++) {
    for (unsigned i = 0; i < count; i++) {
      if (!run_one(bench, &all[(i + round) % count], round, strcmp(name, "cold") == 0)) return 0;
    }
  }
  print_case(bench, name, all, count);
  return 1;
}

/* ---- cancel ---- */

typedef struct canceller {
  double at; /* when it was cancelled; 0: it was not yet */
  uint64_t done;
} canceller;

static bool cancel_half(void *user, const gm_load_progress *progress) {
  canceller *self = user;
  if (progress->done_bytes < progress->total_bytes / 2) return true;
  self->at = seconds(CLOCK_MONOTONIC);
  self->done = progress->done_bytes;
  return false;
}

/* How long the call goes on after the cancel; below 0: it failed. */
static double cancel_once(ways_bench *bench, double *out_rate) {
  canceller self = {.at = 0};
  gm_model *model = NULL;
  gm_loaded_model *loaded = NULL;
  const gm_load_params params = {.struct_size = sizeof params, .progress = cancel_half, .user = &self};
  gm_error err = {.message = "it was not cancelled"};
  drop_cache(bench);
  gm_status status = gm_model_open(NULL, bench->path, &model, &err);
  const double since = seconds(CLOCK_MONOTONIC);
  if (status == GM_OK) status = gm_model_load(model, bench->pool, &params, &loaded, NULL, &err);
  const double end = seconds(CLOCK_MONOTONIC);
  gm_model_close(model);
  gm_loaded_model_release(loaded, NULL);
  if (status != GM_ERR_CANCELLED) return fail("cancel", err.message), -1;
  *out_rate = (double)self.done / (self.at - since);
  return end - self.at;
}

static int run_cancel(ways_bench *bench) {
  double took[ROUNDS_MOST], rate[ROUNDS_MOST];
  if (bench->only && strcmp(bench->only, "cancel") != 0) return 1;
  move_sums(bench, true);
  for (unsigned round = 0; round < bench->rounds; round++) {
    took[round] = cancel_once(bench, &rate[round]);
    if (took[round] < 0) return 0;
  }
  const double middle = median(took, bench->rounds);
  printf("cancel %-9s gm auto                %7.2f GB/s  %6.1f ms, at most %.1f ms\n", file_name(bench),
         median(rate, bench->rounds) / 1e9, middle * 1e3, took[bench->rounds - 1] * 1e3);
  return 1;
}

static int run_file(ways_bench *bench, bool aligned) {
  contestant warm[] = {{.name = "pread 16 MiB", .peer = true, .run = run_pread},
                       {.name = "mmap + memcpy", .peer = true, .run = run_mapped},
                       {.name = "gm auto", .run = run_gm},
                       {.name = "gm read", .run = run_gm, .path = GM_LOAD_PATH_READ},
                       {.name = "gm in place", .run = run_gm, .path = GM_LOAD_PATH_IN_PLACE},
                       {.name = "gm auto, verified", .run = run_gm, .verify = true},
                       {.name = "gm, by checksum file", .run = run_gm, .verify = true, .sums = true}};
  contestant cold[] = {{.name = "O_DIRECT 16 x 1 MiB", .peer = true, .run = run_direct},
                       {.name = "io_uring 16 x 1 MiB", .run = run_uring},
                       {.name = "pread 16 MiB", .run = run_pread},
                       {.name = "gm auto", .run = run_gm},
                       {.name = "gm read", .run = run_gm, .path = GM_LOAD_PATH_READ},
                       {.name = "gm auto, verified", .run = run_gm, .verify = true},
                       {.name = "gm, by checksum file", .run = run_gm, .verify = true, .sums = true}};
  contestant fresh[] = {{.name = "populate, then pread", .peer = true, .run = run_populated},
                        {.name = "gm auto", .run = run_gm, .fresh = true}};
  if (!write_file(bench, aligned) || !write_sums(bench)) return 0;
  int good = run_gm(bench, &warm[3]) > 0; /* the pool gets its memory */
  good = good && run_case(bench, "warm", warm, sizeof warm / sizeof *warm);
  good = good && run_case(bench, "new", fresh, sizeof fresh / sizeof *fresh);
  good = good && run_case(bench, "cold", cold, sizeof cold / sizeof *cold);
  good = good && run_cancel(bench);
  unlink(bench->path);
  move_sums(bench, true);
  unlink(bench->sums_path);
  return good;
}

/* ---- the program ---- */

static uint64_t parse_number(const char *text) {
  char *end = NULL;
  const uint64_t value = strtoull(text, &end, 10);
  return value << (*end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0);
}

static int parse(int argc, char **argv, ways_bench *bench) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (strcmp(argv[i], "--bytes") == 0) bench->bytes = parse_number(argv[i + 1]);
    if (strcmp(argv[i], "--rounds") == 0) bench->rounds = (unsigned)parse_number(argv[i + 1]);
    if (strcmp(argv[i], "--wait") == 0) bench->wait = (unsigned)parse_number(argv[i + 1]);
    if (strcmp(argv[i], "--folder") == 0) bench->folder = argv[i + 1];
    if (strcmp(argv[i], "--case") == 0) bench->only = argv[i + 1];
  }
  const bool good = argc % 2 == 1 && bench->bytes / TENSORS >= PAGE && bench->rounds && bench->rounds <= ROUNDS_MOST;
  return good ? 1
              : fail("usage", "[--bytes N[K|M|G]] [--rounds 1 to 32] [--wait SECONDS] [--folder PATH] [--case NAME]");
}

static int begin(ways_bench *bench) {
  gm_error err;
  bool good = gm_context_create(NULL, &bench->ctx, &err) == GM_OK;
  good = good && gm_device_open_index(bench->ctx, "cpu", 0, &bench->device, &err) == GM_OK;
  good = good && gm_pool_create(bench->device, NULL, &bench->pool, &err) == GM_OK;
  if (!good) return fail(err.op, err.message);
  const uint64_t bytes = bench->bytes + UINT64_C(2) * READ;
  void *memory = NULL;
  if (posix_memalign(&memory, PAGE, bytes)) return fail("memory", "there is not enough");
  bench->memory = memory;
  memset(memory, 1, bytes);
  return 1;
}

int main(int argc, char **argv) {
  ways_bench bench = {.bytes = UINT64_C(1500) << 20, .rounds = 5, .wait = 5, .folder = getenv("TMPDIR")};
  char folder[PATH_MOST];
  if (!bench.folder) bench.folder = "/tmp";
  if (!parse(argc, argv, &bench)) return 2;
  if (snprintf(folder, sizeof folder, "%s/gm-load-XXXXXX", bench.folder) >= (int)sizeof folder - 32) return 2;
  if (!mkdtemp(folder)) return fail(folder, "cannot be made"), 1;
  bench.folder = folder;
  printf("case   file      way                    by the clock     processor    ratio    ratio      grown\n");
  int good = begin(&bench);
  for (int aligned = 0; aligned < 2 && good; aligned++) good = run_file(&bench, aligned != 0);
  free(bench.memory);
  if (bench.pool) gm_pool_destroy(bench.pool, NULL);
  if (bench.device) gm_device_close(bench.device, NULL);
  if (bench.ctx) gm_context_destroy(bench.ctx, NULL);
  rmdir(folder);
  return good ? 0 : 1;
}
