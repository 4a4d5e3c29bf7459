/* The tier of a file when its process ends at any write, or the power goes: what was promised is whole, what was not is
 * whole, older or missing, and nothing is ever wrong. The calls that change the file are wrapped by the linker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "support/disk_bench.h"
#include "support/great_many.h"

enum { KEYS = 5, STEPS = 26, IMAGE_MOST = 24 << 20, WRITES_MOST = 400 };

/* ---- what the script promised, in memory that parent and child share ---- */

typedef struct crash_promises {
  int begun[KEYS];   /* the last version of each key that was begun; odd: a value, even: it is removed */
  int done[KEYS];    /* the last one that was answered GM_OK */
  int flushed[KEYS]; /* the last one before a flush that was answered GM_OK */
  int opened, calls;
} crash_promises;

/* ---- wrapped calls ---- */

typedef enum crash_kind { CRASH_NONE, CRASH_BEFORE, CRASH_HALF, CRASH_AFTER, CRASH_POWER, CRASH_FULL } crash_kind;

typedef struct lost_write {
  off_t at;
  size_t bytes; /* SIZE_MAX: the file is cut to `at` */
  unsigned char *data;
} lost_write;

static struct {
  crash_promises *shared;
  crash_kind kind;
  int at; /* the call that fails or ends the process */
  uint64_t seed;
  const char *path;
  unsigned char *image; /* the file as it is on the disk for sure */
  size_t image_bytes;
  lost_write writes[WRITES_MOST];
  int write_count;
} crash;

ssize_t __real_pwrite(int fd, const void *from, size_t bytes, off_t at);
int __real_ftruncate(int fd, off_t bytes);
int __real_rename(const char *from, const char *to);
ssize_t __wrap_pwrite(int fd, const void *from, size_t bytes, off_t at);
int __wrap_ftruncate(int fd, off_t bytes);
ssize_t __wrap_pwrite64(int fd, const void *from, size_t bytes, off_t at);
int __wrap_ftruncate64(int fd, off_t bytes);
int __wrap_fdatasync(int fd);
int __wrap_rename(const char *from, const char *to);

static void image_apply(const lost_write *write, size_t bytes) {
  if (write->bytes == SIZE_MAX) {
    crash.image_bytes = (size_t)write->at;
    return;
  }
  const size_t end = (size_t)write->at + bytes;
  if (end > IMAGE_MOST) _exit(90);
  if ((size_t)write->at > crash.image_bytes) {
    memset(crash.image + crash.image_bytes, 0, (size_t)write->at - crash.image_bytes);
  }
  memcpy(crash.image + write->at, write->data, bytes);
  if (end > crash.image_bytes) crash.image_bytes = end;
}

/* The disk got some of the writes since the last sync, whole or in part, and others not. */
static void power_goes(void) {
  for (int i = 0; i < crash.write_count; i++) {
    const lost_write *write = &crash.writes[i];
    const uint64_t luck = test_random(&crash.seed) % 4;
    if (luck == 0) continue;
    const size_t bytes =
        luck == 1 && write->bytes != SIZE_MAX ? test_random(&crash.seed) % (write->bytes + 1) : write->bytes;
    image_apply(write, bytes);
  }
  FILE *file = fopen(crash.path, "wb");
  if (!file || (crash.image_bytes && fwrite(crash.image, 1, crash.image_bytes, file) != crash.image_bytes)) _exit(91);
  fclose(file);
  _exit(0);
}

static void note_write(off_t at, const void *from, size_t bytes) {
  if (crash.kind != CRASH_POWER) return;
  if (crash.write_count == WRITES_MOST) _exit(92);
  lost_write *write = &crash.writes[crash.write_count++];
  *write = (lost_write){.at = at, .bytes = bytes};
  if (bytes == SIZE_MAX) return;
  write->data = malloc(bytes);
  if (!write->data) _exit(93);
  memcpy(write->data, from, bytes);
}

