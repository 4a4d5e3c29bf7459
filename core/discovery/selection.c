/* Choosing a device. Pure over the entries that discovery gives. Candidates are put in order, and the first one whose
 * headroom covers the bytes is taken. Every other candidate gets a sentence why not. */
#include "core/discovery/selection.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/sized.h"
#include "core/context/config.h"
#include "core/discovery/device_figures.h"
#include "core/discovery/discovery.h"
#include "core/figures/memory_info.h"
#include "gm/size.h"

enum { SELECT_TEXT = 64 };

typedef struct select_rules {
  char prefer[256];         /* "" : any */
  char uuid[33];            /* only the device with it, in lower case without dashes; "": any */
  uint64_t keep_free_bytes; /* UINT64_MAX: by the device's total */
  double memory_fraction;
  bool refuse_cpu;
} select_rules;

typedef struct gm__choosing {
  gm_context *ctx;
  gm__registry *registry;
  uint64_t bytes;
  select_rules rules;
  gm_device_entry *entries;  /* in order: the best comes first */
  gm__choosing_why *refused; /* of each entry: why its device was opened and not taken */
  size_t count;
} select_work;

static uint64_t select_headroom(const select_work *work, const gm_memory_info *memory) {
  uint64_t keep = work->rules.keep_free_bytes;
  if (keep == UINT64_MAX) keep = gm__device_margin(work->ctx, memory->total_bytes);
  return gm__headroom(memory, work->rules.memory_fraction, keep);
}

/* Among APIs that show the same card, its own comes first. */
static int select_api_rank(gm_api api) {
  switch (api) {
    case GM_API_CUDA: return 0;
    case GM_API_HIP: return 1;
    case GM_API_METAL: return 2;
    case GM_API_OTHER: return 3;
    case GM_API_VULKAN: return 4;
    case GM_API_OPENCL: return 5;
    default: return 6;
  }
}

/* 0: a GPU; 1: the host by its own backend; 2: a software device of another API; 3: no memory at all. */
static int select_class(const gm_device_entry *entry) {
  if (entry->info.api == GM_API_NULL) return 3;
  if (!entry->host_pool) return 0;
  return entry->info.api == GM_API_CPU ? 1 : 2;
}

/* The place of a backend in "a,b,c", -1 if it is not there; "gpu" stands for nothing here, "rocm" for hip. */
static int select_preference(const char *prefer, const char *backend) {
  int place = 0;
  size_t length = strlen(backend);
  for (const char *item = prefer; item; item = strchr(item, ','), item = item ? item + 1 : NULL, place++) {
    size_t bytes = strcspn(item, ",");
    if (bytes == length && strncmp(item, backend, length) == 0) return place;
    if (bytes == 4 && strncmp(item, "rocm", 4) == 0 && strcmp(backend, "hip") == 0) return place;
  }
  return -1;
}

static int select_compare_numbers(uint64_t a, uint64_t b) { return a < b ? 1 : a > b ? -1 : 0; }

/* Negative: `a` goes before `b`. */
static int select_compare(const select_work *work, const gm_device_entry *a, const gm_device_entry *b) {
  if (work->rules.prefer[0]) {
    int by_preference =
        select_preference(work->rules.prefer, a->id.backend) - select_preference(work->rules.prefer, b->id.backend);
    if (by_preference) return by_preference;
  }
  int by_class = select_class(a) - select_class(b);
  if (by_class) return by_class;
  if (a->physical == b->physical) {
    int by_api = select_api_rank(a->info.api) - select_api_rank(b->info.api);
    if (by_api) return by_api;
  }
  int by_free = select_compare_numbers(gm__effective_free(&a->memory), gm__effective_free(&b->memory));
  if (by_free) return by_free;
  int by_api = select_api_rank(a->info.api) - select_api_rank(b->info.api);
  return by_api ? by_api : (int)a->info.index - (int)b->info.index;
}

/* Stable, and there are few: insertion. */
static void select_sort(select_work *work) {
  for (size_t i = 1; i < work->count; i++) {
    gm_device_entry moved = work->entries[i];
    size_t at = i;
    for (; at > 0 && select_compare(work, &moved, &work->entries[at - 1]) < 0; at--) {
      work->entries[at] = work->entries[at - 1];
    }
    work->entries[at] = moved;
  }
}

static bool select_has_uuid(const select_rules *rules, const gm_device_entry *entry) {
  char uuid[2 * GM_UUID_BYTES + 1] = "";
  for (size_t i = 0; i < GM_UUID_BYTES; i++) snprintf(uuid + 2 * i, 3, "%02x", entry->id.uuid[i]);
  return !rules->uuid[0] || strcmp(rules->uuid, uuid) == 0;
}

