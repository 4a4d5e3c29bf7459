#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/fit/placement_describe.h"

/* A table is filled from the last device to the first. An entry is for the devices from one on, and the layers from one
 * on. It says how good a split of those layers over those devices can be. So one table answers for every number of
 * layers on the host. Less on devices never makes a split impossible, so a search by halving finds the experts. */

typedef struct placement_cell {
  uint64_t headroom; /* of the tightest device, plus 1; 0: there is no split; UINT64_MAX: no device is used */
  uint16_t used;     /* devices; 0 where their number does not matter */
  uint16_t end;      /* where the device's layers end */
} placement_cell;

typedef struct placement {
  const gm_services *services;
  const gm_fit_request *request;
  placement_cell *best; /* [device][layer], one row and one column more */
  gm__split split;      /* `experts` is what the table was made for; on_host tells whether anything is on the host */
} placement;

static bool placement_open(placement *p) {
  size_t cells = ((size_t)p->request->device_count + 1) * (p->request->layer_count + 1);
  p->best = gm__alloc_array(p->services, cells, sizeof *p->best);
  return p->best != NULL;
}

static void placement_close(placement *p) {
  size_t cells = ((size_t)p->request->device_count + 1) * (p->request->layer_count + 1);
  gm__release(p->services, p->best, cells * sizeof *p->best);
}

static placement_cell *placement_at(const placement *p, uint32_t device, uint32_t layer) {
  return &p->best[(size_t)device * (p->request->layer_count + 1) + layer];
}

/* Fewer devices, then more headroom. */
static bool placement_worse(const placement_cell *a, const placement_cell *b) {
  if (!a->headroom || !b->headroom || a->used == b->used) return a->headroom < b->headroom;
  return a->used > b->used;
}

/* The best end for layers from `first` on one device; of equal ones the last. */
static void placement_fill_cell(placement *p, uint32_t device, uint32_t first) {
  const gm_fit_request *request = p->request;
  const placement_cell *behind = placement_at(p, device + 1, 0);
  placement_cell best = {behind[first].headroom, behind[first].used, (uint16_t)first};
  uint64_t room, sum = 0, compute = 0;
  uint64_t fixed = p->split.experts || p->split.on_host ? request->partial_bytes : 0;
  uint32_t least = gm__placement_least(request);
  bool usable = gm__placement_room(&request->devices[device], &room);
  for (uint32_t i = first; usable && i < request->layer_count; i++) {
    const gm_fit_layer *layer = &request->layers[i];
    sum = gm__add_sat(sum, gm__add_sat(layer->weight_bytes, layer->kv_bytes));
    if (i >= p->split.experts) sum = gm__add_sat(sum, layer->expert_bytes);
    compute = gm__max(compute, layer->compute_bytes);
    uint64_t need = gm__add_sat(sum, gm__add_sat(compute, fixed));
    if (need > room) break;
    placement_cell found = {.headroom = gm__min(room - need + 1, behind[i + 1].headroom), .end = (uint16_t)(i + 1)};
    if (!request->spread) found.used = (uint16_t)(behind[i + 1].used + 1);
    if (i + 1 - first < least || !found.headroom || placement_worse(&found, &best)) continue;
    best = found;
  }
  *placement_at(p, device, first) = best;
}

/* The table for splits with the experts of so many layers on the host, and with `partial` anything there. */
static void placement_fill(placement *p, uint32_t experts, bool partial) {
  uint32_t count = p->request->layer_count, devices = p->request->device_count;
  p->split.experts = experts;
  p->split.on_host = partial;
  for (uint32_t i = 0; i <= count; i++) {
    *placement_at(p, devices, i) = (placement_cell){.headroom = i == count ? UINT64_MAX : 0};
  }
  for (uint32_t device = devices; device-- > 0;) {
    for (uint32_t i = 0; i <= count; i++) placement_fill_cell(p, device, i);
  }
}

static bool placement_possible(const placement *p, uint32_t on_host) { return p->best[on_host].headroom != 0; }

static gm__split placement_split(const placement *p, uint32_t on_host, uint32_t experts) {
  gm__split split = {.on_host = on_host, .experts = experts};
  uint32_t at = on_host;
  for (uint32_t device = 0; device < p->request->device_count; device++) {
    at = placement_at(p, device, at)->end;
    split.ends[device] = at;
  }
  return split;
}

