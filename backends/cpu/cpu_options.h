/* The options of the CPU backend: "numa=local|interleave|node:N,hugetlb,memfd". */
#ifndef GM_BACKENDS_CPU_CPU_OPTIONS_H
#define GM_BACKENDS_CPU_CPU_OPTIONS_H

#include "backends/cpu/cpu_numa.h"

typedef struct gm__cpu_options {
  gm__cpu_numa numa;
  bool hugetlb; /* virtual memory takes reserved huge pages (vm.nr_hugepages) */
  bool memfd;   /* exclusive virtual memory has a descriptor too */
} gm__cpu_options;

/* INVALID_ARGUMENT names the unknown word. */
gm_status gm__cpu_options_parse(const char *text, gm__cpu_options *out, gm_error *err);

#endif