/* The helper opened the device to look, and did not survive it. A device that is open after all is none of those. */
static bool select_is_deadly(const select_work *work, const gm_device_entry *entry, char *why, size_t capacity) {
  gm__driver *driver = gm__registry_find(work->registry, entry->id.backend);
  if (!driver) return false;
  gm__mutex_lock(&driver->lock);
  const bool deadly =
      driver->deadly_why.status && gm__device_id_same(&driver->deadly, &entry->id) && !gm__driver_opened(driver, entry);
  if (deadly) snprintf(why, capacity, "%.*s", (int)capacity - 1, driver->deadly_why.message);
  gm__mutex_unlock(&driver->lock);
  return deadly;
}

/* Why the device may not be taken at all, "" if it may. */
static void select_bar(const select_work *work, const gm_device_entry *entry, char *why, size_t capacity) {
  why[0] = '\0';
  if (entry->info.api == GM_API_NULL) {
    snprintf(why, capacity, "hands out addresses without memory");
  } else if (work->rules.prefer[0] && select_preference(work->rules.prefer, entry->id.backend) < 0) {
    snprintf(why, capacity, "not among the preferred backends (%.100s)", work->rules.prefer);
  } else if (!select_has_uuid(&work->rules, entry)) {
    snprintf(why, capacity, "gpu.backend.device names another device");
  } else if (work->rules.refuse_cpu && entry->host_pool) {
    snprintf(why, capacity, "%s, and the CPU was refused",
             entry->info.api == GM_API_CPU ? "is the host" : "is software on the host");
  } else if (entry->memory.free_bytes == GM_UNKNOWN_BYTES) {
    snprintf(why, capacity, "its free memory is not known");
  } else {
    select_is_deadly(work, entry, why, capacity);
  }
}

static void select_reject(gm_selection *out, const gm_device_id *id, uint32_t device, const char *why) {
  if (out->rejected_count < sizeof out->rejected / sizeof *out->rejected) {
    gm_rejection *rejection = &out->rejected[out->rejected_count];
    rejection->id = *id;
    rejection->device = device;
    snprintf(rejection->why, sizeof rejection->why, "%.*s", (int)sizeof rejection->why - 1, why);
  }
  out->rejected_count++;
}

/* A preferred backend that is not available has no device to judge: its own reason is told. */
static void select_reject_backend(gm__driver *driver, gm_selection *out) {
  gm_device_id id = {.backend = ""};
  gm__mutex_lock(&driver->lock);
  const gm_backend_info info = driver->info;
  gm__mutex_unlock(&driver->lock);
  if (info.status == GM_OK) return;
  memcpy(id.backend, info.name, sizeof id.backend);
  select_reject(out, &id, GM_NO_DEVICE, info.reason.message[0] ? info.reason.message : gm_status_text(info.status));
}

static void select_take(gm_selection *out, const gm_device_entry *entry, uint64_t headroom, uint64_t bytes) {
  out->id = entry->id;
  out->device = entry->info.index;
  out->api = entry->info.api;
  out->free_bytes = gm__effective_free(&entry->memory);
  out->headroom_bytes = headroom - bytes;
  out->free_state = entry->memory.free_state;
  out->free_source = entry->memory.free_source;
}

/* A full device serves not even a question of 0 bytes. */
static bool select_is_too_small(uint64_t bytes, uint64_t headroom) { return headroom < bytes || headroom == 0; }

static void select_say_too_small(uint64_t bytes, uint64_t headroom, const gm_memory_info *memory, char *why,
                                 size_t capacity) {
  char asked[32], may[32], room[32];
  gm_format_bytes(bytes, asked, sizeof asked);
  gm_format_bytes(headroom, may, sizeof may);
  gm_format_bytes(gm__effective_free(memory), room, sizeof room);
  snprintf(why, capacity, "%s does not fit: %s may be taken of %s%s free (the rest is margin or limit)", asked, may,
           memory->free_state == GM_FIGURE_ESTIMATED ? "~" : "", room);
}

/* Judge every entry in order. True: one was taken. */
static bool select_judge(const select_work *work, gm_selection *out) {
  const gm_device_entry *taken = NULL;
  for (size_t i = 0; i < work->count; i++) {
    const gm_device_entry *entry = &work->entries[i];
    char why[sizeof out->rejected[0].why];
    uint64_t headroom = select_headroom(work, &entry->memory);
    select_bar(work, entry, why, sizeof why);
    if (work->refused[i].text[0]) memcpy(why, work->refused[i].text, sizeof why);
    if (!why[0] && select_is_too_small(work->bytes, headroom)) {
      select_say_too_small(work->bytes, headroom, &entry->memory, why, sizeof why);
    } else if (!why[0] && taken) {
      snprintf(why, sizeof why, "would do; %s %u comes first", taken->id.backend, taken->info.index);
    } else if (!why[0]) {
      taken = entry;
      select_take(out, entry, headroom, work->bytes);
      continue;
    }
    select_reject(out, &entry->id, entry->info.index, why);
  }
  return taken != NULL;
}

