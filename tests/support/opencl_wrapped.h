/* A wrapper for every OpenCL entry that gm calls, made from the symbol tables: it counts what is alive and can fail.
 * The test that includes this, once, says which call fails. */
#ifndef GM_TESTS_SUPPORT_OPENCL_WRAPPED_H
#define GM_TESTS_SUPPORT_OPENCL_WRAPPED_H

#include <stdatomic.h>
#include <string.h>

#include "backends/opencl/opencl_syms.h"

enum {
#define X(need, fault, result, name, parameters, arguments) WRAPPED_##name,
#include "backends/opencl/opencl_syms.def"
#include "backends/opencl/opencl_usm.def"
#undef X
  WRAPPED_ENTRIES
};

static const char *const wrapped_names[] = {
#define X(need, fault, result, name, parameters, arguments) #name,
#include "backends/opencl/opencl_syms.def"
#include "backends/opencl/opencl_usm.def"
#undef X
};

/* The test's: counts a call; true when it is to fail, with *code where the entry tells one. */
static bool wrapped_hits(unsigned entry, cl_int *code);

/* The test's: objects, references, events, mappings and memory that gm has to give back. */
static atomic_long *wrapped_live(void);

/* The test's: the real call has returned; `first` is its first argument. */
static void wrapped_settle(unsigned entry, const void *first);

static struct {
  gm__opencl_syms cl;
  gm__opencl_usm usm;
} wrapped_real;

/* A release that fails has let go all the same: else the driver, not gm, would keep the object. */
static bool wrapped_releases(unsigned entry) {
  return strncmp(wrapped_names[entry], "clRelease", 9) == 0 || strstr(wrapped_names[entry], "Free") != NULL;
}

/* The object that a call that succeeded made or gave back. */
static void wrapped_account(unsigned entry, bool makes_event) {
  const char *name = wrapped_names[entry];
  long delta = makes_event ? 1 : 0;
  if (strncmp(name, "clCreate", 8) == 0 || strncmp(name, "clRetain", 8) == 0 || strstr(name, "Alloc")) delta++;
  if (wrapped_releases(entry)) delta--;
  if (entry == WRAPPED_clGetMemAllocInfoINTEL) delta--;
  if (entry == WRAPPED_clEnqueueMapBuffer || entry == WRAPPED_clEnqueueSVMMap) delta++;
  if (entry == WRAPPED_clEnqueueUnmapMemObject || entry == WRAPPED_clEnqueueSVMUnmap) delta--;
  atomic_fetch_add(wrapped_live(), delta);
}

/* Wrappers without a parameter of this name see this one. */
#pragma GCC diagnostic ignored "-Wshadow"
static cl_event *const event = NULL;

#define WRAPPED_FIRST_OF(first, ...) first
#define WRAPPED_FIRST(...) WRAPPED_FIRST_OF(__VA_ARGS__, 0)
#define WRAPPED_SETTLE(name, arguments) \
  wrapped_settle(WRAPPED_##name, (const void *)(uintptr_t)(WRAPPED_FIRST arguments))

#define WRAPPED_CODE(result, name, parameters, arguments, real)               \
  static result CL_API_CALL wrapped_##name parameters {                       \
    cl_int code = CL_OUT_OF_RESOURCES;                                        \
    const bool failing = wrapped_hits(WRAPPED_##name, &code);                 \
    if (failing && !wrapped_releases(WRAPPED_##name)) return code;            \
    const cl_int answer = real arguments;                                     \
    if (answer == CL_SUCCESS) wrapped_account(WRAPPED_##name, event != NULL); \
    WRAPPED_SETTLE(name, arguments);                                          \
    return failing ? code : answer;                                           \
  }
#define WRAPPED_HANDLE(result, name, parameters, arguments, real) \
  static result CL_API_CALL wrapped_##name parameters {           \
    if (wrapped_hits(WRAPPED_##name, errcode)) return NULL;       \
    result const answer = real arguments;                         \
    if (answer) wrapped_account(WRAPPED_##name, event != NULL);   \
    WRAPPED_SETTLE(name, arguments);                              \
    return answer;                                                \
  }
#define WRAPPED_POINTER(result, name, parameters, arguments, real) \
  static result CL_API_CALL wrapped_##name parameters {            \
    cl_int code = CL_OUT_OF_RESOURCES;                             \
    if (wrapped_hits(WRAPPED_##name, &code)) return NULL;          \
    result const answer = real arguments;                          \
    if (answer) wrapped_account(WRAPPED_##name, false);            \
    return answer;                                                 \
  }
#define WRAPPED_NONE(result, name, parameters, arguments, real) \
  static result CL_API_CALL wrapped_##name parameters {         \
    cl_int code = CL_OUT_OF_RESOURCES;                          \
    wrapped_hits(WRAPPED_##name, &code);                        \
    wrapped_account(WRAPPED_##name, false);                     \
    real arguments;                                             \
  }

#define X(need, fault, result, name, parameters, arguments) \
  WRAPPED_##fault(result, name, parameters, arguments, wrapped_real.cl.name)
#include "backends/opencl/opencl_syms.def"
#undef X
#define X(need, fault, result, name, parameters, arguments) \
  WRAPPED_##fault(result, name, parameters, arguments, wrapped_real.usm.name)
#include "backends/opencl/opencl_usm.def"
#undef X

/* The entry in place of `real`; NULL: the driver has no such symbol, or the tables have not. */
static void *wrapped_symbol(const char *symbol, void *real) {
  if (!real) return NULL;
#define WRAPPED_TAKE(table, result, name, parameters)         \
  if (strcmp(symbol, #name) == 0) {                           \
    result(CL_API_CALL *wrapper) parameters = wrapped_##name; \
    memcpy(&wrapped_real.table.name, &real, sizeof real);     \
    memcpy(&real, &wrapper, sizeof real);                     \
    return real;                                              \
  }
#define X(need, fault, result, name, parameters, arguments) WRAPPED_TAKE(cl, result, name, parameters)
#include "backends/opencl/opencl_syms.def"
#undef X
#define X(need, fault, result, name, parameters, arguments) WRAPPED_TAKE(usm, result, name, parameters)
#include "backends/opencl/opencl_usm.def"
#undef X
  return NULL;
}

#endif
