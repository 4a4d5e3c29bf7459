#include "backends/hip/hip_wrap.h"

#include "backends/hip/hip_current.h"
#include "backends/hip/hip_mem.h"
#include "backends/hip/hip_status.h"
#include "core/base/error.h"
#include "core/base/native.h"
#include "gm/native_hip.h"

typedef enum wrap_kind { WRAP_OTHER, WRAP_HOST, WRAP_DEVICE, WRAP_MANAGED } wrap_kind;

typedef struct wrap_facts { /* what HIP knows of a pointer */
  wrap_kind kind;
  int ordinal;
  uint64_t host; /* 0: none */
} wrap_facts;

/* HIP 6.0 moved the numbers up by one, to make room for memory that it does not know. */
static wrap_kind wrap_kind_of(const gm__hip_driver *driver, const hipPointerAttribute_t *told) {
  const int number = driver->version >= GM__HIP_6 ? told->type : told->type + 1;
  if (told->isManaged || number == 3)
    return driver->version >= GM__HIP_6 || told->isManaged ? WRAP_MANAGED : WRAP_OTHER;
  if (number == 1) return WRAP_HOST;
  return number == 2 ? WRAP_DEVICE : WRAP_OTHER;
}

static gm_status wrap_ask(gm__hip_device *device, uint64_t pointer, wrap_facts *out, gm_error *err) {
  hipPointerAttribute_t told = {.device = -1};
  const hipError_t code = device->hip->hipPointerGetAttributes(&told, (const void *)(uintptr_t)pointer);
  if (code != hipSuccess && code != hipErrorInvalidValue) {
    return gm__hip_device_fail(device, code, "hipPointerGetAttributes", err);
  }
  const wrap_kind kind = code == hipSuccess ? wrap_kind_of(device->driver, &told) : WRAP_OTHER;
  if (kind == WRAP_OTHER) {
    return gm__bad_argument(err, "hipPointerGetAttributes", "`pointer` %#llx is no memory that HIP knows",
                            (unsigned long long)pointer);
  }
  *out = (wrap_facts){.kind = kind, .ordinal = told.device, .host = (uintptr_t)told.hostPointer};
  return GM_OK;
}

static gm_status wrap_type(const gm__hip_device *device, const wrap_facts *facts, uint32_t *out, gm_error *err) {
  if (facts->kind == WRAP_MANAGED && device->info.capabilities & GM_CAP_MANAGED) {
    *out = GM__HIP_MANAGED;
  } else if (facts->kind == WRAP_HOST && facts->host) {
    *out = GM__HIP_PINNED;
  } else if (facts->kind == WRAP_DEVICE && facts->ordinal == (int)device->info.index) {
    *out = GM__HIP_DEVICE_MEMORY;
  } else {
    return gm__bad_argument(err, "hip", "`pointer` is memory of device %d that device %u cannot use as its own",
                            facts->ordinal, (unsigned)device->info.index);
  }
  return GM_OK;
}

/* Some versions tell the host address of the pointer, some that of its allocation: then both ends have the same. */
static gm_status wrap_host(const gm_hip_memory *lent, const wrap_facts *first, const wrap_facts *last, void **out,
                           gm_error *err) {
  const uint64_t moved = last->host - first->host;
  if (first->kind != WRAP_MANAGED && lent->bytes > 1 && moved != lent->bytes - 1 && first->host != lent->pointer) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, 0, "hipPointerGetAttributes",
                    "HIP does not tell the host address of `pointer`: wrap the whole allocation");
  }
  *out = (void *)(uintptr_t)(first->kind == WRAP_MANAGED ? lent->pointer : first->host);
  return GM_OK;
}

/* Both ends are asked for; what lies between may be several mappings, of which HIP tells one at a time. */
static gm_status wrap_look(gm__hip_device *device, const gm_hip_memory *lent, gm_memory *out, gm_error *err) {
  wrap_facts first = {.kind = WRAP_OTHER}, last = first;
  gm_memory wrapped = {.handle = lent->pointer, .address = lent->pointer, .bytes = lent->bytes, .wrapped = true};
  gm_status status = wrap_ask(device, lent->pointer, &first, err);
  if (status == GM_OK) status = wrap_ask(device, lent->pointer + lent->bytes - 1, &last, err);
  if (status == GM_OK) status = wrap_type(device, &first, &wrapped.type, err);
  if (status != GM_OK) return status;
  if (first.kind != last.kind || first.ordinal != last.ordinal) {
    return gm__bad_argument(err, "hip", "`bytes` %llu reach from one memory into another",
                            (unsigned long long)lent->bytes);
  }
  if (wrapped.type != GM__HIP_DEVICE_MEMORY) status = wrap_host(lent, &first, &last, &wrapped.host, err);
  if (status == GM_OK) *out = wrapped;
  return status;
}

gm_status gm__hip_memory_wrap(void *device, const gm_native_memory *native, gm_memory *out, gm_error *err) {
  gm__hip_device *opened = device;
  gm_hip_memory lent;
  gm__hip_scope scope;
  gm_status status = gm__native_in(&lent, sizeof lent, native, GM_API_HIP, "hip", "native", err);
  if (status != GM_OK) return status;
  status = gm__pointer_check_wrap("HIP", lent.pointer, lent.bytes, err);
  if (status == GM_OK) status = gm__hip_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  status = wrap_look(opened, &lent, out, err);
  gm__hip_leave(&scope);
  return status;
}
