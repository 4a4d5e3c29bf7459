#include "backends/shared/pci_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"

int32_t gm__pci_node(const char *root, const char *pci) {
  char path[96], text[32], *end = text;
  if (!*pci || strchr(pci, '/')) return -1;
  snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/numa_node", pci);
  if (gm__file_text(root, path, text, sizeof text) != GM__FILE_OK) return -1;
  const long node = strtol(text, &end, 10);
  return end != text && node >= 0 && node <= 65535 ? (int32_t)node : -1;
}
