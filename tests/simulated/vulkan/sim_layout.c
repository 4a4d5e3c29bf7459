#include <string.h>

#include "simulated/vulkan/sim_vulkan.h"

/* Heaps and types of cards that no CPU driver is. */

enum {
  LOCAL = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
  SEEN = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
  COHERENT = VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
  CACHED = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
  HEAP_LOCAL = VK_MEMORY_HEAP_DEVICE_LOCAL_BIT
};
#define MIB (UINT64_C(1) << 20)

static const struct layout_named {
  const char *name;
  VkPhysicalDeviceMemoryProperties memory;
} layout_list[] = {
    /* A card without ReBAR: 256 MiB of its memory can be seen by the host. */
    {"discrete",
     {.memoryHeapCount = 3,
      .memoryHeaps = {{1024 * MIB, HEAP_LOCAL}, {2048 * MIB, 0}, {256 * MIB, HEAP_LOCAL}},
      .memoryTypeCount = 4,
      .memoryTypes = {{LOCAL, 0}, {SEEN | COHERENT, 1}, {SEEN | COHERENT | CACHED, 1}, {LOCAL | SEEN | COHERENT, 2}}}},
    /* A card of which the host sees nothing. */
    {"hidden",
     {.memoryHeapCount = 2,
      .memoryHeaps = {{1024 * MIB, HEAP_LOCAL}, {2048 * MIB, 0}},
      .memoryTypeCount = 3,
      .memoryTypes = {{LOCAL, 0}, {SEEN | COHERENT, 1}, {SEEN | COHERENT | CACHED, 1}}}},
    /* With ReBAR: the host sees all of it. */
    {"rebar",
     {.memoryHeapCount = 2,
      .memoryHeaps = {{1024 * MIB, HEAP_LOCAL}, {2048 * MIB, 0}},
      .memoryTypeCount = 3,
      .memoryTypes = {{LOCAL, 0}, {SEEN | COHERENT | CACHED, 1}, {LOCAL | SEEN | COHERENT, 0}}}},
    /* An integrated part: 16 MiB called the device's own, the host's memory beside it. */
    {"tiny",
     {.memoryHeapCount = 2,
      .memoryHeaps = {{16 * MIB, HEAP_LOCAL}, {2048 * MIB, 0}},
      .memoryTypeCount = 4,
      .memoryTypes = {{LOCAL, 0}, {LOCAL | SEEN | COHERENT, 0}, {SEEN | COHERENT, 1}, {SEEN | COHERENT | CACHED, 1}}}},
    {"none", {.memoryHeapCount = 0}},
    {"one",
     {.memoryHeapCount = 1,
      .memoryHeaps = {{2048 * MIB, HEAP_LOCAL}},
      .memoryTypeCount = 1,
      .memoryTypes = {{LOCAL | SEEN | COHERENT | CACHED, 0}}}},
};

enum { LAYOUT_COUNT = sizeof layout_list / sizeof layout_list[0] };

static void layout_hostile(VkPhysicalDeviceMemoryProperties *out) {
  if (shim_script_is(&sim.script, "hostile", "counts")) out->memoryHeapCount = out->memoryTypeCount = UINT32_MAX;
  if (shim_script_is(&sim.script, "hostile", "heaps")) out->memoryTypes[0].heapIndex = 4711;
  if (shim_script_is(&sim.script, "hostile", "sizes")) {
    for (uint32_t i = 0; i < SIM_HEAPS; i++) out->memoryHeaps[i].size = UINT64_MAX - i;
  }
}

void sim_memory_layout(VkPhysicalDeviceMemoryProperties *out) {
  const struct layout_named *found = &layout_list[LAYOUT_COUNT - 1];
  for (size_t i = 0; i < LAYOUT_COUNT; i++) {
    if (shim_script_is(&sim.script, "heaps", layout_list[i].name)) found = &layout_list[i];
  }
  *out = found->memory;
  out->memoryHeaps[0].size = shim_script_number(&sim.script, "local", out->memoryHeaps[0].size);
  out->memoryHeaps[1].size = shim_script_number(&sim.script, "host", out->memoryHeaps[1].size);
  for (uint32_t i = 0; i < out->memoryTypeCount && shim_script_has(&sim.script, "noncoherent"); i++) {
    out->memoryTypes[i].propertyFlags &= ~(VkMemoryPropertyFlags)COHERENT;
  }
}

static void layout_budget(uint32_t index, const VkPhysicalDeviceMemoryProperties *memory,
                          VkPhysicalDeviceMemoryBudgetPropertiesEXT *out) {
  const shim_script *script = &sim.script;
  for (uint32_t i = 0; i < memory->memoryHeapCount && i < SIM_HEAPS; i++) {
    const uint64_t size = memory->memoryHeaps[i].size, others = shim_script_number(script, "others", 0);
    const uint64_t room = size > others ? size - others : 0;
    out->heapBudget[i] = room;
    if (shim_script_is(script, "budget", "zero")) out->heapBudget[i] = 0;
    if (shim_script_is(script, "budget", "over")) out->heapBudget[i] = size * 2;
    if (shim_script_is(script, "budget", "wrapped")) out->heapBudget[i] = UINT64_MAX - 4095; /* 16 EiB less a page */
    if (shim_script_is(script, "budget", "half")) out->heapBudget[i] = size / 2;
    out->heapUsage[i] = sim.held[index][i];
    if (shim_script_is(script, "usage", "zero")) out->heapUsage[i] = 0;
    if (shim_script_is(script, "usage", "over")) out->heapUsage[i] = size * 2;
    if (shim_script_is(script, "usage", "wrapped")) out->heapUsage[i] = UINT64_MAX - 4095;
  }
}

void sim_memory_properties(VkPhysicalDevice physical, VkPhysicalDeviceMemoryProperties2 *out) {
  const sim_physical *played = (const sim_physical *)(void *)physical;
  VkBaseOutStructure *item = out->pNext;
  pthread_mutex_lock(&sim.mutex);
  sim_memory_layout(&out->memoryProperties);
  while (item && item->sType != VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT) item = item->pNext;
  if (item) layout_budget(played->index, &out->memoryProperties, (void *)item);
  layout_hostile(&out->memoryProperties);
  pthread_mutex_unlock(&sim.mutex);
}
