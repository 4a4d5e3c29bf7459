#include "gpu_facts.h"

#include <inttypes.h>

void gpu_facts_text(FILE *out, const char *text) {
  fputc('"', out);
  for (const char *c = text; *c; c++) {
    const bool plain = *c >= ' ' && *c < 127;
    if (*c == '"' || *c == '\\') fputc('\\', out);
    fputc(plain ? *c : '?', out);
  }
  fputc('"', out);
}

static void facts_member(FILE *out, const char *name, const char *text) {
  fprintf(out, "\"%s\": ", name);
  gpu_facts_text(out, text);
  fputs(", ", out);
}

static void facts_bytes(FILE *out, const char *name, uint64_t bytes) {
  if (bytes == GM_UNKNOWN_BYTES) {
    fprintf(out, "\"%s\": null, ", name);
  } else {
    fprintf(out, "\"%s\": %" PRIu64 ", ", name, bytes);
  }
}

typedef struct facts_list {
  FILE *out;
  const char *comma;
} facts_list;

static void facts_capability(void *user, const char *word) {
  facts_list *list = user;
  fprintf(list->out, "%s\"%s\"", list->comma, word);
  list->comma = ", ";
}

static void facts_uuid(const gm_device_info *info, char *out, size_t capacity) {
  size_t length = 0;
  for (size_t i = 0; i < sizeof info->uuid && length + 3 < capacity; i++) {
    length += (size_t)snprintf(out + length, capacity - length, "%02x", info->uuid[i]);
  }
}

void gpu_facts_device(FILE *out, gm_device *device) {
  const gm_device_info *info = gm_device_get_info(device);
  gm_memory_info memory = {.struct_size = sizeof memory};
  char uuid[40] = "";
  facts_uuid(info, uuid, sizeof uuid);
  facts_member(out, "backend", info->backend);
  facts_member(out, "name", info->name);
  facts_member(out, "vendor", info->vendor);
  facts_member(out, "driver", info->driver);
  facts_member(out, "driver_version", info->version);
  facts_member(out, "capability", info->capability);
  facts_member(out, "pci", info->pci);
  facts_member(out, "partition", info->partition);
  facts_member(out, "uuid", uuid);
  facts_member(out, "type", gm_device_type_name(info->type));
  facts_bytes(out, "total_bytes", info->total_bytes);
  if (gm_device_memory_info(device, &memory, NULL) == GM_OK) {
    facts_bytes(out, "free_bytes", memory.free_bytes);
    facts_member(out, "free_state", gm_figure_state_name(memory.free_state));
    facts_member(out, "free_source", gm_figure_source_name(memory.free_source));
  }
  facts_list list = {out, ""};
  fputs("\"capabilities\": [", out);
  gm_capability_words(info->capabilities, facts_capability, &list);
  fprintf(out, "], \"simulated\": %s", info->simulated ? "true" : "false");
}
