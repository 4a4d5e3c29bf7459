/* The tier of a file: what it keeps over a close, and what it does with files that are damaged, locked or foreign. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "support/disk_bench.h"
#include "support/fail_each.h"
#include "support/great_many.h"
#include "support/no_sync.h"

static void test_it_does_what_every_tier_does(void **state) {
  (void)state;
  static const gm_tier_codec codecs[] = {GM_TIER_CODEC_AUTO, GM_TIER_CODEC_NONE, GM_TIER_CODEC_LZ4, GM_TIER_CODEC_ZSTD};
  for (int durability = 0; durability < 3; durability++) {
    for (size_t i = 0; i < sizeof codecs / sizeof *codecs; i++) {
      disk_bench bench;
      gm_tier *tier = NULL;
      counted_services host;
      counted_services_init(&host);
      disk_bench_open(&bench, &host.services);
      const gm_tier_params params = {
          .struct_size = sizeof params, .durability = (gm_tier_durability)durability, .codec = codecs[i]};
      const gm_status status = gm_tier_open(bench.ctx, "disk", bench.path, &params, &tier, NULL);
      if (status == GM_ERR_NOT_SUPPORTED) assert_true(codecs[i] >= GM_TIER_CODEC_LZ4); /* gm was built without it */
      if (!status) {
        tier_suite(tier, i + 7, durability == GM_TIER_DURABLE_AT_PUT || great_many(50) < 50 ? 12 : 120, 3 << 20);
        disk_bench_end(tier);
      }
      disk_bench_close(&bench);
      counted_services_check(&host);
    }
  }
}

