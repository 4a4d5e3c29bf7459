/* The file of promises when calls of the system fail: each call once, with each answer that it may give. Afterwards no
 * descriptor is left, nobody is locked out, and what was promised before counts. The linker wraps the calls. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "support/promise_scene.h"

typedef enum fault_call { FAULT_OPEN, FAULT_FSTAT, FAULT_FCNTL, FAULT_PREAD, FAULT_PWRITE, FAULT_CALLS } fault_call;

static struct {
  bool armed;
  fault_call call; /* of these, the one with number `at` fails */
  int at, seen;
  int code;                /* errno; 0: it does half of its work */
  void (*meanwhile)(void); /* it does not fail, and this happens before it */
} fault;

static bool fault_is_now(fault_call call) { return fault.armed && fault.call == call && ++fault.seen == fault.at; }

int __real_open(const char *path, int flags, ...);
int __real_fstat(int fd, struct stat *out);
int __real_fcntl(int fd, int command, ...);
ssize_t __real_pread(int fd, void *to, size_t bytes, off_t at);
ssize_t __real_pwrite(int fd, const void *from, size_t bytes, off_t at);
int __wrap_open(const char *path, int flags, ...);
int __wrap_fstat(int fd, struct stat *out);
int __wrap_fcntl(int fd, int command, ...);
ssize_t __wrap_pread(int fd, void *to, size_t bytes, off_t at);
ssize_t __wrap_pwrite(int fd, const void *from, size_t bytes, off_t at);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_fstat64(int fd, struct stat *out);
int __wrap_fcntl64(int fd, int command, ...);
ssize_t __wrap_pread64(int fd, void *to, size_t bytes, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *from, size_t bytes, off_t at);

static int fault_fail(void) {
  errno = fault.code;
  return -1;
}

static int fault_open(const char *path, int flags, va_list args) {
  const mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
  return fault_is_now(FAULT_OPEN) ? fault_fail() : __real_open(path, flags, mode);
}

int __wrap_open(const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  const int fd = fault_open(path, flags, args);
  va_end(args);
  return fd;
}

int __wrap_open64(const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  const int fd = fault_open(path, flags, args);
  va_end(args);
  return fd;
}

int __wrap_fstat(int fd, struct stat *out) { return fault_is_now(FAULT_FSTAT) ? fault_fail() : __real_fstat(fd, out); }

int __wrap_fstat64(int fd, struct stat *out) { return __wrap_fstat(fd, out); }

/* A lock is given back always. */
static int fault_fcntl(int fd, int command, struct flock *lock) {
  const bool counts = command == F_OFD_GETLK || (command == F_OFD_SETLK && lock->l_type != F_UNLCK);
  return counts && fault_is_now(FAULT_FCNTL) ? fault_fail() : __real_fcntl(fd, command, lock);
}

int __wrap_fcntl(int fd, int command, ...) {
  va_list args;
  va_start(args, command);
  struct flock *lock = va_arg(args, struct flock *);
  va_end(args);
  return fault_fcntl(fd, command, lock);
}

int __wrap_fcntl64(int fd, int command, ...) {
  va_list args;
  va_start(args, command);
  struct flock *lock = va_arg(args, struct flock *);
  va_end(args);
  return fault_fcntl(fd, command, lock);
}

ssize_t __wrap_pread(int fd, void *to, size_t bytes, off_t at) {
  if (!fault_is_now(FAULT_PREAD)) return __real_pread(fd, to, bytes, at);
  return fault.code ? fault_fail() : __real_pread(fd, to, bytes / 2, at);
}

ssize_t __wrap_pwrite(int fd, const void *from, size_t bytes, off_t at) {
  const bool now = fault_is_now(FAULT_PWRITE);
  if (now && fault.meanwhile) fault.meanwhile();
  if (!now || fault.meanwhile) return __real_pwrite(fd, from, bytes, at);
  return fault.code ? fault_fail() : __real_pwrite(fd, from, bytes / 2, at);
}

ssize_t __wrap_pread64(int fd, void *to, size_t bytes, off_t at) { return __wrap_pread(fd, to, bytes, at); }
ssize_t __wrap_pwrite64(int fd, const void *from, size_t bytes, off_t at) { return __wrap_pwrite(fd, from, bytes, at); }

