/* Transfers: up, inside the device, and down, each with small copies and a large one. Small copies that the device
 * scatters and gathers, and numbers that it expands. */
#include <stdio.h>
#include <string.h>

#include "core/device/device_alloc.h"
#include "core/staging/staging.h"
#include "fault/scenario.h"

/* Fewer small copies than gm measures a device for. Host memory of copies stays valid to the end of the program. */
enum { TRANSFER_COPIES = 5, TRANSFER_SMALL = 400, TRANSFER_BYTES = 300000, TRANSFER_SCATTERS = 40 };
static unsigned char transfer_sent[TRANSFER_BYTES], transfer_got[TRANSFER_BYTES];

static gm_status transfer_run(session *s, const gm_copy *copies, uint64_t count, gm_stream *stream, gm_error *err) {
  const gm_transfer_params params = {.struct_size = sizeof params, .stream = stream};
  gm_status status = gm_transfer_start(s->device, copies, count, &params, &s->transfer, err);
  if (status == GM_OK && stream) status = gm_transfer_before(s->transfer, GM_TRANSFER_ALL, stream, err);
  if (status == GM_OK) status = gm_transfer_wait(s->transfer, UINT64_MAX, NULL, err);
  const gm_status released = gm_transfer_release(s->transfer, status ? NULL : err);
  if (released == GM_OK) s->transfer = NULL;
  return status ? status : released;
}

/* Small pieces, the second one by a codec, then all that is left. */
static void transfer_cut(session *s, const gm_block *block, bool up, gm_copy *copies) {
  for (uint64_t i = 0; i < TRANSFER_COPIES; i++) {
    const gm_end device = {.pool = s->pool, .block = block, .offset = i * TRANSFER_SMALL};
    const gm_end host = {.host = up ? transfer_sent : transfer_got, .offset = i * TRANSFER_SMALL};
    copies[i] = (gm_copy){
        .struct_size = sizeof copies[i], .to = up ? device : host, .from = up ? host : device, .bytes = TRANSFER_SMALL};
  }
  copies[1].codec = gm_codec_find("bf16"); /* floats on the device, which 16 bits can hold */
  copies[1].codec_way = up ? GM_CODEC_DECODE : GM_CODEC_ENCODE;
  copies[1].host_bytes = TRANSFER_SMALL / 2;
  copies[TRANSFER_COPIES - 1].bytes = TRANSFER_BYTES - (TRANSFER_COPIES - 1) * TRANSFER_SMALL;
}

static gm_status transfer_open(session *s, gm_error *err) {
  for (unsigned i = 0; i < TRANSFER_BYTES; i++) transfer_sent[i] = (unsigned char)(i * 13 + i / 251);
  memset(transfer_sent + TRANSFER_SMALL + TRANSFER_SMALL / 2, 0, TRANSFER_SMALL / 2); /* no copy has these */
  memset(transfer_got, 0, TRANSFER_BYTES);
  const gm_status status = session_open(s, err);
  return status ? status : gm_stream_create(s->device, &s->streams[0], err);
}

static gm_status transfer_wrong(gm_error *err) {
  snprintf(err->message, sizeof err->message, "every call succeeded, and the bytes are wrong");
  return GM_ERR_FORMAT;
}

static gm_status transfer_compare(uint64_t bytes, gm_error *err) {
  return memcmp(transfer_sent, transfer_got, bytes) == 0 ? GM_OK : transfer_wrong(err);
}

gm_status scenario_transfer(session *s, gm_error *err) {
  gm_copy copies[TRANSFER_COPIES];
  gm_status status = transfer_open(s, err);
  for (int i = 0; i < 2 && status == GM_OK; i++) status = session_take(s, TRANSFER_BYTES, err);
  if (status) return status;
  transfer_cut(s, &s->blocks[0], true, copies);
  status = transfer_run(s, copies, TRANSFER_COPIES, s->streams[0], err);
  const gm_rect box = {.row_bytes = TRANSFER_BYTES / 3, .rows = 3, .slices = 1};
  const gm_copy inside = {.struct_size = sizeof inside,
                          .to = {.pool = s->pool, .block = &s->blocks[1]},
                          .from = {.pool = s->pool, .block = &s->blocks[0]},
                          .bytes = TRANSFER_BYTES,
                          .rect = &box};
  if (status == GM_OK) status = transfer_run(s, &inside, 1, NULL, err);
  transfer_cut(s, &s->blocks[1], false, copies);
  if (status == GM_OK) status = transfer_run(s, copies, TRANSFER_COPIES, s->streams[0], err);
  return status ? status : transfer_compare(TRANSFER_BYTES, err);
}

