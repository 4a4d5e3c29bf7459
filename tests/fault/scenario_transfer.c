/* Transfers: up, inside the device, and down, each with small copies and a large one. */
#include <stdio.h>
#include <string.h>

#include "fault/scenario.h"

/* Fewer small copies than gm measures a device for. Host memory of copies stays valid to the end of the program. */
enum { TRANSFER_COPIES = 5, TRANSFER_SMALL = 400, TRANSFER_BYTES = 300000 };
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

/* Small pieces, then all that is left. */
static void transfer_cut(session *s, const gm_block *block, bool up, gm_copy *copies) {
  for (uint64_t i = 0; i < TRANSFER_COPIES; i++) {
    const gm_end device = {.pool = s->pool, .block = block, .offset = i * TRANSFER_SMALL};
    const gm_end host = {.host = up ? transfer_sent : transfer_got, .offset = i * TRANSFER_SMALL};
    copies[i] = (gm_copy){
        .struct_size = sizeof copies[i], .to = up ? device : host, .from = up ? host : device, .bytes = TRANSFER_SMALL};
  }
  copies[TRANSFER_COPIES - 1].bytes = TRANSFER_BYTES - (TRANSFER_COPIES - 1) * TRANSFER_SMALL;
}

gm_status scenario_transfer(session *s, gm_error *err) {
  gm_copy copies[TRANSFER_COPIES];
  for (unsigned i = 0; i < TRANSFER_BYTES; i++) transfer_sent[i] = (unsigned char)(i * 13 + i / 251);
  memset(transfer_got, 0, TRANSFER_BYTES);
  gm_status status = session_open(s, err);
  if (status == GM_OK) status = gm_stream_create(s->device, &s->streams[0], err);
  for (int i = 0; i < 2 && status == GM_OK; i++) status = session_take(s, TRANSFER_BYTES, err);
  if (status) return status;
  transfer_cut(s, &s->blocks[0], true, copies);
  status = transfer_run(s, copies, TRANSFER_COPIES, s->streams[0], err);
  const gm_copy inside = {.struct_size = sizeof inside,
                          .to = {.pool = s->pool, .block = &s->blocks[1]},
                          .from = {.pool = s->pool, .block = &s->blocks[0]},
                          .bytes = TRANSFER_BYTES};
  if (status == GM_OK) status = transfer_run(s, &inside, 1, NULL, err);
  transfer_cut(s, &s->blocks[1], false, copies);
  if (status == GM_OK) status = transfer_run(s, copies, TRANSFER_COPIES, s->streams[0], err);
  if (status || memcmp(transfer_sent, transfer_got, TRANSFER_BYTES) == 0) return status;
  snprintf(err->message, sizeof err->message, "every call succeeded, and the bytes are wrong");
  return GM_ERR_FORMAT;
}
