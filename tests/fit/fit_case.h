/* One estimator case: a model's header, and what an engine measured in many runs of it. */
#ifndef GM_TESTS_FIT_CASE_H
#define GM_TESTS_FIT_CASE_H

#include <json-c/json.h>

#include "gm/estimate.h"

typedef struct fit_case {
  char name[256];
  gm_model *model;
  gm_model_config config;
  json_object *measured;
  json_object *runs; /* borrowed from `measured` */
} fit_case;

/* Bytes of one run, predicted or measured: on the host and on the device. */
typedef struct fit_buffers {
  uint64_t weights[2], kv[2], compute[2], output, total;
} fit_buffers;

enum { FIT_HOST, FIT_DEVICE };

/* Open DIRECTORY/NAME. False, with the reason on standard output: also of a measurement that names no parameters, or no
 * run that counts. */
bool fit_case_open(const char *directory, const char *name, fit_case *out);
void fit_case_close(fit_case *self);

/* The thing that is missing in a run or cannot be read, NULL if nothing: its settings, its buffers, its total. */
const char *fit_run_problem(json_object *run);

/* The settings of a run. `has_output`: the run says how large the output buffer was. */
gm_estimate_settings fit_run_settings(json_object *run);
fit_buffers fit_run_measured(json_object *run, bool *has_output);

/* Runs that failed in the engine, or whose weights it repacked for its CPU, say nothing. */
bool fit_run_counts(json_object *run);

const char *fit_text(json_object *object, const char *key);
uint64_t fit_number(json_object *object, const char *key);

#endif
