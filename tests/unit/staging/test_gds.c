/* Reads by a simulated cuFile: which need is missing, calls that hang or abort, short and failing reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/discovery/cufile.h"
#include "core/staging/gds.h"
#include "gm/context.h"
#include "support/random.h"
#include "support/temp_folder.h"

enum { PAGE = GM__GDS_ALIGN, PAGES = 9, REST = 100, BYTES = PAGES * PAGE + REST, HANG_MS = 200 };

uint64_t __real_gm__deadline_after(uint64_t timeout_ns);
uint64_t __wrap_gm__deadline_after(uint64_t timeout_ns);

static bool impatient; /* what hangs, hangs at once */

uint64_t __wrap_gm__deadline_after(uint64_t timeout_ns) {
  const bool step = timeout_ns == (uint64_t)GM__CUFILE_LIMIT_MS * 1000000u;
  return __real_gm__deadline_after(step && impatient ? (uint64_t)HANG_MS * 1000000u : timeout_ns);
}

static temp_folder folder;
static char path[512];
static unsigned char contents[BYTES];
static gm_context *ctx;
static gm_error err;

static int begin(void **state) {
  (void)state;
  setenv("GM_CUFILE_LIBRARY", GM_TEST_CUFILE, 1);
  unsetenv("SIMCUFILE");
  impatient = false;
  err = (gm_error){.status = GM_OK};
  return gm_context_create(NULL, &ctx, NULL) == GM_OK ? 0 : -1;
}

static int end(void **state) {
  (void)state;
  return gm_context_destroy(ctx, NULL) == GM_OK ? 0 : -1;
}

static int begin_all(void **state) {
  uint64_t seed = 1;
  (void)state;
  temp_folder_make(&folder);
  for (int i = 0; i < BYTES; i++) contents[i] = (unsigned char)test_random(&seed);
  snprintf(path, sizeof path, "%s/weights", folder.path);
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(contents, 1, BYTES, file) != BYTES) return -1;
  return fclose(file);
}

static int end_all(void **state) {
  (void)state;
  unlink(path);
  temp_folder_remove(&folder);
  return 0;
}

static unsigned open_descriptors(void) {
  unsigned count = 0;
  DIR *all = opendir("/proc/self/fd");
  assert_non_null(all);
  while (readdir(all)) count++;
  closedir(all);
  return count;
}

/* --- what is missing. A process that saw cuFile open once does not ask the helper again. --- */

typedef struct need {
  const char *script, *word;
  gm_status status;
} need;

static void check_need(const need *n) {
  gm__gds *gds = NULL;
  const unsigned before = open_descriptors();
  if (n->script) setenv("SIMCUFILE", n->script, 1);
  assert_int_equal(gm__gds_open(ctx, path, &gds, &err), n->status);
  assert_null(gds);
  if (!strstr(err.message, n->word)) fail_msg("%s: \"%s\"", n->word, err.message);
  assert_int_equal(open_descriptors(), before);
}

static void each_need_is_named(void **state) {
  static const need needs[] = {
      {"fail=open:5001", "nvidia-fs is not loaded", GM_ERR_NOT_SUPPORTED},
      {"fail=open:5011", "the CUDA driver cannot be initialised (cuInit) (error 5011, CUDA 100)", GM_ERR_NOT_SUPPORTED},
      {"fail=open:5033", "nvidia-fs cannot be set up", GM_ERR_NOT_SUPPORTED},
      {"fail=open:5777", "it failed (error 5777", GM_ERR_NOT_SUPPORTED},
      {"fail=properties:5002", "error 5002", GM_ERR_NOT_SUPPORTED},
      {"compat", "cuFile would only play", GM_ERR_NOT_SUPPORTED},
      {"fail=register:5008", "it does not support the file system", GM_ERR_NOT_SUPPORTED},
      {"abort=open", "cuFileDriverOpen ended the helper with signal 6", GM_ERR_NOT_SUPPORTED},
      {"abort=register", "cuFileHandleRegister ended the helper with signal 6", GM_ERR_NOT_SUPPORTED},
  };
  (void)state;
  for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) check_need(&needs[i]);
}

/* A sandbox without the folder: cuFile's own messages do not say that. */
static void an_unreadable_udev_is_named(void **state) {
  (void)state;
  check_need(&(need){"fail=open:5001", "error 5001", GM_ERR_NOT_SUPPORTED});
  const bool readable = access("/run/udev", R_OK | X_OK) == 0;
  assert_int_equal(strstr(err.message, "/run/udev") == NULL, readable);
}