/* Counts a call. True: it is the one, and happens by half or not at all. */
static bool crash_is_now(void) { return crash.kind != CRASH_NONE && ++crash.shared->calls == crash.at; }

ssize_t __wrap_pwrite(int fd, const void *from, size_t bytes, off_t at) {
  const bool now = crash_is_now();
  if (now && crash.kind == CRASH_FULL) {
    errno = ENOSPC;
    return -1;
  }
  if (crash.kind == CRASH_FULL && crash.shared->calls == crash.at - 1 && bytes > 1) {
    return __real_pwrite(fd, from, bytes / 2, at); /* the disk is nearly full */
  }
  if (now && crash.kind == CRASH_BEFORE) _exit(0);
  if (now && crash.kind == CRASH_HALF) {
    _exit(__real_pwrite(fd, from, bytes / 2, at) < 0);
  }
  if (now && crash.kind == CRASH_POWER) power_goes();
  note_write(at, from, bytes);
  const ssize_t put = __real_pwrite(fd, from, bytes, at);
  if (now) _exit(0);
  return put;
}

int __wrap_ftruncate(int fd, off_t bytes) {
  const bool now = crash_is_now();
  if (now && crash.kind == CRASH_POWER) power_goes();
  if (now && crash.kind != CRASH_AFTER && crash.kind != CRASH_FULL) _exit(0);
  note_write(bytes, NULL, SIZE_MAX);
  const int answer = __real_ftruncate(fd, bytes);
  if (now && crash.kind == CRASH_AFTER) _exit(0);
  return answer;
}

/* The names of these calls where a library's flags ask for offsets of 64 bits. */
ssize_t __wrap_pwrite64(int fd, const void *from, size_t bytes, off_t at) { return __wrap_pwrite(fd, from, bytes, at); }
int __wrap_ftruncate64(int fd, off_t bytes) { return __wrap_ftruncate(fd, bytes); }

int __wrap_fdatasync(int fd) {
  (void)fd; /* the disk is played, so nobody waits for it */
  const bool now = crash_is_now();
  if (now && crash.kind == CRASH_FULL) {
    errno = EIO;
    return -1;
  }
  if (now && crash.kind == CRASH_POWER) power_goes();
  if (now && crash.kind != CRASH_AFTER) _exit(0);
  for (int i = 0; i < crash.write_count; i++) {
    image_apply(&crash.writes[i], crash.writes[i].bytes);
    free(crash.writes[i].data);
  }
  crash.write_count = 0;
  if (now) _exit(0);
  return 0;
}

int __wrap_rename(const char *from, const char *to) {
  const bool now = crash_is_now();
  if (now && crash.kind == CRASH_FULL) {
    errno = ENOSPC;
    return -1;
  }
  if (now && crash.kind != CRASH_AFTER) _exit(0);
  const int answer = __real_rename(from, to);
  if (now) _exit(0);
  return answer;
}

/* ---- the script ---- */

typedef struct crash_script {
  gm_tier_durability durability;
  uint64_t seed, largest;
  bool compacts;
} crash_script;

/* The bytes of a version of a key, made anew. */
static unsigned char *version_bytes(const crash_script *script, int key, int version, uint64_t *out_bytes) {
  uint64_t seed = script->seed * 1000003 + (uint64_t)key * 1009 + (uint64_t)version;
  *out_bytes = script->compacts ? script->largest : test_log_uniform(&seed, script->largest) - 1;
  unsigned char *bytes = malloc((size_t)*out_bytes + 8);
  if (!bytes) _exit(94);
  for (uint64_t i = 0; i < *out_bytes; i += 8) {
    const uint64_t word = test_random(&seed);
    memcpy(bytes + i, &word, 8);
  }
  return bytes;
}

