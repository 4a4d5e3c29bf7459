#include <string.h>

#include "core/transfer/peer.h"

/* Some drivers' copies between devices succeed and bring nothing. The proof tries memory of the driver's plain kind;
 * copies of other kinds go the same way. */

enum { PROOF_BYTES = 256 };
static const char proof_op[] = "peer_copy";

static gm_status proof_alloc(gm_device *device, gm__access *out, gm_error *err) {
  const gm__device_request request = {.bytes = PROOF_BYTES};
  *out = (gm__access){.device = device, .bytes = PROOF_BYTES};
  return gm__device_alloc(device, &request, &out->memory, err);
}

static void proof_free(const gm__access *access) {
  if (access->memory.handle) gm__device_free(access->device, &access->memory, NULL);
}

static gm_status proof_copy(const gm__access *to, const gm__access *from, gm_error *err) {
  gm_stream *stream = NULL;
  const gm_copy_item item = {&from->memory, 0, &to->memory, 0, PROOF_BYTES};
  gm_status status = gm__device_default_stream(to->device, proof_op, &stream, err);
  if (status) return status;
  return gm__submitting(to->device)
      ->peer_copy(to->device->handle, stream->handle, from->device->handle, &item, NULL, err);
}

static gm_status proof_try(const gm__access *to, const gm__access *from, bool *arrived, gm_error *err) {
  unsigned char sent[PROOF_BYTES], got[PROOF_BYTES] = {0};
  for (unsigned i = 0; i < PROOF_BYTES; i++) sent[i] = (unsigned char)(i * 7 + 1);
  gm_status status = gm__access_write(from, sent, NULL, NULL, proof_op, err);
  if (status == GM_OK) status = gm__access_write(to, got, NULL, NULL, proof_op, err);
  if (status == GM_OK) status = proof_copy(to, from, err);
  if (status == GM_OK) status = gm__access_read(to, got, NULL, NULL, proof_op, err);
  if (status == GM_OK) *arrived = memcmp(sent, got, PROOF_BYTES) == 0;
  return status;
}

gm_status gm__peer_prove(gm__peer_way *way, gm_device *src, gm__peer_proof *out, gm_error *err) {
  gm__access to = {.device = NULL}, from = {.device = NULL};
  bool arrived = false;
  *out = (gm__peer_proof)atomic_load(&way->proof);
  if (*out != GM__PEER_UNPROVEN) return GM_OK;
  gm_status status = proof_alloc(way->device, &to, err);
  if (status == GM_OK) status = proof_alloc(src, &from, err);
  if (status == GM_OK) status = proof_try(&to, &from, &arrived, err);
  proof_free(&to);
  proof_free(&from);
  if (status) return status;
  *out = arrived ? GM__PEER_GOOD : GM__PEER_BROKEN;
  atomic_store(&way->proof, *out);
  return GM_OK;
}
