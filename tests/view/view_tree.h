/* The files of a case, written below a directory of their own, which is removed afterwards. */
#ifndef GM_TESTS_VIEW_TREE_H
#define GM_TESTS_VIEW_TREE_H

#include <json-c/json.h>
#include <stdbool.h>

enum { VIEW_TREE_ROOT = 256 };

/* Make the tree: `files` maps paths to content; `unreadable` lists paths, which become directories. Either may be NULL.
 * False, with a message on stderr and nothing left behind, when that fails. */
bool view_tree_make(json_object *files, json_object *unreadable, char root[VIEW_TREE_ROOT]);

void view_tree_remove(const char *root);

#endif
