#include "bench/card/card_driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum { CARD_NON_BLOCKING = 1, CARD_RELEASE_THRESHOLD = 4 };

typedef struct driver_symbol {
  const char *name;
  size_t offset;
  bool optional;
} driver_symbol;

static const driver_symbol driver_symbols[] = {
    {"cuInit", offsetof(card_driver, init), false},
    {"cuDeviceGet", offsetof(card_driver, device_get), false},
    {"cuDevicePrimaryCtxRetain", offsetof(card_driver, context_retain), false},
    {"cuCtxSetCurrent", offsetof(card_driver, context_set), false},
    {"cuMemGetInfo_v2", offsetof(card_driver, info), false},
    {"cuMemAlloc_v2", offsetof(card_driver, alloc), false},
    {"cuMemFree_v2", offsetof(card_driver, free), false},
    {"cuStreamCreate", offsetof(card_driver, stream_create), false},
    {"cuStreamSynchronize", offsetof(card_driver, stream_wait), false},
    {"cuMemAllocAsync", offsetof(card_driver, alloc_async), true},
    {"cuMemFreeAsync", offsetof(card_driver, free_async), true},
    {"cuDeviceGetDefaultMemPool", offsetof(card_driver, pool_default), true},
    {"cuMemPoolSetAttribute", offsetof(card_driver, pool_set), true},
    {"cuMemPoolTrimTo", offsetof(card_driver, pool_trim), true},
};

static bool driver_load(card_driver *out, void *library) {
  bool complete = true;
  for (size_t i = 0; i < sizeof driver_symbols / sizeof driver_symbols[0]; i++) {
    void *symbol = dlsym(library, driver_symbols[i].name);
    memcpy((char *)out + driver_symbols[i].offset, &symbol, sizeof symbol);
    complete = complete && (symbol || driver_symbols[i].optional);
  }
  return complete;
}

static void driver_open_pool(card_driver *out, int device) {
  uint64_t keep = UINT64_MAX;
  const bool known = out->alloc_async && out->free_async && out->pool_default && out->pool_set && out->pool_trim;
  const bool good = known && out->pool_default(&out->pool, device) == 0 &&
                    out->pool_set(out->pool, CARD_RELEASE_THRESHOLD, &keep) == 0;
  if (!good) out->alloc_async = NULL;
}

const char *card_driver_open(card_driver *out) {
  const char *named = getenv("GM_CUDA_LIBRARY");
  *out = (card_driver){.stream = NULL};
  void *library = dlopen(named && *named ? named : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return "libcuda.so.1 is not there";
  if (!driver_load(out, library)) return "libcuda.so.1 lacks an entry of CUDA 11";
  int device = 0;
  void *context = NULL;
  const bool good = out->init(0) == 0 && out->device_get(&device, 0) == 0 &&
                    out->context_retain(&context, device) == 0 && out->context_set(context) == 0 &&
                    out->stream_create(&out->stream, CARD_NON_BLOCKING) == 0;
  if (!good) return "the driver has no device, or gives no context";
  driver_open_pool(out, device);
  return NULL;
}

uint64_t card_driver_free_bytes(const card_driver *driver) {
  size_t free_bytes = 0, total = 0;
  return driver->info(&free_bytes, &total) == 0 ? free_bytes : 0;
}
