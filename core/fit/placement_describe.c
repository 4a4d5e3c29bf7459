#include "core/fit/placement_describe.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/saturate.h"
#include "gm/size.h"

/* The needs of a split, and why it is what it is. The search has this arithmetic, too; a test compares them. */

enum { DESCRIBE_SIZE = 16 };

uint32_t gm__placement_least(const gm_fit_request *request) {
  uint32_t least = (request->layer_count * request->least_share_percent + 99) / 100;
  return least ? least : 1;
}

bool gm__placement_room(const gm_fit_device *device, uint64_t *out) {
  uint64_t taken = gm__add_sat(device->margin_bytes, device->overhead_bytes);
  *out = gm__sub_sat(device->free_bytes, taken);
  return device->free_bytes >= taken;
}

static bool describe_partial(const gm__split *split) { return split->on_host || split->experts; }

/* The sums of layers `first` to `end`; of experts those that lie on devices. */
static void describe_range(const gm_fit_request *request, const gm__split *split, uint32_t first, uint32_t end,
                           gm_fit_part *part) {
  *part = (gm_fit_part){.first_layer = first < end ? first : 0, .layer_count = end - first};
  for (uint32_t i = first; i < end; i++) {
    const gm_fit_layer *layer = &request->layers[i];
    part->weight_bytes = gm__add_sat(part->weight_bytes, layer->weight_bytes);
    part->kv_bytes = gm__add_sat(part->kv_bytes, layer->kv_bytes);
    part->compute_bytes = gm__max(part->compute_bytes, layer->compute_bytes);
    if (i >= split->experts) part->weight_bytes = gm__add_sat(part->weight_bytes, layer->expert_bytes);
  }
  if (first < end && end > split->on_host && describe_partial(split)) {
    part->compute_bytes = gm__add_sat(part->compute_bytes, request->partial_bytes);
  }
}

static uint64_t describe_sum(const gm_fit_part *part) {
  return gm__add_sat(part->weight_bytes, gm__add_sat(part->kv_bytes, part->compute_bytes));
}

/* The bytes that layers `first` up to, not with, `end` need on a device, without its overhead. */
static uint64_t describe_need(const gm_fit_request *request, const gm__split *split, uint32_t first, uint32_t end) {
  gm_fit_part part;
  describe_range(request, split, first, end, &part);
  return describe_sum(&part);
}

static void describe_host(const gm_fit_request *request, const gm__split *split, gm_fit_part *part) {
  describe_range(request, split, 0, split->on_host, part);
  for (uint32_t i = 0; i < split->experts; i++) {
    part->weight_bytes = gm__add_sat(part->weight_bytes, request->layers[i].expert_bytes);
  }
  part->bytes = gm__add_sat(describe_sum(part), request->host_fixed_bytes);
  bool limited = request->host_free_bytes != GM_UNKNOWN_BYTES;
  part->headroom_bytes = limited ? gm__sub_sat(request->host_free_bytes, part->bytes) : GM_UNKNOWN_BYTES;
}

uint64_t gm__placement_host_need(const gm_fit_request *request, const gm__split *split) {
  gm_fit_part part;
  describe_host(request, split, &part);
  return part.bytes;
}

/* The need of the smallest among all runs of the least number of layers. */
static uint64_t describe_smallest_run(const gm_fit_request *request, const gm__split *split) {
  uint32_t least = gm__placement_least(request);
  uint64_t smallest = UINT64_MAX;
  for (uint32_t first = 0; first + least <= request->layer_count; first++) {
    smallest = gm__min(smallest, describe_need(request, split, first, first + least));
  }
  return smallest;
}

static void describe_unused(const gm_fit_request *request, const gm__split *split, const gm_fit_device *device,
                            char *why) {
  char room[DESCRIBE_SIZE], need[DESCRIBE_SIZE];
  uint64_t room_bytes, need_bytes = describe_smallest_run(request, split);
  bool usable = gm__placement_room(device, &room_bytes);
  gm_format_bytes(room_bytes, room, sizeof room);
  gm_format_bytes(need_bytes, need, sizeof need);
  if (!usable || room_bytes == 0) {
    snprintf(why, GM_FIT_WHY_SIZE, "nothing is left after margin and overhead");
  } else if (need_bytes > room_bytes) {
    snprintf(why, GM_FIT_WHY_SIZE, "%u layer(s) at least need %s, %s is left after margin and overhead",
             gm__placement_least(request), need, room);
  } else {
    bool spare = !request->spread && !split->on_host;
    snprintf(why, GM_FIT_WHY_SIZE, spare ? "the other devices have room for all" : "the split is better without it");
  }
}

