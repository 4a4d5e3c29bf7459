/* A folder with a file of promises, and processes that use it. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_PROMISE_SCENE_H
#define GM_TESTS_SUPPORT_PROMISE_SCENE_H

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/shared_file.h"
#include "core/room/promise_file.h"
#include "support/tree.h"

typedef struct promise_scene {
  temp_folder root;
  char path[GM__PROMISE_PATH_SIZE]; /* of the file */
} promise_scene;

static const uint8_t scene_card[GM__PROMISE_CARD_BYTES] = {"a card"};
static const uint8_t scene_other_card[GM__PROMISE_CARD_BYTES] = {"another card"};

static inline int promise_scene_set_up(void **state) {
  static promise_scene scene;
  temp_folder_make(&scene.root);
  assert_int_equal(gm__shared_file_path(scene.root.path, "gm-promises", scene.path, sizeof scene.path, NULL), GM_OK);
  *state = &scene;
  return 0;
}

static inline int promise_scene_tear_down(void **state) {
  promise_scene *scene = *state;
  temp_folder_remove(&scene->root);
  return 0;
}

static inline void scene_open(promise_scene *scene, gm__promise_file *out) {
  gm_error err = {.message = ""};
  assert_int_equal(gm__promise_file_init(out, scene->root.path, &err), GM_OK);
  assert_string_equal(out->path, scene->path);
}

/* The promises of others on the card, as a process sees it that wants to take bytes. */
static inline uint64_t scene_others_on(gm__promise_file *file, const uint8_t *card) {
  gm__promise_turn turn;
  gm__promise_others others = {77, 77, 0}, read = {78, 78, 0};
  gm_error err = {.message = ""};
  if (gm__promise_file_begin(file, card, false, &turn, &others, &err)) fail_msg("begin: %s", err.message);
  gm__promise_file_abandon(file, &turn);
  if (gm__promise_file_read(file, card, &read, &err)) fail_msg("read: %s", err.message);
  assert_true(read.bytes == others.bytes && read.most == others.most && read.pid == others.pid);
  return others.bytes;
}

static inline uint64_t scene_others(gm__promise_file *file) { return scene_others_on(file, scene_card); }

static inline gm_status scene_try(gm__promise_file *file, const uint8_t *card, uint64_t bytes, gm_error *err) {
  gm__promise_turn turn;
  gm__promise_others others;
  const gm_status status = gm__promise_file_begin(file, card, true, &turn, &others, err);
  return status ? status : gm__promise_file_end(file, &turn, bytes, err);
}

static inline void scene_promise(gm__promise_file *file, uint64_t bytes) {
  gm_error err = {.message = ""};
  if (scene_try(file, scene_card, bytes, &err)) fail_msg("promise: %s", err.message);
}

/* Starts a process. It runs `run`, says that it is ready and waits for a signal. */
static inline pid_t scene_child(promise_scene *scene, void (*run)(promise_scene *scene)) {
  int ready[2];
  char byte = 0;
  assert_int_equal(pipe(ready), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
    run(scene);
    if (write(ready[1], "x", 1) != 1) _exit(1);
    for (;;) pause();
  }
  close(ready[1]);
  assert_int_equal(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  return child;
}

static inline void scene_kill(pid_t child) {
  assert_int_equal(kill(child, SIGKILL), 0);
  assert_int_equal(waitpid(child, NULL, 0), child);
}

static inline uint32_t scene_descriptors(void) {
  uint32_t count = 0;
  for (int fd = 0; fd < 256; fd++) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

#endif
