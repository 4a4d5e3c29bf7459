/* The answer in one sentence that stands first. */
#include <inttypes.h>
#include <stdio.h>

#include "gm/size.h"
#include "tools/gmem/fit/fit_standing.h"

enum { VERDICT_PLACE = FIT_NAME + 64 };

/* The owner of the room: the host, the only device, or all of them. */
static void verdict_place(const fit_question *self, char *out, size_t capacity) {
  if (!self->device_count) {
    snprintf(out, capacity, "the host");
  } else if (self->device_count == 1) {
    snprintf(out, capacity, "%s %" PRIu32, self->devices[0].backend, self->devices[0].index);
  } else {
    snprintf(out, capacity, "the %" PRIu32 " devices together", self->device_count);
  }
}

/* The devices that hold it. */
static void verdict_used(const fit_question *self, char *out, size_t capacity) {
  uint32_t only = 0;
  while (only < self->device_count && !self->parts[only].layer_count) only++;
  if (self->plan.devices_used == 1 && only < self->device_count) {
    snprintf(out, capacity, "%s %" PRIu32, self->devices[only].backend, self->devices[only].index);
  } else {
    snprintf(out, capacity, "%" PRIu32 " devices", self->plan.devices_used);
  }
}

static void verdict_yes(const fit_question *self, char *out, size_t capacity) {
  char spare[24], place[VERDICT_PLACE];
  const bool has_devices = self->device_count > 0;
  const uint64_t left = has_devices ? self->plan.least_headroom_bytes : self->plan.host.headroom_bytes;
  gm_format_bytes(left, spare, sizeof spare);
  verdict_used(self, place, sizeof place);
  if (!has_devices && left == GM_UNKNOWN_BYTES) {
    snprintf(out, capacity, "in host memory, for which no limit was given");
  } else if (!has_devices) {
    snprintf(out, capacity, "in host memory, with %s to spare", spare);
  } else {
    snprintf(out, capacity, "all %" PRIu32 " layers on %s, with %s to spare%s", fit_layer_count(self), place, spare,
             self->plan.devices_used > 1 ? " on the fullest" : "");
  }
}

static void verdict_lack(const fit_question *self, uint64_t lack, const char *verb, char *out, size_t capacity) {
  char lacking[24], place[VERDICT_PLACE];
  const bool several = self->device_count > 1;
  gm_format_bytes(lack, lacking, sizeof lacking);
  verdict_place(self, place, sizeof place);
  if (lack) {
    snprintf(out, capacity, "%s %s %s%s", place, verb, several ? "at least " : "", lacking);
  } else {
    snprintf(out, capacity, "no split of its layers suits the room on %s", place);
  }
}

/* Where the host has no room for the rest either, what it lacks. */
static void verdict_host(const fit_question *self, char *out, size_t capacity) {
  char lacking[24];
  const uint64_t bytes = self->plan.host.bytes;
  out[0] = '\0';
  if (!self->device_count || bytes <= self->host_free_bytes) return;
  gm_format_bytes(bytes - self->host_free_bytes, lacking, sizeof lacking);
  snprintf(out, capacity, ", and the host lacks %s for the rest", lacking);
}

void fit_verdict_text(const fit_question *self, char *out, size_t capacity) {
  char how[VERDICT_PLACE + 64], rest[64];
  const char *lacks = self->device_count > 1 ? "lack" : "lacks";
  if (self->estimate.standing == GM_STANDING_UNKNOWN) {
    snprintf(out, capacity, "Unknown: %s.", fit_standing_reason(self));
    return;
  }
  switch (self->verdict) {
    case FIT_YES:
      verdict_yes(self, how, sizeof how);
      snprintf(out, capacity, "It fits: %s.", how);
      return;
    case FIT_NO:
      if (self->excess_bytes) {
        gm_format_bytes(self->excess_bytes, rest, sizeof rest);
        snprintf(out, capacity, "It does not fit: a device lacks %s for what is beside the model.", rest);
        return;
      }
      verdict_lack(self, self->plan.lack_bytes, lacks, how, sizeof how);
      verdict_host(self, rest, sizeof rest);
      snprintf(out, capacity, "It does not fit: %s%s.", how, rest);
      return;
    default:
      if (fit_unknown(self)) {
        snprintf(out, capacity, "Unknown: %s.", fit_unknown(self));
        return;
      }
      verdict_lack(self, self->lack_bytes, "may lack", how, sizeof how);
      snprintf(out, capacity, "Unknown: the estimate is an interval, and %s.", how);
  }
}
