/* Rates of links that were measured and kept: for whom, what makes gm measure again, and a file that is not as it was.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* cmocka wants those above before it */
#include <cmocka.h>

#include <fcntl.h>

#include "core/base/shared_file.h"
#include "core/staging/link_file.h"
#include "gm/config.h"
#include "gm/transfer.h"
#include "support/adopt_scene.h"
#include "support/cuda_fixture.h"
#include "support/temp_folder.h"

enum { FILE_MOST = 1 << 16 };

static temp_folder folder;
static char path[300];
static gm_context *ctx;
static gm_device *device;

static void open_in(const char *where) {
  gm_error err;
  ctx = adopt_scene_context("cuda", getenv("GM_CUDA_LIBRARY"));
  adopt_scene_ok(gm_config_set(ctx, "links.folder", where, &err), &err);
  adopt_scene_ok(gm_device_open_index(ctx, "cuda", 0, &device, &err), &err);
}

static void end_device(void) { adopt_scene_end(ctx, device); }

/* A process of its own, as far as the figures go: does it measure? */
static bool measures_in(const char *where) {
  gm_error err;
  gm_transfer_links links = {.struct_size = sizeof links};
  open_in(where);
  cuda_say("zero");
  adopt_scene_ok(gm_transfer_measure(device, &links, &err), &err);
  const bool measured = cuda_calls("cuMemcpyHtoDAsync") > 0;
  assert_true(links.up > 0 && links.down > 0);
  end_device();
  return measured;
}

static bool measures(void) { return measures_in(folder.path); }

/* A measurement without the copies, which take long on the simulated driver: what a process keeps, and one finds. */
static void keep_in(const char *where) {
  open_in(where);
  gm__link_file_keep(device, 25e9, 12e9);
  end_device();
}

static bool finds_in(const char *where) {
  double up = 0, down = 0;
  open_in(where);
  const bool found = gm__link_file_find(device, &up, &down);
  if (found) assert_true(up == 25e9 && down == 12e9);
  end_device();
  return found;
}

static void keep(void) { keep_in(folder.path); }
static bool finds(void) { return finds_in(folder.path); }

static int begin(void **state) {
  (void)state;
  cuda_say("reload");
  cuda_say("set LATENCY_US 0");
  temp_folder_make(&folder);
  gm_error err;
  adopt_scene_ok(gm__shared_file_path(folder.path, "gm-links", path, sizeof path, &err), &err);
  return 0;
}

static int end(void **state) {
  (void)state;
  temp_folder_remove(&folder);
  return 0;
}

static size_t file_get(char *text) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  const size_t bytes = fread(text, 1, FILE_MOST, file);
  fclose(file);
  return bytes;
}

static void file_put(const char *text, size_t bytes) {
  temp_folder_write(&folder, strrchr(path, '/') + 1, text, bytes);
  assert_int_equal(chmod(path, 0600), 0);
}

/* --- what is kept --- */

static void a_later_process_does_not_measure(void **state) {
  (void)state;
  double up = 0, down = 0;
  struct stat st;
  assert_true(measures());
  assert_false(measures());
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0600);
  open_in(folder.path);
  gm__link_file_keep(device, 25e9, 12e9);
  assert_true(gm__link_file_find(device, &up, &down));
  assert_true(up == 25e9 && down == 12e9);
  gm_transfer_links links = {.struct_size = sizeof links};
  assert_int_equal(gm_transfer_measure(device, &links, NULL), GM_OK);
  assert_true(links.up == 25e9 && links.down == 12e9);
  end_device();
}

/* A rate that was measured on a busy machine is mended; what was measured on a quiet one stays. */
static void the_better_rate_of_each_way_stays(void **state) {
  (void)state;
  gm_error err;
  double up = 0, down = 0;
  gm_transfer_links links = {.struct_size = sizeof links};
  open_in(folder.path);
  gm__link_file_keep(device, 2000, 1e14);
  adopt_scene_ok(gm_transfer_measure_again(device, &links, &err), &err);
  assert_true(links.up > 1e6 && links.down == 1e14);
  assert_true(gm__link_file_find(device, &up, &down));
  assert_true(up > links.up - 1 && up <= links.up && down == 1e14);
  adopt_scene_ok(gm_transfer_measure(device, &links, &err), &err);
  assert_true(links.down == 1e14);
  assert_int_equal(gm_transfer_measure_again(device, NULL, NULL), GM_ERR_INVALID_ARGUMENT);
  end_device();
}

