#include "backends/opencl/opencl_kernels.h"

#include "backends/opencl/opencl_mem.h"
#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/saturate.h"

/* Invariants: one thread moves `state` from NONE to BUSY. It writes `program` and the kernels before it sets READY.
 * REFUSED stays. A thread that finds BUSY does not wait: it goes without the kernel. The arguments of a kernel belong
 * to it, so `lock` is held from the first one until the kernel is enqueued. */

enum { KERNELS_NONE, KERNELS_BUSY, KERNELS_READY, KERNELS_REFUSED };
enum { KERNELS_LEAST = 16, KERNELS_ITEM_MOST = 65536, KERNELS_GROUP = 64, KERNELS_SHARE = 1 << 20 };
enum { KERNELS_EXPAND_GROUPS = 1024 };

/* A group of threads takes an item, and then the next one that no other has. Words of 16 bytes where both sides have
 * them at the same places. */
static const char kernels_text[] =
    "void gm_copy_item(__global uchar *to, __global const uchar *from, __global const ulong *item) {\n"
    "  const ulong at = item[0], source = item[1];\n"
    "  const ulong bytes = item[2], step = get_local_size(0), first = get_local_id(0);\n"
    "  __global uchar *dst = to + at;\n"
    "  __global const uchar *src = from + source;\n"
    "  const ulong head = (at ^ source) & 15 ? bytes : min(bytes, (16 - (at & 15)) & 15);\n"
    "  const ulong words = (bytes - head) / 16;\n"
    "  __global uint4 *dst_words = (__global uint4 *)(dst + head);\n"
    "  __global const uint4 *src_words = (__global const uint4 *)(src + head);\n"
    "  for (ulong i = first; i < head; i += step) dst[i] = src[i];\n"
    "  for (ulong i = first; i < words; i += step) dst_words[i] = src_words[i];\n"
    "  for (ulong i = head + 16 * words + first; i < bytes; i += step) dst[i] = src[i];\n"
    "}\n"
    "__kernel void gm_copy_many(__global uchar *to, __global const uchar *from, __global const ulong *items,\n"
    "                           const ulong count) {\n"
    "  for (ulong i = get_group_id(0); i < count; i += get_num_groups(0)) gm_copy_item(to, from, items + 3 * i);\n"
    "}\n"
    "uint gm_from_half(uint number) {\n"
    "  const uint sign = (number & 0x8000) << 16, exponent = number >> 10 & 31, fraction = number & 0x3ff;\n"
    "  if (exponent == 31) return sign | 0x7f800000 | fraction << 13 | (fraction ? 0x400000 : 0);\n"
    "  if (exponent) return sign | (exponent + 112) << 23 | fraction << 13;\n"
    "  if (!fraction) return sign;\n"
    "  const uint top = 31 - clz(fraction);\n"
    "  return sign | (top + 103) << 23 | (fraction << (23 - top) & 0x7fffff);\n"
    "}\n"
    "__kernel void gm_expand(__global uint *to, __global const ushort *from, const ulong to_at, const ulong from_at,\n"
    "                        const ulong count, const uint half_) {\n"
    "  for (ulong i = get_global_id(0); i < count; i += get_global_size(0)) {\n"
    "    const uint number = from[from_at + i];\n"
    "    to[to_at + i] = half_ ? gm_from_half(number) : number << 16;\n"
    "  }\n"
    "}\n";

/* ---- the program ---- */

static bool kernels_are_known(const gm__opencl_syms *cl) {
  return cl->clCreateProgramWithSource && cl->clBuildProgram && cl->clReleaseProgram && cl->clCreateKernel &&
         cl->clReleaseKernel && cl->clSetKernelArg && cl->clEnqueueNDRangeKernel;
}

static const char *kernels_make(gm__opencl_device *device, cl_int *code) {
  const gm__opencl_syms *cl = device->cl;
  gm__opencl_kernels *kernels = &device->kernels;
  const char *text = kernels_text;
  if (!kernels_are_known(cl)) return "clCreateProgramWithSource";
  kernels->program = cl->clCreateProgramWithSource(device->context, 1, &text, NULL, code);
  if (!kernels->program) return "clCreateProgramWithSource";
  *code = cl->clBuildProgram(kernels->program, 1, &device->id, "", NULL, NULL);
  if (*code != CL_SUCCESS) return "clBuildProgram";
  kernels->copy = cl->clCreateKernel(kernels->program, "gm_copy_many", code);
  if (kernels->copy) kernels->expand = cl->clCreateKernel(kernels->program, "gm_expand", code);
  return kernels->expand ? NULL : "clCreateKernel";
}