static void no_library_is_named(void **state) {
  (void)state;
  setenv("GM_CUFILE_LIBRARY", "/nowhere/libcufile.so.0", 1);
  check_need(&(need){NULL, "/nowhere/libcufile.so.0 not found", GM_ERR_NOT_SUPPORTED});
  setenv("GM_CUFILE_LIBRARY", "libc.so.6", 1);
  check_need(&(need){NULL, "has no cuFileDriverOpen", GM_ERR_NOT_SUPPORTED});
}

static void no_file_is_named(void **state) {
  gm__gds *gds = NULL;
  char other[600];
  (void)state;
  snprintf(other, sizeof other, "%s/nothing", folder.path);
  assert_int_equal(gm__gds_open(ctx, other, &gds, &err), GM_ERR_NOT_FOUND);
  assert_non_null(strstr(err.message, other));
  assert_int_equal(gm__gds_open(ctx, folder.path, &gds, &err), GM_ERR_IO);
  snprintf(other, sizeof other, "%s/pipe", folder.path);
  assert_int_equal(mkfifo(other, 0600), 0);
  assert_int_equal(gm__gds_open(ctx, other, &gds, &err), GM_ERR_IO); /* and nobody waits for its other end */
  unlink(other);
}

static void what_hangs_is_ended(void **state) {
  static const need needs[] = {{"hang=open", "cuFile hangs: ", GM_ERR_NOT_SUPPORTED},
                               {"hang=register", "cuFile hangs: ", GM_ERR_NOT_SUPPORTED}};
  (void)state;
  impatient = true;
  for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) check_need(&needs[i]);
}

static void no_helper_is_named(void **state) {
  const gm_context_params params = {.struct_size = sizeof params, .probe_helper = "/nowhere/gm-probe"};
  gm_context *other;
  gm__gds *gds = NULL;
  (void)state;
  assert_int_equal(gm_context_create(&params, &other, NULL), GM_OK);
  assert_int_equal(gm__gds_open(other, path, &gds, &err), GM_ERR_NOT_FOUND);
  assert_int_equal(gm_context_destroy(other, NULL), GM_OK);
}

/* A helper that says what is none of its records. */
static void a_damaged_answer_is_refused(void **state) {
  static const char *const texts[] = {"head -c 100000 /dev/zero", "echo short", "exit 0"};
  static const gm_status statuses[] = {GM_ERR_FORMAT, GM_ERR_UNAVAILABLE, GM_ERR_UNAVAILABLE};
  char helper[600];
  (void)state;
  snprintf(helper, sizeof helper, "%s/helper", folder.path);
  for (int i = 0; i < 3; i++) {
    const gm_context_params params = {.struct_size = sizeof params, .probe_helper = helper};
    gm_context *other;
    gm__gds *gds = NULL;
    FILE *file = fopen(helper, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", texts[i]);
    fclose(file);
    assert_int_equal(chmod(helper, 0755), 0);
    assert_int_equal(gm_context_create(&params, &other, NULL), GM_OK);
    assert_int_equal(gm__gds_open(other, path, &gds, &err), statuses[i]);
    assert_int_equal(gm_context_destroy(other, NULL), GM_OK);
  }
  unlink(helper);
}

/* --- reading --- */

static unsigned char *device; /* memory of the host, as far as the simulated library knows */

static gm__gds *open_good(const char *script) {
  gm__gds *gds = NULL;
  if (script) setenv("SIMCUFILE", script, 1);
  const gm_status status = gm__gds_open(ctx, path, &gds, &err);
  if (status) fail_msg("%s", err.message);
  device = aligned_alloc(PAGE, (PAGES + 2) * PAGE);
  assert_non_null(device);
  memset(device, 0xa5, (PAGES + 2) * PAGE);
  return gds;
}

static void close_good(gm__gds *gds) {
  gm__gds_close(gds);
  free(device);
}

static void check_read(gm__gds *gds, uint64_t offset, uint64_t bytes) {
  memset(device, 0xa5, (PAGES + 2) * PAGE);
  assert_int_equal(gm__gds_read(gds, offset, (uintptr_t)device, bytes, &err), GM_OK);
  assert_memory_equal(device, contents + offset, bytes);
  for (int i = 0; i < PAGE; i++) assert_int_equal(device[bytes + (uint64_t)i], 0xa5);
}

static void reads_bring_the_bytes(void **state) {
  static const char *const scripts[] = {NULL, "p2p", "short"};
  (void)state;
  for (int i = 0; i < 3; i++) {
    gm__gds *gds = open_good(scripts[i]);
    check_read(gds, 0, PAGES * PAGE);
    check_read(gds, 2 * PAGE, 3 * PAGE);
    check_read(gds, 8 * PAGE, 0);
    close_good(gds);
    unsetenv("SIMCUFILE");
  }
}

static void reads_that_fail_are_told(void **state) {
  static const need needs[] = {{"read=-1", "Input/output error", GM_ERR_IO},
                               {"read=0", "ends before byte 4096", GM_ERR_IO},
                               {"read=-5012", "cuFile's error 5012", GM_ERR_NOT_SUPPORTED},
                               {"read=99999999", "more than was asked", GM_ERR_IO}};
  gm__gds *gds = open_good(NULL);
  (void)state;
  for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
    setenv("SIMCUFILE", needs[i].script, 1);
    assert_int_equal(gm__gds_read(gds, PAGE, (uintptr_t)device, PAGE, &err), needs[i].status);
    if (!strstr(err.message, needs[i].word)) fail_msg("%s: \"%s\"", needs[i].word, err.message);
  }
  unsetenv("SIMCUFILE");
  assert_int_equal(gm__gds_read(gds, PAGES * PAGE, (uintptr_t)device, PAGE, &err),
                   GM_ERR_IO); /* only a rest is there */
  assert_int_equal(gm__gds_read(gds, 40 * PAGE, (uintptr_t)device, PAGE, &err), GM_ERR_IO);
  assert_int_equal(gm__gds_read(gds, UINT64_MAX / PAGE * PAGE, (uintptr_t)device, PAGE, &err), GM_ERR_IO);
  close_good(gds);
}

