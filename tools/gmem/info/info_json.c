#include "tools/gmem/info/info_json.h"

#include <string.h>

#include "gm/codec.h"

/* 0 stands for "not known" in these members. */
static void info_json_unless_0(json_writer *out, const char *key, uint64_t value) {
  writer_bytes(out, key, value ? value : GM_UNKNOWN_BYTES);
}

static void info_json_uuid(json_writer *out, const gm_device_id *id) {
  char text[2 * GM_UUID_BYTES + 5], *at = text;
  for (size_t i = 0; i < GM_UUID_BYTES; i++) {
    if (i == 4 || i == 6 || i == 8 || i == 10) *at++ = '-';
    at += snprintf(at, 3, "%02x", id->uuid[i]);
  }
  writer_text(out, "uuid", text);
}

static void info_json_word(void *user, const char *word) { writer_text(user, NULL, word); }

static void info_json_memory(json_writer *out, const gm_memory_info *memory) {
  writer_bytes(out, "total_bytes", memory->total_bytes);
  writer_bytes(out, "free_bytes", memory->free_bytes);
  writer_text(out, "free_source", gm_figure_source_name(memory->free_source));
  writer_text(out, "free_state", gm_figure_state_name(memory->free_state));
  writer_bytes(out, "promised_bytes", memory->promised_by_others_bytes);
}

static void info_json_device(json_writer *out, const gm_device_entry *entry) {
  const gm_device_info *info = &entry->info;
  writer_open(out, NULL, '{');
  writer_u64(out, "index", info->index);
  writer_text(out, "name", info->name);
  writer_text_or_null(out, "vendor", info->vendor);
  info_json_memory(out, &entry->memory);
  info_json_unless_0(out, "max_alloc_bytes", info->max_alloc_bytes);
  info_json_unless_0(out, "alignment", info->alignment);
  writer_bool(out, "unified", info->unified);
  writer_bool(out, "integrated", info->type == GM_DEVICE_TYPE_INTEGRATED);
  writer_text(out, "kind", gm_device_type_name(info->type));
  writer_bool(out, "simulated", info->simulated);
  info_json_uuid(out, &entry->id);
  writer_bool(out, "uuid_derived", info->uuid_derived);
  writer_text_or_null(out, "pci", info->pci);
  writer_text_or_null(out, "partition", info->partition);
  writer_text_or_null(out, "driver", info->driver);
  writer_text_or_null(out, "version", info->version);
  writer_text_or_null(out, "capability", info->capability);
  writer_u64(out, "physical_id", entry->physical);
  writer_bool(out, "host_memory", entry->host_pool);
  writer_open(out, "capabilities", '[');
  gm_capability_words(info->capabilities, info_json_word, out);
  writer_close(out);
  writer_close(out);
}

static void info_json_backend(json_writer *out, const info_view *view, const gm_backend_info *backend) {
  writer_open(out, NULL, '{');
  writer_text(out, "type", gm_api_name(backend->api));
  writer_text(out, "name", backend->name);
  writer_bool(out, "available", backend->status == GM_OK);
  writer_bool(out, "simulated", backend->simulated);
  writer_text_or_null(out, "reason", backend->status == GM_OK ? NULL : backend->reason.message);
  writer_text_or_null(out, "library", backend->library);
  writer_text_or_null(out, "version", backend->version);
  writer_open(out, "devices", '[');
  for (size_t i = 0; i < view->device_count; i++) {
    if (strcmp(view->devices[i].id.backend, backend->name) == 0) info_json_device(out, &view->devices[i]);
  }
  writer_close(out);
  writer_close(out);
}

static void info_json_host(json_writer *out, const gm_host_info *host) {
  writer_open(out, "host", '{');
  writer_text_or_null(out, "cpu", host->cpu_name);
  info_json_unless_0(out, "cores", host->cores);
  writer_bytes(out, "total_bytes", host->total_bytes);
  writer_bytes(out, "free_bytes", host->free_bytes);
  writer_text(out, "free_state", gm_figure_state_name(host->free_state));
  writer_text(out, "limit_source", host->limit_source);
  writer_bytes(out, "page_bytes", host->page_bytes);
  if (host->stall_some.valid) {
    writer_double(out, "pressure_some_avg10", host->stall_some.avg10_centi / 100.0);
  } else {
    writer_null(out, "pressure_some_avg10");
  }
  writer_bytes(out, "huge_page_bytes", host->huge_page_bytes);
  writer_bytes(out, "machine_total_bytes", host->mem_total_bytes);
  writer_bytes(out, "machine_available_bytes", host->mem_available_bytes);
  writer_u64(out, "numa_nodes", host->node_count);
  writer_close(out);
}

static void info_json_recommended(json_writer *out, const info_view *view) {
  writer_open(out, "recommended", '{');
  if (view->has_best) {
    writer_text(out, "backend", view->best.id.backend);
    writer_u64(out, "device", view->best.device);
  } else {
    writer_null(out, "backend");
    writer_null(out, "device");
  }
  writer_close(out);
}

/* gm opens it when it is needed. */
static bool info_json_finds_zstd(void) {
  unsigned char piece[64];
  uint64_t bytes;
  return gm_codec_encode(gm_codec_find("planes"), "", 0, piece, sizeof piece, &bytes, NULL) == GM_OK;
}

/* Libraries that gm was built with or without, or finds. */
static void info_json_optional(json_writer *out) {
  const bool zstd = info_json_finds_zstd();
  const struct {
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
#ifdef GMEM_WITH_LZ4
      {"liblz4", "packed values of the disk tier", true},
#else
      {"liblz4", "packed values of the disk tier", false},
#endif
      {"libzstd", "packed values of the disk tier, the codec planes", zstd},
#ifdef GMEM_WITH_HIREDIS
      {"hiredis", "values on a Redis or Valkey server", true},
#else
      {"hiredis", "values on a Redis or Valkey server", false},
#endif
#ifdef GMEM_WITH_HWLOC
      {"hwloc", "memory nodes of the host", true},
#else
      {"hwloc", "memory nodes of the host", false},
#endif
  };
  writer_open(out, "optional", '[');
  for (size_t i = 0; i < sizeof optional / sizeof *optional; i++) {
    writer_open(out, NULL, '{');
    writer_text(out, "library", optional[i].library);
    writer_bool(out, "found", optional[i].found);
    writer_text(out, "use", optional[i].use);
    writer_close(out);
  }
  writer_close(out);
}

void info_json(json_writer *out, const info_view *view) {
  writer_open(out, "backends", '[');
  for (size_t i = 0; i < view->backend_count; i++) info_json_backend(out, view, &view->backends[i]);
  writer_close(out);
  info_json_host(out, &view->host);
  info_json_recommended(out, view);
  info_json_optional(out);
}
