/* The device and the registration: what ggml asks of a backend. */
#include <ggml-impl.h>
#include <string.h>

#include "ggml_gm.h"
#include "gm/pressure.h"

static const char *get_name(ggml_backend_dev_t dev) {
  (void)dev;
  return "GM0";
}

static const char *get_description(ggml_backend_dev_t dev) {
  (void)dev;
  return gm_device_get_info(gm_ggml_self.device)->name;
}

/* The bytes that the pool may still take, of those that the device has. 0 where gm does not know. */
static void get_memory(ggml_backend_dev_t dev, size_t *out_free, size_t *out_total) {
  (void)dev;
  gm_memory_info info = {.struct_size = sizeof info};
  gm_pressure pool = {.struct_size = sizeof pool};
  *out_free = *out_total = 0;
  if (gm_device_memory_info(gm_ggml_self.device, &info, NULL) != GM_OK || info.total_bytes == GM_UNKNOWN_BYTES) return;
  *out_total = (size_t)info.total_bytes;
  uint64_t left = info.free_bytes == GM_UNKNOWN_BYTES ? info.total_bytes : info.free_bytes + info.reclaimable_bytes;
  if (gm_pool_pressure(gm_ggml_self.pool, &pool, NULL) == GM_OK && pool.total_bytes - pool.used_bytes < left)
    left = pool.total_bytes - pool.used_bytes;
  *out_free = (size_t)left;
}

static enum ggml_backend_dev_type get_type(ggml_backend_dev_t dev) {
  (void)dev;
  return GGML_BACKEND_DEVICE_TYPE_GPU; /* so that programs give it the layers of a model */
}

static bool is_host(void) { return ggml_backend_buft_is_host(gm_ggml_device_type()); }

static void get_props(ggml_backend_dev_t dev, struct ggml_backend_dev_props *props) {
  const char *pci = gm_device_get_info(gm_ggml_self.device)->pci;
  *props = (struct ggml_backend_dev_props){
      .name = get_name(dev),
      .description = get_description(dev),
      .type = get_type(dev),
      .device_id = *pci ? pci : NULL,
      .caps = {
          .async = true, .host_buffer = true, .buffer_from_host_ptr = is_host(), .events = true, .mmap_support = true}};
  get_memory(dev, &props->memory_free, &props->memory_total);
}

static ggml_backend_t init_backend(ggml_backend_dev_t dev, const char *params) {
  (void)params;
  return gm_ggml_queue_create(dev);
}

static ggml_backend_buffer_type_t get_buffer_type(ggml_backend_dev_t dev) {
  (void)dev;
  return gm_ggml_device_type();
}

static ggml_backend_buffer_type_t get_host_buffer_type(ggml_backend_dev_t dev) {
  (void)dev;
  return gm_ggml_pinned_type();
}

static ggml_backend_buffer_t buffer_from_host_ptr(ggml_backend_dev_t dev, void *pointer, size_t size, size_t largest) {
  (void)dev, (void)largest;
  return is_host() ? gm_ggml_wrap(pointer, size) : NULL;
}

static bool supports_op(ggml_backend_dev_t dev, const struct ggml_tensor *op) {
  (void)dev;
  return gm_ggml_cpu() && ggml_backend_dev_supports_op(gm_ggml_cpu(), op);
}

/* The CPU's kernels reach host memory, too. */
static bool supports_buft(ggml_backend_dev_t dev, ggml_backend_buffer_type_t type) {
  (void)dev;
  return type == gm_ggml_device_type() || ggml_backend_buft_is_host(type);
}

static const char *get_reg_name(ggml_backend_reg_t reg) {
  (void)reg;
  return "GM";
}

static size_t get_device_count(ggml_backend_reg_t reg) {
  (void)reg;
  return 1;
}

static ggml_backend_dev_t get_device(ggml_backend_reg_t reg, size_t index) {
  (void)reg, (void)index;
  return gm_ggml_self.dev;
}

static void *get_proc_address(ggml_backend_reg_t reg, const char *name) {
  (void)reg;
  const ggml_backend_set_n_threads_t set_threads = gm_ggml_queue_set_threads;
  void *found = NULL;
  if (strcmp(name, "ggml_backend_set_n_threads") == 0) memcpy(&found, &set_threads, sizeof found);
  return found;
}

static const struct ggml_backend_device_i face = {
    .get_name = get_name,
    .get_description = get_description,
    .get_memory = get_memory,
    .get_type = get_type,
    .get_props = get_props,
    .init_backend = init_backend,
    .get_buffer_type = get_buffer_type,
    .get_host_buffer_type = get_host_buffer_type,
    .buffer_from_host_ptr = buffer_from_host_ptr,
    .supports_op = supports_op,
    .supports_buft = supports_buft,
    .event_new = gm_ggml_event_create,
    .event_free = gm_ggml_event_destroy,
    .event_synchronize = gm_ggml_event_wait_host,
};

/* ggml calls this once, when it loads the library. NULL: the log has the reason. */
__attribute__((visibility("default"))) ggml_backend_reg_t ggml_backend_init(void);

ggml_backend_reg_t ggml_backend_init(void) {
  static struct ggml_backend_reg reg = {.api_version = GGML_BACKEND_API_VERSION,
                                        .iface = {.get_name = get_reg_name,
                                                  .get_device_count = get_device_count,
                                                  .get_device = get_device,
                                                  .get_proc_address = get_proc_address}};
  static struct ggml_backend_device dev;
  dev = (struct ggml_backend_device){.iface = face, .reg = &reg};
  gm_ggml_self.dev = &dev;
  return gm_ggml_settings_read(&gm_ggml_self.settings) && gm_ggml_open() ? &reg : NULL;
}
