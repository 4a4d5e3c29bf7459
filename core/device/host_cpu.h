/* What the host's processor is called and how many of its cores this process may use. */
#ifndef GM_CORE_DEVICE_HOST_CPU_H
#define GM_CORE_DEVICE_HOST_CPU_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/id_set.h"

/* The name for people; "" when no file tells. */
void gm__host_cpu_name(const char *root, char *out, size_t capacity);

/* Processors that are online and in `allowed` (NULL: all), or those of /proc/cpuinfo; 0 when no file tells. */
uint32_t gm__host_cpu_cores(const char *root, const gm__id_set *allowed);

#endif
