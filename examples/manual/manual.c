/* The patterns of docs/manual.md, run on the backend that the first argument names. The page shows parts of this file.
 */
#include <stdio.h>
#include <string.h>

#include "gm/gm.h"

enum { WEIGHTS = 3 << 20, STAGING = 1 << 20, PAGE = 64 << 10, PAGES = 8, SCRATCH = 256 << 10, LOGITS = 4096 };

static gm_acquire weights_take(gm_pool *pool, gm_stream *stream, uint64_t bytes, gm_block *out) {
  const gm_request request = {.bytes = bytes, .stream = stream, .flags = GM_INSERT_WAIT, .must_be = GM_DEVICE_LOCAL};
  return gm_alloc(pool, &request, out);
}

static gm_acquire staging_take(gm_pool *pool, gm_stream *stream, uint64_t bytes, gm_block *out) {
  const gm_request request = {.bytes = bytes,
                              .stream = stream,
                              .flags = GM_HOST_VISIBLE | GM_INSERT_WAIT,
                              .must_be = GM_DEVICE_ACCESSIBLE,
                              .usage = GM_USAGE_TRANSFER};
  return gm_alloc(pool, &request, out);
}

static gm_status staging_copy(gm_pool *pool, gm_stream *stream, const gm_block *staging, const void *src,
                              uint64_t bytes, const gm_block *to, uint64_t offset, gm_error *err) {
  void *host;
  gm_point arrived;
  gm_status status = gm_block_map(pool, staging, 0, bytes, GM_MAP_WRITE | GM_MAP_DISCARD, stream, &host, err);
  if (status) return status;
  memcpy(host, src, bytes); /* or read a file into it */
  status = gm_block_unmap(pool, staging, host, stream, err);
  if (!status) status = gm_block_copy(pool, to, offset, pool, staging, 0, bytes, stream, &arrived, err);
  if (!status) gm_point_release(gm_pool_device(pool), &arrived);
  return status;
}

static gm_acquire page_take(gm_pool *pool, gm_stream *stream, uint64_t page_bytes, gm_block *out) {
  const gm_request request = {
      .bytes = page_bytes, .stream = stream, .flags = GM_INSERT_WAIT, .must_be = GM_DEVICE_LOCAL};
  return gm_alloc(pool, &request, out);
}

static void pages_drop(gm_pool *pool, gm_stream *stream, const gm_block pages[], uint32_t count) {
  while (count > 0) gm_free(pool, &pages[--count], stream);
}

static gm_status step(gm_pool *pool, gm_stream *stream, uint64_t scratch_bytes, const gm_block *logits, uint64_t bytes,
                      gm_error *err) {
  const gm_request request = {
      .bytes = scratch_bytes, .stream = stream, .flags = GM_INSERT_WAIT, .must_be = GM_DEVICE_LOCAL};
  gm_block scratch;
  gm_point done;
  if (!gm_acquired(gm_alloc(pool, &request, &scratch))) return GM_ERR_OUT_OF_DEVICE_MEMORY;
  /* An engine launches its kernels here. */
  gm_status status = gm_block_fill(pool, &scratch, 0, scratch_bytes, "\x5a", 1, stream, &done, err);
  if (!status) gm_point_release(gm_pool_device(pool), &done);
  if (!status) status = gm_block_copy(pool, logits, 0, pool, &scratch, 0, bytes, stream, &done, err);
  if (!status) gm_point_release(gm_pool_device(pool), &done);
  gm_free(pool, &scratch, stream);
  return status;
}

static gm_acquire readback_take(gm_pool *pool, gm_stream *stream, uint64_t bytes, gm_block *out) {
  const gm_request request = {.bytes = bytes,
                              .stream = stream,
                              .flags = GM_HOST_VISIBLE | GM_INSERT_WAIT,
                              .must_be = GM_DEVICE_ACCESSIBLE,
                              .usage = GM_USAGE_TRANSFER | GM_USAGE_READBACK};
  return gm_alloc(pool, &request, out);
}