/* `a` and `b` promise; `a` changes its mind and goes. Any step may fail, so what counts is found by asking. */
typedef struct fault_scene {
  gm__promise_file a, b;
  uint64_t of_a; /* what it was told it promises */
  bool failed;
} fault_scene;

static void scene_step(fault_scene *s, gm__promise_file *file, uint64_t bytes) {
  gm_error err = {.status = GM_OK};
  const gm_status status = scene_try(file, scene_card, bytes, &err);
  s->failed |= status != GM_OK;
  assert_int_equal(err.status, status);
  if (status) assert_true(err.message[0] != '\0' && err.op[0] != '\0');
  if (status == GM_OK && file == &s->a) s->of_a = bytes;
}

/* The promise that `a` was given is seen by `b`, unless the write of its record itself failed by half. */
static void scene_check(fault_scene *s) {
  gm_error err = {.status = GM_OK};
  gm__promise_others others = {1, 1, 0};
  const gm_status status = gm__promise_file_read(&s->b, scene_card, &others, &err);
  s->failed |= status != GM_OK;
  assert_int_equal(err.status, status);
  if (status == GM_OK) assert_true(others.bytes == s->of_a);
}

static void run_scene(promise_scene *scene) {
  static fault_scene s;
  const uint32_t before = scene_descriptors();
  const bool was_armed = fault.armed;
  fault.armed = false;
  unlink(scene->path);
  scene_open(scene, &s.a);
  scene_open(scene, &s.b);
  s.of_a = 0;
  s.failed = false;
  fault.armed = was_armed;
  scene_step(&s, &s.a, 100);
  scene_check(&s);
  scene_step(&s, &s.b, 10);
  scene_step(&s, &s.a, 50);
  scene_check(&s);
  scene_step(&s, &s.a, 0);
  scene_check(&s);
  scene_step(&s, &s.a, 70);
  gm__promise_file_close(&s.a);
  s.of_a = 0;
  scene_check(&s);
  fault.armed = false;
  scene_promise(&s.b, 11); /* nobody is locked out */
  scene_open(scene, &s.a);
  assert_int_equal(scene_others(&s.a), 11);
  gm__promise_file_close(&s.a);
  gm__promise_file_close(&s.b);
  assert_int_equal(scene_descriptors(), before);
}

static int count_calls(promise_scene *scene, fault_call call) {
  memset(&fault, 0, sizeof fault);
  fault.armed = true;
  fault.call = call;
  run_scene(scene);
  return fault.seen;
}

static void test_each_call_fails_once(void **state) {
  static const int codes[FAULT_CALLS][4] = {[FAULT_OPEN] = {EMFILE, ENOSPC, EACCES, EROFS},
                                            [FAULT_FSTAT] = {EIO, EOVERFLOW, EIO, EIO},
                                            [FAULT_FCNTL] = {ENOLCK, EINVAL, EAGAIN, EINTR},
                                            [FAULT_PREAD] = {EIO, 0, EINTR, EIO},
                                            [FAULT_PWRITE] = {ENOSPC, EDQUOT, 0, EINTR}};
  for (fault_call call = 0; call < FAULT_CALLS; call++) {
    const int calls = count_calls(*state, call);
    assert_true(calls >= 5);
    for (int k = 0; k < 4 * calls; k++) {
      fault.armed = true;
      fault.call = call;
      fault.at = k / 4 + 1;
      fault.seen = 0;
      fault.code = codes[call][k % 4];
      run_scene(*state);
      assert_true(fault.seen >= fault.at);
    }
  }
}

/* The reason reaches the caller. */
static void test_a_full_disk(void **state) {
  gm__promise_file file;
  gm_error err;
  scene_open(*state, &file);
  fault.armed = true;
  fault.call = FAULT_PWRITE;
  fault.at = 1;
  fault.seen = 0;
  fault.code = ENOSPC;
  assert_int_equal(scene_try(&file, scene_card, 1, &err), GM_ERR_IO);
  assert_int_equal(err.native_code, ENOSPC);
  assert_non_null(strstr(err.message, "full"));
  fault.armed = false;
  scene_promise(&file, 1);
  gm__promise_file_close(&file);
}

