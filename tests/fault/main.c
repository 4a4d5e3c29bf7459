/* gm_fault_sweep: the N-th failure of everything.
 *
 *   gm_fault_sweep [--backend B] [--scenario S] [--host|--driver|--lost] [--all] [--verbose]
 *
 * For each backend and scenario every request for host memory fails once. The first, second, third and last call of
 * every driver entry that the scenario makes fail once (--all: every call). After each failure there is an error or a
 * success, never a crash. Everything can be closed, all host memory and all driver objects are back, and the same
 * scenario then works. Most scenarios open context, device and pool in the same way. Failures of these calls are
 * played where the scenario is about opening, with --all, and in a scenario that was named. The others begin with what
 * comes after. Under AddressSanitizer every fault is played, and the scenario works again after every few of them.
 * Other builds play a sample of the faults (support/sample.h), and try the scenario after each. --all plays and tries
 * all of them. --lost: from one call on, every call of the driver answers that the device is lost. That call moves
 * through the scenario. The memory that the driver has is then not counted. Prints "N passed, N failed" last; exit
 * code 0 when none failed, 77 when there was nothing to sweep, 2 bad usage. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fault/fault.h"
#include "fault/scenario.h"
#include "support/safetensors_bytes.h"
#include "support/sample.h"
#include "support/temp_folder.h"

static const char *const sweep_backends[] = {"cpu", "null", "cuda", "hip", "opencl", "vulkan"};
enum { SWEEP_BACKENDS = sizeof sweep_backends / sizeof sweep_backends[0] };

typedef struct sweep {
  const char *backend, *scenario;
  bool all, host, driver, lost, verbose;
  const char *model, *trace;
  unsigned host_from, from[FAULT_ENTRIES_MAX]; /* the scenario's calls up to these are swept elsewhere */
  unsigned passed, failed, backends;
  unsigned untried; /* faults since the scenario worked */
} sweep;

typedef struct outcome {
  gm_status status, ended;
  gm_error err;
  unsigned host_calls, driver_calls;
  long long host_live;
  long driver_live;
} outcome;

static outcome sweep_run(const sweep *w, const scenario *what, const char *backend, const fault_plan *plan) {
  outcome got = {.err = {.message = ""}};
  fault_driver *driver = fault_driver_of(backend);
  session s = {.backend = backend, .model = w->model, .trace = w->trace};
  fault_reset();
  fault_now = *plan;
  got.status = what->run(&s, &got.err);
  got.host_calls = atomic_load(&fault_host_calls);
  gm_error at_end;
  got.ended = session_end(&s, &at_end);
  if (got.ended) got.err = at_end;
  fault_now = (fault_plan){0};
  /* Drivers' threads let go of an event a little after its work is done. */
  const struct timespec pause = {.tv_nsec = 2000000};
  for (int i = 0; driver && !plan->lost_call && atomic_load(&driver->live) != 0 && i < 100; i++)
    nanosleep(&pause, NULL);
  got.driver_calls = driver ? atomic_load(&driver->all) : 0;
  got.host_live = atomic_load(&fault_host_live);
  got.driver_live = driver ? atomic_load(&driver->live) : 0;
  return got;
}

/* The fault in how a run ended; NULL: none. */
static const char *sweep_judge(const outcome *got, const fault_plan *plan) {
  if (got->ended) return "something cannot be closed afterwards";
  if (got->host_live) return "host memory is left";
  if (got->driver_live && !plan->lost_call) return "driver objects made and given back do not match";
  if (got->status == GM_ERR_FORMAT) return "wrong bytes";
  if (got->status && !gm_status_text(got->status)[0]) return "no status";
  if (got->status && plan->host_call && got->status != GM_ERR_OUT_OF_HOST_MEMORY) return "not said to be host memory";
  if (got->status && !got->err.message[0]) return "no reason is given";
  return NULL;
}

static void sweep_report(sweep *w, const char *backend, const scenario *what, const fault_plan *plan,
                         const outcome *got, const char *wrong) {
  if (!wrong) w->passed++;
  if (wrong) w->failed++;
  if (!wrong && !w->verbose) return;
  printf("%s %s %s", wrong ? "FAIL" : "ok  ", backend, what->name);
  if (plan->host_call) printf(", host allocation %u", plan->host_call);
  if (plan->call) printf(", call %u of %s as %d", plan->call, plan->driver->names[plan->entry], plan->code);
  if (plan->lost_call) printf(", lost from call %u on", plan->lost_call);
  printf(": %s%s(%s: %s; %lld bytes, %ld objects left)\n", wrong ? wrong : "", wrong ? " " : "",
         gm_status_name(got->ended ? got->ended : got->status), got->err.message, got->host_live, got->driver_live);
  fflush(stdout);
}

