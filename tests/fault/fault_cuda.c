/* Wrappers of every CUDA entry, made from its symbol table. */
#include <string.h>

#include "backends/cuda/cuda_syms.h"
#include "fault/fault.h"

enum {
#define X(need, fault, symbol, base, since, parameters, arguments) CUDA_##symbol,
#include "backends/cuda/cuda_syms.def"
#undef X
  CUDA_ENTRIES
};

_Static_assert((int)CUDA_ENTRIES <= (int)FAULT_ENTRIES_MAX, "room for every entry");

static const char *const cuda_names[] = {
#define X(need, fault, symbol, base, since, parameters, arguments) #symbol,
#include "backends/cuda/cuda_syms.def"
#undef X
};

enum { CODE = true };
static const bool cuda_can_fail[] = {
#define X(need, fault, symbol, base, since, parameters, arguments) fault,
#include "backends/cuda/cuda_syms.def"
#undef X
};

/* None that loses the device: then nothing is given back, on purpose. */
static const int32_t cuda_codes[] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_UNKNOWN, CUDA_ERROR_INVALID_VALUE, 0};

static void *cuda_wrap(const char *symbol, void *real);
static fault_driver cuda_driver = {.backend = "cuda",
                                   .count = CUDA_ENTRIES,
                                   .names = cuda_names,
                                   .can_fail = cuda_can_fail,
                                   .codes = cuda_codes,
                                   .lost = CUDA_ERROR_ILLEGAL_ADDRESS,
                                   .wrap = cuda_wrap};
fault_driver *const fault_cuda = &cuda_driver;

static gm__cuda_syms cuda_real;

typedef struct cuda_pair {
  unsigned makes, gives_back;
} cuda_pair;

static const cuda_pair cuda_pairs[] = {
    {CUDA_cuDevicePrimaryCtxRetain, CUDA_cuDevicePrimaryCtxRelease_v2},
    {CUDA_cuMemAlloc_v2, CUDA_cuMemFree_v2},
    {CUDA_cuMemAllocManaged, CUDA_cuMemFree_v2},
    {CUDA_cuMemHostAlloc, CUDA_cuMemFreeHost},
    {CUDA_cuMemHostRegister_v2, CUDA_cuMemHostUnregister},
    {CUDA_cuMemAddressReserve, CUDA_cuMemAddressFree},
    {CUDA_cuMemCreate, CUDA_cuMemRelease},
    {CUDA_cuMemMap, CUDA_cuMemUnmap},
    {CUDA_cuMemImportFromShareableHandle, CUDA_cuMemRelease},
    {CUDA_cuIpcOpenMemHandle_v2, CUDA_cuIpcCloseMemHandle},
    {CUDA_cuCtxEnablePeerAccess, CUDA_cuCtxDisablePeerAccess},
    {CUDA_cuStreamCreate, CUDA_cuStreamDestroy_v2},
    {CUDA_cuEventCreate, CUDA_cuEventDestroy_v2},
    {CUDA_cuModuleLoadData, CUDA_cuModuleUnload},
};

enum { CUDA_PAIRS = sizeof cuda_pairs / sizeof cuda_pairs[0] };

/* A release that fails has let go all the same: else the driver, not gm, would keep the object. */
static bool cuda_releases(unsigned entry) {
  for (size_t i = 0; i < CUDA_PAIRS; i++) {
    if (cuda_pairs[i].gives_back == entry) return true;
  }
  return false;
}

static void cuda_account(unsigned entry) {
  for (size_t i = 0; i < CUDA_PAIRS; i++) {
    if (cuda_pairs[i].makes == entry) atomic_fetch_add(&cuda_driver.live, 1);
  }
  if (cuda_releases(entry)) atomic_fetch_sub(&cuda_driver.live, 1);
}

/* A lost device has nothing running. The driver under a played loss lives on: it does its work at once then. */
static void cuda_settle(const char *symbol) {
  const bool works = strncmp(symbol, "cuMemcpy", 8) == 0 || strcmp(symbol, "cuLaunchKernel") == 0;
  if (fault_now.lost_call && works) cuda_real.cuCtxSynchronize();
}

#define X(need, fault, symbol, base, since, parameters, arguments) \
  static CUresult wrapped_##symbol parameters {                    \
    const bool failing = fault_hits(&cuda_driver, CUDA_##symbol);  \
    const CUresult wrong = (CUresult)fault_now.code;               \
    if (failing && !cuda_releases(CUDA_##symbol)) return wrong;    \
    const CUresult answer = cuda_real.symbol arguments;            \
    if (answer == CUDA_SUCCESS) cuda_account(CUDA_##symbol);       \
    if (answer == CUDA_SUCCESS) cuda_settle(#symbol);              \
    return failing ? wrong : answer;                               \
  }
#include "backends/cuda/cuda_syms.def"
#undef X

static void *cuda_wrap(const char *symbol, void *real) {
#define X(need, fault, symbol_, base, since, parameters, arguments) \
  if (strcmp(symbol, #symbol_) == 0) {                              \
    CUresult(*wrapper) parameters = wrapped_##symbol_;              \
    if (!real) return NULL;                                         \
    memcpy(&cuda_real.symbol_, &real, sizeof real);                 \
    memcpy(&real, &wrapper, sizeof real);                           \
    return real;                                                    \
  }
#include "backends/cuda/cuda_syms.def"
#undef X
  return real;
}