static void test_values_outlive_the_tier(void **state) {
  (void)state;
  disk_bench bench;
  disk_bench_open(&bench, NULL);
  gm_tier *tier = disk_bench_tier(&bench, GM_TIER_DURABLE_AT_FLUSH, GM_TIER_CODEC_AUTO);
  assert_int_equal(tier_put_text(tier, "a", "one"), GM_OK);
  assert_int_equal(tier_put_text(tier, "b", "two"), GM_OK);
  assert_int_equal(tier_put_text(tier, "c", "three"), GM_OK);
  assert_int_equal(tier_put_text(tier, "a", "four"), GM_OK);
  assert_int_equal(gm_tier_remove(tier, "b", 1, NULL), GM_OK);
  disk_bench_end(tier);
  for (int i = 0; i < 3; i++) {
    tier = disk_bench_tier(&bench, GM_TIER_DURABLE_AT_FLUSH, GM_TIER_CODEC_AUTO);
    tier_expect_text(tier, "a", "four");
    tier_expect_none(tier, "b", 1);
    tier_expect_text(tier, "c", "three");
    const gm_tier_stats stats = disk_bench_stats(tier);
    assert_int_equal(stats.values, 2);
    assert_int_equal(stats.value_bytes, 9);
    assert_int_equal(stats.damaged, 0);
    disk_bench_end(tier);
  }
  struct stat st;
  assert_int_equal(stat(bench.path, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0600);
  disk_bench_close(&bench);
}

static void test_a_compaction_gives_space_back(void **state) {
  (void)state;
  enum { BYTES = 6 << 20, ROUNDS = 40 };
  disk_bench bench;
  disk_bench_open(&bench, NULL);
  uint64_t seed = 5;
  unsigned char *bytes = malloc(BYTES);
  assert_non_null(bytes);
  for (size_t i = 0; i < BYTES; i++) bytes[i] = (unsigned char)test_random(&seed);
  gm_tier *tier = disk_bench_tier(&bench, GM_TIER_DURABLE_AT_FLUSH, GM_TIER_CODEC_NONE);
  gm_tier_value *old = NULL;
  uint64_t most = 0;
  for (int i = 0; i < ROUNDS; i++) {
    const gm_tier_part part = {bytes, BYTES - (uint64_t)i};
    assert_int_equal(gm_tier_put(tier, "same", 4, &part, 1, NULL), GM_OK);
    assert_int_equal(tier_put_text(tier, "other", "small"), GM_OK);
    assert_int_equal(gm_tier_flush(tier, NULL), GM_OK);
    if (i == 0) assert_int_equal(gm_tier_value_open(tier, "same", 4, &old, NULL, NULL), GM_OK);
    const uint64_t stored = disk_bench_stats(tier).stored_bytes;
    if (stored > most) most = stored;
  }
  assert_true(most < UINT64_C(100) << 20); /* 240 MiB were written */
  tier_expect(tier, "same", 4, bytes, BYTES - ROUNDS + 1);
  unsigned char *read = malloc(BYTES);
  assert_non_null(read);
  assert_int_equal(gm_tier_value_read(old, 0, read, BYTES, NULL), GM_OK); /* of a file that has no name any more */
  assert_memory_equal(read, bytes, BYTES);
  gm_tier_value_close(old);
  disk_bench_end(tier);
  tier = disk_bench_tier(&bench, GM_TIER_DURABLE_AT_FLUSH, GM_TIER_CODEC_NONE);
  tier_expect(tier, "same", 4, bytes, BYTES - ROUNDS + 1);
  tier_expect_text(tier, "other", "small");
  disk_bench_end(tier);
  free(read);
  free(bytes);
  disk_bench_close(&bench);
}

static void test_packing_pays_or_is_left(void **state) {
  (void)state;
  enum { BYTES = 1 << 20 };
  static const struct {
    gm_tier_codec codec;
    bool random, packs;
  } cases[] = {{GM_TIER_CODEC_NONE, false, false},
               {GM_TIER_CODEC_AUTO, true, false},
               {GM_TIER_CODEC_LZ4, true, false},
               {GM_TIER_CODEC_LZ4, false, true},
               {GM_TIER_CODEC_ZSTD, false, true}};
  unsigned char *bytes = malloc(BYTES);
  assert_non_null(bytes);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    disk_bench bench;
    gm_tier *tier = NULL;
    uint64_t seed = 3;
    const gm_tier_params params = {.struct_size = sizeof params, .codec = cases[i].codec};
    const gm_tier_part part = {bytes, BYTES};
    for (size_t at = 0; at < BYTES; at++) bytes[at] = (unsigned char)(cases[i].random ? test_random(&seed) : at / 1000);
    disk_bench_open(&bench, NULL);
    if (gm_tier_open(bench.ctx, "disk", bench.path, &params, &tier, NULL) == GM_OK) {
      assert_int_equal(gm_tier_put(tier, "k", 1, &part, 1, NULL), GM_OK);
      tier_expect(tier, "k", 1, bytes, BYTES);
      assert_int_equal(disk_bench_stats(tier).stored_bytes < BYTES, cases[i].packs);
      disk_bench_end(tier);
    }
    disk_bench_close(&bench);
  }
  free(bytes);
}

/* ---- who may open it ---- */

static void test_one_process_writes(void **state) {
  (void)state;
  disk_bench bench;
  gm_error err;
  gm_tier *other = NULL, *third = NULL;
  const gm_tier_params reads = {.struct_size = sizeof reads, .read_only = true};
  disk_bench_open(&bench, NULL);
  assert_int_equal(gm_tier_open(bench.ctx, "disk", bench.path, &reads, &other, NULL), GM_ERR_NOT_FOUND);
  gm_tier *tier = disk_bench_tier(&bench, GM_TIER_DURABLE_AT_FLUSH, GM_TIER_CODEC_AUTO);
  assert_int_equal(gm_tier_open(bench.ctx, "disk", bench.path, NULL, &other, &err), GM_ERR_BUSY);
  assert_non_null(strstr(err.message, bench.path));
  assert_int_equal(gm_tier_open(bench.ctx, "disk", bench.path, &reads, &other, &err), GM_ERR_BUSY);
  assert_int_equal(tier_put_text(tier, "a", "one"), GM_OK);
  disk_bench_end(tier);
  assert_int_equal(gm_tier_open(bench.ctx, "disk", bench.path, &reads, &other, NULL), GM_OK);
  assert_int_equal(gm_tier_open(bench.ctx, "disk", bench.path, &reads, &third, NULL), GM_OK);
  assert_int_equal(gm_tier_open(bench.ctx, "disk", bench.path, NULL, &tier, NULL), GM_ERR_BUSY);
  tier_expect_text(other, "a", "one");
  tier_expect_text(third, "a", "one");
  assert_int_equal(tier_put_text(other, "a", "two"), GM_ERR_NOT_SUPPORTED);
  disk_bench_end(other);
  disk_bench_end(third);
  disk_bench_close(&bench);
}

