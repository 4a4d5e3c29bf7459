/* Groups only grow by merging. Two groups merge only if no pair across them is proved different. So a later weaker
 * proof never undoes an earlier stronger one. Loops only, no recursion: the work is polynomial in the count. */
#include "core/discovery/identity.h"

#include <string.h>

#include "core/base/saturate.h"
#include "gm/memory_info.h"

static void identity_hex(const uint8_t *bytes, size_t count, char *out) {
  static const char digits[] = "0123456789abcdef";
  for (size_t i = 0; i < count; i++) {
    *out++ = digits[bytes[i] >> 4];
    *out++ = digits[bytes[i] & 15];
  }
  *out = 0;
}

gm__identity gm__identity_of_device(const gm_device_info *info) {
  gm__identity entry = {.api = info->backend,
                        .vendor = info->vendor,
                        .driver = info->driver,
                        .pci = info->pci,
                        .partition = info->partition,
                        .type = info->type,
                        .parent = GM__IDENTITY_NO_PARENT,
                        .total_bytes = info->total_bytes ? info->total_bytes : GM_UNKNOWN_BYTES};
  if (!info->uuid_derived) identity_hex(info->uuid, GM_UUID_BYTES, entry.uuid);
  if (info->has_luid) identity_hex(info->luid, GM_LUID_BYTES, entry.luid);
  return entry;
}

static bool identity_may_merge(const gm__identity *entries, uint32_t count, uint32_t a, uint32_t b) {
  for (uint32_t i = 0; i < count; i++) {
    if (entries[i].group != a) continue;
    for (uint32_t j = 0; j < count; j++) {
      if (entries[j].group == b && gm__identity_differ(&entries[i], &entries[j])) return false;
    }
  }
  return true;
}

static void identity_merge(gm__identity *entries, uint32_t count, uint32_t i, uint32_t j) {
  uint32_t a = entries[i].group, b = entries[j].group;
  if (a == b || !identity_may_merge(entries, count, a, b)) return;
  for (uint32_t k = 0; k < count; k++) {
    if (entries[k].group == b) entries[k].group = a;
  }
}

/* I2, I4, I5, I9. */
static void identity_merge_equal(gm__identity *entries, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    for (uint32_t j = i + 1; j < count; j++) {
      if (gm__identity_equal(&entries[i], &entries[j])) identity_merge(entries, count, i, j);
    }
  }
}

/* Whether another entry of the driver has the same partial address: then neither can be told apart. */
static bool identity_is_repeated(const gm__identity *entries, uint32_t count, uint32_t i) {
  for (uint32_t j = 0; j < count; j++) {
    if (j == i || entries[j].address.form != GM__PCI_PARTIAL) continue;
    if (!gm__identity_text_same(entries[i].api, entries[j].api)) continue;
    if (!gm__identity_text_same(entries[i].driver, entries[j].driver)) continue;
    if (gm__pci_same_slot(entries[i].address, entries[j].address)) return true;
  }
  return false;
}

/* Looks for the one full address of the vendor in this slot. Returns the index of an entry that has it; `count`: there
 * is none, or more than one. */
static uint32_t identity_only_address(const gm__identity *entries, uint32_t count, uint32_t i) {
  uint32_t found = count;
  for (uint32_t j = 0; j < count; j++) {
    if (entries[j].address.form != GM__PCI_FULL || !gm__identity_is_gpu_of(&entries[j], entries[i].vendor)) continue;
    if (!gm__pci_same_slot(entries[i].address, entries[j].address)) continue;
    if (found < count && !gm__pci_same(entries[found].address, entries[j].address)) return count;
    found = j;
  }
  return found;
}

/* I6. */
static void identity_merge_partial(gm__identity *entries, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (entries[i].address.form != GM__PCI_PARTIAL || entries[i].type == GM_DEVICE_TYPE_CPU) continue;
    uint32_t j = identity_only_address(entries, count, i);
    if (j < count && !identity_is_repeated(entries, count, i)) identity_merge(entries, count, j, i);
  }
}

/* Whether each API, seen for itself, shows one GPU of the vendor of entry `i`, and none of them contradicts it. */
static bool identity_is_only_one(const gm__identity *entries, uint32_t count, uint32_t i) {
  for (uint32_t a = 0; a < count; a++) {
    const gm__identity *one = &entries[a];
    if (!gm__identity_is_gpu_of(one, entries[i].vendor)) continue;
    if (one->type != entries[i].type) return false;
    bool joined = one->group == entries[i].group;
    if (!joined && !identity_may_merge(entries, count, one->group, entries[i].group)) return false;
    for (uint32_t b = a + 1; b < count; b++) {
      const gm__identity *other = &entries[b];
      if (!gm__identity_is_gpu_of(other, entries[i].vendor) || other->group == one->group) continue;
      if (gm__identity_text_same(one->api, other->api) || gm__identity_differ(one, other)) return false;
    }
  }
  return true;
}

