#include "tests/simulated/cuda/sim_module.h"

#include <stdlib.h>
#include <string.h>

#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_context.h"
#include "tests/simulated/cuda/sim_kernels.h"
#include "tests/simulated/cuda/sim_link.h"
#include "tests/simulated/cuda/sim_range.h"
#include "tests/simulated/cuda/sim_slab.h"
#include "tests/simulated/cuda/sim_stream.h"

enum { MODULE_KERNELS = 64, MODULE_VIEWS = 1024 };

typedef struct module_kernel {
  const char *name;
  sim_kernel *kernel;
  size_t count, sizes[SIM_KERNEL_ARGUMENTS];
} module_kernel;

struct CUmod_st {
  uint64_t context_id;
  char *text; /* of PTX; NULL: binary, every kernel is in it */
};

struct CUfunc_st {
  CUmodule module;
  const module_kernel *kernel;
};

static sim_slab module_slab = {.item_bytes = sizeof(struct CUmod_st)};
static sim_slab module_function_slab = {.item_bytes = sizeof(struct CUfunc_st)};
static module_kernel module_kernels[MODULE_KERNELS];
static size_t module_kernel_count;

int sim_module_count(void) { return module_slab.live_count; }

bool sim_module_register(const char *name, sim_kernel *kernel, const size_t *sizes, size_t count) {
  if (!name || !kernel || module_kernel_count == MODULE_KERNELS || count > SIM_KERNEL_ARGUMENTS) return false;
  module_kernel *place = &module_kernels[module_kernel_count++];
  *place = (module_kernel){.name = name, .kernel = kernel, .count = count};
  if (count) memcpy(place->sizes, sizes, count * sizeof *sizes);
  return true;
}

static const module_kernel *module_find_kernel(const char *name) {
  for (size_t i = module_kernel_count; i-- > 0;)
    if (strcmp(module_kernels[i].name, name) == 0) return &module_kernels[i];
  return NULL;
}

static bool module_is_binary(const unsigned char *image) {
  static const unsigned char fat[4] = {0x50, 0xed, 0x55, 0xba};
  return memcmp(image, "\177ELF", 4) == 0 || memcmp(image, fat, sizeof fat) == 0;
}

static CUresult module_load(CUmodule *out, const void *image) {
  if (!out || !image) return CUDA_ERROR_INVALID_VALUE;
  bool binary = module_is_binary(image);
  if (!binary && !strstr(image, ".version")) return CUDA_ERROR_INVALID_IMAGE;
  if (!binary && !strstr(image, ".target")) return CUDA_ERROR_INVALID_PTX;
  CUmodule module = sim_slab_take(&module_slab);
  if (!module) return CUDA_ERROR_OUT_OF_MEMORY;
  module->context_id = sim_context_current()->id;
  module->text = binary ? NULL : strdup(image);
  sim_kernels_register();
  *out = module;
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *out, const void *image) {
  CUresult result = sim_enter(sim_id_cuModuleLoadData);
  if (result) return result;
  return sim_leave(module_load(out, image));
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned count, CUjit_option *options, void **values) {
  CUresult result = sim_enter(sim_id_cuModuleLoadDataEx);
  if (result) return result;
  if (count && (!options || !values)) return sim_leave(CUDA_ERROR_INVALID_VALUE);
  return sim_leave(module_load(out, image));
}

static void module_unload(CUmodule module) {
  int at = 0;
  for (CUfunction function; (function = sim_slab_next(&module_function_slab, &at));)
    if (function->module == module) sim_slab_give(&module_function_slab, function);
  free(module->text);
  sim_slab_give(&module_slab, module);
}

void sim_module_drop_context(CUcontext context) {
  int at = 0;
  for (CUmodule module; (module = sim_slab_next(&module_slab, &at));)
    if (module->context_id == context->id) module_unload(module);
}

CUresult cuModuleUnload(CUmodule module) {
  CUresult result = sim_enter(sim_id_cuModuleUnload);
  if (result) return result;
  if (!sim_slab_is_live(&module_slab, module)) return sim_leave(CUDA_ERROR_INVALID_HANDLE);
  module_unload(module);
  return sim_leave(CUDA_SUCCESS);
}