/* ---- small copies that are scattered ---- */

/* The device's measured limits do not depend on its speed here: small copies are packed, and scattered. */
static gm_status scatter_always(const session *s, gm_error *err) {
  gm__ring *ring = NULL;
  gm__ring_info info;
  gm_memory memory = {.handle = 0};
  gm_status status = gm__staging_open(s->device, &ring, err);
  if (status) return status;
  gm__ring_figures(ring, &info);
  const gm__device_request request = {.bytes = (uint64_t)info.most << 20};
  status = gm__device_alloc(s->device, &request, &memory, err);
  gm__staging_set_small(s->device, 4096);
  if (status == GM_OK) gm__staging_set_beside(s->device, GM__BESIDE_SCATTER, 4096, &memory);
  gm__staging_close(s->device);
  return status;
}

/* The steps between their places differ, and some of them meet. */
static void scatter_cut(session *s, bool up, gm_copy *copies) {
  for (uint64_t i = 0, at = 3; i < TRANSFER_SCATTERS; i++, at += TRANSFER_SMALL + i % 5 * i) {
    const gm_end device = {.pool = s->pool, .block = &s->blocks[0], .offset = at};
    const gm_end host = {.host = up ? transfer_sent : transfer_got, .offset = i * TRANSFER_SMALL};
    copies[i] = (gm_copy){
        .struct_size = sizeof copies[i], .to = up ? device : host, .from = up ? host : device, .bytes = TRANSFER_SMALL};
  }
}

/* Numbers of the first copy, at the block's end as floats of 32 bits. */
static gm_status scatter_expand(const session *s, gm_error *err) {
  enum { NUMBERS = 8, AT = TRANSFER_BYTES - 4 * NUMBERS };
  const gm_block *block = &s->blocks[0];
  const gm_codec *bf16 = gm_codec_find("bf16");
  uint32_t got[NUMBERS];
  gm_status status =
      gm_block_expand(s->pool, block, AT, s->pool, block, 4, NUMBERS, bf16, s->streams[0], NULL, NULL, err);
  if (status == GM_OK) status = gm_block_read(s->pool, block, AT, got, sizeof got, s->streams[0], NULL, err);
  for (int i = 0; i < NUMBERS && status == GM_OK; i++) {
    uint16_t number;
    memcpy(&number, transfer_sent + 1 + 2 * i, sizeof number);
    if (got[i] != (uint32_t)number << 16) return transfer_wrong(err);
  }
  return status;
}

/* Numbers go up, and are made whole on their way. */
static gm_status scatter_expand_up(session *s, gm_error *err) {
  enum { NUMBERS = 300 };
  uint32_t sent[NUMBERS], got[NUMBERS];
  for (uint32_t i = 0; i < NUMBERS; i++) sent[i] = i * 7 << 16;
  const gm_copy copy = {.struct_size = sizeof copy,
                        .to = {.pool = s->pool, .block = &s->blocks[0], .offset = 4},
                        .from = {.host = sent},
                        .bytes = sizeof sent,
                        .host_bytes = sizeof sent,
                        .codec = gm_codec_find("bf16"),
                        .expand = true};
  gm_status status = transfer_run(s, &copy, 1, s->streams[0], err);
  if (status == GM_OK) status = gm_block_read(s->pool, &s->blocks[0], 4, got, sizeof got, s->streams[0], NULL, err);
  return status || memcmp(sent, got, sizeof got) == 0 ? status : transfer_wrong(err);
}

gm_status scenario_scatter(session *s, gm_error *err) {
  gm_copy copies[TRANSFER_SCATTERS];
  gm_status status = transfer_open(s, err);
  if (status == GM_OK) status = session_take(s, TRANSFER_BYTES, err);
  if (status == GM_OK) status = scatter_always(s, err);
  if (status) return status;
  scatter_cut(s, true, copies);
  status = transfer_run(s, copies, TRANSFER_SCATTERS, s->streams[0], err);
  scatter_cut(s, false, copies);
  if (status == GM_OK) status = transfer_run(s, copies, TRANSFER_SCATTERS, s->streams[0], err);
  if (status == GM_OK) status = transfer_compare(TRANSFER_SCATTERS * TRANSFER_SMALL, err);
  if (status == GM_OK) status = scatter_expand(s, err);
  return status ? status : scatter_expand_up(s, err);
}
