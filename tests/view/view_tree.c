#include "view/view_tree.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { VIEW_TREE_PATH = 4096 };

static bool view_tree_path(const char *root, const char *path, char out[VIEW_TREE_PATH]) {
  if (path[0] != '/' || strstr(path, "/..")) return false;
  int length = snprintf(out, VIEW_TREE_PATH, "%s%s", root, path);
  return length > 0 && length < VIEW_TREE_PATH;
}

/* Every directory above the last component, and the last one too if `whole`. */
static bool view_tree_directories(char *path, size_t root_length, bool whole) {
  for (char *at = path + root_length + 1; (at = strchr(at, '/')); at++) {
    *at = 0;
    bool made = mkdir(path, 0700) == 0 || errno == EEXIST;
    *at = '/';
    if (!made) return false;
  }
  return !whole || mkdir(path, 0700) == 0 || errno == EEXIST;
}

static bool view_tree_file(const char *root, const char *name, json_object *content) {
  char path[VIEW_TREE_PATH];
  if (!view_tree_path(root, name, path) || !view_tree_directories(path, strlen(root), false)) return false;
  FILE *file = fopen(path, "wb");
  if (!file) return false;
  size_t bytes = (size_t)json_object_get_string_len(content);
  bool written = fwrite(json_object_get_string(content), 1, bytes, file) == bytes;
  return fclose(file) == 0 && written;
}

static bool view_tree_fill(const char *root, json_object *files, json_object *unreadable) {
  char path[VIEW_TREE_PATH];
  for (size_t i = 0; unreadable && i < json_object_array_length(unreadable); i++) {
    const char *name = json_object_get_string(json_object_array_get_idx(unreadable, i));
    if (!view_tree_path(root, name, path) || !view_tree_directories(path, strlen(root), true)) return false;
  }
  if (!files) return true;
  json_object_object_foreach(files, name, content) {
    if (!view_tree_file(root, name, content)) return false;
  }
  return true;
}

bool view_tree_make(json_object *files, json_object *unreadable, char root[VIEW_TREE_ROOT]) {
  const char *base = getenv("TMPDIR");
  snprintf(root, VIEW_TREE_ROOT, "%s/gm-view-XXXXXX", base && *base == '/' ? base : "/tmp");
  if (!mkdtemp(root)) {
    fprintf(stderr, "%s: %s\n", root, strerror(errno));
    return false;
  }
  if (view_tree_fill(root, files, unreadable)) return true;
  fprintf(stderr, "%s: cannot write the files of the case: %s\n", root, strerror(errno));
  view_tree_remove(root);
  return false;
}

static int view_tree_remove_one(const char *path, const struct stat *info, int kind, struct FTW *where) {
  (void)info;
  (void)kind;
  (void)where;
  return remove(path);
}

void view_tree_remove(const char *root) { nftw(root, view_tree_remove_one, 16, FTW_DEPTH | FTW_PHYS); }
