/* A disk tier's file that was cut, also exactly between two records: opening tells that records are missing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <signal.h>
#include <sys/wait.h>

#include "support/disk_bench.h"
#include "support/no_sync.h"

enum { START = 4096, UNIT = 64, MOST = 16 << 10, VALUES = 6, HEAD = 80, EVEN = 512, ODD = 2560, SEAL = 32 };

typedef struct image {
  unsigned char bytes[MOST];
  size_t count;
} image;

static image read_file(const char *path) {
  image file;
  FILE *in = fopen(path, "rb");
  assert_non_null(in);
  file.count = fread(file.bytes, 1, MOST, in);
  assert_true(file.count > START && file.count < MOST);
  fclose(in);
  return file;
}

static void write_file(const char *path, const image *file, size_t count) {
  FILE *out = fopen(path, "wb");
  assert_non_null(out);
  assert_int_equal(fwrite(file->bytes, 1, count, out), count);
  fclose(out);
}

static gm_tier *open_tier(const disk_bench *bench, bool read_only) {
  gm_tier *tier = NULL;
  const gm_tier_params params = {.struct_size = sizeof params, .read_only = read_only, .codec = GM_TIER_CODEC_NONE};
  assert_int_equal(gm_tier_open(bench->ctx, "disk", bench->path, &params, &tier, NULL), GM_OK);
  return tier;
}

static void put_number(gm_tier *tier, int i) {
  char key[8], text[160];
  snprintf(key, sizeof key, "k%d", i);
  snprintf(text, sizeof text, "%0*d", 20 + 20 * i, i);
  assert_int_equal(tier_put_text(tier, key, text), GM_OK);
}

/* The values that are there are whole; their count. */
static uint64_t whole_values(gm_tier *tier) {
  uint64_t whole = 0;
  for (int i = 0; i < VALUES; i++) {
    char key[8], text[160];
    gm_tier_value *value = NULL;
    snprintf(key, sizeof key, "k%d", i);
    snprintf(text, sizeof text, "%0*d", 20 + 20 * i, i);
    const gm_status status = gm_tier_value_open(tier, key, strlen(key), &value, NULL, NULL);
    gm_tier_value_close(value);
    if (status) assert_int_equal(status, GM_ERR_NOT_FOUND);
    if (!status) tier_expect_text(tier, key, text);
    whole += !status;
  }
  return whole;
}

typedef struct found {
  uint64_t values, damaged;
} found;

static found look(const disk_bench *bench, bool read_only) {
  gm_tier *tier = open_tier(bench, read_only);
  const found is = {whole_values(tier), disk_bench_stats(tier).damaged};
  disk_bench_end(tier);
  return is;
}

/* VALUES values, closed. */
static image make_file(const disk_bench *bench) {
  gm_tier *tier = open_tier(bench, false);
  for (int i = 0; i < VALUES; i++) put_number(tier, i);
  disk_bench_end(tier);
  return read_file(bench->path);
}

static void test_each_cut_is_told(void **state) {
  (void)state;
  disk_bench bench;
  disk_bench_open(&bench, NULL);
  const image file = make_file(&bench);
  const size_t last = file.count - HEAD; /* where the record begins that says "flushed" */
  bool seen[VALUES + 1] = {false};
  for (size_t count = START; count <= file.count; count++) {
    if (count % UNIT > 1 && count % UNIT < UNIT - 1) continue;
    write_file(bench.path, &file, count);
    const found is = look(&bench, true);
    assert_int_equal(is.damaged > 0, is.values < VALUES || (count > last && count < file.count));
    seen[is.values] = true;
  }
  for (int i = 0; i <= VALUES; i++) assert_true(seen[i]); /* so some cuts were between two records */
  disk_bench_close(&bench);
}

