/* The promises of processes to each other in a file: who counts, who counts no longer, and files that are none. */
#include "core/room/promise_file.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "support/promise_scene.h"
#include "support/random.h"

/* ---- promises ---- */

static void test_nothing_is_made_before_the_first_promise(void **state) {
  promise_scene *scene = *state;
  gm__promise_file file;
  gm__promise_turn turn;
  gm__promise_others others = {1, 1, 0};
  gm_error err;
  scene_open(scene, &file);
  assert_int_equal(scene_others(&file), 0);
  assert_int_equal(gm__promise_file_begin(&file, scene_card, false, &turn, &others, NULL), GM_OK);
  assert_int_equal(gm__promise_file_end(&file, &turn, 0, NULL), GM_OK);
  assert_int_equal(gm__promise_file_begin(&file, scene_card, false, &turn, &others, NULL), GM_OK);
  assert_int_equal(gm__promise_file_end(&file, &turn, 5, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(access(scene->path, F_OK), -1);
  scene_promise(&file, 5);
  struct stat st;
  assert_int_equal(stat(scene->path, &st), 0);
  assert_int_equal(st.st_size, GM__PROMISE_FILE_BYTES);
  assert_true(st.st_blocks * 512 >= GM__PROMISE_FILE_BYTES); /* no hole, so the disk is not full later */
  gm__promise_file_close(&file);
}

static void test_each_sees_the_others(void **state) {
  gm__promise_file a, b, c;
  scene_open(*state, &a);
  scene_open(*state, &b);
  scene_open(*state, &c);
  scene_promise(&a, 100);
  scene_promise(&b, 20);
  assert_int_equal(scene_others(&a), 20);
  assert_int_equal(scene_others(&b), 100);
  assert_int_equal(scene_others(&c), 120);
  assert_int_equal(scene_others_on(&c, scene_other_card), 0);
  assert_int_equal(scene_try(&a, scene_other_card, 7, NULL), GM_OK);
  assert_int_equal(scene_others_on(&c, scene_other_card), 7);
  scene_promise(&a, 50); /* in place of 100 */
  assert_int_equal(scene_others(&c), 70);
  scene_promise(&a, 0);
  assert_int_equal(scene_others(&c), 20);
  assert_int_equal(scene_others_on(&c, scene_other_card), 7);
  gm__promise_file_close(&a);
  assert_int_equal(scene_others_on(&c, scene_other_card), 0);
  gm__promise_file_close(&b);
  assert_int_equal(scene_others(&c), 0);
  gm__promise_file_close(&c);
}

static void test_sums_do_not_overflow(void **state) {
  gm__promise_file a, b, c;
  scene_open(*state, &a);
  scene_open(*state, &b);
  scene_open(*state, &c);
  scene_promise(&a, UINT64_MAX);
  scene_promise(&b, UINT64_MAX);
  assert_true(scene_others(&c) == UINT64_MAX);
  gm__promise_file_close(&a);
  gm__promise_file_close(&b);
  gm__promise_file_close(&c);
}

/* Whatever happens, no descriptor is left. */
static void test_descriptors(void **state) {
  gm__promise_file file;
  const uint32_t before = scene_descriptors();
  scene_open(*state, &file);
  for (uint32_t i = 0; i < 10; i++) scene_promise(&file, i);
  assert_int_equal(scene_descriptors(), before + 1);
  scene_promise(&file, 0);
  assert_int_equal(scene_descriptors(), before);
  scene_promise(&file, 1);
  gm__promise_file_close(&file);
  assert_int_equal(scene_descriptors(), before);
}

static void card_of(uint32_t number, uint8_t card[GM__PROMISE_CARD_BYTES]) {
  memset(card, 0, GM__PROMISE_CARD_BYTES);
  memcpy(card, &number, sizeof number);
}

static void test_a_full_file(void **state) {
  gm__promise_file a, b;
  gm_error err;
  uint8_t card[GM__PROMISE_CARD_BYTES];
  scene_open(*state, &a);
  scene_open(*state, &b);
  for (uint32_t i = 0; i < GM__PROMISE_RECORDS; i++) {
    card_of(i, card);
    assert_int_equal(scene_try(&a, card, i + 1, &err), GM_OK);
  }
  assert_int_equal(scene_try(&a, scene_card, 1, &err), GM_ERR_BUSY);
  assert_non_null(strstr(err.message, "all 256 records"));
  assert_int_equal(scene_try(&b, scene_card, 1, &err), GM_ERR_BUSY);
  assert_non_null(strstr(err.message, "all 256 records"));
  assert_int_equal(scene_others(&b), 0);
  card_of(200, card);
  assert_int_equal(scene_others_on(&b, card), 201);
  assert_int_equal(scene_try(&a, card, 500, &err), GM_OK); /* it has a record already */
  assert_int_equal(scene_others_on(&b, card), 500);
  assert_int_equal(scene_try(&a, card, 0, &err), GM_OK);
  assert_int_equal(scene_try(&b, scene_card, 1, &err), GM_OK); /* one is free */
  assert_int_equal(scene_others(&a), 1);
  gm__promise_file_close(&a);
  gm__promise_file_close(&b);
}

/* ---- processes ---- */

static gm__promise_file child_file;

static void promise_ten(promise_scene *scene) {
  scene_open(scene, &child_file);
  scene_promise(&child_file, 10);
}

static void test_a_killed_process_promises_nothing(void **state) {
  gm__promise_file file;
  pid_t children[5];
  scene_open(*state, &file);
  for (int i = 0; i < 5; i++) children[i] = scene_child(*state, promise_ten);
  assert_int_equal(scene_others(&file), 50);
  for (int i = 0; i < 5; i++) {
    scene_kill(children[i]);
    assert_int_equal(scene_others(&file), 40 - 10 * i);
  }
  scene_promise(&file, 3);
  assert_int_equal(file.own[0].record, 0); /* what the first one left is used again */
  gm__promise_file_close(&file);
}

/* The kernel keeps the lock for a child of the dead process: who the owner was decides. */
static int leave[2];

static void promise_and_fork(promise_scene *scene) {
  char byte;
  promise_ten(scene);
  close(leave[1]);
  if (fork() == 0) _exit(read(leave[0], &byte, 1) != 0); /* when the test closes its end */
}

static void test_a_child_does_not_keep_its_parents_promise(void **state) {
  gm__promise_file file;
  scene_open(*state, &file);
  assert_int_equal(pipe(leave), 0);
  const pid_t parent = scene_child(*state, promise_and_fork);
  close(leave[0]);
  assert_int_equal(scene_others(&file), 10);
  scene_kill(parent);
  assert_int_equal(scene_others(&file), 0);
  scene_promise(&file, 1);
  assert_int_equal(file.own[0].record, 1); /* the child still has the first one locked */
  gm__promise_file_close(&file);
  close(leave[1]);
}

static void test_a_forked_child_has_no_promise(void **state) {
  promise_scene *scene = *state;
  gm__promise_file file, other;
  gm__promise_turn turn;
  gm__promise_others others = {1, 1, 0};
  gm_error err;
  int status = 1;
  scene_open(scene, &file);
  scene_open(scene, &other);
  scene_promise(&file, 10);
  assert_int_equal(gm__promise_file_begin(&file, scene_other_card, true, &turn, &others, NULL), GM_OK);
  const pid_t child = fork();
  if (child == 0) {
    gm__promise_turn mine = turn;
    if (gm__promise_file_end(&file, &mine, 5, &err) != GM_ERR_FORKED || mine.file.fd >= 0) _exit(1);
    if (gm__promise_file_begin(&file, scene_card, true, &mine, &others, &err) != GM_ERR_FORKED) _exit(2);
    if (gm__promise_file_read(&file, scene_card, &others, &err) != GM_ERR_FORKED) _exit(3);
    gm__promise_file_abandon(&file, &mine);
    gm__promise_file_close(&file);
    scene_open(scene, &file); /* it may have one of its own */
    if (scene_others(&file) != 10) _exit(4);
    scene_promise(&file, 1);
    gm__promise_file_close(&file);
    _exit(0);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_int_equal(scene_others(&other), 10); /* the parent's promise and its turn are as they were */
  assert_int_equal(gm__promise_file_read(&other, scene_other_card, &others, NULL), GM_ERR_TIMEOUT);
  assert_int_equal(gm__promise_file_end(&file, &turn, 4, NULL), GM_OK);
  assert_int_equal(scene_others_on(&other, scene_other_card), 4);
  gm__promise_file_close(&file);
  gm__promise_file_close(&other);
}

/* A child that was forked in the middle of a turn has the file open, too. */
static void test_a_turn_ends_though_a_child_lives(void **state) {
  gm__promise_file file, other;
  gm__promise_turn turn;
  gm__promise_others others;
  char byte;
  scene_open(*state, &file);
  scene_open(*state, &other);
  assert_int_equal(pipe(leave), 0);
  assert_int_equal(gm__promise_file_begin(&file, scene_card, true, &turn, &others, NULL), GM_OK);
  const pid_t child = fork();
  if (child == 0) {
    close(leave[1]);
    _exit(read(leave[0], &byte, 1) != 0);
  }
  close(leave[0]);
  assert_int_equal(gm__promise_file_end(&file, &turn, 10, NULL), GM_OK);
  assert_int_equal(scene_others(&other), 10);
  gm__promise_file_close(&file);
  assert_int_equal(scene_others(&other), 0);
  gm__promise_file_close(&other);
  close(leave[1]);
  assert_int_equal(waitpid(child, NULL, 0), child);
}

static gm__promise_turn child_turn;

static void hold_the_turn(promise_scene *scene) {
  gm__promise_others others;
  scene_open(scene, &child_file);
  if (gm__promise_file_begin(&child_file, scene_card, true, &child_turn, &others, NULL)) _exit(1);
}

/* Short waits: nobody is to hold the turn for a second here. */
static int set_patience(void **state) {
  gm__promise_patience_ns = 20000000;
  return promise_scene_set_up(state);
}

static int reset_patience(void **state) {
  gm__promise_patience_ns = 1000000000;
  return promise_scene_tear_down(state);
}

static void test_a_stopped_process_hangs_nobody(void **state) {
  gm__promise_file file;
  gm__promise_turn turn;
  gm__promise_others others;
  gm_error err;
  scene_open(*state, &file);
  const pid_t child = scene_child(*state, hold_the_turn);
  assert_int_equal(kill(child, SIGSTOP), 0);
  assert_int_equal(gm__promise_file_read(&file, scene_card, &others, &err), GM_ERR_TIMEOUT);
  assert_false(file.hurried);
  assert_int_equal(scene_others_on(&file, scene_other_card), 0); /* other cards have their own turn */
  assert_int_equal(scene_try(&file, scene_card, 1, &err), GM_ERR_TIMEOUT);
  assert_non_null(strstr(err.message, "another process"));
  assert_true(file.hurried); /* who waited in vain does not wait so long again */
  assert_int_equal(gm__promise_file_begin(&file, scene_card, false, &turn, &others, &err), GM_ERR_TIMEOUT);
  assert_int_equal(turn.file.fd, -1);
  scene_kill(child);
  assert_int_equal(scene_try(&file, scene_card, 1, &err), GM_OK);
  assert_false(file.hurried);
  gm__promise_file_close(&file);
}

typedef struct waiter {
  gm__promise_file file;
  _Atomic int reached;
  gm__promise_others others;
} waiter;

static void *wait_for_turn(void *arg) {
  waiter *w = arg;
  gm__promise_turn turn;
  w->reached = 1;
  if (gm__promise_file_begin(&w->file, scene_card, true, &turn, &w->others, NULL) != GM_OK) return w;
  w->reached = 2;
  gm__promise_file_abandon(&w->file, &turn);
  return NULL;
}

/* Threads of one process take turns, too, also by one object. */
static void test_a_turn_is_waited_for(void **state) {
  waiter w = {.reached = 0};
  gm__promise_turn turn, elsewhere;
  gm__promise_others others;
  pthread_t thread;
  void *failed = &w;
  scene_open(*state, &w.file);
  assert_int_equal(gm__promise_file_begin(&w.file, scene_card, true, &turn, &others, NULL), GM_OK);
  assert_int_equal(gm__promise_file_begin(&w.file, scene_other_card, true, &elsewhere, &others, NULL), GM_OK);
  assert_int_equal(pthread_create(&thread, NULL, wait_for_turn, &w), 0);
  while (w.reached == 0) gm__sleep_ns(100000);
  gm__sleep_ns(20000000);
  assert_int_equal(w.reached, 1);
  assert_int_equal(gm__promise_file_end(&w.file, &turn, 9, NULL), GM_OK);
  assert_int_equal(pthread_join(thread, &failed), 0);
  assert_null(failed);
  assert_int_equal(w.others.bytes, 0); /* its own process's promise */
  gm__promise_file_abandon(&w.file, &elsewhere);
  gm__promise_file_close(&w.file);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, promise_scene_set_up, promise_scene_tear_down)
#define IMPATIENT(name) cmocka_unit_test_setup_teardown(name, set_patience, reset_patience)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_nothing_is_made_before_the_first_promise),
      TEST(test_each_sees_the_others),
      TEST(test_sums_do_not_overflow),
      TEST(test_descriptors),
      TEST(test_a_full_file),
      TEST(test_a_killed_process_promises_nothing),
      TEST(test_a_child_does_not_keep_its_parents_promise),
      TEST(test_a_forked_child_has_no_promise),
      TEST(test_a_turn_ends_though_a_child_lives),
      IMPATIENT(test_a_stopped_process_hangs_nobody),
      TEST(test_a_turn_is_waited_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
