/* A disk tier in a folder of its own, and what its tests do again and again. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_DISK_BENCH_H
#define GM_TESTS_SUPPORT_DISK_BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support/counted_services.h"
#include "support/temp_folder.h"
#include "support/tier_suite.h"

typedef struct disk_bench {
  gm_context *ctx;
  temp_folder folder;
  const char *path;
} disk_bench;

static inline void disk_bench_open(disk_bench *bench, const gm_services *services) {
  const gm_context_params params = {.struct_size = sizeof params, .services = services, .ignore_environment = true};
  temp_folder_make(&bench->folder);
  bench->path = temp_folder_join(&bench->folder, "store");
  assert_int_equal(gm_context_create(&params, &bench->ctx, NULL), GM_OK);
}

/* Removes the file and the folder, and fails the test where anything else is there. */
static inline void disk_bench_close(disk_bench *bench) {
  assert_int_equal(gm_context_destroy(bench->ctx, NULL), GM_OK);
  unlink(bench->path);
  assert_int_equal(rmdir(bench->folder.path), 0);
}

static inline gm_tier *disk_bench_tier(const disk_bench *bench, gm_tier_durability durability, gm_tier_codec codec) {
  gm_tier *tier = NULL;
  gm_error err = {.status = GM_OK};
  const gm_tier_params params = {.struct_size = sizeof params, .durability = durability, .codec = codec};
  if (gm_tier_open(bench->ctx, "disk", bench->path, &params, &tier, &err)) fail_msg("%s: %s", err.op, err.message);
  return tier;
}

static inline void disk_bench_end(gm_tier *tier) {
  gm_error err = {.status = GM_OK};
  if (gm_tier_close(tier, &err)) fail_msg("%s: %s", err.op, err.message);
}

static inline gm_tier_stats disk_bench_stats(gm_tier *tier) {
  gm_tier_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(gm_tier_get_stats(tier, &stats, NULL), GM_OK);
  return stats;
}

/* The file's bytes; the caller frees them. */
static inline unsigned char *disk_bench_bytes(const char *path, size_t *out_bytes) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fseek(file, 0, SEEK_END), 0);
  *out_bytes = (size_t)ftell(file);
  rewind(file);
  unsigned char *bytes = malloc(*out_bytes + 1);
  assert_non_null(bytes);
  assert_int_equal(fread(bytes, 1, *out_bytes, file), *out_bytes);
  fclose(file);
  return bytes;
}

/* Writes over the file that is there: to empty a file first makes some file systems wait for the disk. */
static inline void disk_bench_write(const char *path, const void *bytes, size_t count) {
  FILE *file = fopen(path, access(path, F_OK) == 0 ? "r+b" : "wb");
  assert_non_null(file);
  if (count) assert_int_equal(fwrite(bytes, 1, count, file), count);
  assert_int_equal(fflush(file), 0);
  assert_int_equal(ftruncate(fileno(file), (off_t)count), 0);
  assert_int_equal(fclose(file), 0);
}

#endif
