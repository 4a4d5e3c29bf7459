#include "core/device/device_figures.h"

#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/device/host_info.h"
#include "core/device/memory_info.h"
#include "core/device/pci.h"

static uint64_t figures_hash(uint64_t hash, const void *data, size_t bytes) { /* FNV-1a */
  const unsigned char *byte = data;
  for (size_t i = 0; i < bytes; i++) hash = (hash ^ byte[i]) * 0x100000001b3u;
  return hash;
}

gm__used_bytes *gm__device_used(const gm__driver *driver, const gm_device_info *info) {
  uint64_t key = 0xcbf29ce484222325u;
  gm__pci pci = gm__pci_parse(info->pci);
  if (info->api == GM_API_NULL) { /* memory that does not exist is nobody else's */
    key = figures_hash(key, &driver, sizeof driver);
    key = figures_hash(key, &info->index, sizeof info->index);
  } else if (info->type == GM_DEVICE_TYPE_CPU) {
    key = figures_hash(key, "host", 4);
  } else if (pci.form == GM__PCI_FULL) {
    char text[GM__PCI_TEXT_SIZE] = "";
    gm__pci_print(pci, text);
    key = figures_hash(key, text, strlen(text));
    key = figures_hash(key, info->partition, strlen(info->partition));
  } else {
    key = figures_hash(key, info->uuid, sizeof info->uuid);
  }
  return gm__process_used(key);
}

uint64_t gm__device_margin(gm_context *ctx, uint64_t total_bytes) {
  uint64_t margin = gm__config_u64(ctx, "min_free_bytes");
  if (margin != UINT64_MAX) return margin;
  uint64_t share = total_bytes / 20, most = 512u << 20;
  return share < most ? share : most;
}

/* A card with memory of its own has nothing to do with the host's. */
static bool figures_need_host(const gm_raw_figures *raw) {
  return raw->rules == GM_RAW_HOST || (raw->rules != GM_RAW_DRIVER && raw->place != GM_RAW_OWN_MEMORY);
}

/* What the files say about the card, where it has any. Of other processes' use only OpenCL knows nothing by itself. */
static void figures_read_files(const gm__figures_subject *subject, gm__figures_input *input) {
  const char *root = subject->driver->ctx->host_root;
  gm__pci address = gm__pci_parse(subject->info->pci);
  gm_raw_rules rules = input->raw->rules;
  if (rules == GM_RAW_HIP || rules == GM_RAW_VULKAN)
    gm__sysfs_read(root, address, &input->sysfs); /* an APU's carve-out */
  if (rules == GM_RAW_OPENCL && subject->thorough) gm__fdinfo_read(root, address, (uint64_t)getpid(), &input->fdinfo);
}

typedef struct figures_work {
  gm_host_info host;
  gm_raw_figures raw;
  gm_memory_info peer;
} figures_work;

static void figures_resolve(const gm__figures_subject *subject, figures_work *work, gm_memory_info *out) {
  gm_context *ctx = subject->driver->ctx;
  gm__used_bytes *used = gm__device_used(subject->driver, subject->info);
  gm__figures_input input = gm__figures_input_of(&work->raw);
  if (figures_need_host(&work->raw)) {
    gm__host_memory_read(ctx->host_root, &work->host);
    input.host = &work->host;
  }
  input.own_bytes = gm__used_total(used);
  input.managed = subject->managed;
  input.now_ns = gm__now_ns();
  figures_read_files(subject, &input);
  if (work->raw.rules == GM_RAW_OPENCL && gm__peer_figures(subject->driver, subject->info, &work->peer)) {
    input.peer = &work->peer;
  }
  *out = gm__memory_info_resolve(&input);
  out->reclaimable_bytes = gm__used_pooled(used);
  out->margin_bytes = out->total_bytes == GM_UNKNOWN_BYTES ? 0 : gm__device_margin(ctx, out->total_bytes);
}

gm_status gm__device_figures(const gm__figures_subject *subject, gm_memory_info *out, gm_error *err) {
  gm__driver *driver = subject->driver;
  const gm_services *services = gm__context_services(driver->ctx);
  figures_work *work = gm__alloc(services, sizeof *work);
  if (!work) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, 0, "figures", "no host memory to read the figures");
  work->raw.struct_size = sizeof work->raw;
  if (driver->ops.figures(driver->handle, subject->info->index, subject->device, &work->raw, NULL) != GM_OK) {
    work->raw = (gm_raw_figures){.struct_size = sizeof work->raw};
  }
  figures_resolve(subject, work, out);
  gm__release(services, work, sizeof *work);
  return GM_OK;
}
