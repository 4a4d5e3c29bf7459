/* Puts the host's figures together (rules H1 to H11). Everything comes from files below one root, so that a directory
 * can stand for a machine. Nothing is cached: memory is added, moved and limited while a process runs. */
#include "core/host/host_info.h"

#include <string.h>
#include <unistd.h>

#include "core/base/cancel.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/saturate.h"
#include "core/base/sized.h"
#include "core/host/host_readers.h"

/* Processors and nodes that this process may use, from /proc/self/status. */
typedef struct host_allowed {
  bool unread; /* the file is there, and could not be read */
  bool has_cpus;
  bool has_nodes;
  gm__host_scratch *scratch; /* has them */
} host_allowed;

static bool host_status_line(void *user, char *line) {
  host_allowed *allowed = user;
  static const char cpus[] = "Cpus_allowed_list:", nodes[] = "Mems_allowed_list:";
  if (strncmp(line, cpus, sizeof cpus - 1) == 0) {
    allowed->has_cpus = gm__id_set_parse(line + sizeof cpus - 1, &allowed->scratch->cpus);
  } else if (strncmp(line, nodes, sizeof nodes - 1) == 0) {
    allowed->has_nodes = gm__id_set_parse(line + sizeof nodes - 1, &allowed->scratch->nodes);
  }
  return true;
}

static void host_read_allowed(const char *root, gm__host_scratch *scratch, host_allowed *out) {
  *out = (host_allowed){.scratch = scratch};
  const gm__file_answer answer = gm__file_long_lines(root, "/proc/self/status", scratch->line, host_status_line, out);
  out->unread = answer != GM__FILE_OK && answer != GM__FILE_ABSENT;
}

static void host_read_processor(const char *root, const host_allowed *allowed, gm_host_info *info) {
  gm__host_cpu_name(root, allowed->scratch, info->cpu_name, sizeof info->cpu_name);
  info->cores = gm__host_cpu_cores(root, allowed->has_cpus ? &allowed->scratch->cpus : NULL, allowed->scratch);
  long page = sysconf(_SC_PAGESIZE);
  info->page_bytes = page > 0 ? (uint64_t)page : GM_UNKNOWN_BYTES;
}

/* Rule H12. */
static void host_add_zfs(const char *root, gm_host_info *info, gm__host_bounds *bounds) {
  uint64_t spare;
  if (info->mem_total_bytes == GM_UNKNOWN_BYTES || info->mem_available_bytes == GM_UNKNOWN_BYTES) return;
  const uint64_t used = gm__sub_sat(info->mem_total_bytes, info->mem_available_bytes);
  if (!gm__zfs_read(root, used, &spare)) return;
  info->mem_available_bytes += spare;
  bounds->estimated = true;
}

/* The machine's own figures, no group applied. */
static void host_bound_by_meminfo(const char *root, gm_host_info *info, gm__host_bounds *bounds) {
  gm__meminfo memory;
  gm__meminfo_read(root, "/proc/meminfo", &memory);
  info->mem_total_bytes = memory.total;
  info->mem_available_bytes = memory.available;
  if (memory.available == GM_UNKNOWN_BYTES) {
    info->mem_available_bytes = gm__meminfo_estimate(&memory);
    bounds->estimated = true;
  }
  host_add_zfs(root, info, bounds);
  info->huge_page_bytes = memory.hugepage_bytes;
  info->hugetlb_free_bytes = GM_UNKNOWN_BYTES;
  if (memory.hugepages_free != GM_UNKNOWN_BYTES && memory.hugepage_bytes != GM_UNKNOWN_BYTES) {
    info->hugetlb_free_bytes = gm__mul_sat(memory.hugepages_free, memory.hugepage_bytes);
  }
  gm__host_bound_by(&bounds->total, info->mem_total_bytes, "meminfo", NULL);
  gm__host_bound_by(&bounds->room, info->mem_available_bytes, "meminfo", NULL);
}

/* Rule H5: nodes matter only where this process may not use all of them. Otherwise their sum says nothing, also where
 * it is below the machine's total: a hypervisor may add memory to a node as it is touched. */