/* I8. */
static void identity_merge_only_ones(gm__identity *entries, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const gm__identity *entry = &entries[i];
    bool placed = entry->address.form == GM__PCI_FULL || (entry->partition && *entry->partition);
    if (placed || entry->type == GM_DEVICE_TYPE_CPU || !identity_is_only_one(entries, count, i)) continue;
    for (uint32_t j = 0; j < count; j++) {
      if (gm__identity_is_gpu_of(&entries[j], entry->vendor)) identity_merge(entries, count, i, j);
    }
  }
}

/* Numbers from 0 in the order of first entries. A new number never exceeds its entry's index, so marking it with
 * `count` added keeps old and new apart. */
static uint32_t identity_number(gm__identity *entries, uint32_t count) {
  uint32_t next = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t old = entries[i].group;
    if (old >= count) continue;
    for (uint32_t j = i; j < count; j++) {
      if (entries[j].group == old) entries[j].group = count + next;
    }
    next++;
  }
  for (uint32_t i = 0; i < count; i++) entries[i].group -= count;
  return next;
}

static bool identity_is_parent(const gm__identity *entries, uint32_t count, uint32_t i) {
  for (uint32_t j = 0; j < count; j++) {
    if (j != i && entries[j].parent >= 0 && (uint32_t)entries[j].parent == i) return true;
  }
  return false;
}

static bool identity_is_alone(const gm__identity *entries, uint32_t count, uint32_t i) {
  for (uint32_t j = 0; j < count; j++) {
    if (j != i && entries[j].group == entries[i].group) return false;
  }
  return true;
}

/* Gives a group what one of its entries has. It has the host's memory if any entry says so (I9). It is not counted if
 * an entry is the parent of listed partitions (I3), or a partial address that stayed by itself (I6). */
static void identity_mark(gm__identity *entries, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    bool host = entries[i].type == GM_DEVICE_TYPE_CPU || entries[i].type == GM_DEVICE_TYPE_INTEGRATED;
    bool lost = entries[i].address.form == GM__PCI_PARTIAL && !host && identity_is_alone(entries, count, i);
    bool skip = lost || identity_is_parent(entries, count, i);
    for (uint32_t j = 0; j < count; j++) {
      if (entries[j].group != entries[i].group) continue;
      entries[j].host_pool |= host;
      if (skip) entries[j].counted = false;
    }
  }
}

uint32_t gm__identity_group(gm__identity *entries, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    gm__identity_normalise(&entries[i]);
    entries[i].group = i;
    entries[i].host_pool = false;
    entries[i].counted = true;
  }
  identity_merge_equal(entries, count);
  identity_merge_partial(entries, count);
  identity_merge_only_ones(entries, count);
  uint32_t groups = identity_number(entries, count);
  identity_mark(entries, count);
  return groups;
}

/* I10: how well an API's total can be trusted, best first. */
static uint32_t identity_rank(const char *api) {
  static const char *const order[] = {"cuda", "hip", "sysfs", "nvml", "vulkan", "opencl"};
  uint32_t rank = 0;
  while (rank < sizeof order / sizeof *order && !gm__identity_text_equal(api, order[rank])) rank++;
  return rank;
}

/* Whether entry `i` is the one whose total stands for its group. */
static bool identity_speaks(const gm__identity *entries, uint32_t count, uint32_t i) {
  if (entries[i].host_pool || !entries[i].counted || entries[i].total_bytes == GM_UNKNOWN_BYTES) return false;
  for (uint32_t j = 0; j < count; j++) {
    if (j == i || entries[j].group != entries[i].group || entries[j].total_bytes == GM_UNKNOWN_BYTES) continue;
    uint32_t mine = identity_rank(entries[i].api), other = identity_rank(entries[j].api);
    if (other < mine || (other == mine && j < i)) return false;
  }
  return true;
}

uint64_t gm__identity_device_memory(const gm__identity *entries, uint32_t count) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (identity_speaks(entries, count, i)) sum = gm__add_sat(sum, entries[i].total_bytes);
  }
  return sum;
}