static void kernels_release(const gm__opencl_device *device) {
  const gm__opencl_kernels *kernels = &device->kernels;
  if (kernels->copy) device->cl->clReleaseKernel(kernels->copy);
  if (kernels->expand) device->cl->clReleaseKernel(kernels->expand);
  if (kernels->program) device->cl->clReleaseProgram(kernels->program);
}

static void kernels_refuse(gm__opencl_device *device, const char *op, cl_int code) {
  if (atomic_exchange(&device->kernels.state, KERNELS_REFUSED) == KERNELS_REFUSED) return;
  gm__log(device->services, GM_LOG_INFO, "opencl device %u: small copies go one by one, not by a kernel: %s said %d",
          (unsigned)device->info.index, op, (int)code);
}

static bool kernels_ready(gm__opencl_device *device) {
  int state = atomic_load(&device->kernels.state);
  cl_int code = CL_SUCCESS;
  if (state == KERNELS_READY) return true;
  if (state != KERNELS_NONE || !atomic_compare_exchange_strong(&device->kernels.state, &state, KERNELS_BUSY)) {
    return false;
  }
  const char *failed = kernels_make(device, &code);
  if (failed) {
    kernels_refuse(device, failed, code);
  } else {
    atomic_store(&device->kernels.state, KERNELS_READY);
  }
  return !failed;
}

void gm__opencl_kernels_open(gm__opencl_device *device) {
  atomic_init(&device->kernels.state, KERNELS_NONE);
  gm__mutex_init(&device->kernels.lock, GM__RANK_BACKEND);
}

void gm__opencl_kernels_close(gm__opencl_device *device, gm_close_mode mode) {
  if (mode != GM_CLOSE_NORMAL) return;
  kernels_release(device);
  gm__mutex_destroy(&device->kernels.lock);
}

/* ---- copies ---- */

static bool kernels_take(const gm__opencl_memory *memory) {
  return memory->buffer && memory->kind <= GM__OPENCL_BUFFER_SHARED && !atomic_load(&memory->viewed);
}

/* Small items between one pair of buffers, their targets in order. */
static bool kernels_suit(const gm_copy_item *items, uint32_t count) {
  const gm__opencl_memory *to = gm__opencl_memory_of(items[0].dst), *from = gm__opencl_memory_of(items[0].src);
  if (!kernels_take(to) || !kernels_take(from) || to->buffer == from->buffer) return false;
  for (uint32_t i = 0; i < count; i++) {
    const gm_copy_item *item = &items[i];
    const bool pair = gm__opencl_memory_of(item->dst) == to && gm__opencl_memory_of(item->src) == from;
    if (!pair || item->bytes > KERNELS_ITEM_MOST) return false;
    if (i && item->dst_offset < item[-1].dst_offset + item[-1].bytes) return false;
  }
  return true;
}

/* The items for the kernel: target, source, bytes. NULL: no memory. */
static cl_mem kernels_items(const gm__opencl_device *device, const gm_copy_item *items, uint32_t count) {
  const uint64_t to = gm__opencl_memory_of(items[0].dst)->origin, from = gm__opencl_memory_of(items[0].src)->origin;
  const size_t bytes = (size_t)count * 3 * sizeof(cl_ulong);
  cl_ulong *table = gm__alloc(device->services, bytes);
  cl_int code = CL_SUCCESS;
  if (!table) return NULL;
  for (uint32_t i = 0; i < count; i++) {
    cl_ulong *row = &table[(size_t)3 * i];
    row[0] = to + items[i].dst_offset;
    row[1] = from + items[i].src_offset;
    row[2] = items[i].bytes;
  }
  cl_mem made =
      device->cl->clCreateBuffer(device->context, CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR, bytes, table, &code);
  gm__release(device->services, table, bytes);
  return made;
}

typedef struct kernels_shape {
  size_t group, all; /* threads */
} kernels_shape;

