/* A save that is cut off at any call leaves the earlier file or the new one, and after GM_OK the new one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gm/store_file.h"
#include "support/played_disk.h"
#include "support/store_bench.h"

enum { SAVES = 3 };

typedef struct crash_scene {
  pool_bench bench;
  temp_folder folder, left;
  gm_store *store;
  char path[256], left_path[256];
  union {
    uint64_t done; /* saves that were answered */
    unsigned char bytes[PLAYED_NOTE];
  } note;
  played_state state;
} crash_scene;

static crash_scene s;

static void check(void) {
  uint64_t done = 0, found = 0;
  memcpy(&done, played.calls[s.state.calls].note, sizeof done);
  const gm_status status = gm_store_load_file(s.store, "left", s.left_path, NULL);
  if (status == GM_ERR_NOT_FOUND && !done) return;
  assert_int_equal(status, GM_OK);
  for (uint64_t i = 1; i <= SAVES; i++) {
    gm_value *value = NULL;
    pool_bench_ok(gm_store_get(s.store, "left/w", &value, err));
    if (store_value_is(value, 1, i, 1000 * i)) found = i;
    gm_value_release(value, NULL);
  }
  assert_true(found == done || found == done + 1);
}

static void test_a_save_is_whole_or_not_at_all(void **state) {
  (void)state;
  static const char *const keys[] = {NULL, "a/w", "b/w", "c/w"}, *const prefixes[] = {NULL, "a", "b", "c"};
  store_open_bench(&s.bench, 1 << 24);
  temp_folder_make(&s.folder);
  temp_folder_make(&s.left);
  snprintf(s.path, sizeof s.path, "%s", temp_folder_join(&s.folder, "f"));
  snprintf(s.left_path, sizeof s.left_path, "%s", temp_folder_join(&s.left, "f"));
  s.store = store_open(s.bench.pool, NULL);
  for (uint64_t i = 1; i <= SAVES; i++) store_put(s.store, keys[i], 1, i, 1000 * i);
  played_begin(&s.note);
  for (uint64_t i = 1; i <= SAVES; i++) {
    pool_bench_ok(gm_store_save(s.store, prefixes[i], s.path, err));
    s.note.done = i;
  }
  played.on = false;
  assert_true(played.count > 3 * SAVES);
  while (s.state.calls < played.count) {
    for (int half = 0; half <= (played.calls[s.state.calls].kind == PLAYED_WRITE); half++) {
      played_end(&s.state, half, s.left.path);
      check();
    }
    for (uint64_t luck = 0; luck < 4; luck++) {
      played_power_goes(&s.state, (uint64_t)s.state.calls * 4 + luck, s.left.path);
      check();
    }
    played_step(&s.state);
  }
  played_state_free(&s.state);
  store_close(s.store);
  temp_folder_remove(&s.folder);
  temp_folder_remove(&s.left);
  pool_bench_close(&s.bench);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_save_is_whole_or_not_at_all)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
