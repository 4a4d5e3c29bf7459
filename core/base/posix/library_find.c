#include <elf.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/env.h"
#include "core/base/library.h"

/* This follows ld.so(8) and ldconfig(8), without the binary cache, whose format belongs to the C library. No vendor
 * code runs: gm opens files, reads their first bytes, and closes them. */

#if defined(__x86_64__)
#define LIBRARY_TRIPLET "x86_64-linux-gnu"
#elif defined(__aarch64__)
#define LIBRARY_TRIPLET "aarch64-linux-gnu"
#elif defined(__powerpc64__)
#define LIBRARY_TRIPLET "powerpc64le-linux-gnu"
#elif defined(__riscv)
#define LIBRARY_TRIPLET "riscv64-linux-gnu"
#else
#define LIBRARY_TRIPLET "unknown-linux-gnu"
#endif

enum { LIBRARY_CONF_BYTES = 16384, LIBRARY_CONF_DEPTH = 4 };

typedef struct library_search {
  const char *root;
  const char *name;
  char path[PATH_MAX]; /* the found file */
} library_search;

static bool library_is_loadable(const char *path) {
  unsigned char head[EI_NIDENT] = {0};
  struct stat info;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return false;
  bool regular = fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  bool full = regular && read(fd, head, sizeof head) == (ssize_t)sizeof head;
  close(fd);
  return full && memcmp(head, ELFMAG, SELFMAG) == 0 &&
         head[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32);
}

static bool library_try(library_search *search, const char *root, const char *dir, size_t length) {
  if (length == 0 || dir[0] != '/' || length >= PATH_MAX) return false;
  int needed = snprintf(search->path, sizeof search->path, "%s%.*s/%s", root, (int)length, dir, search->name);
  return needed > 0 && (size_t)needed < sizeof search->path && library_is_loadable(search->path);
}

/* For ld.so an empty or relative item means the current directory, or one below it. gm looks at neither. */
static bool library_try_list(library_search *search, const char *list) {
  while (*list) {
    size_t length = strcspn(list, ":;");
    if (library_try(search, "", list, length)) return true;
    list += length + (list[length] != '\0');
  }
  return false;
}

static size_t library_read_conf(const char *path, char *text, size_t capacity) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return 0;
  ssize_t got = read(fd, text, capacity - 1);
  close(fd);
  text[got > 0 ? got : 0] = '\0';
  return got > 0 ? (size_t)got : 0;
}

static bool library_try_conf(library_search *search, const char *path, int depth);

static bool library_try_include(library_search *search, const char *pattern, int depth) {
  char full[PATH_MAX];
  glob_t files;
  int needed = snprintf(full, sizeof full, "%s%s%s", search->root, pattern[0] == '/' ? "" : "/etc/", pattern);
  if (needed < 0 || (size_t)needed >= sizeof full || glob(full, 0, NULL, &files) != 0) return false;
  bool found = false;
  for (size_t i = 0; i < files.gl_pathc && !found; i++) found = library_try_conf(search, files.gl_pathv[i], depth + 1);
  globfree(&files);
  return found;
}

/* A line has one directory, or one `include PATTERN`. `#` begins a comment. */
static bool library_try_line(library_search *search, char *line, int depth) {
  static const char blank[] = " \t\r";
  line[strcspn(line, "#")] = '\0';
  line += strspn(line, blank);
  size_t length = strlen(line);
  while (length && strchr(blank, line[length - 1])) line[--length] = '\0';
  if (strncmp(line, "include", 7) == 0 && strchr(" \t", line[7]) && line[7]) {
    return library_try_include(search, line + 7 + strspn(line + 7, blank), depth);
  }
  return library_try(search, search->root, line, length);
}

static bool library_try_conf(library_search *search, const char *path, int depth) {
  char text[LIBRARY_CONF_BYTES];
  if (depth > LIBRARY_CONF_DEPTH || library_read_conf(path, text, sizeof text) == 0) return false;
  for (char *line = text, *next; *line; line = next) {
    next = line + strcspn(line, "\n");
    if (*next) *next++ = '\0';
    if (library_try_line(search, line, depth)) return true;
  }
  return false;
}

static bool library_try_system(library_search *search) {
  static const char *const dirs[] = {
      "/lib/" LIBRARY_TRIPLET, "/usr/lib/" LIBRARY_TRIPLET, "/lib64", "/usr/lib64", "/lib", "/usr/lib",
      "/usr/local/lib"};
  for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
    if (library_try(search, search->root, dirs[i], strlen(dirs[i]))) return true;
  }
  return false;
}

static bool library_try_all(library_search *search) {
  char conf[PATH_MAX];
  const char *list = gm__env("LD_LIBRARY_PATH");
  if (list && library_try_list(search, list)) return true;
  int needed = snprintf(conf, sizeof conf, "%s/etc/ld.so.conf", search->root);
  if (needed > 0 && (size_t)needed < sizeof conf && library_try_conf(search, conf, 0)) return true;
  return library_try_system(search);
}

bool gm__library_find(const char *root, const char *name, char *out, size_t capacity) {
  library_search search = {.root = root, .name = name};
  if (!gm__library_name_ok(name)) return false;
  bool found = false;
  if (name[0] == '/') {
    int needed = snprintf(search.path, sizeof search.path, "%s", name);
    found = needed > 0 && (size_t)needed < sizeof search.path && library_is_loadable(name);
  } else {
    found = library_try_all(&search);
  }
  if (!found || strlen(search.path) >= capacity) return false;
  memcpy(out, search.path, strlen(search.path) + 1);
  return true;
}
