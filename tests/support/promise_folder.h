/* A folder in which this process and a stranger tell each other of promises on the shared card. The process has one
 * file of promises for ever, so a program has one folder. The linker wraps the calls on that file, and counts them.
 * Needs cmocka.h included before; the program's link options name the calls. */
#ifndef GM_TESTS_SUPPORT_PROMISE_FOLDER_H
#define GM_TESTS_SUPPORT_PROMISE_FOLDER_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "core/device/device.h"
#include "core/room/promise_file.h"
#include "gm/explain.h"
#include "gm/reserve.h"
#include "support/shared_card.h"
#include "support/temp_folder.h"

static struct {
  int opens, reads, writes, locks, queries; /* of the file of promises, and of locks anywhere */
  int fail;                                 /* so many of the next writes find a full disk */
  void (*writing)(void);                    /* called before a write, once */
} counted;

static temp_folder promise_folder;
static char promise_path[GM__PROMISE_PATH_SIZE];
static gm__promise_file stranger; /* another process's object, in all that the file knows */

int __real_open(const char *path, int flags, ...);
int __real_fcntl(int fd, int command, ...);
ssize_t __real_pread(int fd, void *to, size_t bytes, off_t at);
ssize_t __real_pwrite(int fd, const void *from, size_t bytes, off_t at);
int __wrap_open(const char *path, int flags, ...);
int __wrap_fcntl(int fd, int command, ...);
ssize_t __wrap_pread(int fd, void *to, size_t bytes, off_t at);
ssize_t __wrap_pwrite(int fd, const void *from, size_t bytes, off_t at);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_fcntl64(int fd, int command, ...);
ssize_t __wrap_pread64(int fd, void *to, size_t bytes, off_t at);
ssize_t __wrap_pwrite64(int fd, const void *from, size_t bytes, off_t at);

static int counted_open(const char *path, int flags, va_list args) {
  const mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
  if (strcmp(path, promise_path) == 0) counted.opens++;
  return __real_open(path, flags, mode);
}

int __wrap_open(const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  const int fd = counted_open(path, flags, args);
  va_end(args);
  return fd;
}

int __wrap_open64(const char *path, int flags, ...) {
  va_list args;
  va_start(args, flags);
  const int fd = counted_open(path, flags, args);
  va_end(args);
  return fd;
}

static int counted_fcntl(int fd, int command, struct flock *lock) {
  counted.locks += command == F_OFD_SETLK && lock->l_type != F_UNLCK;
  counted.queries += command == F_OFD_GETLK;
  return __real_fcntl(fd, command, lock);
}

int __wrap_fcntl(int fd, int command, ...) {
  va_list args;
  va_start(args, command);
  struct flock *lock = va_arg(args, struct flock *);
  va_end(args);
  return counted_fcntl(fd, command, lock);
}

int __wrap_fcntl64(int fd, int command, ...) {
  va_list args;
  va_start(args, command);
  struct flock *lock = va_arg(args, struct flock *);
  va_end(args);
  return counted_fcntl(fd, command, lock);
}

ssize_t __wrap_pread(int fd, void *to, size_t bytes, off_t at) {
  counted.reads++;
  return __real_pread(fd, to, bytes, at);
}

ssize_t __wrap_pwrite(int fd, const void *from, size_t bytes, off_t at) {
  void (*const writing)(void) = counted.writing;
  counted.writing = NULL;
  if (writing) writing();
  counted.writes++;
  if (counted.fail <= 0) return __real_pwrite(fd, from, bytes, at);
  counted.fail--;
  errno = ENOSPC;
  return -1;
}

ssize_t __wrap_pread64(int fd, void *to, size_t bytes, off_t at) { return __wrap_pread(fd, to, bytes, at); }
ssize_t __wrap_pwrite64(int fd, const void *from, size_t bytes, off_t at) { return __wrap_pwrite(fd, from, bytes, at); }

/* ---- the folder ---- */

static inline int promise_folder_make(void **state) {
  (void)state;
  temp_folder_make(&promise_folder);
  snprintf(promise_path, sizeof promise_path, "%s/gm-promises-%u", promise_folder.path, (unsigned)geteuid());
  shared_card_folder = promise_folder.path;
  return 0;
}

static inline int promise_folder_remove(void **state) {
  (void)state;
  temp_folder_remove(&promise_folder);
  return 0;
}

/* A card of 64 MiB, no file, and the stranger. */
static inline int promise_folder_set_up(void **state) {
  (void)state;
  unlink(promise_path);
  shared_card_reset(64 * MIB);
  shared_card_share = "auto";
  if (gm__promise_file_init(&stranger, promise_folder.path, NULL)) return -1;
  memset(&counted, 0, sizeof counted);
  return 0;
}

static inline int promise_folder_tear_down(void **state) {
  (void)state;
  gm__promise_file_close(&stranger);
  gm__promise_patience_ns = 1000000000;
  return 0;
}

/* ---- the stranger ---- */

/* The card's name in the file. */
static inline void stranger_card(const pool_bench *bench, uint8_t out[GM__PROMISE_CARD_BYTES]) {
  const uint64_t card = atomic_load(&bench->device->room.card->name);
  memset(out, 0, GM__PROMISE_CARD_BYTES);
  memcpy(out, &card, sizeof card);
}

static inline void stranger_promises(const pool_bench *bench, uint64_t bytes) {
  gm__promise_turn turn;
  gm__promise_others others;
  uint8_t card[GM__PROMISE_CARD_BYTES];
  stranger_card(bench, card);
  assert_int_equal(gm__promise_file_begin_beside(&stranger, card, true, &turn, &others, NULL), GM_OK);
  assert_int_equal(gm__promise_file_end(&stranger, &turn, bytes, NULL), GM_OK);
}

/* The promises of this process, as the stranger sees it. */
static inline uint64_t stranger_sees(const pool_bench *bench) {
  gm__promise_turn turn;
  gm__promise_others others;
  uint8_t card[GM__PROMISE_CARD_BYTES];
  stranger_card(bench, card);
  assert_int_equal(gm__promise_file_begin_beside(&stranger, card, false, &turn, &others, NULL), GM_OK);
  gm__promise_file_abandon(&stranger, &turn);
  return others.bytes;
}

#endif
