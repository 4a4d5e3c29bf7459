/* The syntax tree of a C file, as arrays. */
#ifndef SYNTAX_TREE_H
#define SYNTAX_TREE_H

#include <stdint.h>

/* Nodes in the order in which they begin in the file. Node 0 is the file. */
typedef struct syntax_tree {
  int32_t *kinds;   /* a checksum of the kind's name, such as "FunctionDecl" */
  int32_t *parents; /* the number of the node above; -1 for node 0 */
  uint64_t nodes, room;
} syntax_tree;

/* Has clang, which must be in the PATH, parse a file. 0, or the number of an error. The caller frees the tree also
 * after a failure. */
int syntax_tree_read(const char *path, syntax_tree *out);
void syntax_tree_free(syntax_tree *tree);

#endif