static gm_status script_step(const crash_script *script, gm_tier *tier, int step, crash_promises *promises) {
  uint64_t seed = script->seed + (uint64_t)step * 77;
  const int key = (int)(test_random(&seed) % KEYS);
  const char name = (char)('a' + key);
  if (test_random(&seed) % 5 == 0) {
    const gm_status status = gm_tier_flush(tier, NULL);
    if (!status) memcpy(promises->flushed, promises->done, sizeof promises->done);
    return status;
  }
  const bool removes = promises->done[key] % 2 == 1 && test_random(&seed) % 4 == 0;
  const int version = promises->done[key] + (promises->done[key] % 2 == 0 || removes ? 1 : 2);
  promises->begun[key] = version;
  gm_status status;
  if (removes) {
    status = gm_tier_remove(tier, &name, 1, NULL);
  } else {
    uint64_t bytes;
    unsigned char *data = version_bytes(script, key, version, &bytes);
    const gm_tier_part parts[] = {{data, bytes / 3}, {data + bytes / 3, bytes - bytes / 3}};
    status = gm_tier_put(tier, &name, 1, parts, 2, NULL);
    free(data);
  }
  if (!status) promises->done[key] = version;
  if (!status && script->durability == GM_TIER_DURABLE_AT_PUT) promises->flushed[key] = version;
  return status;
}

static gm_status script_run(const crash_script *script, gm_context *ctx, const char *path, crash_promises *promises) {
  gm_tier *tier = NULL;
  const gm_tier_params params = {
      .struct_size = sizeof params, .durability = script->durability, .codec = GM_TIER_CODEC_NONE};
  gm_status status = gm_tier_open(ctx, "disk", path, &params, &tier, NULL);
  if (status) return status;
  promises->opened = 1;
  for (int step = 0; step < STEPS; step++) {
    const gm_status stepped = script_step(script, tier, step, promises);
    if (stepped && !status) status = stepped;
  }
  const gm_status closed = gm_tier_close(tier, NULL);
  if (!closed) memcpy(promises->flushed, promises->done, sizeof promises->done);
  return status ? status : closed;
}

/* ---- what is there afterwards ---- */

static bool value_is(const crash_script *script, gm_tier_value *value, uint64_t has, int key, int version) {
  uint64_t bytes;
  unsigned char *wanted = version_bytes(script, key, version, &bytes), *read = malloc((size_t)has + 1);
  assert_non_null(read);
  bool same = bytes == has;
  if (same) assert_int_equal(gm_tier_value_read(value, 0, read, has, NULL), GM_OK);
  same = same && memcmp(read, wanted, (size_t)has) == 0;
  free(read);
  free(wanted);
  return same;
}

/* The key has one of its versions from `from` to `to`. */
static void check_key(const crash_script *script, gm_tier *tier, int key, int from, int to) {
  const char name = (char)('a' + key);
  gm_tier_value *value = NULL;
  uint64_t has = 0;
  const gm_status status = gm_tier_value_open(tier, &name, 1, &value, &has, NULL);
  bool right = false;
  if (status) assert_int_equal(status, GM_ERR_NOT_FOUND);
  for (int version = from; version <= to && !right; version++) {
    right = version % 2 == 0 ? status == GM_ERR_NOT_FOUND : !status && value_is(script, value, has, key, version);
  }
  gm_tier_value_close(value);
  if (!right) fail_msg("key %c: not one of its versions %d to %d", name, from, to);
}

static void check_all(const crash_script *script, gm_context *ctx, const char *path, const crash_promises *promises,
                      bool power) {
  gm_tier *tier = NULL;
  gm_error err = {.status = GM_OK};
  for (int round = 0; round < 2; round++) { /* also after it was closed well */
    const gm_tier_params params = {.struct_size = sizeof params, .durability = GM_TIER_DURABLE_AT_FLUSH};
    if (gm_tier_open(ctx, "disk", path, &params, &tier, &err)) fail_msg("%s: %s", err.op, err.message);
    for (int key = 0; key < KEYS; key++) {
      check_key(script, tier, key, power ? promises->flushed[key] : promises->done[key], promises->begun[key]);
    }
    assert_int_equal(tier_put_text(tier, "later", "value"), GM_OK);
    tier_expect_text(tier, "later", "value");
    disk_bench_end(tier);
  }
}

