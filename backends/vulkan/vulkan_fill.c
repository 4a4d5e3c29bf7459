/* Fills. vkCmdFillBuffer writes only aligned words of four bytes. Heads and tails are copied byte by byte from a table.
 * So is the first pattern of more than four bytes; the device then copies what is filled, and doubles it each time. */
#include <string.h>

#include "backends/vulkan/vulkan_command.h"
#include "backends/vulkan/vulkan_copy.h"
#include "backends/vulkan/vulkan_entries.h"
#include "backends/vulkan/vulkan_map.h"
#include "backends/vulkan/vulkan_table.h"
#include "core/base/error.h"

enum { FILL_PATTERN_MOST = 16 };

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

/* Copies `count` bytes of the range from the table. REQUIRES: count <= FILL_PATTERN_MOST. */
static void fill_bytes(const gm__vulkan_recording *recording, const fill_job *job, const gm__vulkan_memory *table,
                       uint64_t at, uint64_t count) {
  VkBufferCopy regions[FILL_PATTERN_MOST];
  if (!count) return;
  for (uint64_t i = at; i < at + count; i++) {
    regions[i - at] = (VkBufferCopy){.srcOffset = table->buffer_at + job->pattern[i % job->pattern_bytes],
                                     .dstOffset = job->dst->buffer_at + job->offset + i,
                                     .size = 1};
  }
  recording->device->syms.vkCmdCopyBuffer(recording->buffer, table->buffer, job->dst->buffer, (uint32_t)count, regions);
}

/* Copies the first `done` bytes, which are whole patterns or the whole range, until the range is full. */
static void fill_double(const gm__vulkan_recording *recording, const fill_job *job, uint64_t done) {
  const uint64_t begin = job->dst->buffer_at + job->offset;
  while (done < job->bytes) {
    const VkBufferCopy region = {begin, begin + done, done < job->bytes - done ? done : job->bytes - done};
    gm__vulkan_command_barrier(recording);
    recording->device->syms.vkCmdCopyBuffer(recording->buffer, job->dst->buffer, job->dst->buffer, 1, &region);
    done += region.size;
  }
}

/* The parts of a range: a head and a tail of bytes, and aligned words or whole patterns between them. */
typedef struct fill_parts {
  uint64_t head, words, tail;
} fill_parts;

static fill_parts fill_divide(const fill_job *job) {
  const bool words = job->pattern_bytes <= 4;
  const uint64_t begin = job->dst->buffer_at + job->offset, least = words ? (4 - begin % 4) % 4 : job->pattern_bytes;
  const uint64_t head = least < job->bytes ? least : job->bytes, rest = words ? job->bytes - head : 0;
  return (fill_parts){.head = head, .words = rest - rest % 4, .tail = rest % 4};
}

static gm_status fill_record(gm__vulkan_recording *recording, const fill_job *job, gm_error *err) {
  const fill_parts parts = fill_divide(job);
  const gm__vulkan_memory *table = NULL;
  const gm_status status = parts.head || parts.tail ? gm__vulkan_table(recording->device, &table, err) : GM_OK;
  if (status) return status;
  if (parts.words) {
    recording->device->syms.vkCmdFillBuffer(recording->buffer, job->dst->buffer,
                                            job->dst->buffer_at + job->offset + parts.head, parts.words,
                                            fill_word(job, parts.head));
  }
  fill_bytes(recording, job, table, 0, parts.head);
  fill_bytes(recording, job, table, parts.head + parts.words, parts.tail);
  fill_double(recording, job, parts.head + parts.words + parts.tail);
  return GM_OK;
}

static gm_status fill_by_device(gm__vulkan_stream *stream, const fill_job *job, gm_backend_point *out, gm_error *err) {
  gm__vulkan_recording recording;
  gm_status status = gm__vulkan_command_begin(stream->device, stream->queue->family, &recording, err);
  if (status) return status;
  status = fill_record(&recording, job, err);
  if (!status) return gm__vulkan_command_submit(&recording, stream, out, err);
  gm__vulkan_command_cancel(&recording);
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

static bool fill_pattern_ok(uint32_t bytes) { return bytes && bytes <= FILL_PATTERN_MOST && !(bytes & (bytes - 1)); }

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
