#include "backends/cpu/cpu_backend.h"
#include "cts/modes.h"
#include "gm/native_cpu.h"

static bool cpu_check_native(cts *t, const gm_memory *memory, uint64_t offset, uint64_t bytes) {
  gm_cpu_memory native = {.head = {.struct_size = sizeof native, .api = GM_API_CPU}};
  return t->ops->memory_native(t->device, memory, offset, bytes, &native.head, &t->err) == GM_OK &&
         native.pointer == (unsigned char *)memory->host + offset && native.bytes == bytes &&
         memory->address + offset == (uintptr_t)native.pointer;
}

const cts_mode cts_cpu_opened = {
    .backend = "cpu", .name = "opened", .ops = &gm__cpu_backend, .check_native = cpu_check_native};
