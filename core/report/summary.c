/* The summary for people. Invariants: everything is asked before the first line is written, so a failure leaves no
 * half a page. A figure is shown with how far it can be trusted. An unknown figure is said to be unknown. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/text_clean.h"
#include "core/context/context.h"
#include "core/discovery/discovery.h"
#include "core/discovery/known.h"
#include "gm/report.h"
#include "gm/size.h"

enum { SUMMARY_LINE = 1024, SUMMARY_SIZE = 24 };

/* The findings, and where the text goes. */
typedef struct summary_view {
  gm_context *ctx;
  const gm_services *services;
  void (*write_text)(void *user, const char *text, size_t bytes);
  void *user;
  gm_backend_info *backends;
  size_t backend_count;
  gm_device_entry *devices;
  size_t device_count;
  bool asked; /* devices were asked for: the level is above PASSIVE */
  bool brief;
  bool host_limited;
  gm_selection best;
  gm_status best_status;
  gm_error best_error;
} summary_view;

/* ---- what is there ---- */

static gm_status summary_no_memory(gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_summary", "no host memory for a list of devices");
}

static gm_status summary_backends(summary_view *view, gm_probe_level level, gm_error *err) {
  size_t count = 0;
  gm_status status = gm_discover_backends(view->ctx, level, NULL, 0, &count, err);
  if (status != GM_OK) return status;
  view->backends = gm__alloc_array(view->services, count, sizeof *view->backends);
  if (!view->backends) return summary_no_memory(err);
  view->backend_count = count;
  view->backends->struct_size = sizeof *view->backends; /* every build knows some backends */
  status = gm_discover_backends(view->ctx, level, view->backends, count, &count, err);
  if (status == GM_OK && count < view->backend_count) view->backend_count = count;
  return status;
}

static gm_status summary_devices(summary_view *view, gm_error *err) {
  size_t count = 0;
  gm_status status = gm_discover_devices(view->ctx, NULL, 0, &count, err);
  if (status != GM_OK) return status;
  view->devices = gm__alloc_array(view->services, count, sizeof *view->devices);
  if (!view->devices) return summary_no_memory(err);
  view->device_count = count;
  if (count > 0) view->devices->struct_size = sizeof *view->devices;
  status = gm_discover_devices(view->ctx, view->devices, count, &count, err);
  if (status == GM_OK && count < view->device_count) view->device_count = count;
  return status;
}

static gm_status summary_best(summary_view *view, gm_error *err) {
  view->best.struct_size = sizeof view->best;
  view->best_status = gm_best_backend(view->ctx, &view->best, &view->best_error);
  if (view->best_status == GM_OK || view->best_status == GM_ERR_NOT_FOUND) return GM_OK;
  if (err) *err = view->best_error;
  return view->best_status;
}

static gm_status summary_ask(summary_view *view, gm_probe_level level, gm_error *err) {
  gm_status status = summary_backends(view, level, err);
  view->asked = level != GM_PROBE_PASSIVE; /* listing devices would load the drivers */
  if (status == GM_OK && view->asked) status = summary_devices(view, err);
  if (status == GM_OK && view->asked) status = summary_best(view, err);
  gm_host_info host = {.struct_size = sizeof host};
  view->host_limited = gm_host_info_read(view->ctx->host_root, &host, NULL) == GM_OK && host.cgroup_limited;
  return status;
}

static void summary_forget(summary_view *view) {
  gm__release(view->services, view->backends, view->backend_count * sizeof *view->backends);
  gm__release(view->services, view->devices, view->device_count * sizeof *view->devices);
}

/* ---- lines ---- */

typedef struct summary_line {
  char text[SUMMARY_LINE];
  size_t used;
} summary_line;

static void summary_add(summary_line *line, const char *format, ...) GM_PRINTF(2, 3);

static void summary_add(summary_line *line, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int wrote = vsnprintf(line->text + line->used, sizeof line->text - line->used, format, arguments);
  va_end(arguments);
  size_t most = sizeof line->text - 2; /* the newline and the end */
  if (wrote > 0) line->used += (size_t)wrote;
  if (line->used > most) line->used = most;
}

