/* Loads by GPUDirect Storage, on the simulated CUDA driver and the simulated cuFile. Bytes that go straight to the
 * card do not cross the link of the host. Whatever cuFile lacks or does, every byte is right, and gm says why it went
 * another way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include "core/discovery/cufile.h"
#include "gm/copy.h"
#include "gm/load.h"
#include "gm/save.h"
#include "support/adopt_scene.h"
#include "support/cuda_fixture.h"
#include "support/file_bytes.h"
#include "support/link_model.h"
#include "support/test_folder.h"

enum { PAGE = 4096, MIB = 1 << 20, TENSORS = 4, HANG_MS = 200 };

/* The first two begin at pages of the file, and end at and within one. The third begins anywhere, the last is small. */
static const uint64_t sizes[TENSORS] = {MIB + 2 * PAGE, 2 * MIB + 100, MIB, 5000};
enum { ALL = MIB + 2 * PAGE + 2 * MIB + 100 + MIB + 5000, STRAIGHT = MIB + 2 * PAGE + 2 * MIB };

uint64_t __real_gm__deadline_after(uint64_t timeout_ns);
uint64_t __wrap_gm__deadline_after(uint64_t timeout_ns);

/* A call that hangs, hangs at once. */
uint64_t __wrap_gm__deadline_after(uint64_t timeout_ns) {
  const bool step = timeout_ns == (uint64_t)GM__CUFILE_LIMIT_MS * 1000000u;
  return __real_gm__deadline_after(step && getenv("SIMCUFILE") ? (uint64_t)HANG_MS * 1000000u : timeout_ns);
}

static gm_context *ctx;
static gm_device *device;
static gm_pool *pool;
static gm_model *model;
static link_journal journal;

static void open_model(void) {
  static unsigned char file[PAGE + ALL];
  char header[PAGE];
  uint64_t at = 0;
  size_t length = 0;
  gm_error err;
  for (int i = 0; i < TENSORS; i++) {
    length += (size_t)snprintf(header + length, sizeof header - length,
                               "%s\"t%d\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[%d,%d]}", i ? "," : "{", i,
                               (int)sizes[i], (int)at, (int)(at + sizes[i]));
    at += sizes[i];
  }
  length += (size_t)snprintf(header + length, sizeof header - length, "}");
  memset(file, ' ', PAGE);
  for (int i = 0; i < 8; i++) file[i] = (unsigned char)((uint64_t)(PAGE - 8) >> 8 * i);
  memcpy(file + 8, header, length);
  for (uint64_t i = 0; i < ALL; i++) file[PAGE + i] = file_byte(3, i);
  const char *path = temp_folder_write(&folder, "model", file, sizeof file);
  adopt_scene_ok(gm_model_open(NULL, path, &model, &err), &err);
}

static int begin(void **state) {
  gm_error err;
  setenv("GM_CUFILE_LIBRARY", GM_TEST_CUFILE, 1);
  unsetenv("SIMCUFILE");
  folder_setup(state);
  open_model();
  cuda_say("reload");
  cuda_say("set LATENCY_US 0");
  cuda_say("set LINK h2d:20000:3,d2h:20000:3,pageable:5000");
  adopt_scene_ok(gm_context_create(NULL, &ctx, &err), &err);
  adopt_scene_ok(gm_device_open_index(ctx, "cuda", 0, &device, &err), &err);
  adopt_scene_ok(gm_pool_create(device, NULL, &pool, &err), &err);
  return 0;
}

static int end(void **state) {
  char left[1024];
  gm_error err;
  gm_model_close(model);
  adopt_scene_ok(gm_pool_destroy(pool, &err), &err);
  adopt_scene_end(ctx, device);
  if (cuda_script("leaks", left, sizeof left)) fail_msg("left at the driver:\n%s", left);
  return folder_teardown(state);
}

static uint64_t crossed(void) {
  static link_journal_copy *copy;
  if (!copy) cuda_entry("simCudaJournal", &copy);
  link_journal_take(&journal, copy);
  return link_bytes(&journal, GM__LINK_H2D);
}

static void check_and_release(gm_loaded_model *loaded) {
  static unsigned char got[2 * MIB + 100];
  gm_error err;
  for (uint64_t i = 0, at = 0; i < TENSORS; at += sizes[i++]) {
    gm_block block;
    assert_int_equal(gm_loaded_model_block(loaded, i, &block, NULL), GM_OK);
    adopt_scene_ok(gm_block_read(pool, &block, 0, got, sizes[i], NULL, NULL, &err), &err);
    for (uint64_t j = 0; j < sizes[i]; j++) {
      if (got[j] != file_byte(3, at + j)) fail_msg("byte %d of %d", (int)j, (int)i);
    }
  }
  assert_int_equal(gm_loaded_model_release(loaded, NULL), GM_OK);
}

/* Every byte arrives, and crosses the link of the host or does not. */
static gm_load_result load_model(const gm_model *of, gm_load_params params) {
  gm_load_result result = {.struct_size = sizeof result};
  gm_loaded_model *loaded = NULL;
  gm_error err;
  const uint64_t before = crossed();
  params.struct_size = sizeof params;
  params.path = GM_LOAD_PATH_GDS;
  adopt_scene_ok(gm_model_load(of, pool, &params, &loaded, &result, &err), &err);
  assert_int_equal(crossed() - before, ALL - result.gds_bytes);
  check_and_release(loaded);
  return result;
}

static gm_load_result load(gm_load_params params) { return load_model(model, params); }

static void check_why(const gm_load_result *result, const char *word) {
  if (!strstr(result->why, word)) fail_msg("%s: \"%s\"", word, result->why);
}

