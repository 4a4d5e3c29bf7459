#include "tools/gmem/info_json.h"

#include <string.h>

/* 0 stands for "not known" in these members. */
static void info_json_unless_0(json *out, const char *key, uint64_t value) {
  json_bytes(out, key, value ? value : GM_UNKNOWN_BYTES);
}

static void info_json_uuid(json *out, const gm_device_id *id) {
  char text[2 * GM_UUID_BYTES + 5], *at = text;
  for (size_t i = 0; i < GM_UUID_BYTES; i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10) *at++ = '-';
    at += snprintf(at, 3, "%02x", id->uuid[i]);
  }
  json_text(out, "uuid", text);
}

static void info_json_word(void *user, const char *word) { json_text(user, NULL, word); }

static void info_json_memory(json *out, const gm_memory_info *memory) {
  json_bytes(out, "total_bytes", memory->total_bytes);
  json_bytes(out, "free_bytes", memory->free_bytes);
  json_text(out, "free_source", gm_figure_source_name(memory->free_source));
  json_text(out, "free_state", gm_figure_state_name(memory->free_state));
}

static void info_json_device(json *out, const gm_device_entry *entry) {
  const gm_device_info *info = &entry->info;
  json_open(out, NULL, '{');
  json_u64(out, "index", info->index);
  json_text(out, "name", info->name);
  json_text_or_null(out, "vendor", info->vendor);
  info_json_memory(out, &entry->memory);
  info_json_unless_0(out, "max_alloc_bytes", info->max_alloc_bytes);
  info_json_unless_0(out, "alignment", info->alignment);
  json_bool(out, "unified", info->unified);
  json_bool(out, "integrated", info->type == GM_DEVICE_TYPE_INTEGRATED);
  json_text(out, "kind", gm_device_type_name(info->type));
  json_bool(out, "simulated", info->simulated);
  info_json_uuid(out, &entry->id);
  json_bool(out, "uuid_derived", info->uuid_derived);
  json_text_or_null(out, "pci", info->pci);
  json_text_or_null(out, "partition", info->partition);
  json_text_or_null(out, "driver", info->driver);
  json_text_or_null(out, "version", info->version);
  json_text_or_null(out, "capability", info->capability);
  json_u64(out, "physical_id", entry->physical);
  json_bool(out, "host_memory", entry->host_pool);
  json_open(out, "capabilities", '[');
  gm_capability_words(info->capabilities, info_json_word, out);
  json_close(out, ']');
  json_close(out, '}');
}

static void info_json_backend(json *out, const info_view *view, const gm_backend_info *backend) {
  json_open(out, NULL, '{');
  json_text(out, "type", gm_api_name(backend->api));
  json_text(out, "name", backend->name);
  json_bool(out, "available", backend->status == GM_OK);
  json_bool(out, "simulated", backend->simulated);
  json_text_or_null(out, "reason", backend->status == GM_OK ? NULL : backend->reason.message);
  json_text_or_null(out, "library", backend->library);
  json_text_or_null(out, "version", backend->version);
  json_open(out, "devices", '[');
  for (size_t i = 0; i < view->device_count; i++) {
    if (strcmp(view->devices[i].id.backend, backend->name) == 0) info_json_device(out, &view->devices[i]);
  }
  json_close(out, ']');
  json_close(out, '}');
}

static void info_json_host(json *out, const gm_host_info *host) {
  json_open(out, "host", '{');
  json_text_or_null(out, "cpu", host->cpu_name);
  info_json_unless_0(out, "cores", host->cores);
  json_bytes(out, "total_bytes", host->total_bytes);
  json_bytes(out, "free_bytes", host->free_bytes);
  json_text(out, "free_state", gm_figure_state_name(host->free_state));
  json_text(out, "limit_source", host->limit_source);
  json_bytes(out, "page_bytes", host->page_bytes);
  if (host->stall_some.valid) {
    json_double(out, "pressure_some_avg10", host->stall_some.avg10_centi / 100.0);
  } else {
    json_null(out, "pressure_some_avg10");
  }
  json_bytes(out, "huge_page_bytes", host->huge_page_bytes);
  json_bytes(out, "machine_total_bytes", host->mem_total_bytes);
  json_bytes(out, "machine_available_bytes", host->mem_available_bytes);
  json_u64(out, "numa_nodes", host->node_count);
  json_close(out, '}');
}

static void info_json_recommended(json *out, const info_view *view) {
  json_open(out, "recommended", '{');
  if (view->has_best) {
    json_text(out, "backend", view->best.id.backend);
    json_u64(out, "device", view->best.device);
  } else {
    json_null(out, "backend");
    json_null(out, "device");
  }
  json_close(out, '}');
}

/* Libraries that gm was built with or without. */
static void info_json_optional(json *out) {
  static const struct {
    const char *library, *use;
    bool found;
  } optional[] = {
#ifdef GMEM_WITH_ZLIB
      {"zlib", "compressed traces", true},
#else
      {"zlib", "compressed traces", false},
#endif
#ifdef GMEM_WITH_XXHASH
      {"libxxhash", "fast checksums", true},
#else
      {"libxxhash", "fast checksums", false},
#endif
  };
  json_open(out, "optional", '[');
  for (size_t i = 0; i < sizeof optional / sizeof *optional; i++) {
    json_open(out, NULL, '{');
    json_text(out, "library", optional[i].library);
    json_bool(out, "found", optional[i].found);
    json_text(out, "use", optional[i].use);
    json_close(out, '}');
  }
  json_close(out, ']');
}

void info_json(json *out, const info_view *view) {
  json_open(out, "backends", '[');
  for (size_t i = 0; i < view->backend_count; i++) info_json_backend(out, view, &view->backends[i]);
  json_close(out, ']');
  info_json_host(out, &view->host);
  info_json_recommended(out, view);
  info_json_optional(out);
}