static void summary_write(const summary_view *view, summary_line *line) {
  line->text[line->used] = '\0';
  gm__text_clean(line->text);
  line->text[line->used] = '\n';
  view->write_text(view->user, line->text, line->used + 1);
}

static void summary_add_bytes(summary_line *line, uint64_t bytes) {
  char text[SUMMARY_SIZE];
  gm_format_bytes(bytes, text, sizeof text);
  summary_add(line, "%s", text);
}

/* ---- devices ---- */

static const char *summary_title(const char *backend) {
  const gm__known_backend *known = gm__known_backend_find(backend);
  return known ? known->title : backend;
}

/* The entry listed before `entry` that is the same memory; NULL: none. */
static const gm_device_entry *summary_owner(const summary_view *view, const gm_device_entry *entry) {
  for (const gm_device_entry *other = view->devices; other < entry; other++) {
    if (other->physical == entry->physical || (other->host_pool && entry->host_pool)) return other;
  }
  return NULL;
}

/* Bytes that reservations hold are free, and yet nobody else gets them. */
static void summary_add_promised(summary_line *line, const gm_memory_info *memory) {
  const uint64_t promised = gm__add_sat(memory->promised_bytes, memory->promised_by_others_bytes);
  if (!promised) return;
  summary_add(line, ", ");
  summary_add_bytes(line, promised);
  summary_add(line, " of it reserved");
}

static void summary_add_free(const summary_view *view, summary_line *line, const gm_device_entry *entry) {
  const gm_memory_info *memory = &entry->memory;
  if (memory->total_bytes == GM_UNKNOWN_BYTES) {
    summary_add(line, "size not known");
  } else {
    summary_add_bytes(line, memory->total_bytes);
  }
  if (memory->free_state == GM_FIGURE_UNKNOWN || memory->free_bytes == GM_UNKNOWN_BYTES) {
    summary_add(line, ", free not known");
    return;
  }
  bool estimated = memory->free_state == GM_FIGURE_ESTIMATED;
  summary_add(line, ", %s", estimated ? "~" : "");
  summary_add_bytes(line, memory->free_bytes);
  summary_add(line, " free");
  if (estimated) summary_add(line, " (estimated, %s)", gm_figure_source_name(memory->free_source));
  if (!estimated && entry->host_pool && view->host_limited) summary_add(line, " (cgroup)");
  summary_add_promised(line, memory);
}

/* The owner's line has the figures; a device that may use only a part of that memory says so. */
static void summary_add_shared(summary_line *line, const gm_device_entry *entry, const gm_device_entry *owner) {
  const uint64_t most = entry->memory.total_bytes;
  summary_add(line, "shares %s %" PRIu32 "'s memory", summary_title(owner->id.backend), owner->info.index);
  if (most == GM_UNKNOWN_BYTES || most >= owner->memory.total_bytes) return;
  summary_add(line, ", at most ");
  summary_add_bytes(line, most);
  summary_add(line, " of it");
}

static void summary_add_name(summary_line *line, const gm_device_info *info) {
  summary_add(line, "[%" PRIu32 "] %s", info->index, info->name[0] ? info->name : "unnamed");
  if (info->api == GM_API_CPU || info->api == GM_API_NULL) return;
  bool told = !info->driver[0] || strcasestr(info->name, info->driver);
  if (!info->version[0] && told) return;
  summary_add(line, " (%s%s%s)", told ? "" : info->driver, told || !info->version[0] ? "" : " ", info->version);
}

static void summary_add_device(const summary_view *view, summary_line *line, const gm_device_entry *entry) {
  const gm_device_entry *owner = summary_owner(view, entry);
  bool software = entry->info.type == GM_DEVICE_TYPE_CPU && entry->info.api != GM_API_CPU;
  summary_add_name(line, &entry->info);
  summary_add(line, ": ");
  if (software) summary_add(line, "software, ");
  if (owner && entry->host_pool) {
    summary_add_shared(line, entry, owner);
  } else {
    summary_add_free(view, line, entry);
    if (owner) summary_add(line, ", same card as %s %" PRIu32, summary_title(owner->id.backend), owner->info.index);
  }
  if (entry->info.simulated) summary_add(line, ", simulated");
}

