/* One piece of work of a CPU stream, as a value: a copy of a box, a fill, or a wait for a point. */
#ifndef GM_BACKENDS_CPU_CPU_TASK_H
#define GM_BACKENDS_CPU_CPU_TASK_H

#include "gm/backend.h"

typedef enum gm__cpu_task_kind { GM__CPU_COPY, GM__CPU_FILL, GM__CPU_WAIT } gm__cpu_task_kind;

typedef struct gm__cpu_copy_task {
  const unsigned char *src; /* the offsets of `box` count from `src` and `dst` */
  unsigned char *dst;
  gm_rect box;
} gm__cpu_copy_task;

typedef struct gm__cpu_fill_task {
  unsigned char *dst;
  uint64_t bytes;
  unsigned char pattern[16];
  uint32_t pattern_bytes;
} gm__cpu_fill_task;

typedef struct gm__cpu_task {
  gm__cpu_task_kind kind;
  union {
    gm__cpu_copy_task copy;
    gm__cpu_fill_task fill;
    gm_backend_point wait; /* the stream does it */
  } as;
} gm__cpu_task;

/* Run a copy or a fill in the calling thread. */
void gm__cpu_task_run(const gm__cpu_task *task);

#endif
