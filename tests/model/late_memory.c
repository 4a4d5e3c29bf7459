#include <string.h>

#include "model/late_driver.h"

/* ---- words ---- */

static uint32_t *memory_paged(late_driver *driver, uint64_t address, uint64_t *bytes) {
  const uint64_t page = (address - LATE_RANGES) / LATE_PAGE, in_page = address % LATE_PAGE;
  if (page >= LATE_TABLE || !driver->table[page]) return NULL;
  if (*bytes > LATE_PAGE - in_page) *bytes = LATE_PAGE - in_page;
  return &driver->paged[((driver->table[page] - UINT64_C(1)) * LATE_PAGE + in_page) / LATE_GRANULE];
}

uint32_t *late_words(late_driver *driver, uint64_t address, uint64_t *bytes) {
  if (address >= LATE_RANGES) return memory_paged(driver, address, bytes);
  for (uint32_t i = 0; i < driver->piece_count; i++) {
    const late_piece *piece = &driver->pieces[i];
    if (address >= piece->address && address - piece->address + *bytes <= piece->bytes) {
      return &driver->plain[(address - LATE_PLAIN) / LATE_GRANULE];
    }
  }
  return NULL;
}

/* Blocks that leave must be used by nobody, and whoever looks at them later finds something else there. */
static void memory_leave(late_driver *driver, uint64_t address, uint64_t bytes) {
  if (late_is_busy(driver, address, bytes)) {
    late_fault(driver, "0x%llx + %llu leaves while work on it is pending", (unsigned long long)address,
               (unsigned long long)bytes);
  }
}

/* ---- plain memory ---- */

static uint64_t piece_end(const late_driver *driver, uint32_t number) {
  return number ? driver->pieces[number - 1].address + driver->pieces[number - 1].bytes : LATE_PLAIN;
}

/* The gap before piece `number` (or behind the last one), cut down to what can be handed out of it. */
static bool piece_fits(const late_driver *driver, uint32_t number, uint64_t bytes, uint64_t align, uint64_t *out) {
  const uint64_t from = (piece_end(driver, number) + align - 1) / align * align;
  const uint64_t to = number < driver->piece_count ? driver->pieces[number].address : LATE_PLAIN + LATE_CAPACITY;
  if (to < from || to - from < bytes) return false;
  *out = driver->high ? (to - bytes) / align * align : from;
  return *out >= from;
}

static gm_status memory_full(gm_error *err) {
  return late_fail(err, GM_ERR_OUT_OF_DEVICE_MEMORY, "the device is full");
}

gm_status late_memory_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  late_driver *driver = device;
  const uint64_t align = params->align > LATE_GRANULE ? params->align : LATE_GRANULE;
  const uint64_t bytes = (params->bytes + LATE_GRANULE - 1) / LATE_GRANULE * LATE_GRANULE;
  late_drift(driver);
  if (driver->piece_count == LATE_ALLOCATIONS || bytes > LATE_CAPACITY - driver->used) return memory_full(err);
  for (uint32_t i = 0; i <= driver->piece_count; i++) {
    const uint32_t number = driver->high ? driver->piece_count - i : i;
    uint64_t address;
    if (!piece_fits(driver, number, bytes, align, &address)) continue;
    memmove(&driver->pieces[number + 1], &driver->pieces[number], (driver->piece_count - number) * sizeof(late_piece));
    driver->pieces[number] = (late_piece){address, bytes};
    driver->piece_count++;
    driver->used += bytes;
    *out = (gm_memory){.handle = address, .address = address, .bytes = bytes, .type = params->type};
    return GM_OK;
  }
  return memory_full(err);
}

gm_status late_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  (void)mode;
  late_driver *driver = device;
  late_drift(driver);
  for (uint32_t i = 0; i < driver->piece_count; i++) {
    if (driver->pieces[i].address != memory->address) continue;
    memory_leave(driver, memory->address, driver->pieces[i].bytes);
    memset(&driver->plain[(memory->address - LATE_PLAIN) / LATE_GRANULE], 0xdd,
           driver->pieces[i].bytes / LATE_GRANULE * sizeof(uint32_t));
    memset(&driver->seen[(memory->address - LATE_PLAIN) / LATE_GRANULE], false, driver->pieces[i].bytes / LATE_GRANULE);
    driver->used -= driver->pieces[i].bytes;
    driver->piece_count--;
    memmove(&driver->pieces[i], &driver->pieces[i + 1], (driver->piece_count - i) * sizeof(late_piece));
    return GM_OK;
  }
  late_fault(driver, "0x%llx was freed and is no memory", (unsigned long long)memory->address);
  return late_fail(err, GM_ERR_DRIVER, "no such memory");
}

/* ---- for the host ---- */

bool late_is_seen(const late_driver *driver, uint64_t address, uint64_t bytes) {
  for (uint64_t at = 0; at < bytes; at += LATE_GRANULE) {
    if (address >= LATE_RANGES || !driver->seen[(address + at - LATE_PLAIN) / LATE_GRANULE]) return false;
  }
  return true;
}