static void test_the_lock_ends_with_the_tier_not_with_a_child(void **state) {
  (void)state;
  disk_bench bench;
  int ready[2];
  disk_bench_open(&bench, NULL);
  gm_tier *tier = disk_bench_tier(&bench, GM_TIER_DURABLE_AT_FLUSH, GM_TIER_CODEC_AUTO);
  assert_int_equal(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) { /* has the file's descriptor, and waits */
    char byte;
    close(ready[1]);
    _exit(read(ready[0], &byte, 1) == 0 ? 0 : 1);
  }
  disk_bench_end(tier);
  tier = disk_bench_tier(&bench, GM_TIER_DURABLE_AT_FLUSH, GM_TIER_CODEC_AUTO);
  const pid_t second = fork();
  if (second == 0) _exit(gm_tier_close(tier, NULL) == GM_OK && gm_context_destroy(bench.ctx, NULL) == GM_OK ? 0 : 1);
  int status = -1;
  assert_int_equal(waitpid(second, &status, 0), second);
  assert_int_equal(status, 0);
  gm_tier *other = NULL; /* the child's close took no lock from the parent */
  assert_int_equal(gm_tier_open(bench.ctx, "disk", bench.path, NULL, &other, NULL), GM_ERR_BUSY);
  disk_bench_end(tier);
  close(ready[0]);
  close(ready[1]);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  disk_bench_close(&bench);
}

