/* Wraps the engine's memory. gm retains nothing, since the drivers count no references. */
#include "backends/shared/native.h"
#include "backends/shared/pointer_memory.h"
#include "backends/shared/runtime/runtime.h"
#include "backends/shared/runtime/runtime_entries.h"
#include "backends/shared/runtime/runtime_native.h"
#include "core/base/error.h"

static gm_status wrap_type(const gm__runtime_device *device, const gm__runtime_facts *facts, uint32_t *out,
                           gm_error *err) {
  if (facts->managed && device->info.capabilities & GM_CAP_MANAGED) {
    *out = GM__POINTER_MANAGED;
  } else if (facts->kind == GM__RUNTIME_HOST && facts->host) {
    *out = GM__POINTER_PINNED;
  } else if (facts->kind == GM__RUNTIME_DEVICE && facts->ordinal == device->ordinal) {
    *out = GM__POINTER_DEVICE;
  } else {
    return gm__bad_argument(err, device->api->name,
                            "`pointer` is memory of device %d that device %d cannot use as its own", facts->ordinal,
                            device->ordinal);
  }
  return GM_OK;
}

/* Some versions of HIP tell the host address of the pointer, others that of its allocation. Those tell the same for
 * both ends. */
static gm_status wrap_host(const gm__runtime *api, gm_memory *wrapped, const gm__runtime_facts *first,
                           const gm__runtime_facts *last, gm_error *err) {
  const uint64_t moved = last->host - first->host, address = wrapped->address;
  const bool told = first->host == address || (wrapped->bytes > 1 && moved == wrapped->bytes - 1);
  if (wrapped->type == GM__POINTER_PINNED && !told) {
    return gm__fail(err, GM_ERR_NOT_SUPPORTED, api->pointer_op,
                    "%s does not tell the host address of `pointer`: wrap the whole allocation", api->shown);
  }
  wrapped->host = (void *)(uintptr_t)(wrapped->type == GM__POINTER_MANAGED ? address : first->host);
  return GM_OK;
}

/* gm asks the driver about both ends. Several mappings may lie between them: the driver tells one at a time. */
static gm_status wrap_look(gm__runtime_device *device, const gm__runtime_native_memory *lent, gm_memory *out,
                           gm_error *err) {
  const gm__runtime *api = device->api;
  gm__runtime_facts first = {.ordinal = -1}, last = first;
  gm_memory wrapped = {.handle = lent->pointer, .address = lent->pointer, .bytes = lent->bytes, .wrapped = true};
  gm_status status = api->pointer_ask(device, lent->pointer, &first, err);
  if (status == GM_OK) status = api->pointer_ask(device, lent->pointer + lent->bytes - 1, &last, err);
  if (status == GM_OK) status = wrap_type(device, &first, &wrapped.type, err);
  if (status != GM_OK) return status;
  if (first.kind != last.kind || first.ordinal != last.ordinal || first.managed != last.managed) {
    return gm__bad_argument(err, api->name, "`bytes` %llu reach from one memory into another",
                            (unsigned long long)lent->bytes);
  }
  if (wrapped.type != GM__POINTER_DEVICE) status = wrap_host(api, &wrapped, &first, &last, err);
  if (status == GM_OK) *out = wrapped;
  return status;
}

gm_status gm__runtime_memory_wrap(void *device, const gm_native_memory *native, gm_memory *out, gm_error *err) {
  gm__runtime_device *opened = device;
  const gm__runtime *api = opened->api;
  gm__runtime_native_memory lent;
  gm__runtime_scope scope;
  gm_status status = gm__native_in(&lent, sizeof lent, native, api->api, api->name, "native", err);
  if (status != GM_OK) return status;
  status = gm__pointer_check_wrap(api->shown, lent.pointer, lent.bytes, err);
  if (status == GM_OK) status = gm__runtime_enter(opened, &scope, err);
  if (status != GM_OK) return status;
  status = wrap_look(opened, &lent, out, err);
  gm__runtime_leave(opened, &scope);
  return status;
}
