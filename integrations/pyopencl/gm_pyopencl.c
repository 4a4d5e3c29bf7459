#include "gm_pyopencl.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "../shared/engines.h"
#include "gm/native_opencl.h"

struct gm_pyopencl {
  gm_device *device;
  gm_stream *stream;
  gm_pool *pool;
};

struct gm_pyopencl_buffer {
  gm_block block;
};

static void *entry_of(void *library, const char *name) { return dlsym(library, name); }

static gm_status open_all(gm_pyopencl *self, const gm_opencl_device *device, const gm_opencl_queue *queue,
                          gm_error *err) {
  const gm_pool_params params = {.struct_size = sizeof params, .name = "pyopencl"};
  gm_status status = gm_device_adopt(gm_engines_context(), &device->head, &self->device, err);
  if (status == GM_OK) status = gm_stream_adopt(self->device, &queue->head, &self->stream, err);
  if (status == GM_OK) status = gm_pool_create(self->device, &params, &self->pool, err);
  return status;
}

gm_pyopencl *gm_pyopencl_open(void *library, uintptr_t context, uintptr_t device, uintptr_t queue) {
  const gm_opencl_device lent = {.head = {sizeof lent, GM_API_OPENCL},
                                 .device = device,
                                 .context = context,
                                 .get_proc = library ? entry_of : NULL,
                                 .get_proc_user = library};
  const gm_opencl_queue order = {.head = {sizeof order, GM_API_OPENCL}, .queue = queue};
  gm_error err = {.status = GM_ERR_OUT_OF_HOST_MEMORY};
  gm_pyopencl *self = gm_engines_context() ? calloc(1, sizeof *self) : NULL;
  if (self && open_all(self, &lent, &order, &err) == GM_OK) return self;
  (void)gm_pyopencl_close(self);
  gm_engines_note(&err);
  return NULL;
}

int gm_pyopencl_close(gm_pyopencl *self) {
  gm_error err = {.status = GM_OK};
  if (!self) return GM_OK;
  gm_status status = gm_pool_destroy(self->pool, &err);
  if (status == GM_OK) self->pool = NULL, status = gm_stream_close(self->stream, &err);
  if (status == GM_OK) self->stream = NULL, status = gm_device_close(self->device, &err);
  if (status == GM_OK)
    free(self);
  else
    gm_engines_note(&err);
  return (int)status;
}

gm_pyopencl_buffer *gm_pyopencl_alloc(gm_pyopencl *self, uint64_t bytes, uintptr_t *out_memory) {
  const gm_request request = {.bytes = bytes, .flags = GM_INSERT_WAIT, .stream = self->stream};
  gm_opencl_memory native = {.head = {sizeof native, GM_API_OPENCL}};
  gm_error err;
  gm_pyopencl_buffer *buffer = calloc(1, sizeof *buffer);
  if (!buffer) return NULL;
  if (!gm_acquired(gm_alloc(self->pool, &request, &buffer->block))) {
    gm_engines_note_refusal(self->pool, &request);
    free(buffer);
    return NULL;
  }
  if (gm_block_object(self->pool, &buffer->block, 0, bytes, &native.head, &err)) {
    gm_engines_note(&err);
    gm_pyopencl_free(self, buffer);
    return NULL;
  }
  *out_memory = native.view;
  return buffer;
}

void gm_pyopencl_free(gm_pyopencl *self, gm_pyopencl_buffer *buffer) {
  (void)gm_free(self->pool, &buffer->block, self->stream);
  free(buffer);
}

uint64_t gm_pyopencl_trim(gm_pyopencl *self) { return gm_pool_trim(self->pool, 0); }

uint64_t gm_pyopencl_figure(gm_pyopencl *self, const char *name) { return gm_engines_figure(self->pool, name); }
