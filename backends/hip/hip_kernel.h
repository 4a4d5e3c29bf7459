/* Reads the kernel's files about AMD's compute driver (KFD), and runs none of the driver. `root` goes before every
 * path, for tests; NULL means "". Thread-safe. */
#ifndef GM_BACKENDS_HIP_KERNEL_H
#define GM_BACKENDS_HIP_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kernel's part is there: KFD, or WSL2, where Windows has it. */
bool gm__hip_kernel_present(const char *root);

/* The GPUs that KFD lists; 0: none, or not told (WSL2). */
uint32_t gm__hip_kernel_cards(const char *root);

/* The architecture of the device at a PCI address ("0000:03:00.0"), such as "gfx90a". KFD does not tell: "". */
void gm__hip_kernel_arch(const char *root, const char *pci, char *out, size_t capacity);

#endif