/* The scenario without a fault. Returns what is wrong, and how it ended. */
static const char *sweep_try(sweep *w, const char *backend, const scenario *what, outcome *got) {
  const fault_plan none = {0};
  const outcome again = sweep_run(w, what, backend, &none);
  const bool good = !again.status && !sweep_judge(&again, &none);
  if (!good) *got = again;
  if (!good && w->untried > 1) printf("one of the last %u faults, up to this one:\n", w->untried);
  w->untried = 0;
  return good ? NULL : "the next try does not work";
}

/* One fault, then the same without: after each fault, or by chance after one in four. */
static void sweep_one(sweep *w, const char *backend, const scenario *what, const fault_plan *plan) {
  if (!w->all && !sample_takes(4)) return;
  outcome got = sweep_run(w, what, backend, plan);
  const char *wrong = sweep_judge(&got, plan);
  w->untried++;
  const bool now = w->all || !SAMPLE_IS_FULL || sample_random() % 4 == 0;
  if (!wrong && now) wrong = sweep_try(w, backend, what, &got);
  atomic_store(&fault_host_live, 0);
  sweep_report(w, backend, what, plan, &got, wrong);
}

/* The faults after which nothing was tried yet. */
static void sweep_last(sweep *w, const char *backend, const scenario *what) {
  outcome got = {.err = {.message = ""}};
  if (!w->untried) return;
  const char *wrong = sweep_try(w, backend, what, &got);
  atomic_store(&fault_host_live, 0);
  if (wrong) sweep_report(w, backend, what, &(fault_plan){0}, &got, wrong);
}

static void sweep_host(sweep *w, const char *backend, const scenario *what, unsigned calls) {
  for (unsigned n = w->host_from + 1; n <= calls; n++) {
    const fault_plan plan = {.host_call = n};
    sweep_one(w, backend, what, &plan);
  }
}

/* Whether the call, counted from the first that is swept, fails once. */
static bool sweep_picks(const sweep *w, unsigned call, unsigned calls) { return w->all || call <= 3 || call == calls; }

static void sweep_driver(sweep *w, const char *backend, const scenario *what, const unsigned *calls) {
  const fault_driver *driver = fault_driver_of(backend);
  unsigned turn = 0;
  for (unsigned entry = 0; entry < driver->count; entry++) {
    const unsigned from = w->from[entry];
    for (unsigned call = from + 1; call <= calls[entry] && driver->can_fail[entry]; call++) {
      if (!sweep_picks(w, call - from, calls[entry] - from)) continue;
      if (!driver->codes[turn]) turn = 0;
      const fault_plan plan = {.driver = driver, .entry = entry, .call = call, .code = driver->codes[turn++]};
      sweep_one(w, backend, what, &plan);
    }
  }
}

/* At some forty places, the first calls among them. */
static void sweep_lost(sweep *w, const char *backend, const scenario *what, unsigned calls) {
  const fault_driver *driver = fault_driver_of(backend);
  const unsigned step = w->all ? 1 : calls / 32 + 1;
  for (unsigned call = 1; call <= calls; call += call < 8 ? 1 : step) {
    const fault_plan plan = {.driver = driver, .code = driver->lost, .lost_call = call};
    sweep_one(w, backend, what, &plan);
  }
}

/* Where the sweep begins, by what the run that was just made called. */
static void sweep_begin(sweep *w, const scenario *what, const fault_driver *driver) {
  const bool whole = what->opens || w->all || w->scenario;
  w->host_from = whole ? 0 : fault_host_opened;
  for (unsigned i = 0; driver && i < driver->count; i++) w->from[i] = whole ? 0 : driver->opened[i];
}

static void sweep_scenario(sweep *w, const char *backend, const scenario *what) {
  const fault_plan none = {0};
  unsigned calls[FAULT_ENTRIES_MAX] = {0};
  sweep_run(w, what, backend, &none); /* drivers set up more in the first run than in any other */
  const outcome plain = sweep_run(w, what, backend, &none);
  const char *wrong = plain.status ? "does not work without a fault" : sweep_judge(&plain, &none);
  sweep_report(w, backend, what, &none, &plain, wrong);
  if (wrong) return;
  const fault_driver *driver = fault_driver_of(backend);
  for (unsigned i = 0; driver && i < driver->count; i++) calls[i] = atomic_load(&driver->calls[i]);
  sweep_begin(w, what, driver);
  if (w->lost && driver) sweep_lost(w, backend, what, plain.driver_calls);
  if (w->host && !(what->of_no_backend && strcmp(backend, "cpu") != 0)) sweep_host(w, backend, what, plain.host_calls);
  if (w->driver && driver) sweep_driver(w, backend, what, calls);
  sweep_last(w, backend, what);
}

