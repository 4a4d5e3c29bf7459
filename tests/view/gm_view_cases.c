/* gm_view_cases DIR: runs every case file DIR/NAME.json of the memory view and compares gm's answers with what the case
 * expects. One line per failed case, then "N passed, N failed". Exit code 0 only when there is a case and none failed.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "view/view_case.h"
#include "view/view_tree.h"

enum { CASES_PATH = 4096 };

static void cases_run_group(view_case *view, const char *group) {
  if (strcmp(group, "host") == 0) {
    view_run_host(view);
  } else if (strcmp(group, "device") == 0) {
    view_run_device(view);
  } else if (strcmp(group, "identity") == 0) {
    view_run_identity(view);
  } else {
    view_differ(view, "unknown group \"%s\"", group);
  }
}

/* Every case must have these, so that a broken file cannot pass by expecting nothing. */
static bool cases_is_complete(view_case *view, json_object *root, const char *name) {
  static const char *const keys[] = {"schema", "id",      "group", "title",    "why",
                                     "rules",  "sources", "input", "expected", NULL};
  view_known_keys(view, root, keys);
  const char *id = view_text(root, "id");
  size_t length = strlen(id);
  if (view_bytes(root, "schema") != 1) view_differ(view, "schema is not 1");
  if (strncmp(name, id, length) != 0 || strcmp(name + length, ".json") != 0) view_differ(view, "id is \"%s\"", id);
  bool objects = json_object_is_type(view->input, json_type_object) &&
                 json_object_is_type(view->expected, json_type_object) && json_object_object_length(view->expected) > 0;
  if (!objects) view_differ(view, "input or expected is missing");
  return view->differences == 0;
}

static void cases_run_file(view_case *view, json_object *root, const char *name) {
  view->input = view_member(root, "input");
  view->expected = view_member(root, "expected");
  if (!cases_is_complete(view, root, name)) return;
  char tree[VIEW_TREE_ROOT];
  if (!view_tree_make(view_member(view->input, "files"), view_member(view->input, "unreadable"), tree)) {
    view_differ(view, "its files cannot be made");
    return;
  }
  view->root = tree;
  cases_run_group(view, view_text(root, "group"));
  view_tree_remove(tree);
}

/* Whether the case passed; a line on stdout if not. */
static bool cases_run(const char *directory, const char *name) {
  char path[CASES_PATH];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  view_case view = {.differences = 0};
  json_object *root = json_object_from_file(path);
  if (json_object_is_type(root, json_type_object)) {
    cases_run_file(&view, root, name);
  } else {
    view_differ(&view, "not readable as a JSON object");
  }
  json_object_put(root);
  if (view.differences) printf("FAILED %.*s: %s\n", (int)strcspn(name, "."), name, view.message);
  return view.differences == 0;
}

static int cases_is_json(const struct dirent *entry) {
  size_t length = strlen(entry->d_name);
  return entry->d_name[0] != '.' && length > 5 && strcmp(entry->d_name + length - 5, ".json") == 0;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: gm_view_cases DIR\n");
    return 2;
  }
  struct dirent **names;
  int count = scandir(argv[1], &names, cases_is_json, alphasort);
  if (count < 0) {
    fprintf(stderr, "gm_view_cases: %s: %s\n", argv[1], strerror(errno));
    return 1;
  }
  int passed = 0;
  for (int i = 0; i < count; i++) {
    passed += cases_run(argv[1], names[i]->d_name);
    free(names[i]);
  }
  free(names);
  if (count == 0) fprintf(stderr, "gm_view_cases: %s: no case in it\n", argv[1]);
  printf("%d passed, %d failed\n", passed, count - passed);
  return count > 0 && passed == count ? 0 : 1;
}
