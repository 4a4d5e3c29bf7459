/* gm's own shaders on one device: many small copies at once, and floats of 16 bits as floats of 32. The driver compiles
 * them when somebody first wants one. Every caller must be able to go without. Thread-safe. */
#ifndef GM_BACKENDS_VULKAN_KERNEL_H
#define GM_BACKENDS_VULKAN_KERNEL_H

#include <stdatomic.h>

#include "backends/vulkan/vulkan_syms.h"

enum { VULKAN_KERNEL_SLOTS = 8 };

typedef struct gm__vulkan_device gm__vulkan_device;
typedef struct gm__vulkan_memory gm__vulkan_memory;
typedef struct gm__vulkan_recording gm__vulkan_recording;
typedef struct gm__vulkan_stream gm__vulkan_stream;

/* The arguments of one run: its items and its buffers. */
typedef struct gm__vulkan_kernel_slot {
  VkDescriptorSet set;
  uint64_t offset; /* of the items, in the kernels' memory */
  VkPipeline pipeline;
  uint32_t groups; /* of threads */
  atomic_bool held;
  gm_backend_point busy; /* the device may use the slot until this is reached */
} gm__vulkan_kernel_slot;

typedef struct gm__vulkan_kernels {
  atomic_int state;
  VkDescriptorSetLayout set_layout;
  VkPipelineLayout layout;
  VkPipeline scatter, expand;
  VkDescriptorPool pool;
  gm__vulkan_memory *memory; /* the items of all slots */
  unsigned char *host;
  gm__vulkan_kernel_slot slots[VULKAN_KERNEL_SLOTS];
} gm__vulkan_kernels;

/* Takes a slot and writes the items into it. NULL: they do not suit the shader, the driver has none, or all slots are
 * in use. Copies do the same then. Items suit where they are many, small, and of whole words. They go from one memory
 * to another, and their targets are in order. */
gm__vulkan_kernel_slot *gm__vulkan_kernel_take(gm__vulkan_device *device, const gm__vulkan_stream *stream,
                                               const gm_copy_item *items, uint32_t count);

/* Records the run of the shader. REQUIRES: the slot is the caller's. */
void gm__vulkan_kernel_record(const gm__vulkan_recording *recording, const gm__vulkan_kernel_slot *slot);

/* Gives the slot back. The device uses it until `point`, which is zero where nothing was submitted. */
void gm__vulkan_kernel_give(gm__vulkan_kernel_slot *slot, const gm_backend_point *point);

/* Clear destroys the driver's objects and the records. Forget frees only the records. */
void gm__vulkan_kernels_clear(gm__vulkan_device *device);
void gm__vulkan_kernels_forget(gm__vulkan_device *device);

#endif
