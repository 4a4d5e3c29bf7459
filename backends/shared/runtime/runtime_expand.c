/* Floats of 16 bits as floats of 32: the entry `expand` of the seam. */
#include "backends/shared/runtime/runtime_entries.h"
#include "backends/shared/runtime/runtime_program.h"
#include "backends/shared/runtime/runtime_stream.h"
#include "core/base/error.h"
#include "core/base/saturate.h"

enum { EXPAND_THREADS = 256, EXPAND_BLOCKS = 2048 };

gm_status gm__runtime_expand(void *device, void *stream, const gm_memory *dst, uint64_t dst_offset,
                             const gm_memory *src, uint64_t src_offset, uint64_t count, gm_dtype from,
                             gm_backend_point *out, gm_error *err) {
  static const char op[] = "gm_backend_ops.expand";
  gm__runtime_device *opened = device;
  uint64_t to_at = dst->address + dst_offset, from_at = src->address + src_offset;
  uint32_t half = from == GM_DTYPE_F16;
  void *parameters[] = {&to_at, &from_at, &count, &half};
  const uint64_t blocks = gm__min(1 + count / EXPAND_THREADS, EXPAND_BLOCKS);
  gm__runtime_job job;
  bool done = false;
  int code = GM__RUNTIME_SUCCESS;
  const gm_status status = gm__runtime_begin(opened, stream, &job, err);
  if (status != GM_OK) return status;
  if (to_at % 4 == 0 && from_at % 2 == 0) {
    code = gm__runtime_launch(opened, GM__RUNTIME_EXPAND, blocks, EXPAND_THREADS, job.stream, parameters, &done);
  }
  if (done || code != GM__RUNTIME_SUCCESS) {
    return gm__runtime_end(opened, &job, code, opened->api->launch_op, out, err);
  }
  gm__runtime_leave(opened, &job.scope);
  return gm__fail(err, GM_ERR_NOT_SUPPORTED, op, "no kernel expands these numbers");
}
