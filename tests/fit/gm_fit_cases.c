/* gm_fit_cases DIR: holds gm's estimates against what an engine measured, for each case DIR/NAME (docs/fit.md). For
 * each case and part it prints how many runs are exact, and the run that is farthest off. For each reason that a case
 * fails it prints a line with FAILED, the first of its kind with the run. "N passed, N failed" is last.
 *
 * A case fails when one of these holds over its runs. Exact are to be parameters, weights of a buffer, the cache and
 * the output buffer; one of them is not. The compute buffer is off, in runs with all layers on one device (or on the
 * host). Where gm knows the order of operations it is exact in 99 of 100 runs and within 3 % in the rest. Where gm has
 * a formula it is within 30 %. The total is off by more than 2 % in such a run with all layers on the device. A
 * measured total is outside the interval. */
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fit/fit_case.h"

enum {
  FIT_WEIGHTS,
  FIT_KV,
  FIT_OUTPUT,
  FIT_INPUTS,
  FIT_COMPUTE_DEVICE,
  FIT_COMPUTE_HOST,
  FIT_SPLIT,
  FIT_TOTAL,
  FIT_PARTS
};

/* The results of one part of a case over all runs. */
typedef struct fit_part {
  const char *name;
  uint64_t runs, exact;
  uint64_t predicted, measured; /* of the run that is farthest off */
  json_object *farthest;
  double error, lowest, highest;
} fit_part;

typedef struct fit_result {
  fit_part parts[FIT_PARTS];
  gm_estimate_method method;
  json_object *run; /* at hand */
  uint64_t outside; /* totals outside the interval */
  uint64_t unreadable, refused;
  uint64_t reasons; /* why the case fails; each was printed */
} fit_result;