gm_status late_host_map(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                        uint32_t mode, void **out, gm_error *err) {
  (void)stream, (void)mode;
  late_driver *driver = device;
  uint64_t piece = bytes;
  if (memory->type != LATE_WINDOW || !late_words(driver, memory->address + offset, &piece) || piece < bytes) {
    late_fault(driver, "0x%llx was mapped and cannot be", (unsigned long long)(memory->address + offset));
    return late_fail(err, GM_ERR_DRIVER, "no such memory");
  }
  const uint64_t first = (memory->address + offset - LATE_PLAIN) / LATE_GRANULE;
  memset(&driver->seen[first], true, (bytes + LATE_GRANULE - 1) / LATE_GRANULE);
  *out = (void *)(uintptr_t)(memory->address + offset);
  return GM_OK;
}

gm_status late_host_unmap(void *device, void *stream, const gm_memory *memory, void *pointer, gm_error *err) {
  (void)stream, (void)err;
  uint64_t bytes = 1;
  if (memory->type != LATE_WINDOW || !late_words(device, (uintptr_t)pointer, &bytes)) {
    late_fault(device, "%p was unmapped and is no mapping", pointer);
  }
  return GM_OK;
}

gm_status late_host_sync(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err) {
  (void)device, (void)memory, (void)offset, (void)bytes, (void)err;
  return GM_OK;
}

/* ---- ranges and pages ---- */

gm_status late_granularity(void *device, const gm_vmm_props *props, uint64_t *out, gm_error *err) {
  (void)device, (void)props, (void)err;
  *out = LATE_PAGE;
  return GM_OK;
}

gm_status late_reserve(void *device, uint64_t bytes, uint64_t align, uint64_t *out_address, gm_error *err) {
  (void)align;
  late_driver *driver = device;
  const uint64_t most = LATE_RANGES + (uint64_t)LATE_TABLE * LATE_PAGE;
  if (driver->ranges == 0) driver->reserved_end = LATE_RANGES;
  if (bytes % LATE_PAGE || bytes > most - driver->reserved_end) {
    return late_fail(err, GM_ERR_OUT_OF_DEVICE_MEMORY, "no addresses are left");
  }
  *out_address = driver->reserved_end;
  driver->reserved_end += bytes;
  driver->ranges++;
  return GM_OK;
}

gm_status late_unreserve(void *device, uint64_t address, uint64_t bytes, gm_close_mode mode, gm_error *err) {
  (void)mode, (void)err;
  late_driver *driver = device;
  for (uint64_t page = 0; page < bytes / LATE_PAGE; page++) {
    if (driver->table[(address - LATE_RANGES) / LATE_PAGE + page]) late_fault(driver, "a mapped range was given back");
  }
  driver->ranges--;
  return GM_OK;
}

gm_status late_create(void *device, const gm_vmm_props *props, uint64_t bytes, uint64_t *out_handle, gm_error *err) {
  (void)props;
  late_driver *driver = device;
  const uint32_t count = (uint32_t)(bytes / LATE_PAGE);
  late_drift(driver);
  if (bytes > LATE_CAPACITY - driver->used) return memory_full(err);
  for (uint32_t first = 0, i; first + count <= LATE_PAGES; first++) {
    for (i = 0; i < count && !driver->handle_of[first + i]; i++) {}
    if (i < count) continue;
    for (i = 0; i < count; i++) driver->handle_of[first + i] = (uint8_t)(first + 1);
    driver->used += bytes;
    *out_handle = first + 1;
    return GM_OK;
  }
  return memory_full(err); /* a real one needs no pages in a row, but may fail as well */
}

gm_status late_destroy(void *device, uint64_t handle, uint64_t bytes, gm_close_mode mode, gm_error *err) {
  (void)mode, (void)err;
  late_driver *driver = device;
  late_drift(driver);
  for (uint64_t i = handle - 1; i < handle - 1 + bytes / LATE_PAGE; i++) {
    if (driver->handle_of[i] != handle || driver->mapped[i]) late_fault(driver, "mapped pages were destroyed");
    driver->handle_of[i] = 0;
  }
  driver->used -= bytes;
  return GM_OK;
}

gm_status late_map(void *device, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset, gm_error *err) {
  (void)err;
  late_driver *driver = device;
  late_drift(driver);
  for (uint64_t i = 0; i < bytes / LATE_PAGE; i++) {
    const uint64_t page = (address - LATE_RANGES) / LATE_PAGE + i, physical = handle - 1 + offset / LATE_PAGE + i;
    if (driver->table[page] || driver->handle_of[physical] != handle) late_fault(driver, "pages were mapped twice");
    driver->table[page] = (uint8_t)(physical + 1);
    driver->mapped[physical]++;
  }
  return GM_OK;
}

gm_status late_unmap(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  (void)err;
  late_driver *driver = device;
  late_drift(driver);
  memory_leave(driver, address, bytes);
  for (uint64_t i = 0; i < bytes / LATE_PAGE; i++) {
    const uint64_t page = (address - LATE_RANGES) / LATE_PAGE + i;
    if (!driver->table[page]) late_fault(driver, "pages were unmapped that are not mapped");
    if (driver->table[page]) driver->mapped[driver->table[page] - 1]--;
    driver->table[page] = 0;
  }
  return GM_OK;
}

gm_status late_access(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  (void)device, (void)address, (void)bytes, (void)err;
  return GM_OK;
}