static void host_bound_by_nodes(const char *root, const host_allowed *allowed, bool list, gm_host_info *info,
                                gm__host_bounds *bounds) {
  const gm__numa *numa = &allowed->scratch->numa;
  gm__numa_read(root, allowed->has_nodes ? &allowed->scratch->nodes : NULL, list, allowed->scratch);
  info->node_count = numa->count;
  memcpy(info->nodes, numa->nodes, sizeof info->nodes);
  bounds->estimated = bounds->estimated || numa->left_out || numa->unread || allowed->unread;
  if (!numa->left_out) return;
  if (!numa->complete || numa->total_bytes == 0) return;
  gm__host_bound_by(&bounds->total, numa->total_bytes, "numa", NULL);
  gm__host_bound_by(&bounds->room, numa->room_bytes, "numa", NULL);
}

/* Rule H9. */
static void host_conclude(const gm__host_bounds *bounds, gm_host_info *info) {
  const gm__host_bound *total = &bounds->total, *room = &bounds->room;
  bool above = room->bytes != GM_UNKNOWN_BYTES && room->bytes > total->bytes;
  const gm__host_bound *limit = above ? total : room;
  info->total_bytes = total->bytes;
  info->free_bytes = limit->bytes;
  memcpy(info->total_source, total->source, sizeof info->total_source);
  memcpy(info->limit_source, limit->source, sizeof info->limit_source);
  info->cgroup_limited = total->by_group || limit->by_group;
  info->free_state = bounds->estimated || above ? GM_FIGURE_ESTIMATED : GM_FIGURE_KNOWN;
  if (info->free_bytes == GM_UNKNOWN_BYTES) info->free_state = GM_FIGURE_UNKNOWN;
}

/* `list`: the caller wants the list of nodes, also where they bound nothing. */
static void host_read_memory(const char *root, const host_allowed *allowed, bool list, gm_host_info *info) {
  gm__host_bounds bounds;
  gm__host_bounds_init(&bounds);
  host_bound_by_meminfo(root, info, &bounds);
  host_bound_by_nodes(root, allowed, list, info, &bounds);
  gm__cgroup_bound(root, info->mem_total_bytes, allowed->scratch, &bounds);
  if (info->mem_total_bytes == GM_UNKNOWN_BYTES) bounds.estimated = true;
  host_conclude(&bounds, info);
}

gm__host_scratch *gm__host_scratch_take(const gm_services *services) {
  return gm__alloc(services, sizeof(gm__host_scratch));
}

void gm__host_scratch_give(const gm_services *services, gm__host_scratch *scratch) {
  if (scratch) gm__release(services, scratch, sizeof *scratch);
}

bool gm__host_memory_read(const gm_services *services, const char *root, gm_host_info *out) {
  host_allowed allowed;
  gm__host_scratch *scratch = gm__host_scratch_take(services);
  *out = (gm_host_info){.struct_size = sizeof *out, .read_at_ns = gm__now_ns()};
  out->total_bytes = out->free_bytes = out->mem_total_bytes = out->mem_available_bytes = GM_UNKNOWN_BYTES;
  if (!scratch) return false;
  host_read_allowed(root, scratch, &allowed);
  host_read_memory(root, &allowed, false, out);
  gm__host_scratch_give(services, scratch);
  return true;
}

/* Fills *out, which is the caller's. */
static void host_read_all(const char *root, gm__host_scratch *scratch, gm_host_info *out) {
  host_allowed allowed;
  gm_host_info info = {.struct_size = sizeof info, .read_at_ns = gm__now_ns()};
  host_read_allowed(root, scratch, &allowed);
  host_read_processor(root, &allowed, &info);
  host_read_memory(root, &allowed, true, &info);
  gm__psi_read(root, &info.stall_some, &info.stall_full);
  gm__sized_out(out, &info, sizeof info);
}

gm_status gm_host_info_read(const char *root, gm_host_info *out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_host_info_read";
  const gm_status status = gm__sized_check(out, sizeof *out, op, "out", err);
  if (status) return status;
  if (root && strlen(root) >= GM__FILE_PATH_SIZE / 2) {
    return gm__bad_argument(err, op, "`root` must be shorter than %d characters", GM__FILE_PATH_SIZE / 2);
  }
  gm__host_scratch *scratch = gm__host_scratch_take(NULL);
  if (!scratch) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory to read the figures");
  host_read_all(root ? root : "", scratch, out);
  gm__host_scratch_give(NULL, scratch);
  return GM_OK;
}
