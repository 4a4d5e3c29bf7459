#include "core/discovery/device_figures.h"

#include <string.h>
#include <unistd.h>

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/context/config.h"
#include "core/figures/memory_info.h"
#include "core/host/commit.h"
#include "core/host/host_info.h"
#include "core/host/pci.h"
#include "core/room/card_turn.h"

static uint64_t figures_hash(uint64_t hash, const void *data, size_t bytes) { /* FNV-1a */
  const unsigned char *byte = data;
  for (size_t i = 0; i < bytes; i++) hash = (hash ^ byte[i]) * 0x100000001b3u;
  return hash;
}

/* One number for all who mean this physical memory. */
static uint64_t figures_card_key(const gm__driver *driver, const gm_device_info *info) {
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
  return key;
}

gm__card *gm__device_card(const gm__driver *driver, const gm_device_info *info) {
  const uint64_t key = figures_card_key(driver, info);
  gm__card *card = gm__card_of(key);
  atomic_store_explicit(&card->name, info->api == GM_API_NULL ? 0 : key, memory_order_relaxed);
  return card;
}

uint64_t gm__device_margin(gm_context *ctx, uint64_t total_bytes) {
  const uint64_t margin = gm__config_u64(ctx, "min_free_bytes");
  return margin == UINT64_MAX ? gm__margin_auto(total_bytes) : margin;
}

/* The bytes that must stay free on the device. */
static uint64_t figures_margin(const gm__figures_subject *subject, uint64_t total_bytes) {
  gm_context *ctx = subject->driver->ctx;
  if (total_bytes == GM_UNKNOWN_BYTES || !gm__config_holds(ctx, "min_free_bytes", subject->adopted)) return 0;
  return gm__device_margin(ctx, total_bytes);
}

/* A card with memory of its own has nothing to do with the host's. */
static bool figures_need_host(const gm_raw_figures *raw) {
  return raw->rules == GM_RAW_HOST || (raw->rules != GM_RAW_DRIVER && raw->place != GM_RAW_OWN_MEMORY);
}

typedef struct figures_work {
  gm_host_info host;
  gm_raw_figures raw;
  gm_memory_info peer;
  gm__dmem dmem;
  char group[GM__FILE_PATH_SIZE];
} figures_work;

/* Read the card's files, where it has any. False: no host memory. Only OpenCL has no figure of its own about other
 * processes. */
static bool figures_read_files(const gm__figures_subject *subject, figures_work *work, gm__figures_input *input) {
  const gm_context *ctx = subject->driver->ctx;
  const char *root = ctx->host_root;
  gm__pci address = gm__pci_parse(subject->info->pci);
  gm_raw_rules rules = input->raw->rules;
  if (rules == GM_RAW_HIP || rules == GM_RAW_VULKAN)
    gm__sysfs_read(root, address, &input->sysfs); /* an APU's carve-out */
  if (rules == GM_RAW_OPENCL && subject->thorough) gm__fdinfo_read(root, address, (uint64_t)getpid(), &input->fdinfo);
  if (rules == GM_RAW_HOST || input->raw->place != GM_RAW_OWN_MEMORY) return true;
  input->dmem = &work->dmem;
  return gm__dmem_read(gm__context_services(ctx), root, address, &work->dmem);
}

/* True for one card for certain: by full address and partition, or by a UUID that the APIs gave. */
static bool peer_is_same(const gm_device_info *a, const gm_device_info *b) {
  if (strcmp(a->partition, b->partition) != 0) return false;
  gm__pci at = gm__pci_parse(a->pci), other = gm__pci_parse(b->pci);
  if (at.form == GM__PCI_FULL && other.form == GM__PCI_FULL) return gm__pci_same(at, other);
  return !a->uuid_derived && !b->uuid_derived && memcmp(a->uuid, b->uuid, sizeof a->uuid) == 0;
}

/* A figure that was itself put together from others' is none. */
static bool peer_has_figure(const gm_memory_info *memory) {
  return memory->free_state != GM_FIGURE_UNKNOWN && memory->free_source != GM_SOURCE_OWN_ACCOUNTING &&
         memory->free_source != GM_SOURCE_PEER_API;
}

/* The peer's lock is held. OpenCL entries are no peers: they have no figure of their own, and would ask back. */
static bool peer_read(gm__driver *peer, const gm_device_info *info, gm_memory_info *out) {
  if (!peer->handle || peer->info.status != GM_OK || peer->info.api == GM_API_OPENCL) return false;
  for (uint32_t i = 0; i < peer->entry_count; i++) {
    const gm_device_info *same = &peer->entries[i].info;
    if (!peer_is_same(info, same)) continue;
    const gm__figures_subject subject = {
        .driver = peer, .info = same, .device = gm__driver_opened(peer, &peer->entries[i])};
    return gm__device_figures(&subject, out, NULL) == GM_OK && peer_has_figure(out);
  }
  return false;
}

/* For an API without a free query: the figure that another loaded backend has for the same card, read now. Drivers'
 * locks are only tried for, never waited for: the caller may hold its own driver's. False: there is none, or that
 * backend is busy. */
