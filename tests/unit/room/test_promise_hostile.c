/* Files of promises that are none, files that were cut or replaced, and folders where none can be. */
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

static void put_file(promise_scene *scene, const void *bytes, uint64_t length) {
  temp_folder_write(&scene->root, strrchr(scene->path, '/') + 1, bytes, length);
  assert_int_equal(chmod(scene->path, 0600), 0);
}

static void assert_refused_where(promise_scene *scene, bool create, gm_status expected, const char *word) {
  gm__promise_file file;
  gm__promise_turn turn;
  gm__promise_others others;
  gm_error err;
  const uint32_t before = scene_descriptors();
  scene_open(scene, &file);
  assert_int_equal(gm__promise_file_begin(&file, scene_card, create, &turn, &others, &err), expected);
  assert_non_null(strstr(err.message, word));
  assert_int_equal(turn.file.fd, -1);
  if (!create) assert_int_equal(gm__promise_file_read(&file, scene_card, &others, &err), expected);
  gm__promise_file_close(&file);
  assert_int_equal(scene_descriptors(), before);
}

static void assert_refused(promise_scene *scene, gm_status expected, const char *word) {
  assert_refused_where(scene, false, expected, word);
  assert_refused_where(scene, true, expected, word);
}

/* Nobody has a lock there, so nobody promises anything. Whoever has one makes the file doubtful for all. */
static void assert_no_file(promise_scene *scene, const char *word) {
  gm__promise_file file;
  gm__data_file stranger;
  scene_open(scene, &file);
  assert_int_equal(scene_others(&file), 0);
  gm__promise_file_close(&file);
  assert_refused_where(scene, true, GM_ERR_FORMAT, word);
  assert_int_equal(gm__shared_file_open(scene->path, false, &stranger, NULL), GM_OK);
  for (int bit = 6; bit < 61; bit += 9) {
    const uint64_t at = UINT64_C(1) << bit;
    assert_int_equal(gm__shared_file_lock(&stranger, scene->path, at, 0, NULL), GM_OK);
    assert_refused(scene, GM_ERR_FORMAT, word);
    gm__shared_file_unlock(&stranger, at);
  }
  gm__data_file_close(&stranger, false);
}

static void test_files_that_are_none(void **state) {
  promise_scene *scene = *state;
  unsigned char head[GM__PROMISE_FILE_BYTES] = {0};
  put_file(scene, head, sizeof head);
  assert_no_file(scene, "no file of promises");
  put_file(scene, "text", 4); /* nothing is written there */
  assert_no_file(scene, "no file of promises");
  gm__promise_head(head);
  head[16]++;
  put_file(scene, head, sizeof head);
  assert_no_file(scene, "another version");
  put_file(scene, head, 20);
  assert_no_file(scene, "another version");
  assert_int_equal(unlink(scene->path), 0);
  assert_int_equal(symlink("elsewhere", scene->path), 0);
  assert_refused(scene, GM_ERR_IO, "symbolic");
  assert_int_equal(unlink(scene->path), 0);
  assert_int_equal(mkdir(scene->path, 0700), 0);
  assert_refused(scene, GM_ERR_IO, "folder");
}

static void test_a_file_that_was_cut_short(void **state) {
  promise_scene *scene = *state;
  unsigned char image[GM__PROMISE_FILE_BYTES] = {0};
  gm__promise_head(image);
  const uint64_t cuts[] = {0, 1, 63, 64, 65, 1000, sizeof image - 1};
  for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
    gm__promise_file file, other;
    struct stat st;
    put_file(scene, image, cuts[i]);
    scene_open(scene, &file);
    scene_open(scene, &other);
    assert_int_equal(scene_others(&file), 0);
    assert_int_equal(stat(scene->path, &st), 0);
    assert_int_equal(st.st_size, cuts[i]); /* who promises nothing writes nothing */
    scene_promise(&file, 10);
    assert_int_equal(stat(scene->path, &st), 0);
    assert_int_equal(st.st_size, sizeof image);
    assert_int_equal(truncate(scene->path, (off_t)cuts[i]), 0); /* while it is in use */
    scene_promise(&file, 11);
    assert_int_equal(scene_others(&other), 11);
    gm__promise_file_close(&file);
    gm__promise_file_close(&other);
  }
}

