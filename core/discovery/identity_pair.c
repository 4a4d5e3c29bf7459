#include "core/discovery/identity.h"

#include <string.h>

static const char *identity_text(const char *text) { return text ? text : ""; }

bool gm__identity_text_equal(const char *a, const char *b) { return a && *a && b && strcmp(a, b) == 0; }

bool gm__identity_text_same(const char *a, const char *b) { return strcmp(identity_text(a), identity_text(b)) == 0; }

bool gm__identity_is_gpu_of(const gm__identity *entry, const char *vendor) {
  return entry->type != GM_DEVICE_TYPE_CPU && gm__identity_text_equal(entry->vendor, vendor);
}

/* ASCII only: the host's locale must not change who is who. */
static char identity_lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

static bool identity_begins(const char *text, const char *lower_prefix) {
  while (*lower_prefix && identity_lower(*text) == *lower_prefix) text++, lower_prefix++;
  return *lower_prefix == 0;
}

/* Lower case without "GPU-" and dashes; MIG's stay as they are; all zeros is none. In place: it only gets shorter. */
static void identity_normalise_uuid(char *uuid) {
  if (identity_begins(uuid, "mig-")) return;
  size_t length = 0;
  bool zero = true;
  for (const char *at = identity_begins(uuid, "gpu-") ? uuid + 4 : uuid; *at; at++) {
    if (*at == '-') continue;
    zero &= *at == '0';
    uuid[length++] = identity_lower(*at);
  }
  uuid[zero ? 0 : length] = 0;
}

void gm__identity_normalise(gm__identity *entry) {
  entry->address = gm__pci_parse(entry->pci);
  identity_normalise_uuid(entry->uuid);
}

static bool identity_same_driver(const gm__identity *a, const gm__identity *b) {
  return gm__identity_text_same(a->api, b->api) && gm__identity_text_same(a->driver, b->driver);
}

static bool identity_same_uuid(const gm__identity *a, const gm__identity *b) {
  if (gm__identity_text_equal(a->driver, "moltenvk") || gm__identity_text_equal(b->driver, "moltenvk")) return false;
  return gm__identity_text_equal(a->uuid, b->uuid);
}

/* I2, and a partial address contradicts one of another slot. */
static bool identity_addresses_differ(const gm__identity *a, const gm__identity *b) {
  if (a->address.form == GM__PCI_NONE || b->address.form == GM__PCI_NONE) return false;
  if (!gm__pci_same_slot(a->address, b->address)) return true;
  if (a->address.form != GM__PCI_FULL || b->address.form != GM__PCI_FULL) return false;
  if (!gm__pci_same(a->address, b->address)) return true;
  return identity_same_driver(a, b) && !identity_same_uuid(a, b);
}

/* I4: within one driver UUIDs are of one form, so different ones are different devices. */
static bool identity_uuids_differ(const gm__identity *a, const gm__identity *b) {
  if (!a->uuid[0] || !b->uuid[0] || !identity_same_driver(a, b)) return false;
  return strcmp(a->uuid, b->uuid) != 0;
}

bool gm__identity_differ(const gm__identity *a, const gm__identity *b) {
  bool cpu = a->type == GM_DEVICE_TYPE_CPU;
  if (cpu != (b->type == GM_DEVICE_TYPE_CPU)) return true;
  if (cpu) return false;
  if (!gm__identity_text_same(a->partition, b->partition)) return true;
  return identity_addresses_differ(a, b) || identity_uuids_differ(a, b);
}

bool gm__identity_equal(const gm__identity *a, const gm__identity *b) {
  if (a->type == GM_DEVICE_TYPE_CPU && b->type == GM_DEVICE_TYPE_CPU) return true;
  if (gm__pci_same(a->address, b->address) || identity_same_uuid(a, b)) return true;
  return gm__identity_text_equal(a->luid, b->luid) && !identity_same_driver(a, b);
}