/* Runs the script in a child that ends at call `at`. Returns the calls that were made. */
static int crash_once(const crash_script *script, crash_kind kind, int at, uint64_t luck) {
  disk_bench bench;
  int status = -1;
  crash_promises *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(shared != MAP_FAILED);
  disk_bench_open(&bench, NULL);
  const pid_t child = fork();
  if (child == 0) {
    gm_context *ctx = NULL;
    crash.shared = shared;
    crash.kind = kind;
    crash.at = at;
    crash.seed = luck;
    crash.path = bench.path;
    crash.image = malloc(IMAGE_MOST);
    if (!crash.image || gm_context_create(NULL, &ctx, NULL)) _exit(95);
    const gm_status ran = script_run(script, ctx, bench.path, shared);
    _exit(ran && kind != CRASH_FULL ? 96 : 0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
  /* a file that was not even opened may be missing; else it is there */
  if (shared->opened || access(bench.path, F_OK) == 0) {
    check_all(script, bench.ctx, bench.path, shared, kind == CRASH_POWER);
  }
  const int calls = shared->calls;
  munmap(shared, sizeof *shared);
  temp_folder_write(&bench.folder, "store.compact", "", 0); /* may be left, or not */
  unlink(temp_folder_join(&bench.folder, "store.compact"));
  disk_bench_close(&bench);
  return calls;
}

/* Every call of the script in turn, until the script makes fewer. */
static void crash_everywhere(const crash_script *script, crash_kind kind, int every) {
  int at = 1;
  if (great_many(50) < 50) every *= 20;
  while (crash_once(script, kind, at, (uint64_t)at) >= at) at += every;
  assert_true(at > STEPS);
}

static void test_the_process_ends_at_any_write(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 2; seed++) {
    const crash_script script = {.seed = seed, .largest = 3000};
    crash_everywhere(&script, CRASH_BEFORE, 1);
    crash_everywhere(&script, CRASH_HALF, 1);
    crash_everywhere(&script, CRASH_AFTER, 1);
  }
}

static void test_the_process_ends_while_each_put_is_synced(void **state) {
  (void)state;
  const crash_script script = {.durability = GM_TIER_DURABLE_AT_PUT, .seed = 4, .largest = 500};
  crash_everywhere(&script, CRASH_BEFORE, 1);
  crash_everywhere(&script, CRASH_HALF, 1);
}

static void test_the_process_ends_in_a_compaction(void **state) {
  (void)state;
  const crash_script script = {.seed = 6, .largest = (1 << 20) + 5, .compacts = true};
  crash_everywhere(&script, CRASH_BEFORE, 2);
  crash_everywhere(&script, CRASH_HALF, 3);
}

static void test_the_power_goes(void **state) {
  const int every = great_many(50) < 50 ? 20 : 1;
  (void)state;
  for (uint64_t seed = 1; seed <= 4; seed++) {
    const crash_script script = {
        .seed = seed, .largest = 2000, .durability = seed % 2 ? GM_TIER_DURABLE_AT_FLUSH : GM_TIER_DURABLE_AT_PUT};
    for (uint64_t luck = 0; luck < 3; luck++) {
      int at = 4; /* the file has its name */
      while (crash_once(&script, CRASH_POWER, at, luck * 1000 + (uint64_t)at) >= at) at += every;
      assert_true(at > STEPS);
    }
  }
}

static void test_the_disk_is_full_at_any_write(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 2; seed++) {
    const crash_script script = {.seed = seed, .largest = 3000};
    crash_everywhere(&script, CRASH_FULL, 1);
  }
  const crash_script compacts = {.seed = 6, .largest = (1 << 20) + 5, .compacts = true};
  crash_everywhere(&compacts, CRASH_FULL, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_process_ends_at_any_write),
      cmocka_unit_test(test_the_process_ends_while_each_put_is_synced),
      cmocka_unit_test(test_the_process_ends_in_a_compaction),
      cmocka_unit_test(test_the_power_goes),
      cmocka_unit_test(test_the_disk_is_full_at_any_write),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