static void describe_device(const gm_fit_request *request, const gm__split *split, uint32_t number, gm_fit_part *part) {
  const gm_fit_device *device = &request->devices[number];
  uint32_t first = number ? split->ends[number - 1] : split->on_host;
  uint64_t usable = gm__sub_sat(device->free_bytes, device->margin_bytes);
  describe_range(request, split, first, split->ends[number], part);
  if (part->layer_count) {
    part->bytes = gm__add_sat(describe_sum(part), device->overhead_bytes);
  } else {
    describe_unused(request, split, device, part->why);
  }
  part->headroom_bytes = gm__sub_sat(usable, part->bytes);
}

/* Say why not all layers are on devices, if so. */
static void describe_reason(const gm_fit_request *request, gm_fit_plan *plan) {
  char a[DESCRIBE_SIZE], b[DESCRIBE_SIZE];
  uint64_t layers = describe_sum(&plan->host), free_bytes = request->host_free_bytes;
  bool short_host = free_bytes != GM_UNKNOWN_BYTES && plan->host.bytes > free_bytes;
  if (!plan->host.layer_count && !plan->host_expert_layers && !short_host) {
    const bool unknown = request->standing == GM_STANDING_UNKNOWN;
    if (unknown) snprintf(plan->reason, sizeof plan->reason, "what is known finds room; some figures are unknown");
    return;
  }
  gm_format_bytes(short_host ? plan->host.bytes : layers, a, sizeof a);
  gm_format_bytes(free_bytes, b, sizeof b);
  if (request->all_on_devices && !plan->fits && plan->host.layer_count) {
    snprintf(plan->reason, sizeof plan->reason, "%u of %u layers find room on the devices; the others, %s, do not",
             plan->device_layers, request->layer_count, a);
  } else if (short_host) {
    snprintf(plan->reason, sizeof plan->reason,
             "%u of %u layers find room on the devices; the host needs %s and has %s", plan->device_layers,
             request->layer_count, a, b);
  } else {
    snprintf(plan->reason, sizeof plan->reason,
             "the devices have no room for %u of %u layers and the experts of %u: %s on the host",
             plan->host.layer_count, request->layer_count, plan->host_expert_layers, a);
  }
}

/* The bytes that are lacking for all layers on the devices; without devices, on the host. */
static uint64_t describe_lack(const gm_fit_request *request, const gm_fit_part *host) {
  const gm__split all = {.on_host = 0};
  uint64_t room = 0, device_room;
  if (!request->device_count) return gm__sub_sat(host->bytes, request->host_free_bytes);
  for (uint32_t i = 0; i < request->device_count; i++) {
    gm__placement_room(&request->devices[i], &device_room);
    room = gm__add_sat(room, device_room);
  }
  return gm__sub_sat(describe_need(request, &all, 0, request->layer_count), room);
}

void gm__placement_describe(const gm_fit_request *request, const gm__split *split, gm_fit_part *parts,
                            gm_fit_plan *plan) {
  *plan = (gm_fit_plan){.struct_size = sizeof *plan,
                        .fits = plan->fits,
                        .standing = request->standing,
                        .device_layers = request->layer_count - split->on_host,
                        .least_headroom_bytes = GM_UNKNOWN_BYTES};
  for (uint32_t i = split->on_host; i < split->experts; i++) {
    if (request->layers[i].expert_bytes) plan->host_expert_layers = i + 1 - split->on_host;
  }
  for (uint32_t device = 0; device < request->device_count; device++) {
    gm_fit_part part;
    describe_device(request, split, device, &part);
    if (parts) parts[device] = part;
    if (!part.layer_count) continue;
    plan->devices_used++;
    plan->device_bytes = gm__add_sat(plan->device_bytes, part.bytes);
    plan->least_headroom_bytes = gm__min(plan->least_headroom_bytes, part.headroom_bytes);
  }
  describe_host(request, split, &plan->host);
  plan->lack_bytes = describe_lack(request, &plan->host);
  describe_reason(request, plan);
}
