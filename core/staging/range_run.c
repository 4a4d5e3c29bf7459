#include "core/base/error.h"
#include "core/staging/carry.h"

enum { RANGE_CARRIED_LEAST = 1 << 20 };

/* Does a copy that waits gain by slots? Memory that the host writes straight needs none. Beside a capture no driver
 * locks memory: a ring that asked for its first slot then would stay pageable. */
static bool range_is_carried(const gm__access *access, const gm__transfer *what, gm_stream *on) {
  const gm_device *device = access->device;
  return what->pageable && access->bytes >= RANGE_CARRIED_LEAST && !access->memory.host && !device->info.unified &&
         on && !gm__device_captured(access->device);
}

/* Bytes without a slot go as they are. */
static gm_status range_carry(const gm__access *access, const gm__transfer *what, gm_stream *stream, gm_stream *on,
                             const char *op, gm_error *err) {
  const bool up = what->kind == GM__TRANSFER_WRITE;
  const gm__carry_end range = {.range = access, .stream = on};
  const gm__carry_end host = {.host = up ? (unsigned char *)(uintptr_t)what->src : what->dst};
  gm__carry carry = {up ? range : host, up ? host : range, .bytes = access->bytes, .lender = access->device, .op = op};
  gm__access rest = *access;
  gm__transfer left = *what;
  const gm_status status = gm__carry_run(&carry, err);
  if (status || carry.done == access->bytes) return gm__error_of(op, status, err);
  rest.offset += carry.done;
  rest.bytes -= carry.done;
  left.src = left.dst = host.host + carry.done;
  return gm__range_move(&rest, &left, stream, NULL, op, err);
}

gm_status gm__range_run(const gm__access *access, const gm__transfer *what, gm_stream *stream, gm_point *out,
                        const char *op, gm_error *err) {
  gm_stream *on = NULL;
  if (what->kind == GM__TRANSFER_WRITE && !what->src) return gm__bad_argument(err, op, "`src` is NULL");
  if (what->kind == GM__TRANSFER_READ && !what->dst) return gm__bad_argument(err, op, "`dst` is NULL");
  if (what->pageable && !out) (void)gm__access_stream(access->device, stream, op, &on, NULL);
  return range_is_carried(access, what, on) ? range_carry(access, what, stream, on, op, err)
                                            : gm__range_move(access, what, stream, out, op, err);
}

gm_status gm__access_write(const gm__access *access, const void *src, gm_stream *stream, gm_point *out, const char *op,
                           gm_error *err) {
  return gm__range_run(access, &(gm__transfer){.kind = GM__TRANSFER_WRITE, .src = src}, stream, out, op, err);
}

gm_status gm__access_read(const gm__access *access, void *dst, gm_stream *stream, gm_point *out, const char *op,
                          gm_error *err) {
  return gm__range_run(access, &(gm__transfer){.kind = GM__TRANSFER_READ, .dst = dst}, stream, out, op, err);
}
