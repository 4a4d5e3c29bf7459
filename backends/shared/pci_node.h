/* Linux's files about a PCI device. `root` goes before every path, for tests; NULL means "". Thread-safe. */
#ifndef GM_BACKENDS_SHARED_PCI_NODE_H
#define GM_BACKENDS_SHARED_PCI_NODE_H

#include <stdint.h>

/* The NUMA node of the device at a PCI address ("0000:65:00.0"). -1: Linux does not tell. */
int32_t gm__pci_node(const char *root, const char *pci);

#endif
