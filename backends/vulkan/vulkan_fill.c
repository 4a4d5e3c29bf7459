/* Fills. vkCmdFillBuffer writes only aligned words of four bytes. Heads, tails and patterns of more than four bytes are
 * copied from a staging slot, which holds the pattern over and over. */
#include <string.h>

#include "backends/vulkan/vulkan_command.h"
#include "backends/vulkan/vulkan_copy.h"
#include "backends/vulkan/vulkan_entries.h"
#include "backends/vulkan/vulkan_map.h"
#include "core/base/error.h"

enum { FILL_REGIONS = 64 };

typedef struct fill_job {
  const gm__vulkan_memory *dst;
  uint64_t offset, bytes;
  const unsigned char *pattern;
  uint32_t pattern_bytes;
} fill_job;

static void fill_repeat(unsigned char *out, uint64_t bytes, const unsigned char *pattern, uint32_t pattern_bytes) {
  uint64_t done = bytes < pattern_bytes ? bytes : pattern_bytes;
  memcpy(out, pattern, done);
  while (done < bytes) { /* copy the filled bytes once more: whole patterns double each time */
    uint64_t piece = done < bytes - done ? done : bytes - done;
    memcpy(out + done, out, piece);
    done += piece;
  }
}

/* The word at the aligned byte that is `phase` bytes after the fill's first byte. */
static uint32_t fill_word(const fill_job *job, uint64_t phase) {
  unsigned char bytes[4];
  for (uint32_t i = 0; i < 4; i++) bytes[i] = job->pattern[(phase + i) % job->pattern_bytes];
  uint32_t word;
  memcpy(&word, bytes, sizeof word);
  return word;
}

/* Fill [at, at + bytes) of the job's range from the slot, which begins with the pattern. `period` is the filled length
 * of the slot: a multiple of the pattern, or at least as long as the range. */
static void fill_from_slot(const gm__vulkan_recording *recording, const fill_job *job, const gm__vulkan_slot *slot,
                           uint64_t period, uint64_t at, uint64_t bytes) {
  VkBufferCopy regions[FILL_REGIONS];
  uint32_t count = 0;
  while (bytes) {
    uint64_t phase = at % job->pattern_bytes;
    uint64_t piece = bytes < period - phase ? bytes : period - phase;
    regions[count++] = (VkBufferCopy){
        .srcOffset = slot->offset + phase, .dstOffset = job->dst->buffer_at + job->offset + at, .size = piece};
    at += piece;
    bytes -= piece;
    if (count == FILL_REGIONS || !bytes) {
      recording->device->syms.vkCmdCopyBuffer(recording->buffer, slot->memory->buffer, job->dst->buffer, count,
                                              regions);
      count = 0;
    }
  }
}

/* The parts of a range: a head and a tail of less than a word, and the aligned words between them. */
typedef struct fill_parts {
  uint64_t head, words, tail;
} fill_parts;

static fill_parts fill_divide(const fill_job *job) {
  uint64_t begin = job->dst->buffer_at + job->offset;
  uint64_t head = (4 - begin % 4) % 4;
  if (head > job->bytes) head = job->bytes;
  uint64_t rest = job->bytes - head;
  if (job->pattern_bytes > 4) return (fill_parts){.head = job->bytes};
  return (fill_parts){.head = head, .words = rest - rest % 4, .tail = rest % 4};
}

static void fill_record(const gm__vulkan_recording *recording, const fill_job *job, const gm__vulkan_slot *slot,
                        uint64_t period) {
  fill_parts parts = fill_divide(job);
  if (parts.words) {
    recording->device->syms.vkCmdFillBuffer(recording->buffer, job->dst->buffer,
                                            job->dst->buffer_at + job->offset + parts.head, parts.words,
                                            fill_word(job, parts.head));
  }
  fill_from_slot(recording, job, slot, period, 0, parts.head);
  fill_from_slot(recording, job, slot, period, parts.head + parts.words, parts.tail);
}

static gm_status fill_submit(gm__vulkan_stream *stream, const fill_job *job, const gm__vulkan_slot *slot,
                             uint64_t period, gm_backend_point *out, gm_error *err) {
  gm__vulkan_recording recording;
  gm_status status = gm__vulkan_command_begin(stream->device, stream->queue->family, &recording, err);
  if (status) return status;
  fill_record(&recording, job, slot, period);
  return gm__vulkan_command_submit(&recording, stream, out, err);
}

static gm_status fill_by_device(gm__vulkan_stream *stream, const fill_job *job, gm_backend_point *out, gm_error *err) {
  fill_parts parts = fill_divide(job);
  gm__vulkan_slot slot = {0};
  if (!parts.head && !parts.tail) return fill_submit(stream, job, &slot, 0, out, err);
  gm_status status = gm__vulkan_staging_take(stream->device, &slot, err);
  if (status) return status;
  uint64_t wanted =
      parts.head > 32 ? parts.head : 32; /* a tail needs its own bytes and the pattern bytes before them */
  uint64_t period = wanted < slot.bytes ? wanted : slot.bytes - slot.bytes % job->pattern_bytes;
  fill_repeat(slot.host, period, job->pattern, job->pattern_bytes);
  status = gm__vulkan_flush(stream->device, slot.memory, slot.offset, period, err);
  if (!status) status = fill_submit(stream, job, &slot, period, out, err);
  gm__vulkan_staging_give(stream->device, &slot, status ? NULL : out);
  return status;
}

static gm_status fill_by_host(gm__vulkan_stream *stream, gm__vulkan_memory *dst, const fill_job *job, gm_error *err) {
  unsigned char *host;
  gm_status status = gm__vulkan_stream_drain(stream, err);
  if (!status) status = gm__vulkan_host(stream->device, dst, &host, err);
  if (status) return status;
  fill_repeat(host + job->offset, job->bytes, job->pattern, job->pattern_bytes);
  return gm__vulkan_flush(stream->device, dst, job->offset, job->bytes, err);
}

static bool fill_pattern_ok(uint32_t bytes) { return bytes && bytes <= 16 && !(bytes & (bytes - 1)); }

gm_status gm__vulkan_op_fill(void *user, void *user_stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                             const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err) {
  static const char op[] = "gm_backend_ops.fill";
  gm__vulkan_device *device = user;
  gm__vulkan_stream *stream = user_stream;
  gm__vulkan_memory *memory = gm__vulkan_memory_of(dst);
  if (!fill_pattern_ok(pattern_bytes)) {
    return gm__bad_argument(err, op, "`pattern_bytes` must be 1, 2, 4, 8 or 16, is %u", pattern_bytes);
  }
  const fill_job job = {memory, offset, bytes, pattern, pattern_bytes};
  gm_backend_point point = {0};
  gm_status status = gm__vulkan_copy_check(stream, op, err);
  if (!status && bytes) {
    const bool by_host = gm__vulkan_copy_by_host(memory) && gm__vulkan_whole_atoms(memory, offset, bytes) &&
                         gm__vulkan_stream_may_drain(stream, out);
    status = by_host ? fill_by_host(stream, memory, &job, err) : fill_by_device(stream, &job, &point, err);
  }
  return gm__vulkan_copy_finish(device, status, &point, out, err);
}
