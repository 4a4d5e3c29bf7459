/* Runs in the helper process: discovers one backend and writes the result. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/discovery/answer.h"
#include "core/discovery/cufile.h"
#include "core/discovery/device_figures.h"
#include "core/discovery/discovery.h"
#include "core/discovery/isolate.h"
#include "core/discovery/module.h"
#include "gm/probe.h"

static gm_status probe_write(int fd, const void *data, size_t bytes, gm_error *err) {
  const char *at = data;
  while (bytes > 0) {
    ssize_t wrote = write(fd, at, bytes);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0)
      return gm__fail_native(err, GM_ERR_IO, errno, "write", "the finding could not be written: %s", strerror(errno));
    at += wrote;
    bytes -= (size_t)wrote;
  }
  return GM_OK;
}

static gm_status probe_write_driver(gm__driver *driver, int fd, gm_error *err) {
  gm__isolate_head head;
  memset(&head, 0, sizeof head); /* the gaps between the members are written, too */
  head.magic = GM__ISOLATE_MAGIC;
  head.info_size = sizeof driver->info, head.entry_size = sizeof *driver->entries;
  head.entry_count = driver->info.status == GM_OK ? driver->entry_count : 0;
  head.info = driver->info;
  gm_status status = probe_write(fd, &head, sizeof head, err);
  if (status != GM_OK) return status;
  return probe_write(fd, driver->entries, head.entry_count * sizeof *driver->entries, err);
}

/* Opens the card, asks it what is free, and closes it again. A driver that hangs or aborts here ends only this look. */
static void probe_look(gm__driver *driver, const gm_device_entry *entry, gm__isolate_look *out) {
  void *device = NULL;
  *out = (gm__isolate_look){.index = entry->info.index, .memory = entry->memory};
  out->status = driver->ops.device_open(driver->handle, entry->info.index, &device, NULL);
  out->status = gm__answer_check_object(driver->info.name, "device_open", out->status, &device, NULL);
  if (out->status != GM_OK) return;
  const gm__figures_subject subject = {.driver = driver, .info = &entry->info, .device = device};
  out->status = gm__device_figures(&subject, &out->memory, NULL);
  driver->ops.device_close(device, GM_CLOSE_NORMAL);
}

static gm_status probe_write_looks(gm__driver *driver, int fd, gm_error *err) {
  gm_status status = GM_OK;
  for (uint32_t i = 0; driver->info.status == GM_OK && i < driver->entry_count && status == GM_OK; i++) {
    gm__isolate_look look;
    if (!gm__isolate_looks(driver->info.api, &driver->entries[i])) continue;
    probe_look(driver, &driver->entries[i], &look);
    status = probe_write(fd, &look, sizeof look, err);
  }
  return status;
}

/* "name=value" as a list of one, for gm_context_params; NULL for no value. */
static const char *probe_setting(char *text, size_t capacity, const char *name, char separator, const char *value) {
  if (!value || !value[0]) return NULL;
  snprintf(text, capacity, "%s%c%s", name, separator, value);
  return text;
}

static gm_status probe_register(gm_context *ctx, const char *module, gm_error *err) {
  const gm_backend_ops *ops = NULL;
  const gm_status status = gm__module_load(module, &ops, err);
  return status == GM_OK ? gm_backend_register(ctx, ops, err) : status;
}

static gm_status probe_discover(gm_context *ctx, const char *backend, int fd, gm_error *err) {
  gm__registry *registry = NULL;
  gm_status status = gm__registry_get(ctx, &registry, err);
  if (status != GM_OK) return status;
  gm__driver *driver = gm__registry_find(registry, backend);
  if (!driver) return gm__fail(err, GM_ERR_NOT_FOUND, "gm_probe_serve", "no backend \"%s\"", backend);
  status = gm__discover_driver(driver, GM_PROBE_ACTIVE, err);
  if (status == GM_OK) status = probe_write_driver(driver, fd, err);
  return status == GM_OK ? probe_write_looks(driver, fd, err) : status;
}

gm_status gm_probe_serve(const char *backend, const char *library, const char *options, int fd, gm_error *err) {
  GM__UNCANCELLED();
  return gm_probe_serve_module(NULL, backend, library, options, fd, err);
}

gm_status gm_probe_serve_module(const char *module, const char *backend, const char *library, const char *options,
                                int fd, gm_error *err) {
  GM__UNCANCELLED();
  char library_list[GM__LIBRARY_SIZE + 32], options_list[GM__OPTIONS_SIZE + 32];
  if (!backend || fd < 0) {
    return gm__bad_argument(err, "gm_probe_serve", "`%s` is %s", backend ? "fd" : "backend",
                            backend ? "negative" : "NULL");
  }
  if (strcmp(backend, "cufile") == 0) return gm__cufile_serve(library, options, fd, err);
  gm_context_params params = {
      .struct_size = sizeof params,
      .backends = backend,
      .libraries = probe_setting(library_list, sizeof library_list, backend, '=', library),
      .backend_options = probe_setting(options_list, sizeof options_list, backend, ':', options)};
  gm_context *ctx = NULL;
  gm_status status = gm_context_create(&params, &ctx, err);
  if (status != GM_OK) return status;
  if (module && module[0]) status = probe_register(ctx, module, err);
  if (status == GM_OK) status = probe_discover(ctx, backend, fd, err);
  gm_context_destroy(ctx, NULL);
  return status;
}
