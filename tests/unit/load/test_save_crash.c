/* A process that is killed while it saves, and power that goes, leave the earlier file or the new one, whole. After
 * GM_OK the new one is there. Without the calls that wait for the disk this test finds broken files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <sys/wait.h>

#include "support/played_disk.h"

#include "support/save_versions.h"

static const char *const names[] = {"m.gguf", "m.safetensors", "m.npz"};
enum { NAMES = sizeof names / sizeof names[0], POWER_STATES = 1000, KILLS = 1000 };

/* A sample of the kills and power failures, where GM_TEST_FULL does not ask for all. */
static bool crash_is_full(void) { return getenv("GM_TEST_FULL") != NULL; }

typedef struct crash_scene {
  save_versions versions;
  union {
    int done; /* the version of the last save that was answered */
    unsigned char bytes[PLAYED_NOTE];
  } note;
  played_state state;
  int looks, broken;
} crash_scene;

static crash_scene s;

static void crash_save_all(void) {
  gm_error err = {0};
  memset(&s.note, 0, sizeof s.note);
  played_begin(&s.note);
  for (int i = 1; i <= SAVE_VERSIONS; i++) {
    if (save_version(&s.versions, i, NULL, &err)) fail_msg("%s", err.message);
    s.note.done = i;
  }
  played.on = false;
}

/* Whether what is left is a version that may be there. */
static void crash_look(void) {
  int done = 0;
  memcpy(&done, played.calls[s.state.calls].note, sizeof done);
  const int found = save_found(s.versions.left_path);
  s.looks++;
  s.broken += found != done && found != done + 1;
}

/* Every call is the last one. `luck`: how often the power goes before each. */
static void crash_everywhere(uint64_t luck) {
  s.looks = s.broken = 0;
  while (s.state.calls < played.count) {
    for (int half = 0; half <= (played.calls[s.state.calls].kind == PLAYED_WRITE); half++) {
      played_end(&s.state, half, s.versions.left.path);
      crash_look();
    }
    for (uint64_t i = 0; i < luck; i++) {
      played_power_goes(&s.state, (uint64_t)s.state.calls * 1000 + i, s.versions.left.path);
      crash_look();
    }
    played_step(&s.state);
  }
  played_state_free(&s.state);
}

static void test_power_that_goes(void **state) {
  (void)state;
  for (int i = 0; i < NAMES; i++) {
    save_versions_open(&s.versions, names[i]);
    s.versions.checksums = i % 2;
    crash_save_all();
    assert_true(played.count > 12 * SAVE_VERSIONS); /* several writes for each file */
    const int each = POWER_STATES / NAMES / played.count + 1;
    crash_everywhere(crash_is_full() ? (uint64_t)each : 1);
    print_message("%s: %d ends of the process or the power\n", names[i], s.looks);
    assert_true(s.looks >= played.count);
    assert_int_equal(s.broken, 0);
    save_versions_close(&s.versions);
  }
}

/* The player sees what no call waits for: data that is not on the disk when its name is, and a name that is not. */
static void test_the_player_sees_a_missing_sync(void **state) {
  (void)state;
  static const played_kind kinds[] = {PLAYED_SYNC, PLAYED_FOLDER};
  for (int i = 0; i < 2; i++) {
    save_versions_open(&s.versions, names[0]);
    crash_save_all();
    for (int k = 0; k < played.count; k++) {
      if (played.calls[k].kind == kinds[i]) played.calls[k].kind = PLAYED_OTHER;
    }
    crash_everywhere(4);
    assert_true(s.broken > 0);
    save_versions_close(&s.versions);
  }
}

/* A child saves version 2 over version 1, and is killed before a call, or in the middle of a write. False: it made
 * fewer calls. */
static bool crash_kill(int at, bool half) {
  int status = 0;
  assert_int_equal(save_version(&s.versions, 1, NULL, NULL), GM_OK);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    played_begin(NULL);
    played.end_at = at;
    played.kills = true;
    played.ends_half = half;
    (void)save_version(&s.versions, 2, NULL, NULL);
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  const int found = save_found(s.versions.path);
  if (killed) assert_true(found == 1 || found == 2);
  if (!killed) assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0 && found == 2);
  return killed;
}

static int crash_files(void) {
  int count = 0;
  DIR *stream = opendir(s.versions.target.path);
  assert_non_null(stream);
  for (const struct dirent *at; (at = readdir(stream)) != NULL;) count += at->d_name[0] != '.';
  closedir(stream);
  return count;
}

static void test_a_process_that_is_killed(void **state) {
  (void)state;
  int kills = 0;
  for (int round = 0; kills < (crash_is_full() ? KILLS : KILLS / 25); round++) {
    save_versions_open(&s.versions, names[round % NAMES]);
    s.versions.checksums = round % 2;
    for (int at = 1; crash_kill(at, (round + at) % 2); at++) kills++;
    assert_int_equal(save_version(&s.versions, 3, NULL, NULL), GM_OK);
    assert_int_equal(save_found(s.versions.path), 3);
    assert_int_equal(crash_files(), 1 + s.versions.checksums); /* what the killed ones left is gone */
    save_versions_close(&s.versions);
  }
  print_message("%d kills\n", kills);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_power_that_goes),
      cmocka_unit_test(test_the_player_sees_a_missing_sync),
      cmocka_unit_test(test_a_process_that_is_killed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
