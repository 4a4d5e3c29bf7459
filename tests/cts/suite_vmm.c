/* Virtual memory: addresses and what is behind them are separate. */
#include "cts/cts.h"

static void vmm_granularity(cts *t) {
  for (uint32_t type = 0; type < t->type_count; type++) {
    const gm_vmm_props props = {.type = type};
    uint64_t granule = 0;
    const gm_status status = t->ops->vmm_granularity(t->device, &props, &granule, &t->err);
    if (status == GM_ERR_NOT_SUPPORTED && type > 0) continue; /* not every type can be mapped in pieces */
    CTS_CHECK(t, status == GM_OK && granule && !(granule & (granule - 1)));
  }
}

static void vmm_reserve(cts *t) {
  const gm_vmm_props props = {0};
  uint64_t granule, addresses[4];
  CTS_OK(t, t->ops->vmm_granularity(t->device, &props, &granule, &t->err));
  for (unsigned i = 0; i < 4; i++) {
    const uint64_t align = granule << i;
    CTS_OK(t, t->ops->vmm_reserve(t->device, 5 * granule, align, &addresses[i], &t->err));
    CTS_CHECK(t, addresses[i] && addresses[i] % align == 0);
    for (unsigned j = 0; j < i; j++) {
      CTS_CHECK(t, addresses[j] + 5 * granule <= addresses[i] || addresses[i] + 5 * granule <= addresses[j]);
    }
  }
  for (unsigned i = 0; i < 4; i++) {
    CTS_OK(t, t->ops->vmm_unreserve(t->device, addresses[i], 5 * granule, GM_CLOSE_NORMAL, &t->err));
  }
}

static void vmm_map_and_unmap(cts *t) {
  enum { PIECES = 6 };
  const gm_vmm_props props = {0};
  const gm_backend_ops *ops = t->ops;
  uint64_t granule, address, handles[PIECES];
  CTS_OK(t, ops->vmm_granularity(t->device, &props, &granule, &t->err));
  CTS_OK(t, ops->vmm_reserve(t->device, 2 * PIECES * granule, 0, &address, &t->err));
  for (unsigned i = 0; i < PIECES; i++) {
    CTS_OK(t, ops->vmm_create(t->device, &props, 2 * granule, &handles[i], &t->err));
    CTS_CHECK(t, handles[i] != 0);
  }
  for (unsigned round = 0; round < 3; round++) {
    for (unsigned i = 0; i < PIECES; i++) {
      const uint64_t at = address + 2 * granule * ((i + round) % PIECES);
      CTS_OK(t, ops->vmm_map(t->device, at, 2 * granule, handles[i], 0, &t->err));
      CTS_OK(t, ops->vmm_access(t->device, at, 2 * granule, &t->err));
    }
    for (unsigned i = 0; i < PIECES; i++) {
      CTS_OK(t, ops->vmm_unmap(t->device, address + 2 * granule * i, 2 * granule, &t->err));
    }
  }
  for (unsigned i = 0; i < PIECES; i++) {
    CTS_OK(t, ops->vmm_destroy(t->device, handles[i], 2 * granule, GM_CLOSE_NORMAL, &t->err));
  }
  CTS_OK(t, ops->vmm_unreserve(t->device, address, 2 * PIECES * granule, GM_CLOSE_NORMAL, &t->err));
}

static const cts_case vmm_cases[] = {
    {"vmm.granularity", vmm_granularity, CTS_VMM},
    {"vmm.reserve", vmm_reserve, CTS_VMM},
    {"vmm.map_and_unmap", vmm_map_and_unmap, CTS_VMM},
};
const cts_suite cts_vmm_suite = {vmm_cases, sizeof vmm_cases / sizeof vmm_cases[0]};
