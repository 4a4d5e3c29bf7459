/* The cost of managed memory on each device: the process's memory in RAM, and the bytes that gm copies while host and
 * device take turns. A turn: the host writes all bytes, the device fills half of them, the host reads them. Where host
 * and device share one memory, a second row has copies for comparison, if the device has memory that is not shared.
 *
 * usage: gm_managed_bench [--mib N] [--turns N] */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gm/context.h"
#include "gm/copy.h"
#include "gm/managed.h"

typedef struct managed_bench {
  gm_context *ctx;
  gm_device *device;
  const char *backend;
  uint64_t bytes;
  unsigned turns;
} managed_bench;

typedef struct bench_row {
  gm_managed_kind kind;
  uint64_t resident, copied; /* bytes; copied is that of all turns */
  double seconds;            /* of all turns but the first */
} bench_row;

static double seconds_now(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Memory of the process in RAM; 0: unknown. */
static uint64_t resident(void) {
  unsigned long all = 0, pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file) return 0;
  if (fscanf(file, "%lu %lu", &all, &pages) != 2) pages = 0;
  fclose(file);
  return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static gm_status device_bytes(gm_managed *managed, uint64_t *out, gm_error *err) {
  gm_managed_info info = {.struct_size = sizeof info};
  const gm_status status = gm_managed_get_info(managed, &info, err);
  *out = info.device_bytes;
  return status;
}

/* Hand all bytes over, and count those that changed their holder. */
static gm_status hand_over(gm_managed *managed, gm_managed_place place, uint64_t bytes, bench_row *row, gm_error *err) {
  uint64_t before = 0, after = 0;
  gm_status status = device_bytes(managed, &before, err);
  if (!status) status = gm_managed_prefetch(managed, place, 0, bytes, NULL, NULL, err);
  if (!status) status = device_bytes(managed, &after, err);
  row->copied += after > before ? after - before : before - after;
  return status;
}

static gm_status turn(const managed_bench *bench, gm_pool *pool, gm_managed *managed, bench_row *row, gm_error *err) {
  unsigned char *host = gm_managed_host(managed);
  memset(host, 'h', (size_t)bench->bytes);
  gm_status status = hand_over(managed, GM_MANAGED_ON_DEVICE, bench->bytes, row, err);
  if (!status) {
    status = gm_block_fill(pool, gm_managed_block(managed), 0, bench->bytes / 2, "d", 1, NULL, NULL, err);
  }
  if (!status) status = hand_over(managed, GM_MANAGED_ON_HOST, bench->bytes, row, err);
  for (uint64_t i = 0; i < bench->bytes && !status; i += 4096) {
    if (host[i] == (i < bench->bytes / 2 ? 'd' : 'h')) continue;
    snprintf(err->message, sizeof err->message, "byte %" PRIu64 " is wrong", i);
    status = GM_ERR_DRIVER;
  }
  return status;
}

static gm_status turns(const managed_bench *bench, gm_pool *pool, gm_managed *managed, bench_row *row, gm_error *err) {
  gm_status status = turn(bench, pool, managed, row, err);
  const double from = seconds_now();
  for (unsigned i = 1; i < bench->turns && !status; i++) status = turn(bench, pool, managed, row, err);
  row->seconds = seconds_now() - from;
  return status;
}

static gm_status measure(const managed_bench *bench, uint32_t types, bench_row *row, gm_error *err) {
  gm_pool *pool = NULL;
  gm_managed *managed = NULL;
  gm_managed_info info = {.struct_size = sizeof info};
  const gm_pool_params params = {.struct_size = sizeof params, .memory_types = types};
  const gm_managed_params asked = {.struct_size = sizeof asked, .bytes = bench->bytes};
  const uint64_t before = resident();
  gm_status status = gm_pool_create(bench->device, &params, &pool, err);
  if (status) return status;
  status = gm_managed_create(pool, &asked, &managed, err);
  if (!status) status = gm_managed_get_info(managed, &info, err);
  if (!status) status = turns(bench, pool, managed, row, err);
  row->kind = info.kind;
  row->resident = resident() - before;
  if (managed) gm_managed_destroy(managed, NULL, NULL);
  gm_pool_destroy(pool, NULL);
  return status;
}

static bool print_row(const managed_bench *bench, uint32_t types) {
  static const char *const kinds[] = {"native", "unified", "copied"};
  bench_row row = {.copied = 0};
  gm_error err = {.status = GM_OK};
  if (measure(bench, types, &row, &err) != GM_OK) {
    fprintf(stderr, "gm_managed_bench: %s: %s\n", bench->backend, err.message);
    return false;
  }
  printf("%-8s %-8s %8.1f %8.1f %12.1f %10.2f\n", bench->backend, kinds[row.kind], (double)bench->bytes / (1 << 20),
         (double)row.resident / (1 << 20), (double)row.copied / bench->turns / (1 << 20),
         row.seconds * 1e3 / (bench->turns - 1));
  return true;
}

/* The types that the host cannot keep mapped: 1 << index. */
static uint32_t plain_types(gm_device *device) {
  uint32_t count = 0, types = 0;
  if (gm_device_memory_type_count(device, &count, NULL) != GM_OK) return 0;
  for (uint32_t i = 0; i < count && i < 32; i++) {
    gm_memory_type type = {.struct_size = sizeof type};
    if (gm_device_memory_type(device, i, &type, NULL) != GM_OK) return 0;
    if (!(type.flags & (GM_MEMORY_PERSISTENT_MAP | GM_MEMORY_APART | GM_MEMORY_MANAGED))) types |= UINT32_C(1) << i;
  }
  return types;
}

static bool run_backend(managed_bench *bench) {
  gm_error err = {.status = GM_OK};
  if (gm_device_open_index(bench->ctx, bench->backend, 0, &bench->device, &err) != GM_OK) {
    printf("%-8s %s\n", bench->backend, err.message);
    return true;
  }
  const uint32_t plain = plain_types(bench->device);
  bool good = print_row(bench, 0);
  if (good && plain && gm_device_get_info(bench->device)->unified) good = print_row(bench, plain);
  return gm_device_close(bench->device, NULL) == GM_OK && good;
}

static bool read_arguments(managed_bench *bench, int count, char **words) {
  for (int i = 1; i + 1 < count; i += 2) {
    const unsigned long value = strtoul(words[i + 1], NULL, 10);
    if (strcmp(words[i], "--mib") == 0 && value > 0 && value <= 4096) {
      bench->bytes = (uint64_t)value << 20;
    } else if (strcmp(words[i], "--turns") == 0 && value > 1 && value <= 1000) {
      bench->turns = (unsigned)value;
    } else {
      return false;
    }
  }
  return count % 2 == 1;
}

int main(int count, char **words) {
  static const char *const backends[] = {"cpu", "opencl", "vulkan", "cuda", "hip"};
  managed_bench bench = {.bytes = 64 << 20, .turns = 9};
  gm_error err = {.status = GM_OK};
  bool good = true;
  if (!read_arguments(&bench, count, words)) {
    fprintf(stderr, "usage: gm_managed_bench [--mib 1..4096] [--turns 2..1000]\n");
    return 2;
  }
  if (gm_context_create(NULL, &bench.ctx, &err) != GM_OK) return fprintf(stderr, "%s\n", err.message), 1;
  printf("%-8s %-8s %8s %8s %12s %10s\n", "backend", "kind", "MiB", "in RAM", "copied/turn", "ms/turn");
  for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++) {
    bench.backend = backends[i];
    good = run_backend(&bench) && good;
  }
  return gm_context_destroy(bench.ctx, NULL) == GM_OK && good ? 0 : 1;
}
