/* The identity of a process, so that another one can see later whether it has ended. A number alone does not tell: the
 * system gives it to new processes. Thread-safe. */
#ifndef GM_CORE_HOST_TASK_H
#define GM_CORE_HOST_TASK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct gm__task {
  uint64_t space; /* what numbers and times mean: the namespaces of both. 0: unknown, and so is the rest */
  uint64_t start; /* when it began, in the kernel's ticks */
  uint32_t pid;
} gm__task;

/* This process. All is 0 where /proc below `root` does not tell, or is of another namespace. */
void gm__task_self(const char *root, gm__task *out);

/* True: `task` has ended for certain. A killed process has, although its parent does not know yet. False also for a
 * task that `self` cannot see: one of another namespace, or unknown. */
bool gm__task_has_ended(const char *root, const gm__task *self, const gm__task *task);

enum { GM__TASK_NAME = 16 };

/* The name that a living process has given itself, of GM__TASK_NAME bytes with its end. False: it cannot be read. The
 * name is that process's own word. */
bool gm__task_name(const char *root, uint32_t pid, char *out);

#endif