/* ---- nothing opens ---- */

typedef struct need {
  const char *script, *word;
} need;

static void test_without_cufile_the_host_reads(void **state) {
  static const need needs[] = {{"hang=open", "cuFile hangs: "},
                               {"hang=register", "cuFile hangs: "},
                               {"abort=open", "ended the helper with signal 6"},
                               {"fail=open:5033", "nvidia-fs cannot be set up"},
                               {"fail=register:5008", "it does not support the file system"},
                               {"compat", "cuFile would only play"}};
  (void)state;
  for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
    setenv("SIMCUFILE", needs[i].script, 1);
    const gm_load_result result = load((gm_load_params){.threads = i % 2});
    check_why(&result, needs[i].word);
    assert_int_equal(result.gds_bytes, 0);
    assert_int_not_equal(result.path, GM_LOAD_PATH_GDS);
  }
}

/* ---- it opens ---- */

static void test_whole_pages_go_straight_to_the_card(void **state) {
  static const char *const scripts[] = {NULL, "p2p", "short"};
  (void)state;
  for (uint64_t i = 0; i < 6; i++) {
    if (scripts[i % 3]) setenv("SIMCUFILE", scripts[i % 3], 1);
    const gm_load_result result = load((gm_load_params){.threads = i < 3 ? 1 : 0});
    assert_int_equal(result.gds_bytes, STRAIGHT);
    assert_int_equal(result.path, GM_LOAD_PATH_GDS);
    check_why(&result, "do not begin at a page of their file");
    unsetenv("SIMCUFILE");
  }
}

static void test_a_read_that_fails_goes_another_way(void **state) {
  static const need needs[] = {{"read=-1", "Input/output error"},
                               {"read=0", "ends before byte 4096"},
                               {"read=-5012", "cuFile's error 5012"},
                               {"read=99999999", "more than was asked"}};
  (void)state;
  for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
    setenv("SIMCUFILE", needs[i].script, 1);
    const gm_load_result result = load((gm_load_params){.threads = 1});
    check_why(&result, needs[i].word);
    assert_int_equal(result.gds_bytes, 0);
  }
}

static bool break_it(void *user, const gm_load_progress *progress) {
  (void)user;
  if (progress->done_bytes) setenv("SIMCUFILE", "read=-1", 1);
  return true;
}

static void test_after_a_failure_nothing_is_tried_again(void **state) {
  (void)state;
  const gm_load_result result = load((gm_load_params){.threads = 1, .progress = break_it});
  check_why(&result, "Input/output error");
  assert_true(result.gds_bytes > 0 && result.gds_bytes < STRAIGHT);
}

/* The host has not seen what goes straight to the card. So that is for files with checksums alone. */
static void test_verified(void **state) {
  (void)state;
  const gm_save_params sums = {.struct_size = sizeof sums, .checksums = true};
  const char *path = temp_folder_join(&folder, "summed");
  gm_model *summed;
  gm_error err;
  gm_load_result result = load((gm_load_params){.verify = true});
  assert_true(result.verified);
  assert_int_equal(result.gds_bytes, 0);
  check_why(&result, "without a checksum file");
  adopt_scene_ok(gm_model_save(model, NULL, path, &sums, NULL, &err), &err);
  adopt_scene_ok(gm_model_open(NULL, path, &summed, &err), &err);
  result = load_model(summed, (gm_load_params){.verify = true});
  assert_true(result.verified);
  assert_true(result.gds_bytes >= STRAIGHT);
  assert_int_equal(result.summed_bytes, ALL);
  gm_model_close(summed);
}

static bool stop_early(void *user, const gm_load_progress *progress) {
  return progress->done_bytes < *(const uint64_t *)user;
}

static void test_a_rest_goes_straight_too(void **state) {
  (void)state;
  for (uint64_t stop = MIB; stop < 4 * MIB; stop += MIB) {
    gm_load_params params = {.struct_size = sizeof params,
                             .path = GM_LOAD_PATH_GDS,
                             .keep = 1,
                             .threads = 1,
                             .progress = stop_early,
                             .user = &stop};
    gm_load_result result = {.struct_size = sizeof result};
    gm_loaded_model *loaded = NULL;
    gm_error err;
    assert_int_equal(gm_model_load(model, pool, &params, &loaded, NULL, &err), GM_ERR_CANCELLED);
    params.progress = NULL;
    adopt_scene_ok(gm_loaded_model_resume(loaded, model, &params, &result, &err), &err);
    if (stop == MIB) assert_true(result.gds_bytes > 0);
    check_and_release(loaded);
  }
}

/* Earlier work of a stream may still use the memory: copies in that stream follow it, and cuFile does not. */
static void test_a_stream_orders_copies_alone(void **state) {
  (void)state;
  gm_load_params params = {.threads = 1};
  gm_error err;
  adopt_scene_ok(gm_stream_create(device, &params.request.stream, &err), &err);
  const gm_load_result result = load(params);
  check_why(&result, "earlier work of a stream");
  assert_int_equal(result.gds_bytes, 0);
  adopt_scene_ok(gm_stream_close(params.request.stream, &err), &err);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      TEST(test_without_cufile_the_host_reads), /* first: who saw cuFile open once asks the helper no more */
      TEST(test_whole_pages_go_straight_to_the_card),
      TEST(test_a_read_that_fails_goes_another_way),
      TEST(test_after_a_failure_nothing_is_tried_again),
      TEST(test_verified),
      TEST(test_a_rest_goes_straight_too),
      TEST(test_a_stream_orders_copies_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