static void another_driver_measures_again(void **state) {
  (void)state;
  char text[FILE_MOST];
  keep();
  const size_t bytes = file_get(text);
  cuda_say("set VERSION 12040");
  assert_false(finds());
  keep();
  assert_true(finds());
  text[file_get(text)] = '\0';
  assert_true(strlen(text) < bytes + 8); /* one line for a device */
  cuda_say("set VERSION 13000");
  assert_false(finds());
}

static void the_slot_of_the_card_is_in_the_key(void **state) {
  (void)state;
  char keys[2][GM__LINK_KEY_SIZE], at[200];
  temp_folder_dir(&folder, "sys/bus/pci/devices");
  for (int i = 0; i < 2; i++) {
    open_in(folder.path);
    snprintf(at, sizeof at, "sys/bus/pci/devices/%s", device->info.pci);
    temp_folder_dir(&folder, at);
    snprintf(at + strlen(at), 40, "/max_link_speed");
    temp_folder_write(&folder, at, "32.0 GT/s PCIe\n", 15);
    snprintf(strrchr(at, '/'), 40, "/current_link_width");
    temp_folder_write(&folder, at, i ? "8\n" : "16\n", i ? 2 : 3);
    char *root = ctx->host_root;
    ctx->host_root = folder.path;
    gm__link_key(device, keys[i]);
    ctx->host_root = root;
    end_device();
  }
  assert_non_null(strstr(keys[0], " 32.0_GT/s_PCIe_x16"));
  assert_non_null(strstr(keys[1], " 32.0_GT/s_PCIe_x8"));
}

static void two_cards_have_a_line_each(void **state) {
  (void)state;
  double up = 0, down = 0;
  cuda_say("set DEVICES 2");
  for (uint32_t i = 0; i < 2; i++) {
    gm_device *one;
    open_in(folder.path);
    assert_int_equal(gm_device_open_index(ctx, "cuda", i, &one, NULL), GM_OK);
    gm__link_file_keep(one, 1e9 + i, 2e9 + i);
    gm_device_close(one, NULL);
    end_device();
  }
  open_in(folder.path);
  assert_true(gm__link_file_find(device, &up, &down));
  assert_true(up == 1e9 && down == 2e9);
  end_device();
}

/* However many devices there were: the file is bounded, and has the newest. */
static void the_oldest_lines_go(void **state) {
  (void)state;
  char text[FILE_MOST];
  double up = 0, down = 0;
  open_in(folder.path);
  const gm_device_info info = device->info;
  for (uint32_t i = 0; i < 200; i++) {
    memcpy(device->info.uuid, &i, sizeof i);
    gm__link_file_keep(device, 1e9 + i, 2e9 + i);
  }
  assert_true(gm__link_file_find(device, &up, &down));
  assert_true(up == 1e9 + 199);
  const uint32_t old = 100, recent = 150;
  memcpy(device->info.uuid, &recent, sizeof recent);
  assert_true(gm__link_file_find(device, &up, &down));
  memcpy(device->info.uuid, &old, sizeof old);
  assert_false(gm__link_file_find(device, &up, &down));
  assert_true(file_get(text) < 20000);
  device->info = info;
  end_device();
}

/* --- what is not kept --- */

static void it_can_be_off(void **state) {
  (void)state;
  assert_true(measures_in("off"));
  assert_true(measures_in("off"));
  keep_in("relative");
  assert_false(finds_in("relative"));
  assert_int_equal(access("relative", F_OK), -1);
  assert_int_equal(setenv("XDG_CACHE_HOME", folder.path, 1), 0);
  keep_in("");
  assert_false(finds_in("")); /* a simulated card, and no folder was named */
  assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
  assert_int_equal(access(path, F_OK), -1);
}

/* XDG: a cache folder that is missing is made for the user alone. */
static void the_folder_is_that_of_the_user(void **state) {
  (void)state;
  char cache[256], home[sizeof cache];
  struct stat st;
  double up, down;
  open_in("");
  device->info.simulated = false;
  snprintf(cache, sizeof cache, "%s/cache", folder.path);
  const char *old = getenv("HOME");
  snprintf(home, sizeof home, "%s", old ? old : "");
  assert_int_equal(setenv("XDG_CACHE_HOME", cache, 1), 0);
  assert_false(gm__link_file_find(device, &up, &down));
  assert_int_equal(access(cache, F_OK), -1); /* a look makes nothing */
  gm__link_file_keep(device, 3e9, 4e9);
  assert_true(gm__link_file_find(device, &up, &down));
  assert_int_equal(stat(cache, &st), 0);
  assert_int_equal(st.st_mode & 0777, 0700);
  assert_int_equal(setenv("XDG_CACHE_HOME", "relative", 1), 0); /* XDG: ignored */
  assert_int_equal(setenv("HOME", folder.path, 1), 0);
  gm__link_file_keep(device, 5e9, 6e9);
  snprintf(cache, sizeof cache, "%s/.cache", folder.path);
  assert_int_equal(access(cache, F_OK), 0);
  assert_int_equal(unsetenv("HOME"), 0);
  assert_false(gm__link_file_find(device, &up, &down));
  assert_int_equal(setenv("HOME", home, 1), 0);
  assert_int_equal(unsetenv("XDG_CACHE_HOME"), 0);
  end_device();
}