static bool peer_figures(gm__driver *driver, const gm_device_info *info, gm_memory_info *out) {
  gm__registry *registry = NULL;
  bool found = false;
  if (info->type == GM_DEVICE_TYPE_CPU || gm__registry_get(driver->ctx, &registry, NULL) != GM_OK) return false;
  for (uint32_t i = 0; i < registry->count && !found; i++) {
    gm__driver *peer = registry->drivers[i];
    if (peer == driver || !gm__mutex_try_lock(&peer->lock)) continue;
    found = peer_read(peer, info, out);
    gm__mutex_unlock(&peer->lock);
  }
  return found;
}

/* An open device whose query fails is as good as one that was not asked, if it works. */
static bool figures_still_works(const gm__figures_subject *subject) {
  const gm__driver *driver = subject->driver;
  return subject->device && driver->ops.device_state(subject->device, NULL) == GM_OK;
}

/* No source has told what is free: ask whatever else tells of others, for an estimate. */
static void figures_look_further(const gm__figures_subject *subject, figures_work *work, gm__figures_input *input,
                                 gm_memory_info *out) {
  gm_raw_figures *raw = &work->raw;
  const gm_device_info *info = subject->info;
  if (raw->driver.state == GM_RAW_ERROR && figures_still_works(subject)) raw->driver.state = GM_RAW_ABSENT;
  if (raw->rules == GM_RAW_HOST || raw->driver.state != GM_RAW_ABSENT) return;
  const bool own_memory = !info->unified && info->type != GM_DEVICE_TYPE_CPU;
  if (own_memory && raw->device_total.state == GM_RAW_ABSENT && info->total_bytes) {
    raw->device_total = (gm_raw_reply){GM_RAW_OK, 0, info->total_bytes, GM_UNKNOWN_BYTES};
  }
  if (subject->thorough && !input->fdinfo.valid) {
    gm__fdinfo_read(subject->driver->ctx->host_root, gm__pci_parse(info->pci), (uint64_t)getpid(), &input->fdinfo);
  }
  if (!input->peer && peer_figures(subject->driver, info, &work->peer)) input->peer = &work->peer;
  input->listed = true;
  *out = gm__memory_info_resolve(input);
}

/* False: no host memory. */
static bool figures_resolve(const gm__figures_subject *subject, figures_work *work, gm_memory_info *out) {
  gm_context *ctx = subject->driver->ctx;
  gm__card *card = gm__device_card(subject->driver, subject->info);
  gm__figures_input input = gm__figures_input_of(&work->raw);
  if (figures_need_host(&work->raw)) {
    if (!gm__host_memory_read(gm__context_services(ctx), ctx->host_root, &work->host)) return false;
    input.host = &work->host;
    const gm__host_process process = gm__host_process_read(ctx->host_root);
    input.process = (gm_memory_part){process.total_bytes, process.free_bytes};
  }
  input.own_bytes = gm__card_used(card);
  input.managed = subject->managed;
  input.now_ns = gm__now_ns();
  if (!figures_read_files(subject, work, &input)) return false;
  if (work->raw.rules == GM_RAW_OPENCL && peer_figures(subject->driver, subject->info, &work->peer)) {
    input.peer = &work->peer;
  }
  *out = gm__memory_info_resolve(&input);
  if (subject->listed && out->free_state == GM_FIGURE_UNKNOWN) figures_look_further(subject, work, &input, out);
  out->reclaimable_bytes = gm__card_pooled(card);
  out->margin_bytes = figures_margin(subject, out->total_bytes);
  if (!subject->no_look) gm__card_look(ctx, card);
  out->promised_bytes = gm__card_promised(card);
  out->promised_by_others_bytes = gm__card_promised_elsewhere(card);
  return true;
}

static gm_status figures_no_memory(gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "figures", "no host memory to read the figures");
}

gm_status gm__device_figures(const gm__figures_subject *subject, gm_memory_info *out, gm_error *err) {
  gm__driver *driver = subject->driver;
  const gm_services *services = gm__context_services(driver->ctx);
  figures_work *work = gm__alloc(services, sizeof *work);
  if (!work) return figures_no_memory(err);
  work->raw.struct_size = sizeof work->raw;
  if (driver->info.api == GM_API_CUDA) {
    gm__dmem_own_group(services, driver->ctx->host_root, work->group, sizeof work->group);
    work->raw.group = work->group;
  }
  const gm_status told = driver->ops.figures(driver->handle, subject->info->index, subject->device, &work->raw, NULL);
  if (told != GM_OK) {
    work->raw = (gm_raw_figures){.struct_size = sizeof work->raw};
    if (told != GM_ERR_NOT_SUPPORTED) work->raw.driver.state = GM_RAW_ERROR;
  }
  const bool resolved = figures_resolve(subject, work, out);
  if (subject->heaps) gm__heaps_resolve(&work->raw, subject->heaps);
  gm__release(services, work, sizeof *work);
  return resolved ? GM_OK : figures_no_memory(err);
}