/* The limit would end the process by a signal. */
static void test_a_limit_on_the_size_of_files(void **state) {
  gm__promise_file file;
  gm_error err;
  struct rlimit old, small;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
  small = old;
  small.rlim_cur = 1000;
  scene_open(*state, &file);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
  const gm_status status = scene_try(&file, scene_card, 1, &err);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
  assert_int_equal(status, GM_ERR_IO);
  assert_int_equal(err.native_code, EFBIG);
  scene_promise(&file, 1);
  gm__promise_file_close(&file);
}

/* The file is replaced between two steps of one turn. */
static void test_a_file_that_is_replaced_meanwhile(void **state) {
  promise_scene *scene = *state;
  gm__promise_file file, other;
  gm__promise_turn turn;
  gm__promise_others others;
  gm_error err;
  scene_open(scene, &file);
  scene_open(scene, &other);
  assert_int_equal(gm__promise_file_begin(&file, scene_card, true, &turn, &others, &err), GM_OK);
  assert_int_equal(unlink(scene->path), 0);
  assert_int_equal(gm__promise_file_end(&file, &turn, 5, &err), GM_ERR_NOT_FOUND);
  assert_int_equal(gm__promise_file_begin(&file, scene_card, true, &turn, &others, &err), GM_OK);
  assert_int_equal(unlink(scene->path), 0);
  scene_promise(&other, 1);
  assert_int_equal(gm__promise_file_end(&file, &turn, 5, &err), GM_ERR_BUSY);
  assert_non_null(strstr(err.message, "replaces"));
  assert_int_equal(scene_others(&other), 0);
  scene_promise(&file, 5);
  assert_int_equal(scene_others(&other), 5);
  gm__promise_file_close(&file);
  gm__promise_file_close(&other);
}

/* The file is new, and what was promised does not get there: the next turn tries again. */
static void test_what_was_not_written_is_written_later(void **state) {
  promise_scene *scene = *state;
  gm__promise_file file, other;
  gm__promise_turn turn;
  gm__promise_others others;
  gm_error err;
  scene_open(scene, &file);
  scene_open(scene, &other);
  scene_promise(&file, 10);
  assert_int_equal(unlink(scene->path), 0);
  scene_promise(&other, 1);
  fault.armed = true;
  fault.call = FAULT_PWRITE;
  fault.at = 1;
  fault.seen = 0;
  fault.code = ENOSPC;
  assert_int_equal(gm__promise_file_begin(&file, scene_card, false, &turn, &others, &err), GM_ERR_IO);
  assert_int_equal(fault.seen, 2); /* it also frees the record again */
  fault.armed = false;
  assert_int_equal(scene_others(&other), 0);
  assert_int_equal(scene_others(&file), 1);
  assert_int_equal(scene_others(&other), 10);
  gm__promise_file_close(&file);
  gm__promise_file_close(&other);
}

static gm__promise_file onlooker;

static void look_meanwhile(void) {
  gm__promise_others others;
  gm__promise_turn turn;
  assert_int_equal(gm__promise_file_begin(&onlooker, scene_other_card, true, &turn, &others, NULL), GM_ERR_TIMEOUT);
  assert_int_equal(scene_others_on(&onlooker, scene_other_card), 0); /* who promises nothing need not wait */
}

/* Nobody writes into a file that another process is making. */
static void test_a_file_in_the_making(void **state) {
  gm__promise_file file;
  gm__promise_patience_ns = 10000000;
  scene_open(*state, &file);
  scene_open(*state, &onlooker);
  memset(&fault, 0, sizeof fault);
  fault.armed = true;
  fault.call = FAULT_PWRITE;
  fault.meanwhile = look_meanwhile;
  for (fault.at = 1; fault.at <= GM__PROMISE_FILE_BYTES / 1024; fault.at++) {
    fault.seen = 0;
    scene_promise(&file, 10);
    assert_true(fault.seen >= fault.at);
    scene_promise(&file, 0);
    assert_int_equal(unlink(file.path), 0);
  }
  memset(&fault, 0, sizeof fault);
  gm__promise_patience_ns = 1000000000;
  gm__promise_file_close(&file);
  gm__promise_file_close(&onlooker);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, promise_scene_set_up, promise_scene_tear_down)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_each_call_fails_once),         TEST(test_a_full_disk),
      TEST(test_a_limit_on_the_size_of_files), TEST(test_what_was_not_written_is_written_later),
      TEST(test_a_file_in_the_making),         TEST(test_a_file_that_is_replaced_meanwhile)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
