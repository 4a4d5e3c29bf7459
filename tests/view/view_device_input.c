#include "view/view_device_input.h"

#include <string.h>

static gm_raw_reply device_reply(json_object *reply) {
  gm_raw_reply out = {GM_RAW_ABSENT, 0, GM_UNKNOWN_BYTES, GM_UNKNOWN_BYTES};
  if (!reply) return out;
  bool failed = view_member(reply, "error") != NULL;
  out.state = failed ? GM_RAW_ERROR : GM_RAW_OK;
  out.code = json_object_get_int(view_member(reply, "code"));
  out.total_bytes = view_bytes(reply, "total");
  out.free_bytes = view_bytes(reply, "free");
  return out;
}

static gm_raw_reply device_total(json_object *object, const char *key) {
  gm_raw_reply out = {GM_RAW_ABSENT, 0, view_bytes(object, key), GM_UNKNOWN_BYTES};
  if (out.total_bytes != GM_UNKNOWN_BYTES) out.state = GM_RAW_OK;
  return out;
}

static gm_raw_place device_integrated(json_object *object, const char *key) {
  return json_object_get_int(view_member(object, key)) ? GM_RAW_INTEGRATED : GM_RAW_OWN_MEMORY;
}

static void device_cuda(view_case *view, json_object *cuda, gm_raw_figures *raw) {
  static const char *const keys[] = {"integrated", "os", "mig", "mem_get_info", "device_total_mem", NULL};
  view_known_keys(view, cuda, keys);
  raw->place = device_integrated(cuda, "integrated");
  const char *os = view_text(cuda, "os");
  if (strcmp(os, "windows") == 0 || strcmp(os, "wsl2") == 0) raw->flags |= GM_RAW_WDDM;
  if (view_flag(cuda, "mig")) raw->flags |= GM_RAW_PARTITION;
  raw->driver = device_reply(view_member(cuda, "mem_get_info"));
  raw->device_total = device_total(cuda, "device_total_mem");
}

static void device_nvml(view_case *view, json_object *nvml, gm_raw_nvml *out) {
  static const char *const keys[] = {"handle", "memory", "process_used", NULL};
  view_known_keys(view, nvml, keys);
  const char *handle = view_text(nvml, "handle");
  if (strcmp(handle, "mig") == 0) out->handle = GM_RAW_NVML_SLICE;
  if (strcmp(handle, "parent") == 0) out->handle = GM_RAW_NVML_PARENT;
  out->memory = device_reply(view_member(nvml, "memory"));
  json_object *used = view_member(nvml, "process_used");
  size_t count = used ? json_object_array_length(used) : 0;
  out->process_count = (uint32_t)count;
  for (size_t i = 0; i < count && i < GM_RAW_PROCESSES_MAX; i++) {
    out->process_bytes[i] = json_object_get_uint64(json_object_array_get_idx(used, i));
  }
}

static void device_hip(view_case *view, json_object *hip, view_device_input *out) {
  static const char *const keys[] = {"integrated", "mem_get_info", "device_total_mem", "alloc_kind", NULL};
  view_known_keys(view, hip, keys);
  out->raw.place = device_integrated(hip, "integrated");
  out->raw.driver = device_reply(view_member(hip, "mem_get_info"));
  out->raw.device_total = device_total(hip, "device_total_mem");
  out->figures.managed = strcmp(view_text(hip, "alloc_kind"), "managed") == 0;
}

static void device_amd(json_object *reply, gm_raw_amd_query *out) {
  if (!reply) return;
  out->state = GM_RAW_ERROR;
  if (!json_object_is_type(reply, json_type_array)) return;
  out->state = GM_RAW_OK;
  size_t count = json_object_array_length(reply);
  out->count = (uint32_t)(count < 2 ? count : 2);
  for (size_t i = 0; i < out->count; i++) out->kib[i] = json_object_get_uint64(json_object_array_get_idx(reply, i));
}

static void device_opencl(view_case *view, json_object *opencl, gm_raw_figures *raw) {
  static const char *const keys[] = {
      "type", "vendor", "global_mem_size", "host_unified_memory", "global_free_memory_amd", NULL};
  view_known_keys(view, opencl, keys);
  raw->place = device_integrated(opencl, "host_unified_memory");
  if (strcmp(view_text(opencl, "type"), "cpu") == 0) raw->place = GM_RAW_CPU_DEVICE;
  raw->device_total = device_total(opencl, "global_mem_size");
  device_amd(view_member(opencl, "global_free_memory_amd"), &raw->amd);
}

static uint64_t device_bytes_or_zero(json_object *object, const char *key) {
  uint64_t bytes = view_bytes(object, key);
  return view_member(object, key) ? bytes : 0;
}

static void device_heap(view_case *view, json_object *heap, gm_raw_heap *out) {
  static const char *const keys[] = {"size", "flags", "budget", "usage", "gm_bytes", NULL};
  view_known_keys(view, heap, keys);
  out->bytes = view_bytes(heap, "size");
  out->budget_bytes = device_bytes_or_zero(heap, "budget");
  out->usage_bytes = device_bytes_or_zero(heap, "usage");
  out->own_bytes = device_bytes_or_zero(heap, "gm_bytes");
  json_object *flags = view_member(heap, "flags");
  for (size_t i = 0; flags && i < json_object_array_length(flags); i++) {
    if (strcmp(json_object_get_string(json_object_array_get_idx(flags, i)), "device_local") == 0) out->flags |= 1;
  }
}

