/* A client can be open through several descriptors and in several processes. It counts once, and as the own one if the
 * own process has it open at all. */
#include "core/host/fdinfo.h"

#include <stdio.h>
#include <string.h>

#include "core/base/decimal.h"
#include "core/base/file.h"
#include "core/base/saturate.h"
#include "gm/memory_info.h"

typedef struct fdinfo_client {
  uint64_t id;
  uint64_t vram;
  uint64_t gtt;
  bool own;
} fdinfo_client;

typedef struct fdinfo_walk {
  const char *root;
  gm__pci address;
  uint64_t self_pid;
  uint64_t pid; /* being visited */
  uint32_t count;
  fdinfo_client clients[GM__FDINFO_CLIENTS_MAX];
} fdinfo_walk;

/* Regions of the drivers that gm knows; the last is host memory. */
static const char *const fdinfo_regions[] = {"vram", "vram0", "local0", "gtt"};

enum { FDINFO_REGIONS = sizeof fdinfo_regions / sizeof *fdinfo_regions, FDINFO_GTT = FDINFO_REGIONS - 1 };

/* One file. */
typedef struct fdinfo_entry {
  bool is_drm;
  bool has_client;
  gm__pci address;
  uint64_t client;
  uint64_t resident[FDINFO_REGIONS];
  uint64_t memory[FDINFO_REGIONS];
} fdinfo_entry;

/* "123 KiB"; a bare number is bytes. A number that does not fit counts as not understood: it becomes
 * GM_UNKNOWN_BYTES. */
static bool fdinfo_bytes(const char *text, uint64_t *out) {
  static const struct {
    const char *unit;
    uint64_t bytes;
  } units[] = {{"", 1}, {"KiB", UINT64_C(1) << 10}, {"MiB", UINT64_C(1) << 20}, {"GiB", UINT64_C(1) << 30}};
  uint64_t value;
  if (!gm__decimal(text, &text, &value)) return false;
  text = gm__skip_blanks(text);
  size_t length = strcspn(text, " \t");
  if (*gm__skip_blanks(text + length) != 0) return false;
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    if (strlen(units[i].unit) != length || memcmp(units[i].unit, text, length) != 0) continue;
    *out = gm__mul_sat(value, units[i].bytes);
    return true;
  }
  return false;
}

static void fdinfo_region(const char *region, const char *value, uint64_t bytes[FDINFO_REGIONS]) {
  for (size_t i = 0; i < FDINFO_REGIONS; i++) {
    if (strcmp(region, fdinfo_regions[i]) == 0) fdinfo_bytes(value, &bytes[i]);
  }
}

static bool fdinfo_line(void *user, char *line) {
  static const char resident[] = "drm-resident-", memory[] = "drm-memory-";
  fdinfo_entry *entry = user;
  char *colon = strchr(line, ':');
  if (!colon || strncmp(line, "drm-", 4) != 0) return true;
  *colon = 0;
  const char *value = gm__skip_blanks(colon + 1);
  if (strcmp(line, "drm-driver") == 0) entry->is_drm = true;
  if (strcmp(line, "drm-pdev") == 0) entry->address = gm__pci_parse(value);
  if (strcmp(line, "drm-client-id") == 0) entry->has_client = gm__decimal(value, NULL, &entry->client);
  if (strncmp(line, resident, sizeof resident - 1) == 0) {
    fdinfo_region(line + sizeof resident - 1, value, entry->resident);
  } else if (strncmp(line, memory, sizeof memory - 1) == 0) {
    fdinfo_region(line + sizeof memory - 1, value, entry->memory);
  }
  return true;
}

static uint64_t fdinfo_held(const fdinfo_entry *entry, size_t region) {
  if (entry->resident[region] != GM_UNKNOWN_BYTES) return entry->resident[region];
  return entry->memory[region] == GM_UNKNOWN_BYTES ? 0 : entry->memory[region];
}

static void fdinfo_add(fdinfo_walk *walk, const fdinfo_entry *entry) {
  bool own = walk->pid == walk->self_pid;
  for (uint32_t i = 0; i < walk->count; i++) {
    if (walk->clients[i].id != entry->client) continue;
    walk->clients[i].own |= own;
    return;
  }
  if (walk->count == GM__FDINFO_CLIENTS_MAX) return;
  fdinfo_client client = {.id = entry->client, .gtt = fdinfo_held(entry, FDINFO_GTT), .own = own};
  for (size_t i = 0; i < FDINFO_GTT; i++) client.vram = gm__add_sat(client.vram, fdinfo_held(entry, i));
  walk->clients[walk->count++] = client;
}

static bool fdinfo_descriptor(void *user, const char *name) {
  fdinfo_walk *walk = user;
  uint64_t descriptor;
  const char *end;
  if (!gm__decimal(name, &end, &descriptor) || *end) return true;
  char path[96];
  snprintf(path, sizeof path, "/proc/%llu/fdinfo/%llu", (unsigned long long)walk->pid, (unsigned long long)descriptor);
  fdinfo_entry entry = {.is_drm = false};
  for (size_t i = 0; i < FDINFO_REGIONS; i++) entry.resident[i] = entry.memory[i] = GM_UNKNOWN_BYTES;
  gm__file_lines(walk->root, path, fdinfo_line, &entry);
  if (entry.is_drm && entry.has_client && gm__pci_same(entry.address, walk->address)) fdinfo_add(walk, &entry);
  return true;
}

static bool fdinfo_process(void *user, const char *name) {
  fdinfo_walk *walk = user;
  const char *end;
  if (!gm__decimal(name, &end, &walk->pid) || *end) return true;
  char path[64];
  snprintf(path, sizeof path, "/proc/%llu/fdinfo", (unsigned long long)walk->pid);
  gm__file_names(walk->root, path, fdinfo_descriptor, walk);
  return true;
}

void gm__fdinfo_read(const char *root, gm__pci address, uint64_t self_pid, gm__fdinfo_use *out) {
  *out = (gm__fdinfo_use){0};
  if (address.form != GM__PCI_FULL) return;
  fdinfo_walk walk = {.root = root, .address = address, .self_pid = self_pid};
  gm__file_names(root, "/proc", fdinfo_process, &walk);
  out->valid = walk.count > 0;
  for (uint32_t i = 0; i < walk.count; i++) {
    const fdinfo_client *client = &walk.clients[i];
    out->vram_bytes = gm__add_sat(out->vram_bytes, client->vram);
    out->gtt_bytes = gm__add_sat(out->gtt_bytes, client->gtt);
    if (client->own) continue;
    out->vram_others = gm__add_sat(out->vram_others, client->vram);
    out->gtt_others = gm__add_sat(out->gtt_others, client->gtt);
  }
}