/* One line with every rejection, cut where the message ends. */
static gm_status select_fail(const select_work *work, const gm_selection *out, gm_error *err) {
  char tried[sizeof err->message];
  size_t used = 0;
  tried[0] = '\0';
  uint32_t listed = out->rejected_count < 32 ? out->rejected_count : 32;
  for (uint32_t i = 0; i < listed && used < sizeof tried; i++) {
    const gm_rejection *rejection = &out->rejected[i];
    char device[16] = "";
    if (rejection->device != GM_NO_DEVICE) snprintf(device, sizeof device, " %u", rejection->device);
    int wrote = snprintf(tried + used, sizeof tried - used, "%s%s%s: %s", i ? "; " : "", rejection->id.backend, device,
                         rejection->why);
    used += wrote > 0 ? (size_t)wrote : 0;
  }
  char asked[32];
  gm_format_bytes(work->bytes, asked, sizeof asked);
  if (!out->rejected_count) return gm__fail(err, GM_ERR_NOT_FOUND, "gm_select_backend_for_bytes", "there is no device");
  return gm__fail(err, GM_ERR_NOT_FOUND, "gm_select_backend_for_bytes", "no device can take %s: %s", asked, tried);
}

/* The next backend of "a,b,c"; NULL: the name is none, and *list stays at it. */
static gm__driver *select_next_preferred(gm__registry *registry, const char **list) {
  char name[16] = "";
  const size_t bytes = strcspn(*list, ",");
  if (bytes < sizeof name) memcpy(name, *list, bytes);
  gm__driver *driver = name[0] ? gm__registry_find(registry, name) : NULL;
  if (driver) *list += bytes + ((*list)[bytes] == ',');
  return driver;
}

/* A preference must consist of known names: a misspelt one would silently mean "none". */
static gm_status select_check_prefer(gm__registry *registry, const char *prefer, gm_error *err) {
  while (*prefer) {
    if (select_next_preferred(registry, &prefer)) continue;
    const size_t bytes = strcspn(prefer, ",");
    return gm__bad_argument(err, "gm_select_backend_for_bytes", "`prefer` has \"%.*s\", which is no backend",
                            (int)(bytes < SELECT_TEXT ? bytes : SELECT_TEXT), prefer);
  }
  return GM_OK;
}

static void select_reject_missing(const select_work *work, gm_selection *out) {
  const char *rest = work->rules.prefer;
  while (*rest) {
    gm__driver *driver = select_next_preferred(work->registry, &rest);
    if (!driver) return;
    select_reject_backend(driver, out);
  }
}

/* The device that the configuration names: "auto", "backend", or "backend:uuid" with or without dashes. */
static gm_status select_read_device(gm_context *ctx, select_rules *out, gm_error *err) {
  gm__config_text(ctx, "gpu.backend.device", out->prefer, sizeof out->prefer);
  char *uuid = strchr(out->prefer, ':');
  size_t used = 0;
  if (uuid) *uuid++ = '\0';
  for (; uuid && *uuid && used < sizeof out->uuid - 1; uuid++) {
    if (*uuid != '-') out->uuid[used++] = (char)tolower((unsigned char)*uuid);
  }
  if (uuid && (*uuid || used != sizeof out->uuid - 1)) {
    return gm__bad_argument(err, "configuration", "gpu.backend.device: a UUID has 32 hexadecimal digits");
  }
  if (strcmp(out->prefer, "auto") == 0) out->prefer[0] = '\0';
  if (!gm__config_bool(ctx, "gpu.backend.enabled")) {
    memcpy(out->prefer, "cpu", 4);
    out->uuid[0] = '\0';
  }
  return GM_OK;
}

static gm_status select_make_rules(gm_context *ctx, const gm_select_params *params, select_rules *out, gm_error *err) {
  static const char op[] = "gm_select_backend_for_bytes";
  gm_select_params mine = {.struct_size = sizeof mine};
  const gm_status status = params ? gm__sized_in(&mine, sizeof mine, params, op, "params", err) : GM_OK;
  if (status) return status;
  double fraction = mine.memory_fraction;
  if (!(fraction >= 0.0 && fraction <= 1.0))
    return gm__bad_argument(err, op, "`memory_fraction` is not within 0 and 1");
  *out = (select_rules){.refuse_cpu = mine.refuse_cpu, .memory_fraction = fraction};
  if (fraction == 0.0) out->memory_fraction = gm__config_fraction(ctx, "memory_fraction");
  out->keep_free_bytes = mine.keep_free_bytes >= GM_NO_BYTES ? 0
                         : mine.keep_free_bytes              ? mine.keep_free_bytes
                                                             : gm__config_u64(ctx, "min_free_bytes");
  if (mine.prefer && strcmp(mine.prefer, "auto") != 0) {
    if (strlen(mine.prefer) >= sizeof out->prefer) return gm__bad_argument(err, op, "`prefer` is too long");
    memcpy(out->prefer, mine.prefer, strlen(mine.prefer) + 1);
    return GM_OK;
  }
  return select_read_device(ctx, out, err);
}