static bool sweep_has(const sweep *w, const char *backend, gm_error *err) {
  session s = {.backend = backend, .model = w->model};
  gm_status status = gm_context_create(NULL, &s.ctx, err);
  if (status == GM_OK) status = gm_device_open_index(s.ctx, backend, 0, &s.device, err);
  session_end(&s, NULL);
  return status == GM_OK;
}

static void sweep_backend(sweep *w, const char *backend) {
  gm_error err;
  const char *required = getenv("GM_REQUIRE_BACKENDS");
  if (!sweep_has(w, backend, &err)) {
    const bool must = required && strstr(required, backend);
    w->failed += must;
    printf("%s %s: no device: %s\n", must ? "FAIL" : "not swept", backend, err.message);
    return;
  }
  w->backends++;
  for (unsigned i = 0; i < scenario_count; i++) {
    if (w->scenario && strcmp(w->scenario, scenarios[i].name) != 0) continue;
    if (scenarios[i].only && strcmp(scenarios[i].only, backend) != 0) continue;
    if (scenarios[i].needs_contents && strcmp(backend, "null") == 0) continue;
    const unsigned passed = w->passed, failed = w->failed;
    sweep_scenario(w, backend, &scenarios[i]);
    printf("%s %s: %u passed, %u failed\n", backend, scenarios[i].name, w->passed - passed, w->failed - failed);
    fflush(stdout);
  }
}

static bool sweep_parse(int argc, char **argv, sweep *w) {
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--all") == 0)
      w->all = true;
    else if (strcmp(argv[i], "--host") == 0)
      w->driver = false;
    else if (strcmp(argv[i], "--driver") == 0)
      w->host = false;
    else if (strcmp(argv[i], "--lost") == 0)
      w->lost = !(w->host = w->driver = false);
    else if (strcmp(argv[i], "--verbose") == 0)
      w->verbose = true;
    else if (strcmp(argv[i], "--backend") == 0 && i + 1 < argc)
      w->backend = argv[++i];
    else if (strcmp(argv[i], "--scenario") == 0 && i + 1 < argc)
      w->scenario = argv[++i];
    else
      return false;
  }
  return true;
}

/* A name that stands for nothing would sweep nothing, and pass. */
static bool sweep_names_exist(const sweep *w) {
  bool has_backend = !w->backend, has_scenario = !w->scenario;
  for (unsigned i = 0; i < SWEEP_BACKENDS && !has_backend; i++)
    has_backend = strcmp(w->backend, sweep_backends[i]) == 0;
  for (unsigned i = 0; i < scenario_count && !has_scenario; i++)
    has_scenario = strcmp(w->scenario, scenarios[i].name) == 0;
  if (!has_backend) fprintf(stderr, "gm_fault_sweep: \"%s\" is no backend that is swept\n", w->backend);
  if (!has_scenario) fprintf(stderr, "gm_fault_sweep: there is no scenario \"%s\", but:", w->scenario);
  for (unsigned i = 0; i < scenario_count && !has_scenario; i++) fprintf(stderr, " %s", scenarios[i].name);
  if (!has_scenario) fprintf(stderr, "\n");
  return has_backend && has_scenario;
}

static const char *sweep_model(temp_folder *folder) {
  static const char header[] =
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[1500],\"data_offsets\":[0,6000]},"
      "\"b\":{\"dtype\":\"U8\",\"shape\":[3,5],\"data_offsets\":[6000,6015]},"
      "\"c\":{\"dtype\":\"F16\",\"shape\":[0],\"data_offsets\":[6015,6015]}} ";
  safetensors_bytes file = safetensors_bytes_make(header, strlen(header), 6015, 1);
  const char *path = temp_folder_write(folder, "model.safetensors", file.bytes, file.length);
  safetensors_bytes_free(&file);
  return path;
}

int main(int argc, char **argv) {
  static temp_folder folder;
  sweep w = {.host = true, .driver = true};
  if (!sweep_parse(argc, argv, &w)) {
    fprintf(stderr,
            "usage: gm_fault_sweep [--backend B] [--scenario S] [--host|--driver|--lost] [--all] [--verbose]\n");
    return 2;
  }
  if (!sweep_names_exist(&w)) return 2;
  temp_folder_make(&folder);
  w.model = sweep_model(&folder);
  w.trace = temp_folder_join(&folder, "a.gmtrace");
  for (unsigned i = 0; i < SWEEP_BACKENDS; i++) {
    if (!w.backend || strcmp(w.backend, sweep_backends[i]) == 0) sweep_backend(&w, sweep_backends[i]);
  }
  temp_folder_remove(&folder);
  printf("%u passed, %u failed\n", w.passed, w.failed);
  if (w.failed) return 1;
  return w.backends ? 0 : 77;
}
