#include "core/host/pci.h"

#include <stdio.h>
#include <string.h>

static int pci_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* One to `most` hexadecimal digits that end at `stop`. */
static bool pci_field(const char **text, int most, char stop, uint32_t *out) {
  const char *at = *text;
  uint32_t value = 0;
  for (; pci_digit(*at) >= 0; at++) {
    if (at - *text == most) return false;
    value = value << 4 | (uint32_t)pci_digit(*at);
  }
  if (at == *text || *at != stop) return false;
  *text = stop ? at + 1 : at;
  *out = value;
  return true;
}

gm__pci gm__pci_parse(const char *text) {
  gm__pci none = {GM__PCI_NONE, 0, 0, 0, 0};
  if (!text) return none;
  const char *first = strchr(text, ':');
  bool full = first && strchr(first + 1, ':');
  uint32_t domain = 0, bus, device, function;
  if (full && !pci_field(&text, 8, ':', &domain)) return none;
  if (!pci_field(&text, 2, ':', &bus) || !pci_field(&text, 2, '.', &device)) return none;
  if (!pci_field(&text, 1, 0, &function) || device > 31 || function > 7) return none;
  if ((domain | bus | device | function) == 0) return none;
  return (gm__pci){full ? GM__PCI_FULL : GM__PCI_PARTIAL, domain, (uint8_t)bus, (uint8_t)device, (uint8_t)function};
}

bool gm__pci_same_slot(gm__pci a, gm__pci b) {
  if (a.form == GM__PCI_NONE || b.form == GM__PCI_NONE) return false;
  return a.bus == b.bus && a.device == b.device && a.function == b.function;
}

bool gm__pci_same(gm__pci a, gm__pci b) {
  return a.form == GM__PCI_FULL && b.form == GM__PCI_FULL && a.domain == b.domain && gm__pci_same_slot(a, b);
}

void gm__pci_print(gm__pci address, char out[GM__PCI_TEXT_SIZE]) {
  snprintf(out, GM__PCI_TEXT_SIZE, "%04x:%02x:%02x.%x", address.domain, address.bus, address.device, address.function);
}
