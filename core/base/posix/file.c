#include "core/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static gm__file_answer file_answer_of(int error) {
  return error == ENOENT || error == ENOTDIR ? GM__FILE_ABSENT : GM__FILE_UNREADABLE;
}

/* Descriptors in place of a joined path, which would need a large array. -1: errno says why. */
static int file_open_path(const char *root, const char *path, int flags) {
  const bool rooted = root && *root;
  const int folder = rooted ? open(root, O_PATH | O_DIRECTORY | O_CLOEXEC) : AT_FDCWD;
  const char *below = rooted ? path + strspn(path, "/") : path;
  int fd, code;
  if (rooted && folder < 0) return -1;
  do {
    fd = openat(folder, *below ? below : ".", flags | O_RDONLY | O_CLOEXEC);
    code = errno;
  } while (fd < 0 && code == EINTR);
  if (rooted) close(folder);
  errno = code;
  return fd;
}

/* With O_NONBLOCK the open of a pipe without a writer does not wait. */
static gm__file_answer file_open(const char *root, const char *path, int *out) {
  const int fd = file_open_path(root, path, O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return file_answer_of(errno);
  struct stat status;
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(fd);
    return GM__FILE_UNREADABLE;
  }
  *out = fd;
  return GM__FILE_OK;
}

static ssize_t file_fill(int fd, char *buffer, size_t bytes) {
  ssize_t got;
  do {
    got = read(fd, buffer, bytes);
  } while (got < 0 && errno == EINTR);
  return got;
}

static gm__file_answer file_text_of(int fd, char *buffer, size_t capacity) {
  size_t length = 0;
  for (;;) {
    ssize_t got = file_fill(fd, buffer + length, capacity - length);
    if (got < 0) return GM__FILE_UNREADABLE;
    if (got == 0) break;
    length += (size_t)got;
    if (length == capacity) return GM__FILE_TOO_LARGE;
  }
  buffer[length] = 0;
  while (length > 0 && buffer[length - 1] == 0) length--;
  return strlen(buffer) == length ? GM__FILE_OK : GM__FILE_UNREADABLE;
}

gm__file_answer gm__file_text(const char *root, const char *path, char *buffer, size_t capacity) {
  int fd;
  gm__file_answer answer = file_open(root, path, &fd);
  if (answer == GM__FILE_OK) {
    answer = file_text_of(fd, buffer, capacity);
    close(fd);
  }
  if (answer != GM__FILE_OK) buffer[0] = 0;
  return answer;
}

/* The window has bytes of the file in [0, length). `skipping`: its first line is too long, and is dropped up to its
 * newline. */
typedef struct file_window {
  size_t length, capacity;
  bool skipping;
  char *bytes;
} file_window;

static bool file_visit_line(file_window *window, char *line, size_t length, gm__line_visit visit, void *user) {
  bool dropped = window->skipping;
  window->skipping = false;
  line[length] = 0;
  return dropped || strlen(line) != length || visit(user, line);
}

/* Visit the complete lines of the window, and move the rest to its beginning. */
static bool file_visit_window(file_window *window, gm__line_visit visit, void *user) {
  char *at = window->bytes, *end = window->bytes + window->length;
  for (char *newline; (newline = memchr(at, '\n', (size_t)(end - at))); at = newline + 1) {
    if (!file_visit_line(window, at, (size_t)(newline - at), visit, user)) return false;
  }
  window->length = (size_t)(end - at);
  memmove(window->bytes, at, window->length);
  if (window->length == window->capacity - 1) {
    window->length = 0;
    window->skipping = true;
  }
  return true;
}

static gm__file_answer file_lines_of(int fd, char *room, size_t capacity, gm__line_visit visit, void *user) {
  file_window window = {.capacity = capacity, .bytes = room};
  for (size_t total = 0; total < GM__FILE_BYTES_MAX;) {
    ssize_t got = file_fill(fd, window.bytes + window.length, capacity - 1 - window.length);
    if (got < 0) return GM__FILE_UNREADABLE;
    if (got == 0) {
      if (window.length) file_visit_line(&window, window.bytes, window.length, visit, user);
      return GM__FILE_OK;
    }
    window.length += (size_t)got;
    total += (size_t)got;
    if (!file_visit_window(&window, visit, user)) return GM__FILE_OK;
  }
  return GM__FILE_TOO_LARGE;
}

static gm__file_answer file_lines(const char *root, const char *path, char *room, size_t capacity, gm__line_visit visit,
                                  void *user) {
  int fd;
  gm__file_answer answer = file_open(root, path, &fd);
  if (answer != GM__FILE_OK) return answer;
  answer = file_lines_of(fd, room, capacity, visit, user);
  close(fd);
  return answer;
}

gm__file_answer gm__file_lines(const char *root, const char *path, gm__line_visit visit, void *user) {
  char room[GM__FILE_LINE_SIZE];
  return file_lines(root, path, room, sizeof room, visit, user);
}

gm__file_answer gm__file_long_lines(const char *root, const char *path, char *room, gm__line_visit visit, void *user) {
  return file_lines(root, path, room, GM__FILE_LONG_LINE_SIZE, visit, user);
}

uint64_t gm__file_inode(const char *root, const char *path) {
  struct stat status;
  const int fd = file_open_path(root, path, O_PATH);
  if (fd < 0) return 0;
  const bool known = fstat(fd, &status) == 0;
  close(fd);
  return known ? (uint64_t)status.st_ino : 0;
}

gm__file_answer gm__file_names(const char *root, const char *directory, gm__name_visit visit, void *user) {
  const int fd = file_open_path(root, directory, O_DIRECTORY);
  if (fd < 0) return file_answer_of(errno);
  DIR *stream = fdopendir(fd);
  if (!stream) {
    close(fd);
    return GM__FILE_UNREADABLE;
  }
  bool more = true;
  for (struct dirent *entry; more && (entry = readdir(stream));) {
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) more = visit(user, entry->d_name);
  }
  closedir(stream);
  return GM__FILE_OK;
}
