#include "core/device/identity_pair.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const char *identity_text(const char *text) { return text ? text : ""; }

bool gm__identity_text_equal(const char *a, const char *b) { return a && *a && b && strcmp(a, b) == 0; }

bool gm__identity_text_same(const char *a, const char *b) { return strcmp(identity_text(a), identity_text(b)) == 0; }

bool gm__identity_is_gpu_of(const gm__identity *entry, const char *vendor) {
  return entry->type != GM_DEVICE_TYPE_CPU && gm__identity_text_equal(entry->vendor, vendor);
}

/* Lower case without "GPU-" and dashes; MIG's stay as they are; all zeros, and what is too long, is none. */
static void identity_uuid(const char *text, char out[GM_IDENTITY_UUID_SIZE]) {
  out[0] = 0;
  if (strlen(text) >= GM_IDENTITY_UUID_SIZE) return;
  if (strncasecmp(text, "MIG-", 4) == 0) {
    memcpy(out, text, strlen(text) + 1);
    return;
  }
  if (strncasecmp(text, "GPU-", 4) == 0) text += 4;
  size_t length = 0;
  bool zero = true;
  for (; *text; text++) {
    if (*text == '-') continue;
    zero &= *text == '0';
    out[length++] = (char)tolower((unsigned char)*text);
  }
  out[zero ? 0 : length] = 0;
}

void gm__identity_normalise(gm__identity *entry) {
  entry->address = gm__pci_parse(entry->pci);
  identity_uuid(identity_text(entry->uuid), entry->uuid_key);
}

static bool identity_same_driver(const gm__identity *a, const gm__identity *b) {
  return gm__identity_text_same(a->api, b->api) && gm__identity_text_same(a->driver, b->driver);
}

static bool identity_same_uuid(const gm__identity *a, const gm__identity *b) {
  if (gm__identity_text_equal(a->driver, "moltenvk") || gm__identity_text_equal(b->driver, "moltenvk")) return false;
  return gm__identity_text_equal(a->uuid_key, b->uuid_key);
}

/* I2, and a partial address contradicts one of another slot. */
static bool identity_addresses_differ(const gm__identity *a, const gm__identity *b) {
  if (a->address.form == GM_PCI_NONE || b->address.form == GM_PCI_NONE) return false;
  if (!gm__pci_same_slot(a->address, b->address)) return true;
  if (a->address.form != GM_PCI_FULL || b->address.form != GM_PCI_FULL) return false;
  if (!gm__pci_same(a->address, b->address)) return true;
  return identity_same_driver(a, b) && !identity_same_uuid(a, b);
}

/* I4: within one driver UUIDs are of one form, so different ones are different devices. */
static bool identity_uuids_differ(const gm__identity *a, const gm__identity *b) {
  if (!a->uuid_key[0] || !b->uuid_key[0] || !identity_same_driver(a, b)) return false;
  return strcmp(a->uuid_key, b->uuid_key) != 0;
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
