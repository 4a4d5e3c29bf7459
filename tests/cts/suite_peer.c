/* Between devices, and memory that migrates. */
#include <string.h>

#include "cts/cts.h"

enum { PEER_BYTES = 100003 };

/* Another device of the driver, or this one opened once more: *out is the caller's to close. */
static gm_status peer_open(cts *t, void **out) {
  uint32_t count = 0;
  const gm_status status = t->ops->device_count(t->driver, &count, &t->err);
  if (status != GM_OK) return status;
  return t->ops->device_open(t->driver, count > 1 ? (t->info.index + 1) % count : t->info.index, out, &t->err);
}

static void peer_copies_with(cts *t, void *other) {
  static unsigned char want[PEER_BYTES], got[PEER_BYTES];
  const gm_backend_ops *ops = t->ops;
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = PEER_BYTES};
  void *stream;
  gm_memory here, there;
  gm_peer_info info = {.struct_size = sizeof info};
  CTS_OK(t, ops->peer_info(t->device, other, &info, &t->err));
  const gm_status enabled = ops->peer_enable(t->device, other, &t->err);
  CTS_CHECK(t, enabled == (info.direct ? GM_OK : GM_ERR_NOT_SUPPORTED));
  CTS_CHECK(t, ops->peer_enable(t->device, other, &t->err) == enabled); /* again is no error */
  if (!cts_stream(t, &stream) || !cts_memory(t, 0, PEER_BYTES, &here)) return;
  CTS_OK(t, ops->memory_alloc(other, &params, &there, &t->err));
  cts_noise(t, want, sizeof want);
  gm_status status = ops->copy_to_device(other, NULL, &there, 0, want, sizeof want, NULL, &t->err);
  const gm_copy_item item = {.src = &there, .src_offset = 3, .dst = &here, .dst_offset = 7, .bytes = PEER_BYTES - 7};
  if (status == GM_OK) status = ops->peer_copy(t->device, stream, other, &item, NULL, &t->err);
  if (status == GM_OK) {
    status = ops->copy_to_host(t->device, stream, &here, 7, got, (uint64_t)PEER_BYTES - 7, NULL, &t->err);
  }
  const gm_status freed = ops->memory_free(other, &there, GM_CLOSE_NORMAL, NULL);
  CTS_CHECK(t, freed == GM_OK && ops->peer_disable(t->device, other, GM_CLOSE_NORMAL, &t->err) == GM_OK);
  CTS_IS(t, status, GM_OK);
  cts_same(t, got, want + 3, (uint64_t)PEER_BYTES - 7, "copied from another device");
}

static void peer_copies(cts *t) {
  void *other = NULL;
  CTS_OK(t, peer_open(t, &other));
  peer_copies_with(t, other);
  t->ops->device_close(other, GM_CLOSE_NORMAL);
}

static void managed_prefetch_and_advise(cts *t) {
  const gm_backend_ops *ops = t->ops;
  static unsigned char want[PEER_BYTES];
  void *stream;
  gm_memory memory, plain;
  uint32_t type = 0;
  while (type < t->type_count && !(t->types[type].flags & GM_MEMORY_MANAGED)) type++;
  CTS_CHECK(t, type > 0 && type < t->type_count);
  if (!cts_stream(t, &stream) || !cts_memory(t, type, PEER_BYTES, &memory) || !cts_memory(t, 0, 100, &plain)) return;
  cts_noise(t, want, sizeof want);
  memcpy(memory.host, want, sizeof want);
  for (int place = GM_MANAGED_ON_DEVICE; place <= GM_MANAGED_ON_HOST; place++) {
    gm_backend_point point = {0};
    const gm_managed_place to = (gm_managed_place)place;
    CTS_OK(t, ops->managed_prefetch(t->device, stream, &memory, 0, PEER_BYTES, to, &point, &t->err));
    CTS_OK(t, cts_reach(t, &point));
    for (int advice = GM_ADVICE_READ_MOSTLY; advice <= GM_ADVICE_ACCESSED_FROM; advice++) {
      const gm_managed_advice said = (gm_managed_advice)advice;
      CTS_OK(t, ops->managed_advise(t->device, &memory, 0, PEER_BYTES, said, to, true, &t->err));
      CTS_OK(t, ops->managed_advise(t->device, &memory, 0, PEER_BYTES, said, to, false, &t->err));
    }
  }
  cts_same(t, memory.host, want, sizeof want, "after moving to and fro");
  CTS_IS(t, ops->managed_prefetch(t->device, stream, &plain, 0, 100, GM_MANAGED_ON_HOST, NULL, &t->err),
         GM_ERR_INVALID_ARGUMENT);
}

static const cts_case peer_cases[] = {
    {"peer.copies", peer_copies, CTS_PEER | CTS_OPENS | CTS_CONTENTS},
    {"managed.prefetch_and_advise", managed_prefetch_and_advise, CTS_MANAGED | CTS_CONTENTS},
};
const cts_suite cts_peer_suite = {peer_cases, sizeof peer_cases / sizeof peer_cases[0]};