/* A processor's thread does whole items, and so many of them that it is worth to wake a further one. */
static kernels_shape kernels_shape_of(const gm__opencl_device *device, const gm_copy_item *items, uint32_t count) {
  uint64_t bytes = 0;
  if (device->info.type != GM_DEVICE_TYPE_CPU) return (kernels_shape){KERNELS_GROUP, (size_t)KERNELS_GROUP * count};
  for (uint32_t i = 0; i < count; i++) bytes += items[i].bytes;
  return (kernels_shape){1, (size_t)gm__min(count, 1 + bytes / KERNELS_SHARE)};
}

static cl_int kernels_submit(gm__opencl_device *device, cl_command_queue queue, const gm_copy_item *items,
                             uint32_t count, cl_mem table, cl_event *event) {
  const gm__opencl_syms *cl = device->cl;
  cl_kernel kernel = device->kernels.copy;
  const kernels_shape shape = kernels_shape_of(device, items, count);
  const cl_ulong items_count = count;
  gm__mutex_lock(&device->kernels.lock);
  cl_int code = cl->clSetKernelArg(kernel, 0, sizeof(cl_mem), &gm__opencl_memory_of(items[0].dst)->buffer);
  if (!code) code = cl->clSetKernelArg(kernel, 1, sizeof(cl_mem), &gm__opencl_memory_of(items[0].src)->buffer);
  if (!code) code = cl->clSetKernelArg(kernel, 2, sizeof(cl_mem), &table);
  if (!code) code = cl->clSetKernelArg(kernel, 3, sizeof items_count, &items_count);
  if (!code) code = cl->clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &shape.all, &shape.group, 0, NULL, event);
  gm__mutex_unlock(&device->kernels.lock);
  return code;
}

bool gm__opencl_kernels_copy(gm__opencl_device *device, cl_command_queue queue, const gm_copy_item *items,
                             uint32_t count, cl_event *event) {
  if (count < KERNELS_LEAST || !kernels_suit(items, count) || !kernels_ready(device)) return false;
  cl_mem table = kernels_items(device, items, count);
  if (!table) return false;
  const cl_int code = kernels_submit(device, queue, items, count, table, event);
  device->cl->clReleaseMemObject(table);
  if (code != CL_SUCCESS) kernels_refuse(device, "clEnqueueNDRangeKernel", code);
  return code == CL_SUCCESS;
}

/* ---- expansion ---- */

static cl_int kernels_set_expand(const gm__opencl_device *device, const gm__opencl_expansion *e) {
  const gm__opencl_syms *cl = device->cl;
  cl_kernel kernel = device->kernels.expand;
  const cl_ulong to_at = (e->to->origin + e->to_offset) / 4, from_at = (e->from->origin + e->from_offset) / 2;
  const cl_ulong count = e->count;
  const cl_uint half = e->half;
  cl_int code = cl->clSetKernelArg(kernel, 0, sizeof(cl_mem), &e->to->buffer);
  if (!code) code = cl->clSetKernelArg(kernel, 1, sizeof(cl_mem), &e->from->buffer);
  if (!code) code = cl->clSetKernelArg(kernel, 2, sizeof to_at, &to_at);
  if (!code) code = cl->clSetKernelArg(kernel, 3, sizeof from_at, &from_at);
  if (!code) code = cl->clSetKernelArg(kernel, 4, sizeof count, &count);
  if (!code) code = cl->clSetKernelArg(kernel, 5, sizeof half, &half);
  return code;
}

bool gm__opencl_kernels_expand(gm__opencl_device *device, cl_command_queue queue, const gm__opencl_expansion *e,
                               cl_event *event) {
  if (!kernels_take(e->to) || !kernels_take(e->from) || !kernels_ready(device)) return false;
  if ((e->to->origin + e->to_offset) % 4 || (e->from->origin + e->from_offset) % 2) return false;
  const size_t group = KERNELS_GROUP, all = group * (size_t)gm__min(1 + e->count / group, KERNELS_EXPAND_GROUPS);
  gm__mutex_lock(&device->kernels.lock);
  cl_int code = kernels_set_expand(device, e);
  if (!code) {
    code = device->cl->clEnqueueNDRangeKernel(queue, device->kernels.expand, 1, NULL, &all, &group, 0, NULL, event);
  }
  gm__mutex_unlock(&device->kernels.lock);
  if (code != CL_SUCCESS) kernels_refuse(device, "clEnqueueNDRangeKernel", code);
  return code == CL_SUCCESS;
}