static void test_garbage_is_no_promise(void **state) {
  promise_scene *scene = *state;
  unsigned char image[GM__PROMISE_FILE_BYTES + 100];
  uint64_t seed = 5;
  gm__promise_file file, other;
  for (size_t i = 0; i < sizeof image; i++) image[i] = (unsigned char)test_random(&seed);
  gm__promise_head(image);
  put_file(scene, image, sizeof image);
  scene_open(scene, &file);
  scene_open(scene, &other);
  assert_int_equal(scene_others(&file), 0);
  scene_promise(&file, 10);
  assert_int_equal(scene_others(&other), 10);
  gm__data_file raw = {.fd = -1};
  assert_int_equal(gm__shared_file_open(scene->path, false, &raw, NULL), GM_OK);
  assert_int_equal(gm__data_file_write(&raw, "", gm__promise_at(0) + 20, "rubbish", 7, NULL), GM_OK);
  gm__data_file_close(&raw, false);
  assert_int_equal(scene_others(&other), 0);
  scene_promise(&file, 10); /* written anew */
  assert_int_equal(scene_others(&other), 10);
  gm__promise_file_close(&file);
  gm__promise_file_close(&other);
}

/* A record that nobody has locked says nothing, however right it looks. */
static void test_a_record_without_an_owner(void **state) {
  promise_scene *scene = *state;
  unsigned char image[GM__PROMISE_FILE_BYTES] = {0};
  gm__promise promise = {.bytes = 1000};
  gm__promise_file file;
  memcpy(promise.card, scene_card, sizeof promise.card);
  gm__task_self(NULL, &promise.owner);
  gm__promise_head(image);
  for (uint32_t i = 0; i < GM__PROMISE_RECORDS; i++) gm__promise_pack(&promise, image + gm__promise_at(i));
  put_file(scene, image, sizeof image);
  scene_open(scene, &file);
  assert_int_equal(scene_others(&file), 0);
  scene_promise(&file, 1);
  gm__promise_file_close(&file);
}

/* Somebody removes the file: whoever comes next makes it again, with all that it has promised. */
static void test_a_file_that_was_removed(void **state) {
  promise_scene *scene = *state;
  gm__promise_file a, b;
  const uint32_t before = scene_descriptors();
  scene_open(scene, &a);
  scene_open(scene, &b);
  scene_promise(&a, 10);
  assert_int_equal(scene_try(&a, scene_other_card, 7, NULL), GM_OK);
  scene_promise(&b, 3);
  assert_int_equal(unlink(scene->path), 0);
  assert_int_equal(scene_others(&a), 0); /* b has not noticed yet */
  assert_int_equal(scene_others(&b), 10);
  assert_int_equal(scene_others(&a), 3);
  assert_int_equal(scene_others_on(&b, scene_other_card), 7);
  assert_int_equal(unlink(scene->path), 0);
  scene_promise(&a, 0); /* the other card's is left */
  assert_int_equal(scene_others_on(&b, scene_other_card), 7);
  gm__promise_file_close(&a);
  gm__promise_file_close(&b);
  assert_int_equal(scene_descriptors(), before);
}

static void test_folders(void **state) {
  promise_scene *scene = *state;
  gm__promise_file file;
  gm__promise_turn turn;
  gm__promise_others others;
  gm_error err;
  char longest[GM__PROMISE_PATH_SIZE + 1] = {0};
  assert_int_equal(gm__promise_file_init(&file, "relative", &err), GM_ERR_INVALID_ARGUMENT);
  assert_non_null(strstr(err.message, "reserve.folder"));
  memset(longest, 'x', sizeof longest - 1);
  longest[0] = '/';
  assert_int_equal(gm__promise_file_init(&file, longest, &err), GM_ERR_INVALID_ARGUMENT);
  assert_int_equal(gm__promise_file_init(&file, temp_folder_join(&scene->root, "none"), &err), GM_OK);
  assert_int_equal(gm__promise_file_begin(&file, scene_card, true, &turn, &others, &err), GM_ERR_NOT_FOUND);
  assert_int_equal(scene_others(&file), 0);
  gm__promise_file_close(&file);
  assert_int_equal(gm__promise_file_init(&file, NULL, &err), GM_OK);
  assert_true(strncmp(file.path, "/dev/shm/gm-promises-", 21) == 0 || !gm__shared_file_folder("/dev/shm"));
  gm__promise_file_close(&file);
}

static void test_a_folder_that_is_read_only(void **state) {
  promise_scene *scene = *state;
  if (geteuid() == 0) skip(); /* root may write everywhere */
  assert_int_equal(chmod(scene->root.path, 0500), 0);
  gm__promise_file file;
  gm_error err;
  scene_open(scene, &file);
  assert_int_equal(scene_others(&file), 0);
  assert_int_equal(scene_try(&file, scene_card, 1, &err), GM_ERR_IO);
  assert_non_null(strstr(err.message, "permission"));
  gm__promise_file_close(&file);
  assert_int_equal(chmod(scene->root.path, 0700), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, promise_scene_set_up, promise_scene_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_files_that_are_none),        TEST(test_a_file_that_was_cut_short), TEST(test_garbage_is_no_promise),
      TEST(test_a_record_without_an_owner),  TEST(test_a_file_that_was_removed),   TEST(test_folders),
      TEST(test_a_folder_that_is_read_only),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
