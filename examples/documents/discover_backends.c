/* discover_backends and print_backend_summary: BackendInfo, DeviceInfo, and a reason for each backend that is not
 * there. get_cpu_name, get_system_memory and get_available_memory are what the CPU's entry says. */
#include "example.h"
#include "gm/report.h"

enum { MOST = 32 };

static void print_devices(gm_context *ctx) {
  gm_device_entry devices[MOST] = {{.struct_size = sizeof *devices}};
  size_t count;
  int cpus = 0;
  DO(gm_discover_devices(ctx, devices, MOST, &count, &err));
  for (size_t i = 0; i < count && i < MOST; i++) {
    const gm_device_info *info = &devices[i].info;
    printf("%s [%" PRIu32 "] %s %s, unified %d\n", info->backend, info->index, info->name, info->capability,
           info->unified);
    if (info->api != GM_API_CPU) continue;
    cpus++;
    CLAIM(info->name[0] && info->unified);
    CLAIM(devices[i].memory.total_bytes > 0 && devices[i].memory.free_bytes <= devices[i].memory.total_bytes);
  }
  CLAIM(cpus >= 1);
}

int main(void) {
  gm_context *ctx;
  gm_backend_info infos[MOST] = {{.struct_size = sizeof *infos}};
  size_t count;
  bool metal = false;
  DO(gm_context_create(NULL, &ctx, &err));
  DO(gm_discover_backends(ctx, GM_PROBE_ACTIVE, infos, MOST, &count, &err));
  for (size_t i = 0; i < count && i < MOST; i++) {
    CLAIM(infos[i].status == GM_OK || infos[i].reason.message[0]);
    metal |= infos[i].api == GM_API_METAL && infos[i].status != GM_OK; /* docs/faq.md says why */
  }
  CLAIM(metal);
  print_devices(ctx);
  DO(gm_print_summary(ctx, GM_PROBE_ACTIVE, stdout, &err));
  gm_selection best = {.struct_size = sizeof best};
  DO(gm_best_backend(ctx, &best, &err)); /* best_available_backend() */
  printf("best backend: %s\n", best.id.backend);
  DO(gm_context_destroy(ctx, &err));
  return 0;
}