static gm_status readback(gm_pool *pool, gm_stream *stream, const gm_block *from, const gm_block *to, uint64_t bytes,
                          void *dst, gm_error *err) {
  void *host;
  gm_point arrived;
  gm_status status = gm_block_copy(pool, to, 0, pool, from, 0, bytes, stream, &arrived, err);
  if (status) return status;
  gm_point_release(gm_pool_device(pool), &arrived);
  status = gm_block_map(pool, to, 0, bytes, GM_MAP_READ, stream, &host, err);
  if (status) return status;
  memcpy(dst, host, bytes);
  return gm_block_unmap(pool, to, host, stream, err);
}

/* ---- the patterns in turn ---- */

static gm_status load(gm_pool *pool, gm_stream *stream, const unsigned char *file, const gm_block *weights,
                      gm_error *err) {
  gm_block staging;
  gm_status status = GM_OK;
  if (!gm_acquired(staging_take(pool, stream, STAGING, &staging))) return GM_ERR_OUT_OF_DEVICE_MEMORY;
  for (uint64_t at = 0; !status && at < WEIGHTS; at += STAGING) {
    status = staging_copy(pool, stream, &staging, file + at, STAGING, weights, at, err);
  }
  gm_free(pool, &staging, stream);
  return status;
}

static gm_status generate(gm_pool *pool, gm_stream *stream, const gm_block *logits, gm_error *err) {
  gm_block pages[PAGES];
  gm_status status = GM_OK;
  uint32_t count = 0;
  while (!status && count < PAGES) {
    if (!gm_acquired(page_take(pool, stream, PAGE, &pages[count]))) break;
    count++;
    status = step(pool, stream, SCRATCH, logits, LOGITS, err);
  }
  pages_drop(pool, stream, pages, count);
  return status || count == PAGES ? status : GM_ERR_OUT_OF_DEVICE_MEMORY;
}

static gm_status check(gm_pool *pool, gm_stream *stream, gm_block blocks[3], gm_error *err) {
  static unsigned char file[WEIGHTS], logits[LOGITS];
  unsigned char last = 0;
  memset(file, 0x77, sizeof file);
  gm_status status = load(pool, stream, file, &blocks[0], err);
  if (!status) status = generate(pool, stream, &blocks[1], err);
  if (!status) status = readback(pool, stream, &blocks[1], &blocks[2], LOGITS, logits, err);
  if (!status) status = gm_block_read(pool, &blocks[0], WEIGHTS - 1, &last, 1, stream, NULL, err);
  const char *backend = gm_device_get_info(gm_pool_device(pool))->backend;
  if (!status) printf("%s: logits %02x, weights %02x\n", backend, logits[LOGITS - 1], last);
  return status;
}

static gm_status run(gm_pool *pool, gm_stream *stream, gm_error *err) {
  gm_block blocks[3];
  const gm_request logits = {.bytes = LOGITS, .stream = stream, .flags = GM_INSERT_WAIT};
  const bool taken[3] = {gm_acquired(weights_take(pool, stream, WEIGHTS, &blocks[0])),
                         gm_acquired(gm_alloc(pool, &logits, &blocks[1])),
                         gm_acquired(readback_take(pool, stream, LOGITS, &blocks[2]))};
  gm_status status = GM_ERR_OUT_OF_DEVICE_MEMORY;
  if (taken[0] && taken[1] && taken[2]) status = check(pool, stream, blocks, err);
  for (int i = 0; i < 3; i++) {
    if (taken[i]) gm_free(pool, &blocks[i], stream);
  }
  return status;
}

int main(int argc, char **argv) {
  gm_context *ctx = NULL;
  gm_device *device = NULL;
  gm_stream *stream = NULL;
  gm_pool *pool = NULL;
  gm_error err = {.status = GM_OK};
  gm_status status = gm_context_create(NULL, &ctx, &err);
  if (!status && argc > 1) status = gm_device_open_index(ctx, argv[1], 0, &device, &err);
  if (!status && !device) status = gm_open_for_bytes(ctx, "auto", 16 << 20, &device, &err);
  if (!status) status = gm_pool_create(device, NULL, &pool, &err);
  if (!status) status = gm_stream_create(device, &stream, &err);
  if (!status) status = run(pool, stream, &err);
  if (status) fprintf(stderr, "%s: %s\n", gm_status_name(status), err.message);
  const gm_status ends[] = {gm_stream_close(stream, NULL), gm_pool_destroy(pool, NULL), gm_device_close(device, NULL),
                            gm_context_destroy(ctx, NULL)};
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) status = status ? status : ends[i];
  return status != GM_OK;
}
