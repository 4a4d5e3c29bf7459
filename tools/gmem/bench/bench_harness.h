/* Runs gm_bench, which measures one allocator in one case, in a process of its own. */
#ifndef GM_TOOLS_GMEM_BENCH_BENCH_HARNESS_H
#define GM_TOOLS_GMEM_BENCH_BENCH_HARNESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HARNESS_ENVIRONMENT = 8, HARNESS_FIGURES = 24, HARNESS_NAME = 24, HARNESS_PATH = 4096 };

/* An allocator behind the interface of bench/peers/README.md. */
typedef struct harness_allocator {
  char label[64];
  char path[HARNESS_PATH]; /* empty: gm_bench needs none */
  char config[128];
  char environment[HARNESS_ENVIRONMENT][128]; /* NAME=VALUE, those that are there first */
  bool loops_only;                            /* has no device: no traces */
} harness_allocator;

typedef struct harness_figures {
  size_t count;
  char names[HARNESS_FIGURES][HARNESS_NAME];
  double values[HARNESS_FIGURES];
} harness_figures;

/* NaN: there is none. */
double harness_figure(const harness_figures *figures, const char *name);

/* Merges a further run of the same: the lesser of each figure, of "failed" the greater. */
void harness_merge(harness_figures *figures, const harness_figures *more);

/* A program or file beside this one. false: it is not there. */
bool harness_beside(const char *name, char *out, size_t capacity);

/* `arguments` ends with NULL; `capacity_mib` 0: the usual one. false: it failed, and has said why on standard error;
 * `out` is then empty. */
bool harness_run(const harness_allocator *allocator, const char *const *arguments, uint64_t capacity_mib,
                 harness_figures *out);

#endif
