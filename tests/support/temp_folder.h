/* A folder of its own for a test, and files in it; removed with everything inside. A step that cannot be done ends the
 * test.
 *
 *   temp_folder root;
 *   temp_folder_make(&root);
 *   temp_folder_write(&root, "etc/x.conf", text, strlen(text)); // its folder must be there: temp_folder_dir
 *   temp_folder_remove(&root); */
#ifndef GM_TESTS_SUPPORT_TEMP_FOLDER_H
#define GM_TESTS_SUPPORT_TEMP_FOLDER_H

#include <errno.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct temp_folder {
  char path[200];
  char joined[4][4096]; /* the last four answers of temp_folder_join */
  unsigned next;
} temp_folder;

static inline void temp_folder_make(temp_folder *folder) {
  const char *base = getenv("TMPDIR");
  folder->next = 0;
  snprintf(folder->path, sizeof folder->path, "%s/gm_test_XXXXXX", base && *base == '/' ? base : "/tmp");
  if (!mkdtemp(folder->path)) abort();
}

static inline int temp_folder_remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
  (void)st;
  (void)kind;
  (void)ftw;
  return remove(path);
}

static inline void temp_folder_remove(temp_folder *folder) {
  if (nftw(folder->path, temp_folder_remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0) abort();
}

/* The path of `name` in the folder. */
static inline const char *temp_folder_join(temp_folder *folder, const char *name) {
  char *joined = folder->joined[folder->next++ % 4];
  const size_t length = strlen(folder->path);
  memcpy(joined, folder->path, length);
  snprintf(joined + length, sizeof folder->joined[0] - length, "/%s", name);
  return joined;
}

/* The folder `at` and what is missing above it. */
static inline void temp_folder_dir(temp_folder *folder, const char *at) {
  char path[4100];
  snprintf(path, sizeof path, "%s/", temp_folder_join(folder, at));
  for (char *slash = path + strlen(folder->path) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
    *slash = '\0';
    if (mkdir(path, 0700) != 0 && errno != EEXIST) abort();
    *slash = '/';
  }
}

/* Write or replace a file. */
static inline const char *temp_folder_write(temp_folder *folder, const char *name, const void *bytes, uint64_t length) {
  const char *path = temp_folder_join(folder, name);
  FILE *file = fopen(path, "wb");
  if (!file || (length && fwrite(bytes, 1, length, file) != length) || fclose(file) != 0) abort();
  return path;
}

#endif
