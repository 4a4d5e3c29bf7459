/* A directory that stands for a machine's /proc and /sys. Needs cmocka.h included before.
 *
 *   temp_folder root;
 *   temp_folder_make(&root);
 *   tree_put(&root, "/proc/meminfo", "MemTotal: 1 kB\n");   // makes the folders that are missing
 *   temp_folder_remove(&root);
 *
 * or cmocka_unit_test_setup_teardown(test, tree_set_up, tree_tear_down): then *state is the root. */
#ifndef GM_TESTS_SUPPORT_TREE_H
#define GM_TESTS_SUPPORT_TREE_H

#include "support/temp_folder.h"

static inline void tree_put_bytes(temp_folder *root, const char *path, const void *bytes, size_t count) {
  char folder[4096];
  snprintf(folder, sizeof folder, "%s", path + 1);
  char *slash = strrchr(folder, '/');
  if (slash) {
    *slash = '\0';
    temp_folder_dir(root, folder);
  }
  temp_folder_write(root, path + 1, bytes, count);
}

static inline void tree_put(temp_folder *root, const char *path, const char *text) {
  tree_put_bytes(root, path, text, strlen(text));
}

static inline int tree_set_up(void **state) {
  static temp_folder root;
  temp_folder_make(&root);
  *state = &root;
  return 0;
}

static inline int tree_tear_down(void **state) {
  temp_folder_remove(*state);
  return 0;
}

#endif
