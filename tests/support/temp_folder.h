/* A folder of its own for a test, and files in it; removed with everything inside. */
#ifndef GM_TESTS_SUPPORT_TEMP_FOLDER_H
#define GM_TESTS_SUPPORT_TEMP_FOLDER_H

#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct temp_folder {
  char path[200];
  char joined[4][512]; /* the last four answers of temp_folder_join */
  unsigned next;
} temp_folder;

static inline void temp_folder_make(temp_folder *folder) {
  const char *base = getenv("TMPDIR");
  folder->next = 0;
  snprintf(folder->path, sizeof folder->path, "%s/gm_test_XXXXXX", base && *base ? base : "/tmp");
  if (!mkdtemp(folder->path)) abort();
}

static inline int temp_folder_remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw) {
  (void)st;
  (void)kind;
  (void)ftw;
  return remove(path);
}

static inline void temp_folder_remove(temp_folder *folder) {
  nftw(folder->path, temp_folder_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The path of `name` in the folder. */
static inline const char *temp_folder_join(temp_folder *folder, const char *name) {
  char *joined = folder->joined[folder->next++ % 4];
  const size_t length = strlen(folder->path);
  memcpy(joined, folder->path, length);
  snprintf(joined + length, sizeof folder->joined[0] - length, "/%s", name);
  return joined;
}

static inline const char *temp_folder_write(temp_folder *folder, const char *name, const void *bytes, uint64_t length) {
  const char *path = temp_folder_join(folder, name);
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(bytes, 1, length, file) != length || fclose(file) != 0) abort();
  return path;
}

#endif
