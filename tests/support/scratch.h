/* A folder of files that a test makes and takes away with all that is in it. Needs cmocka.h included before.
 *
 *   scratch root;
 *   scratch_make(&root);
 *   scratch_file(&root, "etc/x.conf", text, strlen(text));   // its folder must be there: scratch_dir
 *   scratch_remove(&root); */
#ifndef GM_TESTS_SUPPORT_SCRATCH_H
#define GM_TESTS_SUPPORT_SCRATCH_H

#include <errno.h>
#include <ftw.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct scratch {
  char path[256];
} scratch;

static inline void scratch_make(scratch *root) {
  const char *base = getenv("TMPDIR");
  snprintf(root->path, sizeof root->path, "%s/gm-test-XXXXXX", base && *base == '/' ? base : "/tmp");
  assert_non_null(mkdtemp(root->path));
}

/* `at` and what is missing above it. */
static inline void scratch_dir(const scratch *root, const char *at) {
  char path[4096];
  assert_true(snprintf(path, sizeof path, "%s/%s/", root->path, at) < (int)sizeof path);
  for (char *slash = path + strlen(root->path) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
    *slash = '\0';
    assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
    *slash = '/';
  }
}

/* Write or replace a file. */
static inline void scratch_file(const scratch *root, const char *at, const void *bytes, size_t count) {
  char path[4096];
  assert_true(snprintf(path, sizeof path, "%s/%s", root->path, at) < (int)sizeof path);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, count, file), count);
  assert_int_equal(fclose(file), 0);
}

static inline int scratch_remove_one(const char *path, const struct stat *info, int kind, struct FTW *where) {
  (void)info;
  (void)kind;
  (void)where;
  return remove(path);
}

static inline void scratch_remove(const scratch *root) {
  assert_int_equal(nftw(root->path, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

#endif
