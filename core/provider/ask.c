#include "core/provider/ask.h"

#include <inttypes.h>

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/device/holding.h"
#include "core/discovery/card_turn.h"
#include "core/provider/upstream.h"

/* Invariant: a thread reads how much gm may take of the card, and then takes it, under the card's grow lock. So two
 * pools are never both told that the last bytes are theirs, whatever contexts they are of. */

static uint64_t ask_room(const gm__provider *provider, bool managed, bool read_now) {
  gm_device *device = provider->device;
  return managed ? gm__device_headroom_managed(device, &provider->limits)
                 : gm__device_headroom(device, &provider->limits, read_now);
}

/* REQUIRES: grow lock. */
static gm_status ask_check_room(const gm__provider *provider, uint64_t bytes, bool managed, gm_error *err) {
  uint64_t room = ask_room(provider, managed, false);
  if (bytes > room) room = ask_room(provider, managed, true); /* the figures were old, or there was no host memory */
  if (bytes <= room) return GM_OK;
  const uint64_t promised = managed ? 0 : gm__device_promised(provider->device, &provider->limits);
  if (promised) {
    return gm__fail(err, GM_ERR_OVER_LIMIT, 0, "gm_alloc",
                    "%" PRIu64 " bytes are %" PRIu64 " more than the %" PRIu64
                    " that this device has beside the %" PRIu64 " that reservations hold: cancel one, or free so much",
                    bytes, bytes - room, room, promised);
  }
  return gm__fail(
      err, GM_ERR_OVER_LIMIT, 0, "gm_alloc",
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
gm_status gm__ask_commit(const gm__provider *provider, const gm__want *want, uint64_t bytes, const gm_memory *memory,
                         gm_error *err) {
  gm_device *device = provider->device;
  if (!ask_commits_later(provider, want)) return GM_OK;
  gm_stream *stream = want->stream;
  if (!stream) stream = gm__device_chosen_stream(device);
  if (gm__device_makes_streams(device)) stream = NULL; /* the backend's own queue does it */
  return gm__submitting(device)->commit(device->handle, stream ? stream->handle : NULL, memory, 0, bytes, err);
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

static gm_status ask_device(gm__provider *provider, const gm__want *want, uint64_t bytes, gm_memory *out,
                            gm_error *err) {
  gm_device *device = provider->device;
  const gm__device_request request = ask_request(provider, want, bytes);
  gm__card_turn turn;
  gm__card_turn_begin(device->ctx, device->promises, false, &turn, NULL);
  const bool counts = !want || gm__device_takes_own(device, &request);
  gm_status status = counts ? ask_check_room(provider, bytes, request.managed, err) : GM_OK;
  if (!status) {
    const bool draws = counts && !request.managed;
    const uint64_t drawn = draws ? gm__holding_draw(device, &provider->limits, bytes) : 0;
    status = want ? gm__device_alloc(device, &request, out, err)
                  : gm__device_create_physical(device, provider->pages.type, bytes, &out->handle, err);
    gm__holding_drawn(device, &provider->limits, drawn, status == GM_OK);
  }
  gm__card_turn_end(&turn);
  return gm__error_of("gm_alloc", status, err);
}

gm_status gm__ask(gm__provider *provider, const gm__want *want, uint64_t bytes, gm_memory *out, void **token,
                  gm_error *err) {
  const uint64_t began = gm__now_ns();
  gm__profiler_push(provider->profiler, want ? "allocation at the driver" : "pages from the driver", provider->name,
                    bytes);
  const gm_status status = want && provider->has_upstream
                               ? gm__upstream_alloc(provider, bytes, want->align, out, token, err)
                               : ask_device(provider, want, bytes, out, err);
  gm__profiler_pop(provider->profiler);
  if (status == GM_ERR_OVER_LIMIT) return status; /* the device was not asked */
  gm__stats_count(&provider->stats.driver_allocs, 1);
  gm__stats_count(&provider->stats.driver_ns, gm__now_ns() - began);
  return status;
}
