#include "syntax_tree.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { DEPTH_MOST = 4096 };

/* Starts clang, whose output comes through *out. It is given no shell, so a path may be anything. */
static int clang_start(const char *path, pid_t *out_pid, FILE **out) {
  int ends[2];
  char *arguments[] = {"clang", "-fsyntax-only", "-w", "-fno-color-diagnostics", "-Xclang", "-ast-dump", "-xc",
                       "--",    (char *)path,    NULL};
  posix_spawn_file_actions_t actions;
  if (pipe(ends)) return errno;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  const int failed = posix_spawnp(out_pid, arguments[0], &actions, NULL, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  *out = failed ? NULL : fdopen(ends[0], "r");
  if (!*out) close(ends[0]);
  return failed;
}

static int tree_add(syntax_tree *tree, int32_t kind, int32_t parent) {
  if (tree->nodes == tree->room) {
    tree->room = tree->room ? tree->room * 2 : 1024;
    int32_t *kinds = realloc(tree->kinds, tree->room * sizeof *kinds);
    if (kinds) tree->kinds = kinds;
    int32_t *parents = realloc(tree->parents, tree->room * sizeof *parents);
    if (parents) tree->parents = parents;
    if (!kinds || !parents) return ENOMEM;
  }
  tree->kinds[tree->nodes] = kind;
  tree->parents[tree->nodes++] = parent;
  return 0;
}

static int32_t kind_of(const char *name) {
  uint32_t sum = 2166136261U;
  for (; *name && *name != ' ' && *name != '\n'; name++) sum = (sum ^ (unsigned char)*name) * 16777619U;
  return (int32_t)(sum >> 1);
}

/* A line such as "| |-ReturnStmt 0x55 <col:25>": two characters for each level above the node. */
static int tree_add_line(syntax_tree *tree, const char *line, int32_t *last) {
  const size_t indent = strspn(line, "|`- ");
  const size_t depth = indent / 2;
  if (depth >= DEPTH_MOST) return EOVERFLOW;
  const int failed = tree_add(tree, kind_of(line + indent), depth ? last[depth - 1] : -1);
  last[depth] = (int32_t)tree->nodes - 1;
  return failed;
}

static int tree_read(syntax_tree *tree, FILE *from) {
  static _Thread_local int32_t last[DEPTH_MOST]; /* the latest node of each level */
  char *line = NULL;
  size_t room = 0;
  int failed = 0;
  while (!failed && getline(&line, &room, from) > 0) failed = tree_add_line(tree, line, last);
  free(line);
  return failed ? failed : ferror(from);
}

int syntax_tree_read(const char *path, syntax_tree *out) {
  FILE *from = NULL;
  pid_t pid = 0;
  int ended = 0;
  *out = (syntax_tree){.nodes = 0};
  int failed = clang_start(path, &pid, &from);
  if (failed) return failed;
  failed = from ? tree_read(out, from) : ENOMEM;
  if (from) fclose(from);
  if (waitpid(pid, &ended, 0) != pid || !WIFEXITED(ended)) return failed ? failed : EIO;
  return failed ? failed : WEXITSTATUS(ended) ? EINVAL : 0;
}

void syntax_tree_free(syntax_tree *tree) {
  free(tree->kinds);
  free(tree->parents);
}
