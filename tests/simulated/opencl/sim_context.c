#include <stdlib.h>
#include <string.h>

#include "simulated/opencl/sim_opencl.h"

/* Which played devices a real context or queue is of. Contexts and queues are few: a record is kept until the handle
 * comes again. */

typedef struct sim_owner {
  void *handle; /* cl_context or cl_command_queue */
  sim_device *devices[SIM_DEVICES];
  cl_uint count;
  struct sim_owner *next;
} sim_owner;

static sim_owner *owner_list;

/* Under the mutex. */
static sim_owner *owner_find(const void *handle) {
  sim_owner *at = owner_list;
  while (at && at->handle != handle) at = at->next;
  return at;
}

static sim_owner *owner_keep(void *handle) {
  sim_owner *owner = owner_find(handle);
  if (owner) return owner;
  owner = calloc(1, sizeof *owner);
  if (!owner) abort();
  owner->handle = handle;
  owner->next = owner_list;
  owner_list = owner;
  return owner;
}

static void owner_set(void *handle, cl_uint count, const cl_device_id *devices) {
  pthread_mutex_lock(&sim.mutex);
  sim_owner *owner = owner_keep(handle);
  owner->count = count < SIM_DEVICES ? count : SIM_DEVICES;
  for (cl_uint i = 0; i < owner->count; i++) owner->devices[i] = sim_device_of(devices[i]);
  pthread_mutex_unlock(&sim.mutex);
}

/* These properties with the real platform. */
static void context_properties(const cl_context_properties *given, cl_context_properties out[32]) {
  size_t at = 0;
  for (; given && given[at] && at < 30; at += 2) {
    out[at] = given[at];
    out[at + 1] = given[at + 1];
    if (given[at] != CL_CONTEXT_PLATFORM) continue;
    out[at + 1] = (cl_context_properties)((const sim_platform *)given[at + 1])->real;
  }
  out[at] = 0;
}

cl_context sim_create_context(const cl_context_properties *properties, cl_uint count, const cl_device_id *devices,
                              void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *), void *user,
                              cl_int *errcode) {
  cl_context_properties real[32];
  cl_device_id real_device = count ? sim_device_of(devices[0])->real : NULL; /* all are copies of one */
  context_properties(properties, real);
  cl_context context =
      sim.real.clCreateContext(properties ? real : NULL, count ? 1 : 0, &real_device, notify, user, errcode);
  if (context) owner_set(context, count, devices);
  return context;
}

cl_int sim_build(cl_program program, cl_uint count, const cl_device_id *devices, const char *options,
                 void(CL_CALLBACK *notify)(cl_program, void *), void *user) {
  cl_device_id real = count ? sim_device_of(devices[0])->real : NULL; /* all are copies of one */
  return sim.real.clBuildProgram(program, count ? 1 : 0, count ? &real : NULL, options, notify, user);
}

static cl_int owner_devices(const void *handle, size_t bytes, void *value, size_t *value_bytes) {
  pthread_mutex_lock(&sim.mutex);
  const sim_owner *owner = owner_find(handle);
  const cl_int code =
      owner ? sim_reply(owner->devices, owner->count * sizeof owner->devices[0], bytes, value, value_bytes)
            : CL_INVALID_VALUE;
  pthread_mutex_unlock(&sim.mutex);
  return code;
}

cl_int sim_get_context_info(cl_context context, cl_context_info what, size_t bytes, void *value, size_t *value_bytes) {
  if (what == CL_CONTEXT_DEVICES) return owner_devices(context, bytes, value, value_bytes);
  return sim.real.clGetContextInfo(context, what, bytes, value, value_bytes);
}

/* out_of_order=none: as rusticl, which has no such queues. */
cl_command_queue sim_create_queue(cl_context context, cl_device_id device, cl_command_queue_properties properties,
                                  cl_int *errcode) {
  if (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE && shim_script_is(&sim.script, "out_of_order", "none")) {
    if (errcode) *errcode = CL_INVALID_QUEUE_PROPERTIES;
    return NULL;
  }
  cl_command_queue queue = sim.real.clCreateCommandQueue(context, sim_device_of(device)->real, properties, errcode);
  if (queue) owner_set(queue, 1, &device);
  if (queue) sim_order_note(queue, properties);
  return queue;
}

cl_int sim_get_queue_info(cl_command_queue queue, cl_command_queue_info what, size_t bytes, void *value,
                          size_t *value_bytes) {
  if (what == CL_QUEUE_DEVICE) return owner_devices(queue, bytes, value, value_bytes);
  return sim.real.clGetCommandQueueInfo(queue, what, bytes, value, value_bytes);
}

sim_device *sim_context_device(cl_context context) {
  pthread_mutex_lock(&sim.mutex);
  const sim_owner *owner = owner_find(context);
  sim_device *device = owner && owner->count ? owner->devices[0] : NULL;
  pthread_mutex_unlock(&sim.mutex);
  return device;
}
