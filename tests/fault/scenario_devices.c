/* Copies between two devices, and memory for host and device. */
#include <stdio.h>
#include <string.h>

#include "fault/scenario.h"
#include "gm/copy.h"
#include "gm/peer.h"

/* Three pieces of a staged copy. Host memory of copies stays valid to the end of the program. */
enum { DEVICES_SLOT = 64 << 10, DEVICES_BYTES = 2 * DEVICES_SLOT + 1000, MANAGED_BYTES = 200000 };
static unsigned char devices_sent[DEVICES_BYTES], devices_got[DEVICES_BYTES];

/* Linked in the place of gm's own: small slots, because a sweep copies thousands of times. */
uint64_t __wrap_gm__ring_usual_bytes(void);

uint64_t __wrap_gm__ring_usual_bytes(void) { return DEVICES_SLOT; }

static gm_status devices_wrong(gm_error *err) {
  snprintf(err->message, sizeof err->message, "every call succeeded, and the bytes are wrong");
  return GM_ERR_FORMAT;
}

/* The second device of the backend, where it has one and `same` asks for it; else the CPU. */
static gm_status devices_open_other(session *s, bool same, gm_error *err) {
  gm_status status = GM_ERR_NOT_FOUND;
  const gm_request request = {.bytes = DEVICES_BYTES};
  if (same) status = gm_device_open_index(s->ctx, s->backend, 1, &s->other_device, err);
  if (status == GM_ERR_NOT_FOUND) status = gm_device_open_index(s->ctx, "cpu", 0, &s->other_device, err);
  if (status == GM_OK) status = gm_pool_create(s->other_device, NULL, &s->other_pool, err);
  if (status) return status;
  s->has_other_block = gm_alloc(s->other_pool, &request, &s->other_block) <= GM_ACQUIRE_FRESH;
  if (s->has_other_block) return GM_OK;
  gm_explanation why = {.struct_size = sizeof why};
  status = gm_explain(s->other_pool, &request, &why, err);
  if (status) return status;
  *err = why.last_failure;
  return err->status ? err->status : GM_ERR_OUT_OF_DEVICE_MEMORY;
}

static gm_status devices_there_and_back(session *s, gm_error *err) {
  const gm_block *here = &s->blocks[0], *there = &s->other_block;
  gm_point point = {0, 0, 0};
  gm_status status = gm_block_write(s->pool, here, 0, devices_sent, DEVICES_BYTES, NULL, NULL, err);
  if (status == GM_OK) {
    status = gm_block_copy_peer(s->other_pool, there, 0, s->pool, here, 0, DEVICES_BYTES, NULL, NULL, NULL, err);
  }
  if (status == GM_OK) status = gm_block_fill(s->pool, here, 0, DEVICES_BYTES, "0", 1, s->streams[0], NULL, err);
  if (status == GM_OK) {
    status =
        gm_block_copy_peer(s->pool, here, 0, s->other_pool, there, 0, DEVICES_BYTES, s->streams[0], &point, NULL, err);
  }
  if (status == GM_OK) status = gm_point_wait(s->device, &point, UINT64_MAX, err);
  gm_point_release(s->device, &point);
  if (status == GM_OK) status = gm_block_read(s->pool, here, 0, devices_got, DEVICES_BYTES, NULL, NULL, err);
  if (status) return status;
  return memcmp(devices_sent, devices_got, DEVICES_BYTES) == 0 ? GM_OK : devices_wrong(err);
}

/* Once: a sweep runs the scenario hundreds of times. */
static void devices_make_sent(void) {
  static bool made;
  for (unsigned i = 0; i < DEVICES_BYTES && !made; i++) devices_sent[i] = (unsigned char)(i * 11 + i / 251);
  made = true;
}

static gm_status devices_copy(session *s, bool same, gm_error *err) {
  devices_make_sent();
  memset(devices_got, 0, DEVICES_BYTES);
  gm_status status = session_open(s, err);
  if (status == GM_OK) status = gm_stream_create(s->device, &s->streams[0], err);
  if (status == GM_OK) status = session_take(s, DEVICES_BYTES, err);
  if (status == GM_OK) status = devices_open_other(s, same, err);
  return status ? status : devices_there_and_back(s, err);
}

gm_status scenario_peer(session *s, gm_error *err) { return devices_copy(s, true, err); }

gm_status scenario_staged(session *s, gm_error *err) { return devices_copy(s, false, err); }

gm_status scenario_managed(session *s, gm_error *err) {
  const gm_managed_params params = {.struct_size = sizeof params, .bytes = MANAGED_BYTES, .zero = true};
  gm_status status = session_open(s, err);
  if (status == GM_OK) status = gm_stream_create(s->device, &s->streams[0], err);
  if (status == GM_OK) status = gm_managed_create(s->pool, &params, &s->managed, err);
  if (status) return status;
  unsigned char *host = gm_managed_host(s->managed);
  gm_stream *stream = s->streams[0];
  memset(host, 'h', MANAGED_BYTES);
  status = gm_managed_advise(s->managed, GM_ADVICE_READ_MOSTLY, GM_MANAGED_ON_HOST, 0, MANAGED_BYTES, true, err);
  if (status == GM_OK) {
    status = gm_managed_prefetch(s->managed, GM_MANAGED_ON_DEVICE, 0, MANAGED_BYTES, stream, NULL, err);
  }
  if (status == GM_OK) {
    status = gm_block_fill(s->pool, gm_managed_block(s->managed), 0, 100, "d", 1, stream, NULL, err);
  }
  if (status == GM_OK) {
    status = gm_managed_prefetch(s->managed, GM_MANAGED_ON_HOST, 0, MANAGED_BYTES, stream, NULL, err);
  }
  if (status) return status;
  return host[99] == 'd' && host[100] == 'h' && host[MANAGED_BYTES - 1] == 'h' ? GM_OK : devices_wrong(err);
}

gm_status session_end_devices(session *s, gm_error *err) {
  gm_status status = s->transfer ? gm_transfer_release(s->transfer, err) : GM_OK;
  if (status && s->transfer) status = gm_transfer_release(s->transfer, err);
  if (status) return status;
  if (s->managed && gm_managed_destroy(s->managed, s->streams[0], err)) {
    status = gm_managed_destroy(s->managed, s->streams[0], err);
  }
  if (status == GM_OK && s->has_other_block) {
    status = gm_free(s->other_pool, &s->other_block, NULL);
    if (status) status = gm_free(s->other_pool, &s->other_block, NULL);
  }
  if (status == GM_OK && s->other_pool && gm_pool_destroy(s->other_pool, err)) {
    status = gm_pool_destroy(s->other_pool, err);
  }
  if (status == GM_OK && s->other_device && gm_device_close(s->other_device, err)) {
    status = gm_device_close(s->other_device, err);
  }
  return status;
}
