#include <stdlib.h>
#include <string.h>

#include "simulated/opencl/sim_opencl.h"

/* Platforms and devices: copies of the first real platform and its first device. With `platforms=3` the second lists
 * nothing and the third has the devices once more, as a card behind two drivers. */

cl_int sim_reply(const void *answer, size_t answer_bytes, size_t bytes, void *value, size_t *value_bytes) {
  if (value && bytes < answer_bytes) return CL_INVALID_VALUE;
  if (value) memcpy(value, answer, answer_bytes);
  if (value_bytes) *value_bytes = answer_bytes;
  return CL_SUCCESS;
}

static uint32_t device_platforms(void) {
  const uint64_t count = shim_script_number(&sim.script, "platforms", 1);
  return count < SIM_PLATFORMS ? (uint32_t)count : SIM_PLATFORMS;
}

cl_int sim_get_platforms(cl_uint capacity, cl_platform_id *ids, cl_uint *count) {
  cl_platform_id real = NULL;
  cl_uint there = 0;
  const cl_int code = sim.real.clGetPlatformIDs(1, &real, &there);
  if (code != CL_SUCCESS) return code;
  pthread_mutex_lock(&sim.mutex);
  const uint32_t played = device_platforms();
  for (uint32_t i = 0; i < played; i++) {
    sim.platforms[i] = (sim_platform){real, i};
    if (ids && i < capacity) ids[i] = (cl_platform_id)(void *)&sim.platforms[i];
  }
  pthread_mutex_unlock(&sim.mutex);
  if (count) *count = shim_script_is(&sim.script, "hostile", "platforms") ? UINT32_MAX : played;
  return CL_SUCCESS;
}

static const sim_platform *device_platform(cl_platform_id id) { return (const sim_platform *)(const void *)id; }

cl_int sim_get_platform_info(cl_platform_id id, cl_platform_info what, size_t bytes, void *value, size_t *value_bytes) {
  char name[128];
  if (what == CL_PLATFORM_NAME && shim_script_text(&sim.script, "platform", name, sizeof name)) {
    return sim_reply(name, strlen(name) + 1, bytes, value, value_bytes);
  }
  return sim.real.clGetPlatformInfo(device_platform(id)->real, what, bytes, value, value_bytes);
}

/* The real ids are asked once for each platform; all played devices are copies of the first. */
cl_int sim_get_devices(cl_platform_id id, cl_device_type type, cl_uint capacity, cl_device_id *ids, cl_uint *count) {
  const uint32_t platform = device_platform(id)->index;
  const uint64_t wanted = shim_script_number(&sim.script, "devices", 1);
  cl_device_id real = NULL;
  if (platform == 1) return CL_DEVICE_NOT_FOUND;
  const cl_int code = sim.real.clGetDeviceIDs(device_platform(id)->real, type, 1, &real, NULL);
  if (code != CL_SUCCESS) return code;
  const cl_uint played = wanted < SIM_DEVICES ? (cl_uint)wanted : SIM_DEVICES;
  pthread_mutex_lock(&sim.mutex);
  for (cl_uint i = 0; i < played; i++) {
    sim_device *device = &sim.devices[platform][i];
    device->real = real;
    device->index = i;
    device->platform = &sim.platforms[platform];
    if (ids && i < capacity) ids[i] = (cl_device_id)(void *)device;
  }
  pthread_mutex_unlock(&sim.mutex);
  if (count) *count = played;
  if (count && shim_script_is(&sim.script, "hostile", "devices")) *count = (cl_uint)INT32_MIN;
  return CL_SUCCESS;
}

sim_device *sim_device_of(cl_device_id id) {
  sim_device *device = (sim_device *)(void *)id;
  const sim_device *first = &sim.devices[0][0], *end = first + SIM_PLATFORMS * SIM_DEVICES;
  if (device < first || device >= end || !device->real) shim_violation("opencl", "a cl_device_id that does not exist");
  return device;
}
