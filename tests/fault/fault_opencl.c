/* Wrappers of every OpenCL entry, made from its symbol tables. */
#include "fault/fault.h"
#include "support/opencl_wrapped.h"

_Static_assert((int)WRAPPED_ENTRIES <= (int)FAULT_ENTRIES_MAX, "room for every entry");

/* clSVMFree alone tells nothing, and what clSVMAlloc tells is NULL. */
enum { CODE = true, HANDLE = true, POINTER = true, NONE = false };
static const bool opencl_can_fail[] = {
#define X(need, fault, result, name, parameters, arguments) fault,
#include "backends/opencl/opencl_syms.def"
#include "backends/opencl/opencl_usm.def"
#undef X
};

static const int32_t opencl_codes[] = {CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY, CL_MEM_OBJECT_ALLOCATION_FAILURE, 0};

static void *opencl_wrap(const char *symbol, void *real) {
  void *wrapper = wrapped_symbol(symbol, real);
  return wrapper ? wrapper : real;
}

static fault_driver opencl_driver = {.backend = "opencl",
                                     .count = WRAPPED_ENTRIES,
                                     .names = wrapped_names,
                                     .can_fail = opencl_can_fail,
                                     .codes = opencl_codes,
                                     .lost = CL_DEVICE_NOT_AVAILABLE,
                                     .wrap = opencl_wrap};
fault_driver *const fault_opencl = &opencl_driver;

static bool wrapped_hits(unsigned entry, cl_int *code) {
  if (!fault_hits(&opencl_driver, entry)) return false;
  *code = fault_now.code;
  return true;
}

static atomic_long *wrapped_live(void) { return &opencl_driver.live; }

/* A lost device has nothing running. The driver under a played loss lives on: it does its work at once then. */
static void wrapped_settle(unsigned entry, const void *first) {
  cl_command_queue queue;
  if (!fault_now.lost_call || strncmp(wrapped_names[entry], "clEnqueue", 9) != 0) return;
  memcpy(&queue, &first, sizeof queue);
  wrapped_real.cl.clFinish(queue);
}
