#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "simulated/opencl/sim_opencl.h"

/* Entries that a played engine calls and gm does not go straight to the real loader. None of them takes a device. */

#define SIM_EXPORT __attribute__((visibility("default")))

static void *pass_library; /* opened once: the thread sanitizer keeps memory for every dlopen */

static void pass_open(void) { pass_library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL); }

void sim_pass_find(const char *name, void *out) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, pass_open);
  void *symbol = pass_library ? dlsym(pass_library, name) : NULL;
  if (!symbol) shim_violation("opencl", "the real library has no %s", name);
  memcpy(out, &symbol, sizeof symbol);
}

SIM_EXPORT cl_event CL_API_CALL clCreateUserEvent(cl_context context, cl_int *errcode) {
  __typeof__(&clCreateUserEvent) real;
  sim_pass_find("clCreateUserEvent", &real);
  return real(context, errcode);
}

SIM_EXPORT cl_int CL_API_CALL clSetUserEventStatus(cl_event subject, cl_int status) {
  __typeof__(&clSetUserEventStatus) real;
  sim_pass_find("clSetUserEventStatus", &real);
  return real(subject, status);
}