/* The text behind ".entry name"; NULL: there is none. */
static const char *module_find_entry(const char *text, const char *name) {
  size_t length = strlen(name);
  for (const char *at = text; (at = strstr(at, ".entry"));) {
    at += strlen(".entry");
    at += strspn(at, " \t\r\n");
    if (strncmp(at, name, length) == 0 && strchr(" \t\r\n(", at[length])) return at + length;
  }
  return NULL;
}

/* Bytes of a parameter: of ".u64 name" or ".align 8 .b8 name[4056]". */
static size_t module_parameter(const char *at, const char *end) {
  const char *type = at, *bracket = memchr(at, '[', (size_t)(end - at));
  if (bracket) return strtoul(bracket + 1, NULL, 10);
  while (type < end && (type[0] != '.' || !strchr("ubsf", type[1]) || type[2] < '0' || type[2] > '9')) type++;
  return type < end ? strtoul(type + 2, NULL, 10) / 8 : 0;
}

/* Has the entry the parameters that the C function takes? One that names none is not looked at. */
static bool module_fits(const char *entry, const module_kernel *kernel) {
  const char *last = strchr(entry, ')'), *at = strstr(entry, ".param");
  size_t count = 0;
  if (!last) return false;
  if (!at || at > last) return true;
  for (; at && at < last; count++) {
    const char *from = at + strlen(".param"), *next = strstr(from, ".param");
    const char *end = next && next < last ? next : last;
    if (count == kernel->count || module_parameter(from, end) != kernel->sizes[count]) return false;
    at = next;
  }
  return count == kernel->count;
}

static CUresult module_get_function(CUfunction *out, CUmodule module, const char *name) {
  if (!out || !name) return CUDA_ERROR_INVALID_VALUE;
  if (!sim_slab_is_live(&module_slab, module)) return CUDA_ERROR_INVALID_HANDLE;
  const module_kernel *kernel = module_find_kernel(name);
  const char *entry = module->text ? module_find_entry(module->text, name) : NULL;
  if (!kernel || (module->text && !entry)) return CUDA_ERROR_NOT_FOUND;
  if (entry && !module_fits(entry, kernel)) return CUDA_ERROR_INVALID_PTX;
  CUfunction function = sim_slab_take(&module_function_slab);
  if (!function) return CUDA_ERROR_OUT_OF_MEMORY;
  *function = (struct CUfunc_st){module, kernel};
  *out = function;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name) {
  CUresult result = sim_enter(sim_id_cuModuleGetFunction);
  if (result) return result;
  return sim_leave(module_get_function(out, module, name));
}

typedef struct module_launch_op {
  sim_op op;
  const module_kernel *kernel;
  sim_launch launch;
  unsigned char arguments[]; /* each at a multiple of 16 */
} module_launch_op;

static size_t module_argument_end(size_t at, size_t bytes) { return at + (bytes + 15) / 16 * 16; }

typedef struct module_seen { /* by one kernel */
  sim_phys *held;
  const void *host;
  uint64_t address, bytes;
  unsigned char *before; /* its bytes before the kernel wrote; NULL: no link model, or no memory for it */
} module_seen;

typedef struct module_views {
  int device, count;
  bool linked;
  module_seen seen[MODULE_VIEWS];
} module_views;

static void *module_view(void *user, uint64_t address, uint64_t bytes) {
  module_views *views = user;
  uint64_t piece = bytes;
  sim_phys *phys = NULL;
  if (views->count == MODULE_VIEWS) return NULL;
  void *host = sim_range_pin(views->device, address, &piece, &phys);
  if (!phys && !views->linked) return piece == bytes ? host : NULL;
  module_seen *seen = &views->seen[views->count++];
  *seen = (module_seen){.held = phys, .host = host, .address = address, .bytes = piece};
  if (views->linked && host) seen->before = malloc(piece ? piece : 1);
  if (seen->before) memcpy(seen->before, host, piece);
  return piece == bytes ? host : NULL;
}

/* The bytes that a kernel changed, it wrote; for the link model. */
static void module_let_go(const sim_op *op, const module_seen *seen) {
  if (seen->before) sim_link_touch(op, seen->address, seen->bytes, memcmp(seen->before, seen->host, seen->bytes) != 0);
  free(seen->before);
  if (seen->held) sim_phys_release(seen->held);
}

