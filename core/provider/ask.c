#include "core/provider/ask.h"

#include <inttypes.h>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/device/reclaimer.h"
#include "core/provider/upstream.h"
#include "core/room/card_turn.h"
#include "core/room/holding.h"

/* Invariants. A thread reads how much gm may take of the card, and then takes it, under the card's grow lock. So two
 * pools are never both told that the last bytes are theirs, whatever contexts they are of.
 *
 * Memory that comes at its first use is still free by the system's figure. Memory that a pool takes of a promise is
 * therefore touched at once, and stays promised until then. The turn is not held meanwhile: others would wait for
 * seconds. */

static const uint64_t growth_step_bytes = UINT64_C(256) << 20; /* both promised and used for a moment, at most */

static uint64_t ask_room(const gm__provider *provider, bool managed, bool read_now) {
  return managed ? gm__room_left_managed(&provider->claim) : gm__room_left(&provider->claim, read_now);
}

/* REQUIRES: grow lock. */
static gm_status ask_check_room(const gm__provider *provider, uint64_t bytes, bool managed, gm_error *err) {
  uint64_t room = ask_room(provider, managed, false);
  if (bytes > room) room = ask_room(provider, managed, true); /* the figures were old, or there was no host memory */
  if (bytes <= room) return GM_OK;
  const uint64_t promised = managed ? 0 : gm__room_promised(&provider->claim);
  if (promised) {
    char holder[GM__HOLDER_TEXT];
    return gm__fail(err, GM_ERR_OVER_LIMIT, "gm_alloc",
                    "%" PRIu64 " bytes are %" PRIu64 " more than the %" PRIu64
                    " that this device has beside the %" PRIu64 " that reservations hold%s: %s, or free so much",
                    bytes, bytes - room, room, promised, gm__room_holder_text(&provider->claim, holder),
                    gm__room_promise_advice(&provider->claim));
  }
  return gm__fail(
      err, GM_ERR_OVER_LIMIT, "gm_alloc",
      "%" PRIu64 " bytes are %" PRIu64 " more than the %" PRIu64
      " that memory_fraction and min_free_bytes leave on this device: free at least so much, or change them",
      bytes, bytes - room, room);
}

static bool ask_commits_later(const gm__provider *provider, const gm__want *want) {
  const uint64_t can = provider->device->info.capabilities;
  if (!(want->flags & GM_COMMIT) || !(can & GM_CAP_COMMIT)) return false;
  return provider->has_upstream || (can & GM_CAP_COMMIT_QUEUE && !gm__device_makes_streams(provider->device));
}

/* The grow lock is not held: the stream may have work to do before. */
gm_status gm__ask_commit(const gm__provider *provider, gm__growth *growth, const gm__want *want, uint64_t bytes,
                         const gm_memory *memory, gm_error *err) {
  gm_device *device = provider->device;
  if (!ask_commits_later(provider, want)) return GM_OK;
  gm_stream *stream = want->stream;
  if (!stream) stream = gm__device_chosen_stream(device);
  if (gm__device_makes_streams(device)) stream = NULL; /* the backend's own queue does it */
  const gm_status status =
      gm__submitting(device)->commit(device->handle, stream ? stream->handle : NULL, memory, 0, bytes, err);
  if (!status) growth->touched = growth->untouched;
  return status;
}

static gm__device_request ask_request(const gm__provider *provider, const gm__want *want, uint64_t bytes) {
  gm__device_request request = {.bytes = bytes, .priority = provider->priority};
  if (!want) return request;
  request.align = want->align;
  request.usage = want->usage;
  request.flags = want->flags & (GM_HOST_VISIBLE | GM_DEDICATED | (ask_commits_later(provider, want) ? 0 : GM_COMMIT));
  request.must_be = want->must_be;
  request.wish = want->wish;
  request.beside_device = want->beside_device;
  request.managed = want->managed;
  request.share = want->beside_device || want->managed ? GM_SHARE_NONE : provider->share;
  return request;
}

/* Whether what the device gave may come at its first use only. */
static bool ask_is_lazy(const gm__provider *provider, const gm__device_request *request, const gm_memory *memory) {
  const uint32_t type = memory ? memory->type : provider->pages.type;
  return !(request->flags & GM_COMMIT) && type < provider->device->type_count &&
         provider->device->types[type].flags & GM_MEMORY_LAZY;
}

