/* Reads the kernel's files about NVIDIA's driver, and runs none of the driver. `root` goes before every path, for
 * tests; NULL means "". Thread-safe. */
#ifndef GM_BACKENDS_CUDA_KERNEL_H
#define GM_BACKENDS_CUDA_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The kernel's part of the driver is there: NVIDIA's module, WSL2's, or a Tegra's. */
bool gm__cuda_kernel_present(const char *root);

/* The cards that NVIDIA's module lists; 0: none, or not told (WSL2, Tegra). */
uint32_t gm__cuda_kernel_cards(const char *root);

/* The kernel is WSL2's: device memory is Windows' to give and take. */
bool gm__cuda_kernel_wsl(const char *root);

/* "580.65.06"; "" where the module does not tell. */
void gm__cuda_kernel_version(const char *root, char *out, size_t capacity);

#endif
