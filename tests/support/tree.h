/* A directory that stands for a machine's /proc and /sys. Needs cmocka.h included before.
 *
 *   scratch root;
 *   scratch_make(&root);
 *   tree_put(&root, "/proc/meminfo", "MemTotal: 1 kB\n");   // makes the folders that are missing
 *   scratch_remove(&root);
 *
 * or cmocka_unit_test_setup_teardown(test, tree_set_up, tree_tear_down): then *state is the root. */
#ifndef GM_TESTS_SUPPORT_TREE_H
#define GM_TESTS_SUPPORT_TREE_H

#include "support/scratch.h"

static inline void tree_put_bytes(const scratch *root, const char *path, const void *bytes, size_t count) {
  char folder[4096];
  snprintf(folder, sizeof folder, "%s", path + 1);
  char *slash = strrchr(folder, '/');
  if (slash) {
    *slash = '\0';
    scratch_dir(root, folder);
  }
  scratch_file(root, path + 1, bytes, count);
}

static inline void tree_put(const scratch *root, const char *path, const char *text) {
  tree_put_bytes(root, path, text, strlen(text));
}

static inline int tree_set_up(void **state) {
  static scratch root;
  scratch_make(&root);
  *state = &root;
  return 0;
}

static inline int tree_tear_down(void **state) {
  scratch_remove(*state);
  return 0;
}

#endif