static void misaligned_reads_are_refused(void **state) {
  gm__gds *gds = open_good(NULL);
  (void)state;
  assert_int_equal(gm__gds_read(gds, 1, (uintptr_t)device, PAGE, &err), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm__gds_read(gds, 0, (uintptr_t)device + 512, PAGE, &err), GM_ERR_NOT_SUPPORTED);
  assert_int_equal(gm__gds_read(gds, 0, (uintptr_t)device, PAGE + 1, &err), GM_ERR_NOT_SUPPORTED);
  assert_non_null(strstr(err.message, "not aligned"));
  close_good(gds);
}

static void the_middle_is_what_pages_agree_on(void **state) {
  static const uint64_t cases[][5] = {/* offset, address, bytes, front, middle */
                                      {0, 0, 3 * PAGE, 0, 3 * PAGE},
                                      {PAGE, 7 * PAGE, 2 * PAGE + 5, 0, 2 * PAGE},
                                      {100, PAGE + 100, 2 * PAGE, PAGE - 100, PAGE},
                                      {100, PAGE + 101, 9 * PAGE, 0, 0},
                                      {100, PAGE + 100, PAGE, 0, 0},
                                      {PAGE - 1, PAGE - 1, 1, 0, 0},
                                      {PAGE - 1, PAGE - 1, PAGE + 1, 1, PAGE},
                                      {5, 5, 0, 0, 0}};
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint64_t front = 99, middle = 99;
    gm__gds_middle(cases[i][0], cases[i][1], cases[i][2], &front, &middle);
    assert_int_equal(front, cases[i][3]);
    assert_int_equal(middle, cases[i][4]);
  }
}

static void a_replaced_file_is_seen(void **state) {
  gm__gds *gds = open_good(NULL);
  gm__input_file known;
  (void)state;
  assert_int_equal(gm__input_file_open(path, &known, &err), GM_OK);
  assert_true(gm__gds_is(gds, &known));
  known.inode++;
  assert_false(gm__gds_is(gds, &known));
  gm__input_file_close(&known);
  assert_false(gm__input_file_is(&known, known.fd)); /* it is closed */
  close_good(gds);
}

/* After the first file that opened nobody starts the helper again. */
static void a_good_library_is_tried_once(void **state) {
  gm__gds *gds = open_good(NULL);
  const gm_context_params params = {.struct_size = sizeof params, .probe_helper = "/nowhere/gm-probe"};
  gm_context *other;
  gm__gds *second = NULL;
  (void)state;
  assert_int_equal(gm_context_create(&params, &other, NULL), GM_OK);
  assert_int_equal(gm__gds_open(other, path, &second, &err), GM_OK);
  gm__gds_close(second);
  gm__gds_close(NULL);
  assert_int_equal(gm_context_destroy(other, NULL), GM_OK);
  close_good(gds);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
  const struct CMUnitTest tests[] = {/* those in which nothing opens come first */
                                     TEST(each_need_is_named),
                                     TEST(an_unreadable_udev_is_named),
                                     TEST(no_library_is_named),
                                     TEST(no_file_is_named),
                                     TEST(what_hangs_is_ended),
                                     TEST(no_helper_is_named),
                                     TEST(a_damaged_answer_is_refused),
                                     TEST(reads_bring_the_bytes),
                                     TEST(reads_that_fail_are_told),
                                     TEST(misaligned_reads_are_refused),
                                     TEST(the_middle_is_what_pages_agree_on),
                                     TEST(a_replaced_file_is_seen),
                                     TEST(a_good_library_is_tried_once)};
  return cmocka_run_group_tests(tests, begin_all, end_all);
}