/* A value that was put after the last flush may be missing after a crash, and that is no damage. */
static void test_a_process_that_was_killed_leaves_no_damage(void **state) {
  (void)state;
  disk_bench bench;
  disk_bench_open(&bench, NULL);
  for (int flushed = 0; flushed < VALUES; flushed++) {
    unlink(bench.path);
    const pid_t child = fork();
    if (child == 0) {
      gm_context *ctx = NULL;
      gm_tier *tier = NULL;
      if (gm_context_create(NULL, &ctx, NULL) || gm_tier_open(ctx, "disk", bench.path, NULL, &tier, NULL)) _exit(1);
      for (int i = 0; i < VALUES; i++) {
        put_number(tier, i);
        if (i == flushed && gm_tier_flush(tier, NULL)) _exit(1);
      }
      kill(getpid(), SIGKILL);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    const found is = look(&bench, true);
    assert_int_equal(is.values, VALUES);
    assert_int_equal(is.damaged, 0);
  }
  disk_bench_close(&bench);
}

static void test_a_file_without_seals_is_read(void **state) {
  (void)state;
  disk_bench bench;
  disk_bench_open(&bench, NULL);
  image file = make_file(&bench);
  memset(file.bytes + EVEN, 0, SEAL);
  memset(file.bytes + ODD, 0, SEAL);
  write_file(bench.path, &file, file.count); /* as an earlier gm wrote it */
  found is = look(&bench, true);
  assert_int_equal(is.values, VALUES);
  assert_int_equal(is.damaged, 0);
  gm_tier *tier = open_tier(&bench, false);
  put_number(tier, 0);
  disk_bench_end(tier);
  file = read_file(bench.path);
  write_file(bench.path, &file, START + 2 * UNIT);
  assert_int_equal(look(&bench, true).damaged, 1);
  disk_bench_close(&bench);
}

/* Any bit of a seal may be another one: then the seal before it counts, and nothing is said that is not so. */
static void test_a_damaged_seal_is_none(void **state) {
  (void)state;
  disk_bench bench;
  disk_bench_open(&bench, NULL);
  gm_tier *tier = open_tier(&bench, false);
  for (int i = 0; i < VALUES; i++) {
    put_number(tier, i);
    if (i < 2) assert_int_equal(gm_tier_flush(tier, NULL), GM_OK);
  }
  disk_bench_end(tier);
  const image file = read_file(bench.path);
  for (int bit = 0; bit < 2 * SEAL * 8; bit++) {
    image torn = file;
    torn.bytes[(bit < SEAL * 8 ? EVEN : ODD) + bit / 8 % SEAL] ^= (unsigned char)(1 << bit % 8);
    write_file(bench.path, &torn, torn.count);
    const found whole = look(&bench, true);
    assert_int_equal(whole.values, VALUES);
    assert_int_equal(whole.damaged, 0);
    write_file(bench.path, &torn, START + UNIT); /* before the oldest seal's end */
    assert_true(look(&bench, true).damaged > 0);
  }
  disk_bench_close(&bench);
}

static void test_a_seal_of_another_file_is_none(void **state) {
  (void)state;
  disk_bench bench;
  disk_bench_open(&bench, NULL);
  const image longer = make_file(&bench);
  unlink(bench.path);
  gm_tier *tier = open_tier(&bench, false);
  put_number(tier, 0);
  disk_bench_end(tier);
  image file = read_file(bench.path);
  memcpy(file.bytes + EVEN, longer.bytes + ODD, SEAL);
  write_file(bench.path, &file, file.count);
  assert_int_equal(look(&bench, true).damaged, 0);
  disk_bench_close(&bench);
}

/* A writer tells it once: from then on the file is what it is. */
static void test_it_is_told_once_to_a_writer(void **state) {
  (void)state;
  disk_bench bench;
  disk_bench_open(&bench, NULL);
  const image file = make_file(&bench);
  write_file(bench.path, &file, START + 2 * UNIT);
  assert_int_equal(look(&bench, true).damaged, 1);
  gm_tier *tier = open_tier(&bench, false);
  assert_int_equal(disk_bench_stats(tier).damaged, 1);
  for (int i = 2; i < 4; i++) put_number(tier, i);
  disk_bench_end(tier);
  const found is = look(&bench, true);
  assert_int_equal(is.values, 3);
  assert_int_equal(is.damaged, 0);
  disk_bench_close(&bench);
}

static void test_a_compacted_file_is_sealed(void **state) {
  (void)state;
  enum { LARGE = 3 << 20 };
  disk_bench bench;
  unsigned char *bytes = calloc(1, LARGE);
  assert_non_null(bytes);
  disk_bench_open(&bench, NULL);
  gm_tier *tier = open_tier(&bench, false);
  for (int i = 0; i < VALUES; i++) put_number(tier, i);
  const gm_tier_part large = {bytes, LARGE}, small = {bytes, 1};
  for (int i = 0; i < 3; i++) assert_int_equal(gm_tier_put(tier, "large", 5, &large, 1, NULL), GM_OK);
  assert_int_equal(gm_tier_put(tier, "large", 5, &small, 1, NULL), GM_OK);
  disk_bench_end(tier);
  const image file = read_file(bench.path); /* which is small: it was compacted */
  assert_int_equal(look(&bench, true).damaged, 0);
  write_file(bench.path, &file, START + 2 * UNIT);
  assert_int_equal(look(&bench, true).damaged, 1);
  disk_bench_close(&bench);
  free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_cut_is_told),
      cmocka_unit_test(test_a_process_that_was_killed_leaves_no_damage),
      cmocka_unit_test(test_a_file_without_seals_is_read),
      cmocka_unit_test(test_a_damaged_seal_is_none),
      cmocka_unit_test(test_a_seal_of_another_file_is_none),
      cmocka_unit_test(test_it_is_told_once_to_a_writer),
      cmocka_unit_test(test_a_compacted_file_is_sealed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
