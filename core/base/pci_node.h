/* What Linux tells of a PCI device in files. `root` goes before every path (tests); NULL: "". Thread-safe. */
#ifndef GM_CORE_BASE_PCI_NODE_H
#define GM_CORE_BASE_PCI_NODE_H

#include <stdint.h>

/* The NUMA node of the device at a PCI address ("0000:65:00.0"); -1: not told. */
int32_t gm__pci_node(const char *root, const char *pci);

#endif
