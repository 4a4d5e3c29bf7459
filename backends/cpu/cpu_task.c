#include "backends/cpu/cpu_task.h"

#include <string.h>

static void task_copy(const gm__cpu_copy_task *task) {
  const gm_rect *box = &task->box;
  const uint64_t src_row = box->src_row_pitch ? box->src_row_pitch : box->row_bytes;
  const uint64_t dst_row = box->dst_row_pitch ? box->dst_row_pitch : box->row_bytes;
  const uint64_t src_slice = box->src_slice_pitch ? box->src_slice_pitch : box->rows * src_row;
  const uint64_t dst_slice = box->dst_slice_pitch ? box->dst_slice_pitch : box->rows * dst_row;
  for (uint64_t slice = 0; slice < box->slices; slice++) {
    const unsigned char *src = task->src + box->src_offset + slice * src_slice;
    unsigned char *dst = task->dst + box->dst_offset + slice * dst_slice;
    for (uint64_t row = 0; row < box->rows; row++) memcpy(dst + row * dst_row, src + row * src_row, box->row_bytes);
  }
}

/* Write the pattern once, then copy the filled bytes behind themselves. The copied piece doubles until it would leave
 * the cache. It is always a whole number of patterns, so the pattern stays in step. */
static void task_fill(const gm__cpu_fill_task *task) {
  enum { PIECE_MAX = 32768 };
  uint64_t done = task->bytes < task->pattern_bytes ? task->bytes : task->pattern_bytes;
  memcpy(task->dst, task->pattern, done);
  while (done < task->bytes) {
    const uint64_t left = task->bytes - done;
    uint64_t piece = done < PIECE_MAX ? done : PIECE_MAX;
    if (piece > left) piece = left;
    memcpy(task->dst + done, task->dst, piece);
    done += piece;
  }
}

void gm__cpu_task_run(const gm__cpu_task *task) {
  switch (task->kind) {
    case GM__CPU_COPY: task_copy(&task->as.copy); break;
    case GM__CPU_FILL: task_fill(&task->as.fill); break;
    case GM__CPU_WAIT: break;
  }
}