static void a_folder_that_cannot_be_is_no_failure(void **state) {
  (void)state;
  char none[300];
  snprintf(none, sizeof none, "%s/no/such/folder", folder.path);
  assert_true(measures_in(none));
  keep_in("/proc");
  assert_false(finds_in("/proc"));
}

/* --- a file that is not as it was --- */

static void a_damaged_file_is_measured_again(void **state) {
  (void)state;
  char good[FILE_MOST], bad[FILE_MOST];
  double up, down;
  open_in(folder.path);
  gm__link_file_keep(device, 25e9, 12e9);
  const size_t bytes = file_get(good);
  for (size_t cut = 0; cut < bytes; cut++) { /* at every byte */
    file_put(good, cut);
    assert_false(gm__link_file_find(device, &up, &down));
  }
  for (size_t i = 0; i < 8 * bytes; i++) { /* every bit */
    memcpy(bad, good, bytes);
    bad[i / 8] = (char)(bad[i / 8] ^ 1 << i % 8);
    file_put(bad, bytes);
    if (gm__link_file_find(device, &up, &down)) fail_msg("bit %d is not seen", (int)i);
  }
  file_put(good, bytes);
  assert_true(gm__link_file_find(device, &up, &down));
  gm__link_file_keep(device, 25e9, 12e9); /* the same again */
  assert_int_equal(file_get(bad), bytes);
  end_device();
  memset(bad, 'x', sizeof bad);
  file_put(bad, sizeof bad);
  assert_true(measures());
  file_put("gm-links 2\nsomething new\n", 25);
  assert_false(finds());
  keep();
  assert_true(finds());
}

/* A line with a right checksum and rates that no link has. */
static void rates_that_cannot_be_are_not_believed(void **state) {
  (void)state;
  double up, down;
  open_in(folder.path);
  gm__link_file_keep(device, 25e9, 12e9);
  gm__link_file_keep(device, 1, 12e9);
  assert_false(gm__link_file_find(device, &up, &down));
  gm__link_file_keep(device, 25e9, 1e17);
  assert_false(gm__link_file_find(device, &up, &down));
  end_device();
}

static void a_file_of_others_is_not_read(void **state) {
  (void)state;
  char text[FILE_MOST];
  keep();
  const size_t bytes = file_get(text);
  assert_int_equal(chmod(path, 0644), 0);
  assert_false(finds());
  assert_int_equal(unlink(path), 0);
  temp_folder_write(&folder, "elsewhere", text, bytes);
  assert_int_equal(symlink("elsewhere", path), 0);
  assert_false(finds());
  assert_int_equal(unlink(path), 0);
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_false(finds()); /* and waits for nobody */
  assert_true(measures());
}

/* A process that keeps the lock does not keep others from their work. */
static void a_locked_file_is_not_waited_for(void **state) {
  (void)state;
  gm__data_file file;
  keep();
  assert_int_equal(gm__shared_file_open(path, false, &file, NULL), GM_OK);
  assert_int_equal(gm__shared_file_lock(&file, path, 0, 0, NULL), GM_OK);
  assert_false(finds());
  keep();
  gm__data_file_close(&file, false);
  assert_true(finds());
}

int main(void) {
#define LINK_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      LINK_TEST(a_later_process_does_not_measure),
      LINK_TEST(the_better_rate_of_each_way_stays),
      LINK_TEST(another_driver_measures_again),
      LINK_TEST(the_slot_of_the_card_is_in_the_key),
      LINK_TEST(two_cards_have_a_line_each),
      LINK_TEST(the_oldest_lines_go),
      LINK_TEST(it_can_be_off),
      LINK_TEST(the_folder_is_that_of_the_user),
      LINK_TEST(a_folder_that_cannot_be_is_no_failure),
      LINK_TEST(a_damaged_file_is_measured_again),
      LINK_TEST(rates_that_cannot_be_are_not_believed),
      LINK_TEST(a_file_of_others_is_not_read),
      LINK_TEST(a_locked_file_is_not_waited_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
