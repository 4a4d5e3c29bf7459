/* The part of NVML that PyTorch asks before it uses expandable segments: one device without links to others. */
#include <stddef.h>

int nvmlInit_v2(void) { return 0; }

int nvmlShutdown(void) { return 0; }

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **out) {
  static int device;
  (void)bus;
  *out = &device;
  return 0;
}

enum { FAKE_NOT_SUPPORTED = 3 };

/* The caller's zeroes stay: no fabric. */
int nvmlDeviceGetGpuFabricInfoV(void *device, void *info) {
  (void)device, (void)info;
  return 0;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned link, int *out) {
  (void)device, (void)link, (void)out;
  return FAKE_NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned link, void *out) {
  (void)device, (void)link, (void)out;
  return FAKE_NOT_SUPPORTED;
}

int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned *count, void *out) {
  (void)device, (void)out;
  *count = 0;
  return 0;
}

int nvmlSystemGetCudaDriverVersion_v2(int *out) {
  *out = 13000;
  return 0;
}