static bool placement_host_has_room(const placement *p, uint32_t on_host, uint32_t experts, bool any_host) {
  gm__split split = {.on_host = on_host, .experts = experts};
  return any_host || p->request->host_free_bytes == GM_UNKNOWN_BYTES ||
         gm__placement_host_need(p->request, &split) <= p->request->host_free_bytes;
}

/* With so many layers on the host, returns the fewest layers whose experts must be there. One more than there are
 * layers: no number is enough. The table is left filled for that number. */
static uint32_t placement_fewest_experts(placement *p, uint32_t on_host) {
  uint32_t low = on_host, high = p->request->layer_count + 1;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    placement_fill(p, middle, true);
    if (placement_possible(p, on_host)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  placement_fill(p, high, true);
  return high;
}

/* The best split; false: there is none. `any_host`: as if the host had no limit, and as if it were allowed. */
static bool placement_search(placement *p, bool any_host, gm__split *out) {
  const gm_fit_request *request = p->request;
  uint32_t last = request->all_on_devices && !any_host ? 0 : request->layer_count;
  placement_fill(p, 0, false);
  if (placement_possible(p, 0) && placement_host_has_room(p, 0, 0, any_host)) {
    *out = placement_split(p, 0, 0);
    return true;
  }
  placement_fill(p, 0, true);
  for (uint32_t on_host = request->experts_on_host ? 0 : 1; on_host <= last; on_host++) {
    if (!placement_host_has_room(p, on_host, on_host, any_host)) return false; /* more layers need more */
    uint32_t experts = request->experts_on_host ? placement_fewest_experts(p, on_host) : on_host;
    if (placement_possible(p, on_host) && placement_host_has_room(p, on_host, experts, any_host)) {
      *out = placement_split(p, on_host, experts);
      return true;
    }
  }
  return false;
}

static gm_status placement_check(const gm_fit_request *request, gm_error *err) {
  const char *op = "gm_place_layers";
  if (!request->layers || !request->layer_count || request->layer_count > GM_FIT_LAYERS_MAX) {
    return gm__bad_argument(err, op, "1 to %d layers are needed, not %u", GM_FIT_LAYERS_MAX, request->layer_count);
  }
  if (request->device_count > GM_FIT_DEVICES_MAX || (request->device_count && !request->devices)) {
    return gm__bad_argument(err, op, "%u devices: NULL, or more than %d", request->device_count, GM_FIT_DEVICES_MAX);
  }
  if (request->least_share_percent > 100) {
    return gm__bad_argument(err, op, "a share of %u percent", request->least_share_percent);
  }
  for (uint32_t i = 0; i < request->layer_count; i++) {
    const uint64_t *reserved = request->layers[i].reserved;
    if (reserved[0] || reserved[1]) return gm__bad_argument(err, op, "`reserved` of layer %u must be 0", i);
  }
  for (uint32_t i = 0; i < request->device_count; i++) {
    const uint64_t *reserved = request->devices[i].reserved;
    if (reserved[0] || reserved[1]) return gm__bad_argument(err, op, "`reserved` of device %u must be 0", i);
    if (request->devices[i].free_bytes != GM_UNKNOWN_BYTES) continue;
    return gm__bad_argument(err, op, "nobody knows what is free on device %u", i);
  }
  return GM_OK;
}

gm_status gm_place_layers(const gm_services *services, const gm_fit_request *request, gm_fit_part *out_parts,
                          gm_fit_plan *out, gm_error *err) {
  static const char op[] = "gm_place_layers";
  gm__split split;
  gm_fit_request asked;
  gm_fit_plan plan = {.struct_size = sizeof plan};
  gm_status status = gm__sized_in(&asked, sizeof asked, request, op, "request", err);
  if (status == GM_OK) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status == GM_OK) status = placement_check(&asked, err);
  if (status == GM_OK) status = gm__services_check(services, err);
  if (status != GM_OK) return status;
  placement p = {.services = services, .request = &asked};
  if (!placement_open(&p)) {
    placement_close(&p);
    return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a split of %u layers", asked.layer_count);
  }
  const bool found = placement_search(&p, false, &split);
  if (!found) placement_search(&p, true, &split);
  plan.fits = found && asked.standing != GM_STANDING_UNKNOWN;
  placement_close(&p);
  gm__placement_describe(&asked, &split, out_parts, &plan);
  gm__sized_out(out, &plan, sizeof plan);
  return GM_OK;
}
