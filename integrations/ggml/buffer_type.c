/* Types of buffers: where memory for ggml comes from. */
#include <ggml-impl.h>
#include <stdlib.h>
#include <string.h>

#include "ggml_gm.h"
#include "gm/native_cpu.h"

static const char *device_name(ggml_backend_buffer_type_t type) {
  (void)type;
  return "GM0";
}

static const char *pinned_name(ggml_backend_buffer_type_t type) {
  (void)type;
  return "GM0_Host";
}

static uint8_t *host_memory(uint64_t bytes) {
  const size_t unit = gm_ggml_self.alignment;
  return bytes > SIZE_MAX - unit ? NULL : aligned_alloc(unit, ((size_t)bytes + unit - 1) / unit * unit);
}

static bool is_pinned(ggml_backend_buffer_type_t type) { return type == gm_ggml_pinned_type(); }

static gm_request request_of(ggml_backend_buffer_type_t type, uint64_t bytes) {
  gm_request request = {.bytes = bytes, .align = (uint32_t)gm_ggml_self.alignment};
  if (!is_pinned(type)) return request;
  request.must_be = GM_DEVICE_ACCESSIBLE;
  request.flags = GM_HOST_VISIBLE | GM_DEDICATED; /* PoCL drops a copy from a cl_mem into its own mapping */
  request.prefer = GM_MEMORY_SYSTEM | GM_MEMORY_HOST_CACHED;
  return request;
}

/* Gives the block an address that ggml's kernels and programs can use. */
static bool make_reachable(gm_ggml_buffer *buffer, bool pinned) {
  gm_ggml *self = &gm_ggml_self;
  gm_error err = {.status = GM_OK};
  if (self->in_host) {
    buffer->place = GM_GGML_BLOCK;
    buffer->base = (uint8_t *)(uintptr_t)buffer->block.address;
  } else if (pinned) {
    void *mapped = NULL;
    buffer->place = GM_GGML_MAPPED;
    if (gm_block_map(self->pool, &buffer->block, 0, buffer->bytes, GM_MAP_READ | GM_MAP_WRITE, self->stream, &mapped,
                     &err) != GM_OK)
      GGML_LOG_ERROR("ggml-gm: %s\n", err.message);
    buffer->base = mapped;
  } else {
    buffer->place = GM_GGML_SHADOW;
    buffer->stale = true;
    buffer->base = host_memory(buffer->bytes);
  }
  return buffer->base != NULL;
}

static bool take_block(ggml_backend_buffer_type_t type, gm_ggml_buffer *buffer) {
  const gm_request request = request_of(type, buffer->bytes);
  if (gm_acquired(gm_alloc(gm_ggml_self.pool, &request, &buffer->block))) {
    if (make_reachable(buffer, is_pinned(type))) return true;
    gm_free(gm_ggml_self.pool, &buffer->block, NULL);
    return false;
  }
  gm_explanation why = {.struct_size = sizeof why};
  if (gm_explain(gm_ggml_self.pool, &request, &why, NULL) == GM_OK) GGML_LOG_WARN("ggml-gm: %s\n", why.text);
  return false;
}

/* After NULL a program ends the load of its model, so host memory stands in where the settings allow it. */
static bool take_host_memory(gm_ggml_buffer *buffer) {
  if (!gm_ggml_self.settings.fall_back) return false;
  buffer->place = GM_GGML_FALLBACK;
  buffer->base = host_memory(buffer->bytes);
  if (!buffer->base) return false;
  ++gm_ggml_self.fallbacks;
  GGML_LOG_WARN("ggml-gm: %zu bytes lie in host memory instead\n", (size_t)buffer->bytes);
  return true;
}

static ggml_backend_buffer_t alloc_buffer(ggml_backend_buffer_type_t type, size_t size) {
  gm_ggml_buffer *buffer = calloc(1, sizeof *buffer);
  if (!buffer) return NULL;
  buffer->bytes = size;
  if (!take_block(type, buffer) && !take_host_memory(buffer)) {
    free(buffer);
    return NULL;
  }
  ++gm_ggml_self.buffers;
  return gm_ggml_buffer_lend(type, buffer);
}

static size_t get_alignment(ggml_backend_buffer_type_t type) {
  (void)type;
  return gm_ggml_self.alignment;
}

/* ggml makes several buffers of what is larger than this. */
static size_t get_max_size(ggml_backend_buffer_type_t type) {
  (void)type;
  const uint64_t bound = gm_device_get_info(gm_ggml_self.device)->max_alloc_bytes;
  const uint64_t wanted = gm_ggml_self.settings.max_buffer;
  const uint64_t bytes = wanted && (!bound || wanted < bound) ? wanted : bound;
  return bytes && bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX;
}

static bool device_is_host(ggml_backend_buffer_type_t type) {
  (void)type;
  return gm_ggml_self.in_host && gm_ggml_self.settings.host;
}

static bool pinned_is_host(ggml_backend_buffer_type_t type) {
  (void)type;
  return true;
}

ggml_backend_buffer_type_t gm_ggml_device_type(void) {
  static struct ggml_backend_buffer_type type = {.iface = {.get_name = device_name,
                                                           .alloc_buffer = alloc_buffer,
                                                           .get_alignment = get_alignment,
                                                           .get_max_size = get_max_size,
                                                           .is_host = device_is_host}};
  type.device = gm_ggml_self.dev;
  return &type;
}

ggml_backend_buffer_type_t gm_ggml_pinned_type(void) {
  static struct ggml_backend_buffer_type type = {.iface = {.get_name = pinned_name,
                                                           .alloc_buffer = alloc_buffer,
                                                           .get_alignment = get_alignment,
                                                           .get_max_size = get_max_size,
                                                           .is_host = pinned_is_host}};
  type.device = gm_ggml_self.dev;
  return &type;
}

ggml_backend_buffer_t gm_ggml_wrap(void *pointer, size_t bytes) {
  gm_ggml_buffer *buffer = calloc(1, sizeof *buffer);
  if (!buffer) return NULL;
  const gm_cpu_memory native = {.head = {sizeof native, GM_API_CPU}, .pointer = pointer, .bytes = bytes};
  gm_error err = {.status = GM_OK};
  buffer->base = pointer;
  buffer->bytes = bytes;
  if (gm_block_wrap(gm_ggml_self.pool, &native.head, &buffer->block, &err) != GM_OK) {
    GGML_LOG_WARN("ggml-gm: %s\n", err.message);
    if (!gm_ggml_self.settings.fall_back) {
      free(buffer);
      return NULL;
    }
    buffer->place = GM_GGML_LENT;
    ++gm_ggml_self.fallbacks;
  }
  ++gm_ggml_self.buffers;
  ++gm_ggml_self.wrapped;
  return gm_ggml_buffer_lend(gm_ggml_device_type(), buffer);
}
