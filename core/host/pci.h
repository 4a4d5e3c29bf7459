/* PCI addresses as drivers print them (rule I1). */
#ifndef GM_CORE_HOST_PCI_H
#define GM_CORE_HOST_PCI_H

#include <stdbool.h>
#include <stdint.h>

enum { GM__PCI_TEXT_SIZE = 24 };

typedef enum gm__pci_form {
  GM__PCI_NONE,    /* no address: missing, not understood, or all zero */
  GM__PCI_PARTIAL, /* bus, device and function without a domain */
  GM__PCI_FULL
} gm__pci_form;

typedef struct gm__pci {
  gm__pci_form form;
  uint32_t domain;
  uint8_t bus;
  uint8_t device;
  uint8_t function;
} gm__pci;

/* Read "[domain:]bus:device.function", hexadecimal in any case. NULL is none. */
gm__pci gm__pci_parse(const char *text);

/* True for the same bus, device and function, in whatever domain. False when either address is none. */
bool gm__pci_same_slot(gm__pci a, gm__pci b);

/* True when both addresses are full and equal. */
bool gm__pci_same(gm__pci a, gm__pci b);

/* The kernel's form, "0000:65:00.0". */
void gm__pci_print(gm__pci address, char out[GM__PCI_TEXT_SIZE]);

#endif
