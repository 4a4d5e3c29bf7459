#include "core/load/load_lane.h"

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/device/device.h"
#include "core/device/stream.h"
#include "gm/copy.h"

enum { LANE_PATIENCE_NS = 10000000 };

static gm_status lane_take(void *user, gm__read_memory *out, gm_error *err) {
  gm__ring_slot *slot = NULL;
  const gm_status status = gm__ring_take(((gm__load_lane *)user)->ring, LANE_PATIENCE_NS, &slot, err);
  if (status == GM_OK) *out = (gm__read_memory){.host = slot->host, .token = slot};
  return status;
}

static void lane_give(void *user, const gm__read_memory *memory) {
  gm__ring_give(((gm__load_lane *)user)->ring, memory->token, NULL);
}

static gm_status lane_make(gm__load_lanes *lanes, gm_device *device, gm_stream *stream, gm__load_lane **out,
                           gm_error *err) {
  gm__load_lane *lane = gm__alloc(lanes->services, sizeof *lane);
  if (!lane) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_model_load", "no host memory for a ring");
  const gm_status status = gm__ring_create(device, lanes->slots, lanes->slot_bytes, &lane->ring, err);
  if (status != GM_OK) {
    gm__release(lanes->services, lane, sizeof *lane);
    return status;
  }
  lane->device = device;
  lane->asked = stream;
  lane->stream = stream;
  if (!stream) (void)gm__device_default_stream(device, "gm_model_load", &lane->stream, NULL);
  lane->room = (gm__read_room){.bytes = lanes->slot_bytes, .take = lane_take, .give = lane_give, .user = lane};
  lane->next = lanes->first;
  lanes->first = lane;
  lane->moves = true;
  gm__traffic_begin(device, gm__now_ns());
  *out = lane;
  return GM_OK;
}

gm_status gm__load_lane_of(gm__load_lanes *lanes, gm_device *device, gm_stream *stream, gm__load_lane **out,
                           gm_error *err) {
  for (gm__load_lane *lane = lanes->first; lane; lane = lane->next) {
    if (lane->device == device && lane->asked == stream) return *out = lane, GM_OK;
  }
  return lane_make(lanes, device, stream, out, err);
}

gm_status gm__load_lane_write(const gm__load_lane *lane, const gm__load_target *target, const unsigned char *data,
                              gm_point *point, gm_error *err) {
  gm_point next = {0};
  const gm_status status = gm_block_write(target->pool, target->block, target->at, data, target->bytes, lane->stream,
                                          point && lane->stream ? &next : NULL, err);
  if (status == GM_OK) gm__traffic_count(lane->device, GM__TRAFFIC_UP, target->bytes, target->bytes);
  if (status != GM_OK || !point) return status;
  gm_point_release(lane->device, point);
  *point = next;
  return GM_OK;
}

/* From here on the lane is no user of the device's link. */
static void lane_rest(gm__load_lane *lane) {
  if (lane->moves) gm__traffic_end(lane->device, gm__now_ns());
  lane->moves = false;
}

gm_status gm__load_lanes_sync(gm__load_lanes *lanes, gm_error *err) {
  for (gm__load_lane *lane = lanes->first; lane; lane = lane->next) {
    const gm_status status = lane->stream ? gm_stream_sync(lane->stream, err) : GM_OK;
    if (status != GM_OK) return status;
    lane_rest(lane);
  }
  return GM_OK;
}

uint64_t gm__load_lanes_host_bytes(const gm__load_lanes *lanes) {
  uint64_t bytes = 0;
  for (const gm__load_lane *lane = lanes->first; lane; lane = lane->next) {
    gm__ring_info info;
    gm__ring_figures(lane->ring, &info);
    bytes += info.bytes + sizeof *lane;
  }
  return bytes;
}

void gm__load_lanes_end(gm__load_lanes *lanes) {
  while (lanes->first) {
    gm__load_lane *lane = lanes->first;
    lanes->first = lane->next;
    gm__ring_destroy(lane->ring, NULL);
    lane_rest(lane);
    gm__release(lanes->services, lane, sizeof *lane);
  }
}
