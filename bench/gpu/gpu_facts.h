/* A device's own words about itself, written as JSON. */
#ifndef GM_BENCH_GPU_FACTS_H
#define GM_BENCH_GPU_FACTS_H

#include <stdio.h>

#include "gm/device.h"

/* A JSON string, quotes included: control characters and what is no ASCII become '?'. */
void gpu_facts_text(FILE *out, const char *text);

/* The members of one device, without the braces around them. */
void gpu_facts_device(FILE *out, gm_device *device);

#endif
