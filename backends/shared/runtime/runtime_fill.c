/* Fills: the entry `fill` of the seam. */
#include "backends/shared/fill_plan.h"
#include "backends/shared/runtime/runtime_entries.h"
#include "backends/shared/runtime/runtime_stream.h"
#include "core/base/error.h"

static int fill_bytes(void *user, uint64_t at, uint8_t value, uint64_t count) {
  gm__runtime_fill_job *fill = user;
  const gm__runtime_set *set = &fill->device->api->set_bytes;
  fill->op = set->op;
  return set->call(fill->device, at, value, count, fill->stream);
}

static int fill_words(void *user, uint64_t at, uint32_t word, uint64_t count) {
  gm__runtime_fill_job *fill = user;
  const gm__runtime_set *set = &fill->device->api->set_words;
  fill->op = set->op;
  return set->call(fill->device, at, word, count, fill->stream);
}

static int fill_copy(void *user, uint64_t to, uint64_t from, uint64_t bytes) {
  gm__runtime_fill_job *fill = user;
  const gm__runtime *api = fill->device->api;
  fill->op = api->copy_ops[fill->way];
  return bytes ? api->copy(fill->device, fill->way, to, from, bytes, fill->stream) : GM__RUNTIME_SUCCESS;
}

gm_status gm__runtime_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                           const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err) {
  gm__runtime_device *opened = device;
  const gm__runtime *api = opened->api;
  gm__runtime_job job;
  if (!gm__fill_pattern_ok(pattern_bytes)) {
    return gm__bad_argument(err, api->set_words.op, "`pattern_bytes` must be 1, 2, 4, 8 or 16, is %u",
                            (unsigned)pattern_bytes);
  }
  const gm_status status = gm__runtime_begin(opened, stream, &job, err);
  if (status != GM_OK) return status;
  gm__runtime_fill_job fill = {.device = opened, .stream = job.stream, .op = api->set_words.op};
  fill.way = dst->host ? GM__RUNTIME_ANY_WAY : api->fill_way;
  const gm__fill_target target = {
      .user = &fill, .set_bytes = fill_bytes, .set_words = fill_words, .copy = fill_copy, .set_ring = api->set_ring};
  const int code = gm__fill_run(&target, dst->address + offset, bytes, pattern, pattern_bytes);
  return gm__runtime_end(opened, &job, code, fill.op, out, err);
}
