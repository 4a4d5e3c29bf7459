#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "simulated/opencl/sim_opencl.h"

/* Every entry that gm calls is exported here, from the list in opencl_syms.def; those of unified
 * shared memory are given out by clGetExtensionFunctionAddressForPlatform alone. */

#define SIM_EXPORT __attribute__((visibility("default")))

sim_state sim = {.mutex = PTHREAD_MUTEX_INITIALIZER};

typedef enum entry_number {
#define X(need, fault, result, name, parameters, arguments) ENTRY_##name,
#include "backends/opencl/opencl_syms.def"
#include "backends/opencl/opencl_usm.def"
#undef X
  ENTRY_COUNT
} entry_number;

static _Atomic uint64_t entry_calls[ENTRY_COUNT];

static void entry_open_real(void) {
  void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  void *symbol;
  if (!library) return;
#define X(need, fault, result, name, parameters, arguments) \
  symbol = dlsym(library, #name);                           \
  memcpy(&sim.real.name, &symbol, sizeof symbol);
#include "backends/opencl/opencl_syms.def"
#undef X
}

/* lost=N[:code]: after N commands every command, wait and new buffer answers the code. */
static bool entry_lost(const char *name, int *out_code) {
  char text[32];
  int after = 0, code = CL_DEVICE_NOT_AVAILABLE;
  const bool command = strncmp(name, "clEnqueue", 9) == 0;
  static const char *const others[] = {"clFlush", "clFinish", "clWaitForEvents", "clCreateBuffer", "clSVMAlloc"};
  bool named = command;
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) named = named || strcmp(name, others[i]) == 0;
  if (!named || !shim_script_text(&sim.script, "lost", text, sizeof text)) return false;
  if (sscanf(text, "%d:%d", &after, &code) < 1) return false;
  pthread_mutex_lock(&sim.mutex);
  if (command) sim.commands++;
  const bool lost = sim.commands > (uint64_t)after;
  pthread_mutex_unlock(&sim.mutex);
  if (lost) *out_code = code;
  return lost;
}

/* gm lists the platforms each time it starts the driver, before anything else. */
static void entry_start(void) {
  pthread_mutex_lock(&sim.mutex);
  shim_script_read(&sim.script, "SIMCL");
  sim.commands = 0;
  for (size_t i = 0; i < ENTRY_COUNT; i++) atomic_store(&entry_calls[i], 0);
  pthread_mutex_unlock(&sim.mutex);
}

/* Counts the call; true: it fails with *out_code. */
static bool entry_fails(entry_number number, const char *name, int *out_code) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, entry_open_real);
  if (number == ENTRY_clGetPlatformIDs) entry_start();
  const uint64_t nth = atomic_fetch_add(&entry_calls[number], 1) + 1;
  return shim_script_fails(&sim.script, name, nth, out_code) || entry_lost(name, out_code);
}

/* `there`: the real driver has it. */
#define ENTRY_CODE(linkage, result, name, parameters, arguments, there, call) \
  linkage result CL_API_CALL name parameters {                                \
    int code = CL_OUT_OF_RESOURCES;                                           \
    if (entry_fails(ENTRY_##name, #name, &code)) return code;                 \
    if (!(there)) return CL_INVALID_OPERATION;                                \
    return call arguments;                                                    \
  }
#define ENTRY_HANDLE(linkage, result, name, parameters, arguments, there, call) \
  linkage result CL_API_CALL name parameters {                                  \
    int code = CL_OUT_OF_RESOURCES;                                             \
    const bool fails = entry_fails(ENTRY_##name, #name, &code);                 \
    if (fails || shim_script_is(&sim.script, "null", #name) || !(there)) {      \
      if (errcode) *errcode = fails ? code : CL_SUCCESS;                        \
      return NULL;                                                              \
    }                                                                           \
    return call arguments;                                                      \
  }
#define ENTRY_POINTER(linkage, result, name, parameters, arguments, there, call)                    \
  linkage result CL_API_CALL name parameters {                                                      \
    int code = CL_OUT_OF_RESOURCES;                                                                 \
    const bool fails = entry_fails(ENTRY_##name, #name, &code);                                     \
    return fails || shim_script_is(&sim.script, "null", #name) || !(there) ? NULL : call arguments; \
  }
#define ENTRY_NONE(linkage, result, name, parameters, arguments, there, call) \
  linkage result CL_API_CALL name parameters {                                \
    int code = CL_OUT_OF_RESOURCES;                                           \
    entry_fails(ENTRY_##name, #name, &code);                                  \
    if (there) call arguments;                                                \
  }

#define X(need, fault, result, name, parameters, arguments)                     \
  ENTRY_##fault(SIM_EXPORT, result, name, parameters, arguments, sim.real.name, \
                (sim_play.name ? sim_play.name : sim.real.name))
#include "backends/opencl/opencl_syms.def"
#undef X
#define X(need, fault, result, name, parameters, arguments) \
  ENTRY_##fault(, result, name, parameters, arguments, true, sim_usm.name)
#include "backends/opencl/opencl_usm.def"
#undef X

void *sim_extension(cl_platform_id platform, const char *entry) {
  void *found = NULL;
  (void)platform;
  if (!shim_script_has(&sim.script, "usm") || shim_script_is(&sim.script, "lacks", entry)) return NULL;
#define X(need, fault, result, name, parameters, arguments) \
  if (strcmp(entry, #name) == 0) {                          \
    result(CL_API_CALL *made) parameters = name;            \
    memcpy(&found, &made, sizeof found);                    \
  }
#include "backends/opencl/opencl_usm.def"
#undef X
  return found;
}

const gm__opencl_syms sim_play = {.clGetPlatformIDs = sim_get_platforms,
                                  .clGetPlatformInfo = sim_get_platform_info,
                                  .clGetDeviceIDs = sim_get_devices,
                                  .clGetDeviceInfo = sim_get_device_info,
                                  .clCreateContext = sim_create_context,
                                  .clGetContextInfo = sim_get_context_info,
                                  .clCreateCommandQueue = sim_create_queue,
                                  .clGetCommandQueueInfo = sim_get_queue_info,
                                  .clCreateBuffer = sim_create_buffer,
                                  .clCreateSubBuffer = sim_create_sub_buffer,
                                  .clReleaseMemObject = sim_release_memory,
                                  .clEnqueueWriteBuffer = sim_write,
                                  .clEnqueueFillBuffer = sim_fill,
                                  .clEnqueueCopyBuffer = sim_copy,
                                  .clEnqueueCopyBufferRect = sim_copy_rect,
                                  .clEnqueueReadBuffer = sim_read,
                                  .clBuildProgram = sim_build,
                                  .clEnqueueNDRangeKernel = sim_launch,
                                  .clEnqueueMarkerWithWaitList = sim_marker,
                                  .clEnqueueBarrierWithWaitList = sim_barrier,
                                  .clEnqueueMapBuffer = sim_map,
                                  .clFinish = sim_finish,
                                  .clWaitForEvents = sim_wait,
                                  .clGetEventInfo = sim_event_info,
                                  .clReleaseCommandQueue = sim_release_queue,
                                  .clSVMAlloc = sim_svm_alloc,
                                  .clSVMFree = sim_svm_free,
                                  .clEnqueueSVMMap = sim_svm_map,
                                  .clGetExtensionFunctionAddressForPlatform = sim_extension};

/* gm looks for this to mark the driver as simulated; it is never called. */
SIM_EXPORT void gmSimulatedDriver(void);
SIM_EXPORT void gmSimulatedDriver(void) {}