static CUresult module_run(sim_op *op, sim_queue *queue) {
  module_launch_op *launch = (module_launch_op *)op;
  const void *arguments[SIM_KERNEL_ARGUMENTS];
  for (size_t i = 0, at = 0; i < launch->kernel->count; i++) {
    arguments[i] = launch->arguments + at;
    at = module_argument_end(at, launch->kernel->sizes[i]);
  }
  module_views views; /* large: only what is used is set */
  views.device = queue->device;
  views.count = 0;
  pthread_mutex_lock(&sim_lock);
  views.linked = sim_link_is_on();
  pthread_mutex_unlock(&sim_lock);
  sim_launch call = launch->launch;
  call.arguments = arguments;
  call.view = module_view;
  call.view_user = &views;
  CUresult result = (CUresult)launch->kernel->kernel(&call);
  pthread_mutex_lock(&sim_lock);
  for (int i = 0; i < views.count; i++) module_let_go(op, &views.seen[i]);
  pthread_mutex_unlock(&sim_lock);
  return result;
}

/* Arguments come as a list of pointers, or packed as a struct of them would be. */
static CUresult module_take_arguments(module_launch_op *launch, void **list, void **extra) {
  const module_kernel *kernel = launch->kernel;
  const unsigned char *packed = NULL;
  size_t at = 0, bytes = 0, place = 0;
  for (void **word = extra; word && *word != CU_LAUNCH_PARAM_END; word += 2) {
    if (*word == CU_LAUNCH_PARAM_BUFFER_POINTER) packed = word[1];
    if (*word == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *(size_t *)word[1];
  }
  if ((list && packed) || (kernel->count && !list && !packed)) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < kernel->count; i++) {
    size_t size = kernel->sizes[i];
    if (packed) at = (at + size - 1) / size * size;
    if (packed && (size > 16 || at + size > bytes)) return CUDA_ERROR_INVALID_VALUE;
    memcpy(launch->arguments + place, packed ? (const void *)(packed + at) : list[i], size);
    at += size;
    place = module_argument_end(place, size);
  }
  return CUDA_SUCCESS;
}

static CUresult module_launch(CUfunction function, const sim_launch *like, CUstream stream, void **list, void **extra) {
  if (!sim_slab_is_live(&module_function_slab, function)) return CUDA_ERROR_INVALID_HANDLE;
  for (int i = 0; i < 3; i++)
    if (!like->grid[i] || !like->block[i]) return CUDA_ERROR_INVALID_VALUE;
  if ((uint64_t)like->block[0] * like->block[1] * like->block[2] > 1024) return CUDA_ERROR_INVALID_VALUE;
  sim_queue *queue = NULL;
  CUresult result = sim_stream_queue(stream, &queue);
  if (result) return result;
  size_t room = 0;
  for (size_t i = 0; i < function->kernel->count; i++) room = module_argument_end(room, function->kernel->sizes[i]);
  module_launch_op *launch = sim_op_create(sizeof *launch + room);
  if (!launch) return CUDA_ERROR_OUT_OF_MEMORY;
  launch->op.run = module_run;
  launch->op.link = (gm__link_op){.entry = {.kind = GM__LINK_COMPUTE, .device = (uint32_t)queue->device}};
  launch->op.link.name = function->kernel->name;
  launch->kernel = function->kernel;
  launch->launch = *like;
  result = module_take_arguments(launch, list, extra);
  if (!result) return sim_queue_add(queue, &launch->op);
  free(launch);
  return result;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **list,
                        void **extra) {
  CUresult result = sim_enter(sim_id_cuLaunchKernel);
  if (result) return result;
  sim_launch like = {.grid = {grid_x, grid_y, grid_z}, .block = {block_x, block_y, block_z}};
  like.shared_bytes = shared_bytes;
  return sim_leave(module_launch(function, &like, stream, list, extra));
}

__attribute__((visibility("default"))) int simCudaRegisterKernel(const char *name, sim_kernel *kernel,
                                                                 const size_t *sizes, size_t count) {
  pthread_mutex_lock(&sim_lock);
  sim_kernels_register();
  bool good = sim_module_register(name, kernel, sizes, count);
  pthread_mutex_unlock(&sim_lock);
  return good ? 0 : 1;
}