static void test_other_files_are_refused(void **state) {
  (void)state;
  disk_bench bench;
  gm_tier *tier = NULL;
  gm_error err;
  const gm_tier_params reads = {.struct_size = sizeof reads, .read_only = true};
  disk_bench_open(&bench, NULL);
  disk_bench_write(bench.path, "some other file of the user", 27);
  assert_int_equal(gm_tier_open(bench.ctx, "disk", bench.path, NULL, &tier, &err), GM_ERR_FORMAT);
  assert_non_null(strstr(err.message, "is no file of a disk tier"));
  size_t count;
  unsigned char *bytes = disk_bench_bytes(bench.path, &count);
  assert_int_equal(count, 27); /* and are left alone */
  free(bytes);
  disk_bench_write(bench.path, "", 0);
  assert_int_equal(gm_tier_open(bench.ctx, "disk", bench.path, &reads, &tier, &err), GM_ERR_FORMAT);
  tier = disk_bench_tier(&bench, GM_TIER_DURABLE_AT_FLUSH, GM_TIER_CODEC_AUTO); /* an empty file is begun */
  disk_bench_end(tier);
  bytes = disk_bench_bytes(bench.path, &count);
  bytes[8] = bytes[2048 + 8] = 99;
  disk_bench_write(bench.path, bytes, count);
  assert_int_equal(gm_tier_open(bench.ctx, "disk", bench.path, NULL, &tier, &err), GM_ERR_FORMAT);
  assert_non_null(strstr(err.message, "has version 99"));
  bytes[8] = bytes[2048 + 8] = 1;
  bytes[12] = bytes[2048 + 12] = (unsigned char)(3 - bytes[12]);
  disk_bench_write(bench.path, bytes, count);
  assert_int_equal(gm_tier_open(bench.ctx, "disk", bench.path, NULL, &tier, &err), GM_ERR_FORMAT);
  assert_non_null(strstr(err.message, "xxHash"));
  free(bytes);
  unlink(bench.path);
  assert_int_equal(mkfifo(bench.path, 0600), 0);
  assert_int_equal(gm_tier_open(bench.ctx, "disk", bench.path, NULL, &tier, &err), GM_ERR_IO);
  unlink(bench.path);
  assert_int_equal(gm_tier_open(bench.ctx, "disk", bench.folder.path, NULL, &tier, &err), GM_ERR_IO);
  assert_int_equal(gm_tier_open(bench.ctx, "disk", "", NULL, &tier, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm_tier_open(bench.ctx, "disk", "/nowhere/at/all", NULL, &tier, &err), GM_ERR_NOT_FOUND);
  disk_bench_close(&bench);
}

/* ---- damage ---- */

static const char *const small_keys[] = {"a", "b", "c", "d"};
static const char *const small_values[] = {"a is new", "b, which stays", NULL, "dddddddddddddddddddddddddddddddddd"};

/* A small file in which "a" was replaced and "c" removed. */
static unsigned char *small_file(const disk_bench *bench, size_t *out_bytes) {
  gm_tier *tier = disk_bench_tier(bench, GM_TIER_DURABLE_AT_FLUSH, GM_TIER_CODEC_AUTO);
  assert_int_equal(tier_put_text(tier, "a", "a is old"), GM_OK);
  assert_int_equal(tier_put_text(tier, "b", small_values[1]), GM_OK);
  assert_int_equal(tier_put_text(tier, "c", "goes"), GM_OK);
  assert_int_equal(gm_tier_flush(tier, NULL), GM_OK);
  assert_int_equal(tier_put_text(tier, "a", small_values[0]), GM_OK);
  assert_int_equal(gm_tier_remove(tier, "c", 1, NULL), GM_OK);
  assert_int_equal(tier_put_text(tier, "d", small_values[3]), GM_OK);
  disk_bench_end(tier);
  return disk_bench_bytes(bench->path, out_bytes);
}

/* Each key's value is what was put last, or it is said to be missing or damaged. Returns how many are whole. */
static int small_check(gm_tier *tier) {
  int whole = 0;
  for (int i = 0; i < 4; i++) {
    gm_tier_value *value = NULL;
    uint64_t bytes = 0;
    char read[64] = "";
    gm_status status = gm_tier_value_open(tier, small_keys[i], 1, &value, &bytes, NULL);
    if (!status) {
      assert_true(bytes < sizeof read);
      status = gm_tier_value_read(value, 0, read, bytes, NULL);
      gm_tier_value_close(value);
    }
    if (status) {
      assert_true(status == GM_ERR_NOT_FOUND || status == GM_ERR_DAMAGED);
      continue;
    }
    assert_non_null(small_values[i]);
    assert_string_equal(read, small_values[i]);
    whole++;
  }
  return whole;
}

static void small_open_and_check(const disk_bench *bench, int least) {
  for (int reads = 1; reads >= 0; reads--) {
    gm_tier *tier = NULL;
    const gm_tier_params params = {
        .struct_size = sizeof params, .read_only = reads, .durability = GM_TIER_DURABLE_NEVER};
    const gm_status status = gm_tier_open(bench->ctx, "disk", bench->path, &params, &tier, NULL);
    if (status) {
      assert_int_equal(status, GM_ERR_FORMAT);
      assert_int_equal(least, 0);
      continue;
    }
    assert_true(small_check(tier) >= least);
    if (!reads) { /* it goes on with what is there */
      assert_int_equal(tier_put_text(tier, "e", "new"), GM_OK);
      tier_expect_text(tier, "e", "new");
    }
    disk_bench_end(tier);
  }
}

static void test_no_flipped_bit_gives_a_wrong_value(void **state) {
  (void)state;
  disk_bench bench;
  size_t count;
  disk_bench_open(&bench, NULL);
  unsigned char *bytes = small_file(&bench, &count);
  for (size_t at = 0; at < count; at++) {
    if (at == 32) at = 2048; /* the rest of the beginning is not used */
    if (at == 2048 + 32) at = 4096;
    for (int bit = 0; bit < 8; bit++) {
      if (great_many(50) < 50 && (at * 8 + (size_t)bit) % 50) continue;
      bytes[at] ^= (unsigned char)(1 << bit);
      disk_bench_write(bench.path, bytes, count);
      small_open_and_check(&bench, 2); /* one record is damaged, at most */
      bytes[at] ^= (unsigned char)(1 << bit);
    }
  }
  free(bytes);
  disk_bench_close(&bench);
}

static void test_a_file_cut_short_gives_no_wrong_value(void **state) {
  (void)state;
  disk_bench bench;
  size_t count;
  disk_bench_open(&bench, NULL);
  unsigned char *bytes = small_file(&bench, &count);
  for (size_t length = 1; length < count; length++) {
    if (length == 40) length = 4090;
    disk_bench_write(bench.path, bytes, length);
    gm_tier *tier = NULL;
    const gm_status status = gm_tier_open(bench.ctx, "disk", bench.path, NULL, &tier, NULL);
    if (length < 4096) assert_int_equal(status, GM_ERR_FORMAT); /* the beginning is not whole */
    if (status) continue;
    tier_expect_none(tier, "e", 1);
    disk_bench_end(tier);
  }
  free(bytes);
  disk_bench_close(&bench);
}

static void test_random_damage_ends_no_process(void **state) {
  (void)state;
  disk_bench bench;
  size_t count;
  uint64_t seed = 11;
  disk_bench_open(&bench, NULL);
  unsigned char *bytes = small_file(&bench, &count), *broken = malloc(count);
  assert_non_null(broken);
  for (size_t round = 0; round < great_many(2000); round++) {
    memcpy(broken, bytes, count);
    for (uint64_t n = test_random(&seed) % 6 + 1; n > 0; n--) {
      broken[4096 + test_random(&seed) % (count - 4096)] = (unsigned char)test_random(&seed);
    }
    disk_bench_write(bench.path, broken, count);
    small_open_and_check(&bench, 0);
  }
  free(broken);
  free(bytes);
  disk_bench_close(&bench);
}

/* A value that is a tier's file itself. Its records are not taken for records, not even where the head of the real
 * record around them is damaged. */
static void test_a_value_may_be_a_tier(void **state) {
  (void)state;
  disk_bench bench;
  size_t count, outer;
  disk_bench_open(&bench, NULL);
  unsigned char *inner = small_file(&bench, &count);
  unlink(bench.path);
  gm_tier *tier = disk_bench_tier(&bench, GM_TIER_DURABLE_AT_FLUSH, GM_TIER_CODEC_NONE);
  const gm_tier_part part = {inner, count};
  assert_int_equal(gm_tier_put(tier, "file", 4, &part, 1, NULL), GM_OK);
  assert_int_equal(tier_put_text(tier, "last", "one"), GM_OK);
  disk_bench_end(tier);
  unsigned char *bytes = disk_bench_bytes(bench.path, &outer);
  bytes[4096 + 20] ^= 1;
  disk_bench_write(bench.path, bytes, outer);
  tier = disk_bench_tier(&bench, GM_TIER_DURABLE_AT_FLUSH, GM_TIER_CODEC_NONE);
  tier_expect_none(tier, "file", 4);
  tier_expect_none(tier, "a", 1);
  tier_expect_none(tier, "d", 1);
  tier_expect_text(tier, "last", "one");
  assert_int_equal(disk_bench_stats(tier).damaged, 1);
  disk_bench_end(tier);
  free(bytes);
  free(inner);
  disk_bench_close(&bench);
}

/* ---- limits of the process ---- */

static int put_over_limit(gm_tier *tier) {
  static char large[64 << 10];
  const gm_tier_part part = {large, sizeof large};
  gm_error err;
  const struct rlimit limit = {48 << 10, 48 << 10};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 1;
  if (gm_tier_put(tier, "large", 5, &part, 1, &err) != GM_ERR_IO) return 2;
  return tier_put_text(tier, "small", "fits") == GM_OK ? 0 : 3;
}

static void test_a_limit_on_files_ends_no_process(void **state) {
  (void)state;
  disk_bench bench;
  int status = -1;
  disk_bench_open(&bench, NULL);
  const pid_t child = fork();
  if (child == 0) {
    gm_context *ctx = NULL;
    gm_tier *tier = NULL;
    const gm_tier_params params = {.struct_size = sizeof params, .codec = GM_TIER_CODEC_NONE};
    if (gm_context_create(NULL, &ctx, NULL) || gm_tier_open(ctx, "disk", bench.path, &params, &tier, NULL)) _exit(9);
    const int wrong = put_over_limit(tier);
    if (gm_tier_close(tier, NULL) || gm_context_destroy(ctx, NULL)) _exit(8);
    _exit(wrong);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  gm_tier *tier = disk_bench_tier(&bench, GM_TIER_DURABLE_AT_FLUSH, GM_TIER_CODEC_NONE);
  tier_expect_text(tier, "small", "fits");
  tier_expect_none(tier, "large", 5);
  assert_int_equal(disk_bench_stats(tier).damaged, 0);
  disk_bench_end(tier);
  disk_bench_close(&bench);
}

/* ---- host memory ---- */

static gm_status use_once(gm_tier *tier) {
  gm_tier_value *value = NULL;
  char read[8];
  gm_status status = tier_put_text(tier, "a", "12345");
  if (!status) status = tier_put_text(tier, "b", "other");
  if (!status) status = tier_put_text(tier, "a", "54321");
  if (!status) status = gm_tier_value_open(tier, "a", 1, &value, NULL, NULL);
  if (!status) status = gm_tier_value_read(value, 0, read, 5, NULL);
  gm_tier_value_close(value);
  if (!status) status = gm_tier_remove(tier, "b", 1, NULL);
  const gm_status closed = gm_tier_close(tier, NULL);
  return status ? status : closed;
}

static const char *once_path;

static gm_status open_and_use(const gm_services *services) {
  gm_context *ctx = NULL;
  gm_tier *tier = NULL;
  const gm_context_params params = {.struct_size = sizeof params, .services = services, .ignore_environment = true};
  gm_status status = gm_context_create(&params, &ctx, NULL);
  if (status) return status;
  status = gm_tier_open(ctx, "disk", once_path, NULL, &tier, NULL);
  if (!status) status = use_once(tier);
  assert_int_equal(gm_context_destroy(ctx, NULL), GM_OK);
  return status;
}

static void test_host_memory_that_is_missing_loses_nothing(void **state) {
  (void)state;
  disk_bench bench;
  disk_bench_open(&bench, NULL);
  once_path = bench.path;
  fail_each_allocation(open_and_use, 12);
  gm_tier *tier = disk_bench_tier(&bench, GM_TIER_DURABLE_AT_FLUSH, GM_TIER_CODEC_AUTO);
  tier_expect_text(tier, "a", "54321");
  tier_expect_none(tier, "b", 1);
  disk_bench_end(tier);
  disk_bench_close(&bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_it_does_what_every_tier_does),
      cmocka_unit_test(test_values_outlive_the_tier),
      cmocka_unit_test(test_a_compaction_gives_space_back),
      cmocka_unit_test(test_packing_pays_or_is_left),
      cmocka_unit_test(test_one_process_writes),
      cmocka_unit_test(test_the_lock_ends_with_the_tier_not_with_a_child),
      cmocka_unit_test(test_other_files_are_refused),
      cmocka_unit_test(test_no_flipped_bit_gives_a_wrong_value),
      cmocka_unit_test(test_a_file_cut_short_gives_no_wrong_value),
      cmocka_unit_test(test_random_damage_ends_no_process),
      cmocka_unit_test(test_a_value_may_be_a_tier),
      cmocka_unit_test(test_a_limit_on_files_ends_no_process),
      cmocka_unit_test(test_host_memory_that_is_missing_loses_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
