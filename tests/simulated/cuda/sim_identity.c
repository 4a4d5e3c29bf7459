#include "tests/simulated/cuda/sim_identity.h"

#include <stdio.h>
#include <string.h>

void sim_identity_uuid(int device, bool mig, unsigned char out[16]) {
  memcpy(out, mig ? "simulated-mig--" : "simulated-gpu--", 15);
  out[15] = (unsigned char)device;
}

void sim_identity_name(int device, bool mig, char out[SIM_NAME_BYTES]) {
  snprintf(out, SIM_NAME_BYTES, "Simulated GPU %d%s", device, mig ? " MIG 1g.10gb" : "");
}

unsigned sim_identity_bus(int device) { return 10 + (unsigned)device; }

void sim_identity_pci(int device, char out[SIM_PCI_BYTES]) {
  snprintf(out, SIM_PCI_BYTES, "0000:%02x:00.0", sim_identity_bus(device));
}
