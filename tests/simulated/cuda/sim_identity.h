/* Names and identities of the simulated devices, the same in libcuda and NVML. */
#ifndef GM_TESTS_SIMULATED_CUDA_SIM_IDENTITY_H
#define GM_TESTS_SIMULATED_CUDA_SIM_IDENTITY_H

#include <stdbool.h>

enum { SIM_NAME_BYTES = 64, SIM_PCI_BYTES = 32 };

/* With `mig` the device is a part of the card. */
void sim_identity_uuid(int device, bool mig, unsigned char out[16]);
void sim_identity_name(int device, bool mig, char out[SIM_NAME_BYTES]);

unsigned sim_identity_bus(int device);
void sim_identity_pci(int device, char out[SIM_PCI_BYTES]); /* "0000:0a:00.0" */

#endif
