/* Wrappers of every OpenCL entry, made from its symbol table. */
#include <string.h>

#include "backends/opencl/opencl_syms.h"
#include "fault/fault.h"

enum {
#define X(need, fault, result, name, parameters, arguments) OPENCL_##name,
#include "backends/opencl/opencl_syms.def"
#undef X
  OPENCL_ENTRIES
};

_Static_assert((int)OPENCL_ENTRIES <= (int)FAULT_ENTRIES_MAX, "room for every entry");

static const char *const opencl_names[] = {
#define X(need, fault, result, name, parameters, arguments) #name,
#include "backends/opencl/opencl_syms.def"
#undef X
};

enum { CODE = true, HANDLE = true, NONE = false };
static const bool opencl_can_fail[] = {
#define X(need, fault, result, name, parameters, arguments) fault,
#include "backends/opencl/opencl_syms.def"
#undef X
};

static const int32_t opencl_codes[] = {CL_OUT_OF_RESOURCES, CL_OUT_OF_HOST_MEMORY, CL_MEM_OBJECT_ALLOCATION_FAILURE, 0};

static void *opencl_wrap(const char *symbol, void *real);
static fault_driver opencl_driver = {.backend = "opencl",
                                     .count = OPENCL_ENTRIES,
                                     .names = opencl_names,
                                     .can_fail = opencl_can_fail,
                                     .codes = opencl_codes,
                                     .wrap = opencl_wrap};
fault_driver *const fault_opencl = &opencl_driver;

static gm__opencl_syms opencl_real;

/* A release that fails has let go all the same: else the driver, not gm, would keep the object. */
static bool opencl_releases(unsigned entry) { return strncmp(opencl_names[entry], "clRelease", 9) == 0; }

/* What a call that succeeded made or gave back: objects, references, mappings, events. */
static void opencl_account(unsigned entry, bool makes_event) {
  const char *name = opencl_names[entry];
  long delta = makes_event ? 1 : 0;
  if (strncmp(name, "clCreate", 8) == 0 || strncmp(name, "clRetain", 8) == 0) delta++;
  if (opencl_releases(entry)) delta--;
  if (entry == OPENCL_clEnqueueMapBuffer) delta++;
  if (entry == OPENCL_clEnqueueUnmapMemObject) delta--;
  atomic_fetch_add(&opencl_driver.live, delta);
}

/* Wrappers without a parameter of this name see this one. */
#pragma GCC diagnostic ignored "-Wshadow"
static cl_event *const event = NULL;

#define FAIL_CODE return fault_now.code
#define FAIL_HANDLE            \
  do {                         \
    *errcode = fault_now.code; \
    return NULL;               \
  } while (0)
#define WORKED_CODE(answer) ((answer) == CL_SUCCESS)
#define WORKED_HANDLE(answer) ((answer) != NULL)
#define X(need, fault, result, name, parameters, arguments)                   \
  static result CL_API_CALL wrapped_##name parameters {                       \
    const bool failing = fault_hits(&opencl_driver, OPENCL_##name);           \
    if (failing && !opencl_releases(OPENCL_##name)) FAIL_##fault;             \
    result const answer = opencl_real.name arguments;                         \
    if (WORKED_##fault(answer)) opencl_account(OPENCL_##name, event != NULL); \
    if (failing) FAIL_##fault;                                                \
    return answer;                                                            \
  }
#include "backends/opencl/opencl_syms.def"
#undef X

static void *opencl_wrap(const char *symbol, void *real) {
#define X(need, fault, result, name, parameters, arguments)   \
  if (strcmp(symbol, #name) == 0) {                           \
    result(CL_API_CALL *wrapper) parameters = wrapped_##name; \
    memcpy(&opencl_real.name, &real, sizeof real);            \
    memcpy(&real, &wrapper, sizeof real);                     \
    return real;                                              \
  }
#include "backends/opencl/opencl_syms.def"
#undef X
  return real;
}
