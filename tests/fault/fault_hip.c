/* Wrappers of every entry of HIP and of its compiler, made from their symbol tables. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "backends/hip/hip_rtc.h"
#include "backends/hip/hip_syms.h"
#include "fault/fault.h"

enum {
#define X(need, fault, symbol, parameters, arguments) HIP_##symbol,
#include "backends/hip/hip_rtc_syms.def"
#include "backends/hip/hip_syms.def"
#undef X
  HIP_ENTRIES
};

_Static_assert((int)HIP_ENTRIES <= (int)FAULT_ENTRIES_MAX, "room for every entry");

static const char *const hip_names[] = {
#define X(need, fault, symbol, parameters, arguments) #symbol,
#include "backends/hip/hip_rtc_syms.def"
#include "backends/hip/hip_syms.def"
#undef X
};

enum { CODE = true };
static const bool hip_can_fail[] = {
#define X(need, fault, symbol, parameters, arguments) fault,
#include "backends/hip/hip_rtc_syms.def"
#include "backends/hip/hip_syms.def"
#undef X
};

/* None that loses the device: then nothing is given back, on purpose. */
static const int32_t hip_codes[] = {hipErrorOutOfMemory, hipErrorUnknown, hipErrorInvalidValue, 0};

static void *hip_wrap(const char *symbol, void *real);
static fault_driver hip_driver = {.backend = "hip",
                                  .count = HIP_ENTRIES,
                                  .names = hip_names,
                                  .can_fail = hip_can_fail,
                                  .codes = hip_codes,
                                  .lost = 719, /* hipErrorLaunchFailure */
                                  .wrap = hip_wrap};
fault_driver *const fault_hip = &hip_driver;

static gm__hip_syms hip_real;
static gm__hip_rtc_syms rtc_real;

typedef struct hip_pair {
  unsigned makes, gives_back;
} hip_pair;

static const hip_pair hip_pairs[] = {
    {HIP_hipMalloc, HIP_hipFree},
    {HIP_hipMallocManaged, HIP_hipFree},
    {HIP_hipHostMalloc, HIP_hipHostFree},
    {HIP_hipHostRegister, HIP_hipHostUnregister},
    {HIP_hipMemAddressReserve, HIP_hipMemAddressFree},
    {HIP_hipMemCreate, HIP_hipMemRelease},
    {HIP_hipMemMap, HIP_hipMemUnmap},
    {HIP_hipMemImportFromShareableHandle, HIP_hipMemRelease},
    {HIP_hipIpcOpenMemHandle, HIP_hipIpcCloseMemHandle},
    {HIP_hipDeviceEnablePeerAccess, HIP_hipDeviceDisablePeerAccess},
    {HIP_hipStreamCreateWithFlags, HIP_hipStreamDestroy},
    {HIP_hipEventCreateWithFlags, HIP_hipEventDestroy},
    {HIP_hipModuleLoadData, HIP_hipModuleUnload},
    {HIP_hiprtcCreateProgram, HIP_hiprtcDestroyProgram},
};

enum { HIP_PAIRS = sizeof hip_pairs / sizeof hip_pairs[0] };

/* A release that fails has let go all the same: else the driver, not gm, would keep the object. */
static bool hip_releases(unsigned entry) {
  for (size_t i = 0; i < HIP_PAIRS; i++) {
    if (hip_pairs[i].gives_back == entry) return true;
  }
  return false;
}

static void hip_account(unsigned entry) {
  for (size_t i = 0; i < HIP_PAIRS; i++) {
    if (hip_pairs[i].makes == entry) atomic_fetch_add(&hip_driver.live, 1);
  }
  if (hip_releases(entry)) atomic_fetch_sub(&hip_driver.live, 1);
}

/* A lost device has nothing running. The driver under a played loss lives on: it does its work at once then. */
static void hip_settle(const char *symbol) {
  static hipError_t (*synchronize)(void);
  const bool works = strncmp(symbol, "hipMemcpy", 9) == 0 || strcmp(symbol, "hipModuleLaunchKernel") == 0;
  if (!fault_now.lost_call || !works) return;
  const char *path = getenv("GM_HIP_LIBRARY");
  void *library = synchronize ? NULL : dlopen(path ? path : "libamdhip64.so.6", RTLD_NOW | RTLD_NOLOAD);
  void *found = library ? dlsym(library, "hipDeviceSynchronize") : NULL;
  if (found) memcpy(&synchronize, &found, sizeof synchronize);
  if (synchronize) synchronize();
}

#define WRAPPED(type, real, symbol, parameters, arguments)      \
  static type wrapped_##symbol parameters {                     \
    const bool failing = fault_hits(&hip_driver, HIP_##symbol); \
    const type wrong = (type)fault_now.code;                    \
    if (failing && !hip_releases(HIP_##symbol)) return wrong;   \
    const type answer = real.symbol arguments;                  \
    if ((int)answer == 0) hip_account(HIP_##symbol);            \
    if ((int)answer == 0) hip_settle(#symbol);                  \
    return failing ? wrong : answer;                            \
  }
#define X(need, fault, symbol, parameters, arguments) WRAPPED(hipError_t, hip_real, symbol, parameters, arguments)
#include "backends/hip/hip_syms.def"
#undef X
#define X(need, fault, symbol, parameters, arguments) WRAPPED(hiprtcResult, rtc_real, symbol, parameters, arguments)
#include "backends/hip/hip_rtc_syms.def"
#undef X

#define WRAP(type, table, symbol_, parameters)     \
  if (strcmp(symbol, #symbol_) == 0) {             \
    type(*wrapper) parameters = wrapped_##symbol_; \
    if (!real) return NULL;                        \
    memcpy(&table.symbol_, &real, sizeof real);    \
    memcpy(&real, &wrapper, sizeof real);          \
    return real;                                   \
  }

static void *hip_wrap(const char *symbol, void *real) {
#define X(need, fault, symbol_, parameters, arguments) WRAP(hipError_t, hip_real, symbol_, parameters)
#include "backends/hip/hip_syms.def"
#undef X
#define X(need, fault, symbol_, parameters, arguments) WRAP(hiprtcResult, rtc_real, symbol_, parameters)
#include "backends/hip/hip_rtc_syms.def"
#undef X
  return real;
}