static void device_vulkan(view_case *view, json_object *vulkan, gm_raw_figures *raw) {
  static const char *const keys[] = {"type", "driver", "memory_budget", "heaps", NULL};
  view_known_keys(view, vulkan, keys);
  const char *type = view_text(vulkan, "type");
  if (strcmp(type, "integrated") == 0) raw->place = GM_RAW_INTEGRATED;
  if (strcmp(type, "cpu") == 0) raw->place = GM_RAW_CPU_DEVICE;
  if (view_flag(vulkan, "memory_budget")) raw->flags |= GM_RAW_BUDGET;
  if (strcmp(view_text(vulkan, "driver"), "nvidia") == 0) raw->flags |= GM_RAW_ONE_LOCAL_HEAP;
  json_object *heaps = view_member(vulkan, "heaps");
  raw->heap_count = (uint32_t)json_object_array_length(heaps);
  for (size_t i = 0; i < raw->heap_count && i < GM_RAW_HEAPS_MAX; i++) {
    device_heap(view, json_object_array_get_idx(heaps, i), &raw->heaps[i]);
  }
}

static void device_sysman(json_object *sysman, gm_raw_figures *raw) {
  json_object *modules = view_member(sysman, "modules");
  raw->module_count = modules ? (uint32_t)json_object_array_length(modules) : 0;
  for (size_t i = 0; i < raw->module_count && i < GM_RAW_MODULES_MAX; i++) {
    json_object *module = json_object_array_get_idx(modules, i);
    raw->modules[i] = (gm_raw_module){view_bytes(module, "size"), view_bytes(module, "free")};
  }
}

static gm_figure_state device_state_of(const char *word) {
  for (int state = GM_FIGURE_UNKNOWN; state <= GM_FIGURE_KNOWN; state++) {
    if (strcmp(word, gm_figure_state_name((gm_figure_state)state)) == 0) return (gm_figure_state)state;
  }
  return GM_FIGURE_UNKNOWN;
}

static void device_peer(json_object *peer, view_device_input *out) {
  if (!peer) return;
  out->peer.total_bytes = view_bytes(peer, "total");
  out->peer.free_bytes = view_bytes(peer, "free");
  out->peer.free_state = device_state_of(view_text(peer, "state"));
  out->figures.peer = &out->peer;
}

static void device_host(view_case *view, json_object *host, view_device_input *out) {
  static const char *const keys[] = {"total", "free", "cgroup_limited", "mem_total", "mem_available", NULL};
  if (!host) return;
  view_known_keys(view, host, keys);
  out->host.struct_size = sizeof out->host;
  out->host.total_bytes = view_bytes(host, "total");
  out->host.free_bytes = view_bytes(host, "free");
  out->host.free_state = out->host.free_bytes == GM_UNKNOWN_BYTES ? GM_FIGURE_UNKNOWN : GM_FIGURE_KNOWN;
  out->host.cgroup_limited = view_flag(host, "cgroup_limited");
  out->host.mem_total_bytes = view_bytes(host, "mem_total");
  out->host.mem_available_bytes = view_bytes(host, "mem_available");
  out->figures.host = &out->host;
}

static gm_raw_rules device_rules(view_case *view) {
  static const struct {
    const char *word;
    gm_raw_rules rules;
  } backends[] = {{"cpu", GM_RAW_HOST},
                  {"cuda", GM_RAW_CUDA},
                  {"hip", GM_RAW_HIP},
                  {"opencl", GM_RAW_OPENCL},
                  {"vulkan", GM_RAW_VULKAN}};
  const char *word = view_text(view->input, "backend");
  for (size_t i = 0; i < sizeof backends / sizeof *backends; i++) {
    if (strcmp(word, backends[i].word) == 0) return backends[i].rules;
  }
  view_differ(view, "unknown backend %s", word);
  return GM_RAW_DRIVER;
}

static void device_backend(view_case *view, view_device_input *out) {
  json_object *input = view->input;
  json_object *cuda = view_member(input, "cuda"), *hip = view_member(input, "hip");
  json_object *opencl = view_member(input, "opencl"), *vulkan = view_member(input, "vulkan");
  if (cuda) device_cuda(view, cuda, &out->raw);
  if (hip) device_hip(view, hip, out);
  if (opencl) device_opencl(view, opencl, &out->raw);
  if (vulkan) device_vulkan(view, vulkan, &out->raw);
  if (view_member(input, "nvml")) device_nvml(view, view_member(input, "nvml"), &out->raw.nvml);
  if (view_member(input, "sysman")) device_sysman(view_member(input, "sysman"), &out->raw);
}

void view_device_input_read(view_case *view, view_device_input *out) {
  static const char *const keys[] = {"backend",   "gm_bytes",       "host", "pci",    "files", "unreadable", "self_pid",
                                     "cuda",      "nvml",           "hip",  "opencl", "peer",  "sysman",     "vulkan",
                                     "carve_out", "carve_out_free", NULL};
  json_object *input = view->input;
  view_known_keys(view, input, keys);
  memset(out, 0, sizeof *out);
  out->raw.struct_size = sizeof out->raw;
  out->raw.rules = device_rules(view);
  out->figures = gm__figures_input_of(&out->raw);
  out->figures.listed = true; /* a device that was not asked is one that is not open yet */
  device_backend(view, out);
  device_host(view, view_member(input, "host"), out);
  device_peer(view_member(input, "peer"), out);
  gm__pci address = gm__pci_parse(view_text(input, "pci"));
  gm__sysfs_read(view->root, address, &out->figures.sysfs);
  if (gm__dmem_read(NULL, view->root, address, &out->dmem)) out->figures.dmem = &out->dmem;
  gm__fdinfo_read(view->root, address, view_bytes(input, "self_pid"), &out->figures.fdinfo);
  out->figures.own_bytes = device_bytes_or_zero(input, "gm_bytes");
  out->figures.carve_out = (gm_memory_part){view_bytes(input, "carve_out"), view_bytes(input, "carve_out_free")};
}