/* ---- backends ---- */

static void summary_begin(summary_line *line, const char *mark, const char *title) {
  line->used = 0;
  summary_add(line, "%s %-8s ", mark, title);
}

/* One line for each of the backend's devices; how many there were. */
static size_t summary_list(const summary_view *view, const gm_backend_info *backend, summary_line *line) {
  size_t listed = 0;
  for (size_t i = 0; i < view->device_count; i++) {
    const gm_device_entry *entry = &view->devices[i];
    if (strcmp(entry->id.backend, backend->name) != 0) continue;
    summary_begin(line, listed ? " " : "\u2713", listed ? "" : summary_title(backend->name));
    summary_add_device(view, line, entry);
    summary_write(view, line);
    listed++;
  }
  return listed;
}

static void summary_backend(const summary_view *view, const gm_backend_info *backend) {
  summary_line line;
  if (backend->status != GM_OK) {
    summary_begin(&line, "\u2717", summary_title(backend->name));
    summary_add(&line, "%s", backend->reason.message[0] ? backend->reason.message : gm_status_text(backend->status));
    summary_write(view, &line);
  } else if (summary_list(view, backend, &line) == 0) {
    summary_begin(&line, "\u2713", summary_title(backend->name));
    summary_add(&line, "%s%sdevices not asked for", backend->library, backend->library[0] ? " is there, " : "");
    summary_write(view, &line);
  }
}

/* ---- brief ---- */

/* Nothing of its driver is installed, and nobody has asked for it by its name or by that of a library. */
static bool summary_is_missing(const summary_view *view, const gm_backend_info *backend) {
  gm__registry *registry = NULL;
  gm__choice choice;
  char path[GM__LIBRARY_SIZE];
  if (backend->status == GM_OK || gm__backends_chosen(view->ctx, &choice)) return false;
  if (gm__registry_get(view->ctx, &registry, NULL) != GM_OK) return false;
  const gm__driver *driver = gm__registry_find(registry, backend->name);
  if (!driver || !driver->known || !driver->known->libraries || driver->host.library) return false;
  const gm__dynlib_spec spec = {driver->known->name, driver->known->libraries, NULL, NULL};
  return !gm__dynlib_find(&spec, path, sizeof path);
}

/* True for a backend that nobody asks about: memory that is none, switched off, or never on this system. */
static bool summary_is_noise(const summary_view *view, const gm_backend_info *backend) {
  gm__choice choice;
  const gm__known_backend *known = gm__known_backend_find(backend->name);
  if (gm__backends_chosen(view->ctx, &choice)) return !gm__choice_has(&choice, backend->name);
  return backend->api == GM_API_NULL || (known && !known->ops && !known->libraries);
}

static bool summary_has_gpu(const summary_view *view) {
  for (size_t i = 0; i < view->device_count; i++) {
    const gm_device_info *info = &view->devices[i].info;
    if (info->type != GM_DEVICE_TYPE_CPU && info->api != GM_API_NULL) return true;
  }
  return false;
}

/* One line for all whose driver is not installed, in place of one for each. */
static void summary_missing(const summary_view *view) {
  summary_line line;
  size_t listed = 0;
  line.used = 0;
  summary_add(&line, "\u2717 no %sdriver found: ", view->asked && !summary_has_gpu(view) ? "GPU " : "");
  for (size_t i = 0; i < view->backend_count; i++) {
    const gm_backend_info *backend = &view->backends[i];
    if (summary_is_noise(view, backend) || !summary_is_missing(view, backend)) continue;
    summary_add(&line, "%s%s", listed++ ? ", " : "", summary_title(backend->name));
  }
  if (listed) summary_write(view, &line);
}

