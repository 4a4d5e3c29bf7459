/* A part of a test that runs in a child of its own, because it changes the process. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_CHILD_PART_H
#define GM_TESTS_SUPPORT_CHILD_PART_H

#include <sys/wait.h>
#include <unistd.h>

#include "support/temp_folder.h"

/* The part's assertions end the child. A signal would end it, too. */
static inline void in_child(void (*part)(temp_folder *root), temp_folder *root) {
  const pid_t child = fork();
  int answer = -1;
  assert_true(child >= 0);
  if (!child) {
    part(root);
    _exit(0);
  }
  assert_int_equal(waitpid(child, &answer, 0), child);
  if (WIFSIGNALED(answer)) fail_msg("signal %d ended the child", WTERMSIG(answer));
  if (answer) fail_msg("the child answered %d", WEXITSTATUS(answer));
}

#endif