/* A case fails by this alone, so that it never fails without a reason. `run` may be NULL. */
static void fit_failed(fit_result *result, json_object *run, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void fit_failed(fit_result *result, json_object *run, const char *format, ...) {
  va_list args;
  va_start(args, format);
  printf("  FAILED ");
  vprintf(format, args);
  va_end(args);
  if (run) printf(", in run %s", json_object_to_json_string_ext(run, JSON_C_TO_STRING_PLAIN));
  printf("\n");
  result->reasons++;
}

static double fit_magnitude(double value) { return value < 0 ? -value : value; }

static void fit_count(fit_result *result, int index, uint64_t predicted, uint64_t measured) {
  fit_part *part = &result->parts[index];
  double error = measured ? ((double)predicted - (double)measured) / (double)measured : predicted ? 1.0 : 0.0;
  if (part->runs == 0 || fit_magnitude(error) > fit_magnitude(part->error)) {
    part->predicted = predicted;
    part->measured = measured;
    part->farthest = result->run;
    part->error = error;
  }
  if (error < part->lowest) part->lowest = error;
  if (error > part->highest) part->highest = error;
  part->runs++;
  part->exact += predicted == measured;
}

static void fit_compare_compute(fit_result *result, const gm_estimate_settings *settings,
                                const gm_memory_estimate *estimate, const fit_buffers *measured) {
  const uint64_t *compute = measured->compute;
  if (settings->place == GM_ESTIMATE_HOST) {
    fit_count(result, FIT_COMPUTE_HOST, estimate->host_compute.bytes, compute[FIT_HOST]);
  } else if (settings->place == GM_ESTIMATE_DEVICE && !settings->kv_on_host) {
    fit_count(result, FIT_INPUTS, estimate->host_compute.bytes, compute[FIT_HOST]);
    fit_count(result, FIT_COMPUTE_DEVICE, estimate->device_compute.bytes, compute[FIT_DEVICE]);
    fit_count(result, FIT_TOTAL, estimate->total.bytes, measured->total);
  } else {
    fit_count(result, FIT_SPLIT, estimate->total.bytes, measured->total);
  }
  if (estimate->method != GM_ESTIMATE_FORMULA || settings->place == GM_ESTIMATE_DEVICE) {
    if (!settings->kv_on_host) result->method = estimate->method;
  }
}

static void fit_compare(fit_result *result, const gm_estimate_settings *settings, const gm_memory_estimate *estimate) {
  bool has_output = false;
  fit_buffers measured = fit_run_measured(result->run, &has_output);
  fit_count(result, FIT_WEIGHTS, estimate->host_weights, measured.weights[FIT_HOST]);
  fit_count(result, FIT_WEIGHTS, estimate->device_weights, measured.weights[FIT_DEVICE]);
  fit_count(result, FIT_KV, estimate->host_kv, measured.kv[FIT_HOST]);
  fit_count(result, FIT_KV, estimate->device_kv, measured.kv[FIT_DEVICE]);
  if (has_output) fit_count(result, FIT_OUTPUT, estimate->output, measured.output);
  fit_compare_compute(result, settings, estimate, &measured);
  if (measured.total >= estimate->total.low && measured.total <= estimate->total.high) return;
  if (result->outside++ > 0) return;
  fit_failed(result, result->run, "total: %llu is outside %llu..%llu", (unsigned long long)measured.total,
             (unsigned long long)estimate->total.low, (unsigned long long)estimate->total.high);
}

static void fit_run(const fit_case *fit, json_object *run, fit_result *result) {
  result->run = run;
  const char *problem = fit_run_problem(run);
  if (problem) {
    if (result->unreadable++ == 0) fit_failed(result, run, "measured.json: `%s` is missing or not understood", problem);
    return;
  }
  gm_estimate_settings settings = fit_run_settings(run);
  gm_memory_estimate estimate = {.struct_size = sizeof estimate};
  gm_error err = {.status = GM_OK};
  if (gm_estimate_memory(NULL, &fit->config, fit->model, &settings, &estimate, &err) == GM_OK) {
    fit_compare(result, &settings, &estimate);
  } else if (result->refused++ == 0) {
    fit_failed(result, run, "no estimate: %s", err.message);
  }
}

/* ---- verdict ---- */

static void fit_demand(fit_result *result, int index, bool is_met, const char *demand) {
  const fit_part *part = &result->parts[index];
  if (is_met) return;
  fit_failed(result, part->farthest, "%s: %s; predicted %llu, measured %llu", part->name, demand,
             (unsigned long long)part->predicted, (unsigned long long)part->measured);
}

static void fit_demand_exact(fit_result *result, int index) {
  fit_demand(result, index, result->parts[index].exact == result->parts[index].runs, "not exact");
}

static void fit_judge_compute(fit_result *result, int index) {
  const fit_part *part = &result->parts[index];
  double most = result->method == GM_ESTIMATE_FORMULA ? 0.30 : 0.03;
  fit_demand(result, index, fit_magnitude(part->error) <= most, "too far off");
  if (result->method == GM_ESTIMATE_FORMULA) return;
  fit_demand(result, index, part->exact * 100 >= part->runs * 99, "not exact in 99 of 100 runs");
}

static void fit_judge_parameters(const fit_case *fit, fit_result *result) {
  uint64_t told = fit_number(json_object_object_get(fit->measured, "model"), "n_params");
  gm_memory_estimate estimate = {.struct_size = sizeof estimate};
  gm_error err = {.status = GM_OK};
  if (gm_estimate_memory(NULL, &fit->config, fit->model, NULL, &estimate, &err) != GM_OK) {
    fit_failed(result, NULL, "parameters: no estimate: %s", err.message);
    return;
  }
  printf("  %-16s %14llu of %llu\n", "parameters", (unsigned long long)estimate.parameters, (unsigned long long)told);
  if (estimate.parameters != told) fit_failed(result, NULL, "parameters: not exact");
}

static void fit_judge(const fit_case *fit, fit_result *result) {
  fit_judge_parameters(fit, result);
  for (int i = FIT_WEIGHTS; i <= FIT_OUTPUT; i++) fit_demand_exact(result, i);
  if (result->method == GM_ESTIMATE_INTERVAL) return;
  fit_judge_compute(result, FIT_COMPUTE_DEVICE);
  fit_judge_compute(result, FIT_COMPUTE_HOST);
  fit_demand_exact(result, FIT_INPUTS);
  fit_demand(result, FIT_TOTAL, fit_magnitude(result->parts[FIT_TOTAL].error) <= 0.02, "off by more than 2 %");
}

static void fit_print(const fit_result *result) {
  for (int i = 0; i < FIT_PARTS; i++) {
    const fit_part *part = &result->parts[i];
    if (part->runs == 0) continue;
    printf("  %-16s %4llu of %4llu exact, %+.2f..%+.2f %%; farthest: predicted %llu, measured %llu\n", part->name,
           (unsigned long long)part->exact, (unsigned long long)part->runs, 100 * part->lowest, 100 * part->highest,
           (unsigned long long)part->predicted, (unsigned long long)part->measured);
  }
}

static bool fit_case_run(const char *directory, const char *name) {
  static const char *const methods[] = {"operations", "formula", "interval only"};
  fit_case fit;
  if (!fit_case_open(directory, name, &fit)) return false;
  fit_result result = {.parts = {{.name = "weights"},
                                 {.name = "cache"},
                                 {.name = "output"},
                                 {.name = "host inputs"},
                                 {.name = "device compute"},
                                 {.name = "host compute"},
                                 {.name = "partly offloaded"},
                                 {.name = "total"}}};
  printf("%s (%s)\n", name, fit.config.architecture);
  size_t count = json_object_array_length(fit.runs);
  for (size_t i = 0; i < count; i++) {
    json_object *run = json_object_array_get_idx(fit.runs, i);
    if (fit_run_counts(run)) fit_run(&fit, run, &result);
  }
  fit_print(&result);
  fit_judge(&fit, &result);
  printf("  %-16s %s\n", "by", methods[result.method]);
  fit_case_close(&fit);
  return result.reasons == 0;
}

static int fit_is_case(const struct dirent *entry) { return entry->d_name[0] != '.'; }

int main(int argc, char **argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: gm_fit_cases DIR\n");
    return 2;
  }
  struct dirent **names;
  int count = scandir(argv[1], &names, fit_is_case, alphasort);
  if (count < 0) {
    fprintf(stderr, "gm_fit_cases: %s: %s\n", argv[1], strerror(errno));
    return 1;
  }
  int passed = 0;
  for (int i = 0; i < count; i++) {
    passed += fit_case_run(argv[1], names[i]->d_name);
    free(names[i]);
  }
  free(names);
  printf("%d passed, %d failed\n", passed, count - passed);
  if (count == 0) printf("FAILED %s: no case in it\n", argv[1]);
  return count > 0 && passed == count ? 0 : 1;
}