static void summary_backends_briefly(const summary_view *view) {
  for (size_t i = 0; i < view->backend_count; i++) {
    const gm_backend_info *backend = &view->backends[i];
    if (!summary_is_noise(view, backend) && !summary_is_missing(view, backend)) summary_backend(view, backend);
  }
  summary_missing(view);
}

/* ---- recommendation ---- */

static const char *summary_best_name(const summary_view *view) {
  for (size_t i = 0; i < view->device_count; i++) {
    const gm_device_entry *entry = &view->devices[i];
    bool same = strcmp(entry->id.backend, view->best.id.backend) == 0 && entry->info.index == view->best.device;
    if (same) return entry->info.name;
  }
  return "";
}

static void summary_recommend(const summary_view *view) {
  summary_line line = {.used = 0};
  summary_add(&line, "Recommended: ");
  if (!view->asked) {
    summary_add(&line, "not judged, devices were not asked for");
  } else if (view->best_status != GM_OK) {
    summary_add(&line, "nothing: %s", view->best_error.message);
  } else {
    summary_add(&line, "%s [%" PRIu32 "] %s, up to %s", summary_title(view->best.id.backend), view->best.device,
                summary_best_name(view), view->best.free_state == GM_FIGURE_ESTIMATED ? "~" : "");
    summary_add_bytes(&line, view->best.headroom_bytes);
  }
  summary_write(view, &line);
}

static gm_status summary_make(summary_view *view, gm_probe_level level, gm_error *err) {
  static const char head[] = "=== gm backends ===\n";
  const gm_status status = summary_ask(view, level, err);
  if (status == GM_OK) {
    view->write_text(view->user, head, sizeof head - 1);
    for (size_t i = 0; i < view->backend_count && !view->brief; i++) summary_backend(view, &view->backends[i]);
    if (view->brief) summary_backends_briefly(view);
    summary_recommend(view);
  }
  summary_forget(view);
  return status;
}

/* The findings are too large for a small stack. */
static gm_status summary_run(gm_context *ctx, gm_probe_level level,
                             void (*write_text)(void *user, const char *text, size_t bytes), void *user, bool brief,
                             const char *op, gm_error *err) {
  gm_status status = gm__context_check(ctx, op, err);
  if (status != GM_OK) return status;
  if (!write_text) return gm__bad_argument(err, op, "`write_text` is NULL");
  const gm_services *services = gm__context_services(ctx);
  summary_view *view = gm__alloc(services, sizeof *view);
  if (!view) return summary_no_memory(err);
  view->ctx = ctx;
  view->services = services;
  view->write_text = write_text;
  view->user = user;
  view->brief = brief;
  status = summary_make(view, level, err);
  gm__release(services, view, sizeof *view);
  return status;
}

gm_status gm_summary(gm_context *ctx, gm_probe_level level,
                     void (*write_text)(void *user, const char *text, size_t bytes), void *user, gm_error *err) {
  GM__UNCANCELLED();
  return summary_run(ctx, level, write_text, user, false, "gm_summary", err);
}

gm_status gm_summary_brief(gm_context *ctx, gm_probe_level level,
                           void (*write_text)(void *user, const char *text, size_t bytes), void *user, gm_error *err) {
  GM__UNCANCELLED();
  return summary_run(ctx, level, write_text, user, true, "gm_summary_brief", err);
}

/* ---- onto a stream ---- */

typedef struct summary_file {
  FILE *file;
  bool failed;
} summary_file;

static void summary_put(void *user, const char *text, size_t bytes) {
  summary_file *out = user;
  if (!out->failed && fwrite(text, 1, bytes, out->file) != bytes) out->failed = true;
}

gm_status gm_print_summary(gm_context *ctx, gm_probe_level level, FILE *file, gm_error *err) {
  GM__UNCANCELLED();
  if (!file) return gm__bad_argument(err, "gm_print_summary", "`file` is NULL");
  summary_file out = {.file = file};
  gm_status status = gm_summary(ctx, level, summary_put, &out, err);
  if (status != GM_OK || !out.failed) return status;
  return gm__fail(err, GM_ERR_IO, "gm_print_summary", "the summary could not be written");
}