/* Takes the bytes, first of what is promised to the pool. REQUIRES: grow lock. */
static gm_status ask_take(gm__provider *provider, gm__growth *growth, const gm__want *want, gm__device_request *request,
                          bool draws, gm_memory *out, gm_error *err) {
  gm_device *device = provider->device;
  const uint64_t drawn = draws ? gm__holding_draw(&provider->claim, request->bytes) : 0;
  if (drawn && want && !(device->info.capabilities & GM_CAP_COMMIT)) request->flags |= GM_COMMIT; /* now or never */
  const gm_status status =
      want ? gm__device_alloc(device, request, out, err)
           : gm__device_create_physical(device, provider->pages.type, request->bytes, &out->handle, err);
  const bool lazy = !status && ask_is_lazy(provider, request, want ? out : NULL);
  if (lazy) growth->untouched += drawn;
  if (!status) growth->drawn += drawn;
  gm__holding_drawn(&provider->claim, drawn, status ? GM__DRAWN_REFUSED : lazy ? GM__DRAWN_UNTOUCHED : GM__DRAWN_TAKEN);
  return status;
}

static gm_status ask_device(gm__provider *provider, gm__growth *growth, const gm__want *want, uint64_t bytes,
                            gm_memory *out, gm_error *err) {
  gm_device *device = provider->device;
  gm__device_request request = ask_request(provider, want, bytes);
  if (!growth->begun) {
    gm__card_turn_begin(device->ctx, device->room.card, gm__room_aim(&device->room), &growth->turn, NULL);
  }
  growth->begun = true;
  const bool counts = !want || gm__device_takes_own(device, &request);
  gm_status status = counts ? ask_check_room(provider, bytes, request.managed, err) : GM_OK;
  if (!status) status = ask_take(provider, growth, want, &request, counts && !request.managed, out, err);
  return gm__error_of("gm_alloc", status, err);
}

gm_status gm__ask(gm__provider *provider, gm__growth *growth, const gm__want *want, uint64_t bytes, gm_memory *out,
                  void **token, gm_error *err) {
  const uint64_t began = gm__now_ns();
  gm__profiler_push(provider->profiler, want ? "allocation at the driver" : "pages from the driver", provider->name,
                    bytes);
  const gm_status status = want && provider->has_upstream
                               ? gm__upstream_alloc(provider, bytes, want->align, out, token, err)
                               : ask_device(provider, growth, want, bytes, out, err);
  gm__profiler_pop(provider->profiler);
  if (status == GM_ERR_OVER_LIMIT) return status; /* the device was not asked */
  gm__stats_count(&provider->stats.driver_allocs, 1);
  gm__stats_count(&provider->stats.driver_ns, gm__now_ns() - began);
  return status;
}

/* ---- a growth ---- */

void gm__growth_end_turn(gm__growth *growth) {
  if (growth->begun) gm__card_turn_end(&growth->turn);
  growth->begun = false;
}

/* Memory that has come leaves the promise. */
static void growth_settle(gm__provider *provider, gm__growth *growth) {
  gm__holding_touched(&provider->claim, growth->touched);
  growth->untouched -= growth->touched;
  growth->touched = 0;
}

static bool growth_can_touch(const gm_device *device) {
  const uint64_t can = device->info.capabilities;
  return can & GM_CAP_COMMIT && (!(can & GM_CAP_COMMIT_QUEUE) || gm__device_makes_streams(device));
}

gm_status gm__growth_touch(gm__provider *provider, gm__growth *growth, const gm_memory *memory, uint64_t offset,
                           uint64_t bytes, gm_error *err) {
  gm_device *device = provider->device;
  bytes = gm__min(bytes, growth->untouched - growth->touched);
  if (!growth_can_touch(device)) return GM_OK;
  for (uint64_t done = 0, part; done < bytes; done += part) {
    part = gm__min(bytes - done, growth_step_bytes);
    const gm_status status = gm__submitting(device)->commit(device->handle, NULL, memory, offset + done, part, err);
    if (status) return gm__error_of("gm_alloc", status, err);
    growth->touched += part;
    if (growth->touched >= growth_step_bytes) growth_settle(provider, growth);
  }
  return GM_OK;
}

void gm__growth_count(gm__provider *provider, uint64_t bytes) {
  gm__stats_grow(&provider->stats.reserved_bytes, &provider->stats.peak_reserved_bytes, bytes);
  if (provider->lender) gm__reclaimer_took(provider->device, provider->lender);
}

gm_status gm__growth_finish(gm__provider *provider, gm__growth *growth, gm_status status, uint64_t returned) {
  growth_settle(provider, growth);
  if (!status) return status;
  if (growth->untouched) gm__holding_untake(&provider->claim, growth->untouched);
  returned = gm__min(gm__sub_sat(returned, growth->untouched), growth->drawn - growth->untouched);
  gm__holding_retake(&provider->claim, returned);
  growth->drawn -= growth->untouched + returned;
  growth->untouched = 0;
  return status;
}
