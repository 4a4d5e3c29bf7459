#include "core/base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static gm__file_answer file_answer_of(int error) {
  return error == ENOENT || error == ENOTDIR ? GM__FILE_ABSENT : GM__FILE_UNREADABLE;
}

static bool file_join(const char *root, const char *path, char *out) {
  int length = snprintf(out, GM__FILE_PATH_SIZE, "%s%s", root ? root : "", path);
  return length > 0 && length < GM__FILE_PATH_SIZE;
}

/* With O_NONBLOCK the open of a pipe without a writer does not wait. */
static gm__file_answer file_open(const char *root, const char *path, int *out) {
  char full[GM__FILE_PATH_SIZE];
  if (!file_join(root, path, full)) return GM__FILE_UNREADABLE;
  int fd;
  do {
    fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  } while (fd < 0 && errno == EINTR);
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
  size_t length;
  bool skipping;
  char bytes[GM__FILE_LINE_SIZE];
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
  if (window->length == sizeof window->bytes - 1) {
    window->length = 0;
    window->skipping = true;
  }
  return true;
}

static gm__file_answer file_lines_of(int fd, gm__line_visit visit, void *user) {
  file_window window;
  window.length = 0;
  window.skipping = false;
  for (size_t total = 0; total < GM__FILE_BYTES_MAX;) {
    ssize_t got = file_fill(fd, window.bytes + window.length, sizeof window.bytes - 1 - window.length);
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

gm__file_answer gm__file_lines(const char *root, const char *path, gm__line_visit visit, void *user) {
  int fd;
  gm__file_answer answer = file_open(root, path, &fd);
  if (answer != GM__FILE_OK) return answer;
  answer = file_lines_of(fd, visit, user);
  close(fd);
  return answer;
}

gm__file_answer gm__file_names(const char *root, const char *directory, gm__name_visit visit, void *user) {
  char full[GM__FILE_PATH_SIZE];
  if (!file_join(root, directory, full)) return GM__FILE_UNREADABLE;
  DIR *stream = opendir(full);
  if (!stream) return file_answer_of(errno);
  bool more = true;
  for (struct dirent *entry; more && (entry = readdir(stream));) {
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) more = visit(user, entry->d_name);
  }
  closedir(stream);
  return GM__FILE_OK;
}
