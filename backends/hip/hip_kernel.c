#include "backends/hip/hip_kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"

#define KERNEL_NODES "/sys/class/kfd/kfd/topology/nodes"

static bool kernel_skip_name(void *user, const char *name) {
  (void)user;
  (void)name;
  return false;
}

bool gm__hip_kernel_present(const char *root) {
  char text[512];
  if (gm__file_names(root, KERNEL_NODES, kernel_skip_name, NULL) == GM__FILE_OK) return true;
  if (gm__file_text(root, "/proc/version", text, sizeof text) != GM__FILE_OK) return false;
  return strstr(text, "microsoft") || strstr(text, "Microsoft");
}

typedef struct kernel_count {
  const char *root;
  uint32_t cards;
} kernel_count;

/* A node with a gpu_id is a GPU, the others are processors. */
static bool kernel_count_node(void *user, const char *name) {
  kernel_count *count = user;
  char path[128], text[32];
  const int length = snprintf(path, sizeof path, KERNEL_NODES "/%s/gpu_id", name);
  if (length < 0 || (size_t)length >= sizeof path) return true;
  if (gm__file_text(count->root, path, text, sizeof text) != GM__FILE_OK) return true;
  if (strtoull(text, NULL, 10) != 0) count->cards++;
  return true;
}

uint32_t gm__hip_kernel_cards(const char *root) {
  kernel_count count = {.root = root};
  return gm__file_names(root, KERNEL_NODES, kernel_count_node, &count) == GM__FILE_OK ? count.cards : 0;
}

/* One node's `properties`: lines "key number". */
typedef struct kernel_node {
  const char *root;
  uint64_t want_domain, want_location;
  uint64_t domain, location, target;
  char *out;
  size_t capacity;
} kernel_node;

static bool kernel_read_property(void *user, char *line) {
  kernel_node *node = user;
  static const char *const keys[] = {"domain ", "location_id ", "gfx_target_version "};
  uint64_t *const values[] = {&node->domain, &node->location, &node->target};
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
    const size_t length = strlen(keys[i]);
    if (strncmp(line, keys[i], length) == 0) *values[i] = strtoull(line + length, NULL, 10);
  }
  return true;
}

/* gfx_target_version is major * 10000 + minor * 100 + stepping. The name has the last two in hexadecimal. The three
 * lowest bits of a location are the function, or the number of a partition. */
static bool kernel_match_node(void *user, const char *name) {
  kernel_node *node = user;
  char path[128];
  const int length = snprintf(path, sizeof path, KERNEL_NODES "/%s/properties", name);
  if (length < 0 || (size_t)length >= sizeof path) return true;
  node->domain = node->location = node->target = 0;
  if (gm__file_lines(node->root, path, kernel_read_property, node) != GM__FILE_OK) return true;
  if (!node->target || node->domain != node->want_domain || (node->location & ~7ull) != node->want_location) {
    return true;
  }
  snprintf(node->out, node->capacity, "gfx%u%x%x", (unsigned)(node->target / 10000 % 1000),
           (unsigned)(node->target / 100 % 100), (unsigned)(node->target % 100));
  return false;
}

void gm__hip_kernel_arch(const char *root, const char *pci, char *out, size_t capacity) {
  unsigned domain = 0, bus = 0, slot = 0;
  out[0] = 0;
  if (sscanf(pci, "%x:%x:%x", &domain, &bus, &slot) != 3 || bus > 0xff || slot > 0x1f) return;
  kernel_node node = {.root = root, .want_domain = domain, .out = out, .capacity = capacity};
  node.want_location = (uint64_t)bus << 8 | slot << 3;
  gm__file_names(root, KERNEL_NODES, kernel_match_node, &node);
}