static gm_status select_no_memory(const char *op, gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory for a selection");
}

static gm_status select_fill(select_work *work, const gm_select_params *params, gm_error *err) {
  gm_status status = select_make_rules(work->ctx, params, &work->rules, err);
  if (status == GM_OK) status = gm__registry_get(work->ctx, &work->registry, err);
  if (status == GM_OK) status = select_check_prefer(work->registry, work->rules.prefer, err);
  if (status == GM_OK) status = gm__discover_entries(work->registry, &work->entries, &work->count, err);
  if (status != GM_OK) return status;
  work->refused = gm__alloc_array(gm__context_services(work->ctx), work->count, sizeof *work->refused);
  if (!work->refused) return select_no_memory("gm_select_backend_for_bytes", err);
  select_sort(work);
  return GM_OK;
}

gm_status gm__choosing_begin(gm_context *ctx, uint64_t bytes, const gm_select_params *params, gm__choosing **out,
                             gm_error *err) {
  gm__choosing *self = gm__alloc(gm__context_services(ctx), sizeof *self);
  if (!self) return select_no_memory("gm_select_backend_for_bytes", err);
  self->ctx = ctx;
  self->bytes = bytes;
  const gm_status status = select_fill(self, params, err);
  if (status == GM_OK) {
    *out = self;
  } else {
    gm__choosing_end(self);
  }
  return status;
}

gm_status gm__choosing_best(gm__choosing *self, gm_selection *out, gm_error *err) {
  *out = (gm_selection){.struct_size = sizeof *out};
  select_reject_missing(self, out);
  return select_judge(self, out) ? GM_OK : select_fail(self, out, err);
}

void gm__choosing_refuse(gm__choosing *self, const gm_selection *chosen, const gm__choosing_why *why) {
  for (size_t i = 0; i < self->count; i++) {
    const gm_device_entry *entry = &self->entries[i];
    const bool same = entry->info.index == chosen->device && strcmp(entry->id.backend, chosen->id.backend) == 0;
    if (same) self->refused[i] = *why;
  }
}

void gm__choosing_judge(const gm__choosing *self, const gm_memory_info *memory, gm__choosing_why *why) {
  static const char opened[] = "opened: ";
  const uint64_t headroom = select_headroom(self, memory);
  why->text[0] = '\0';
  if (!select_is_too_small(self->bytes, headroom)) return;
  memcpy(why->text, opened, sizeof opened);
  select_say_too_small(self->bytes, headroom, memory, why->text + sizeof opened - 1,
                       sizeof why->text - sizeof opened + 1);
}

void gm__choosing_end(gm__choosing *self) {
  if (!self) return;
  const gm_services *services = gm__context_services(self->ctx);
  gm__release(services, self->entries, self->count * sizeof *self->entries);
  gm__release(services, self->refused, self->count * sizeof *self->refused);
  gm__release(services, self, sizeof *self);
}

/* `found` is too large for a small stack. */
static gm_status select_choose(gm_context *ctx, gm__choosing *choosing, gm_selection *out, const char *op,
                               gm_error *err) {
  const gm_services *services = gm__context_services(ctx);
  gm_selection *found = gm__alloc(services, sizeof *found);
  if (!found) return select_no_memory(op, err);
  const gm_status status = gm__choosing_best(choosing, found, err);
  gm__sized_out(out, found, sizeof *found);
  gm__release(services, found, sizeof *found);
  return status;
}

gm_status gm_select_backend_for_bytes(gm_context *ctx, uint64_t bytes, const gm_select_params *params,
                                      gm_selection *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_select_backend_for_bytes";
  gm__choosing *choosing = NULL;
  gm_status status = gm__context_check(ctx, op, err);
  if (status == GM_OK) status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status == GM_OK) status = gm__choosing_begin(ctx, bytes, params, &choosing, err);
  if (status != GM_OK) return status;
  status = select_choose(ctx, choosing, out, op, err);
  gm__choosing_end(choosing);
  return status;
}

gm_status gm_best_backend(gm_context *ctx, gm_selection *out, gm_error *err) {
  GM__UNCANCELLED();
  return gm_select_backend_for_bytes(ctx, 0, NULL, out, err);
}
