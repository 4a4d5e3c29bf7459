#include "core/host/sysfs.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/base/decimal.h"
#include "core/base/file.h"
#include "gm/memory_info.h"

static uint64_t sysfs_number(const char *root, const char *slot, const char *name) {
  char path[128], text[64];
  snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/mem_info_%s", slot, name);
  if (gm__file_text(root, path, text, sizeof text) != GM__FILE_OK) return GM_UNKNOWN_BYTES;
  uint64_t value;
  const char *end;
  if (!gm__decimal(text, &end, &value) || end[strspn(end, " \t\r\n")] != 0) return GM_UNKNOWN_BYTES;
  return value;
}

void gm__sysfs_read(const char *root, gm__pci address, gm__sysfs_memory *out) {
  *out = (gm__sysfs_memory){GM_UNKNOWN_BYTES, GM_UNKNOWN_BYTES, GM_UNKNOWN_BYTES, GM_UNKNOWN_BYTES};
  if (address.form != GM__PCI_FULL) return;
  char slot[GM__PCI_TEXT_SIZE];
  gm__pci_print(address, slot);
  out->vram_total = sysfs_number(root, slot, "vram_total");
  out->vram_used = sysfs_number(root, slot, "vram_used");
  out->gtt_total = sysfs_number(root, slot, "gtt_total");
  out->gtt_used = sysfs_number(root, slot, "gtt_used");
}

/* The first line of a small file. False: there is none. */
static bool sysfs_word(const char *root, const char *slot, const char *name, char *out, size_t capacity) {
  char path[128];
  snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", slot, name);
  if (gm__file_text(root, path, out, capacity) != GM__FILE_OK) return false;
  out[strcspn(out, "\r\n")] = '\0';
  return out[0] != '\0';
}

void gm__sysfs_link(const char *root, gm__pci address, char out[GM__SYSFS_LINK_SIZE]) {
  char slot[GM__PCI_TEXT_SIZE], speed[24], lanes[8];
  out[0] = '\0';
  if (address.form != GM__PCI_FULL) return;
  gm__pci_print(address, slot);
  if (!sysfs_word(root, slot, "max_link_speed", speed, sizeof speed) ||
      !sysfs_word(root, slot, "current_link_width", lanes, sizeof lanes)) {
    return;
  }
  snprintf(out, GM__SYSFS_LINK_SIZE, "%s x%s", speed, lanes);
}
