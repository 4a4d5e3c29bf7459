/* gm_cts: the conformance suite on each device of each backend.
 *
 * main_help has the command line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cts/modes.h"

typedef struct main_options {
  const char *backend, *mode, *name, *module;
  long device; /* -1: all */
  bool list, verbose, help, driver_prints;
} main_options;

typedef struct main_counts {
  unsigned passed, failed, skipped, expected, devices;
} main_counts;

/* The cases that a device skipped, told at its end, reason by reason. */
enum { MAIN_SKIPS = 128 };
typedef struct main_skips {
  unsigned count;
  const char *names[MAIN_SKIPS];
  char why[MAIN_SKIPS][120];
} main_skips;

static main_skips main_skipped;

static const cts_suite *const main_suites[] = {
    &cts_info_suite, &cts_memory_suite, &cts_mapping_suite, &cts_stream_suite,    &cts_copy_suite,
    &cts_rect_suite, &cts_thread_suite, &cts_vmm_suite,     &cts_lifecycle_suite, &cts_adopt_suite,
    &cts_peer_suite, &cts_share_suite,  &cts_point_suite,   &cts_output_suite,    &cts_kernel_suite,
};
enum { MAIN_SUITES = sizeof main_suites / sizeof main_suites[0] };

/* "mapping." stands for every case that begins so. */
static bool main_names(const char *what, const char *name) {
  const size_t length = strlen(what);
  return length && what[length - 1] == '.' ? strncmp(what, name, length) == 0 : strcmp(what, name) == 0;
}

static const char *main_reason(const cts_reason *list, const char *name) {
  for (; list && list->what; list++) {
    if (main_names(list->what, name)) return list->why;
  }
  return NULL;
}

static void main_skip(main_counts *counts, const char *name, const char *why) {
  main_skips *skips = &main_skipped;
  counts->skipped++;
  if (skips->count == MAIN_SKIPS) return;
  skips->names[skips->count] = name;
  snprintf(skips->why[skips->count++], sizeof skips->why[0], "%s", why);
}

static void main_tell_skips(void) {
  main_skips *skips = &main_skipped;
  for (unsigned i = 0; i < skips->count; i++) {
    if (!skips->names[i]) continue;
    printf("  skipped, %s:", skips->why[i]);
    for (unsigned j = i; j < skips->count; j++) {
      if (!skips->names[j] || (j > i && strcmp(skips->why[i], skips->why[j]) != 0)) continue;
      printf(" %s", skips->names[j]);
      if (j > i) skips->names[j] = NULL;
    }
    printf("\n");
  }
  skips->count = 0;
}

static void main_judge(cts *t, const cts_case *one, const main_options *options, main_counts *counts) {
  const char *expected = main_reason(t->mode->expected_failures, one->name);
  if (expected && t->failed) {
    counts->expected++;
    printf("  known %s: %s (%s)\n", one->name, expected, t->why);
  } else if (expected) {
    counts->failed++;
    printf("  FAIL %s: passes, although it is listed as failing because: %s\n", one->name, expected);
  } else if (t->failed) {
    counts->failed++;
    printf("  FAIL %s: %s\n", one->name, t->why);
  } else if (t->skipped) {
    main_skip(counts, one->name, t->why);
  } else {
    counts->passed++;
    if (options->verbose) printf("  ok   %s\n", one->name);
  }
  fflush(stdout);
}

static void main_case(cts *t, const cts_case *one, const main_options *options, main_counts *counts) {
  if (options->name && !main_names(options->name, one->name)) return;
  const char *missing = cts_missing(t, one->needs);
  if (!missing) missing = main_reason(t->mode->unsupported, one->name);
  if (missing) {
    main_skip(counts, one->name, missing);
    return;
  }
  t->name = one->name;
  t->failed = false;
  t->random = 20251120;
  bool ran = false; /* with one type at least: then the types that lack something do not make it a skip */
  const uint32_t types = one->needs & CTS_EACH_TYPE ? t->type_count : 1;
  for (t->type = 0; t->type < types && !t->failed; t->type++) {
    t->skipped = false;
    cts_guard_begin(one->name);
    one->run(t);
    cts_clean(t, GM_CLOSE_NORMAL);
    cts_guard_end(t, options->driver_prints);
    ran = ran || !t->skipped;
  }
  t->skipped = !ran;
  main_judge(t, one, options, counts);
}

static void main_fail(cts *t, const char *what, main_counts *counts) {
  counts->failed++;
  printf("  FAIL %s: %s\n", what, t->why);
}

static void main_device(cts *t, uint32_t index, const main_options *options, main_counts *counts) {
  t->skipped = t->failed = false;
  if (!cts_open(t, index)) {
    if (t->skipped) printf("%s %s [%u]: not tested: %s\n", t->mode->backend, t->mode->name, index, t->why);
    if (t->skipped) return;
    main_fail(t, "opening the device", counts);
    return;
  }
  counts->devices++;
  printf("%s %s [%u] %s%s\n", t->mode->backend, t->mode->name, index, t->info.name,
         t->info.simulated ? " (simulated)" : "");
  for (size_t i = 0; i < MAIN_SUITES; i++) {
    for (uint32_t j = 0; j < main_suites[i]->count; j++) main_case(t, &main_suites[i]->cases[j], options, counts);
  }
  main_tell_skips();
  cts_close(t, GM_CLOSE_NORMAL);
}

static void main_devices(cts *t, const main_options *options, main_counts *counts) {
  uint32_t count = 0;
  if (!cts_status(t, t->ops->device_count(t->driver, &count, &t->err), GM_OK, "device_count", __FILE__, __LINE__)) {
    main_fail(t, "counting the devices", counts);
  }
  for (uint32_t i = 0; i < count; i++) {
    if (options->device < 0 || options->device == (long)i) main_device(t, i, options, counts);
  }
}

/* The things that the backend has left behind: host memory, engine objects that did not survive, validation
 * messages. */
static void main_leftovers(cts *t, main_counts *counts) {
  const long long bytes = atomic_load(&t->heap.live_bytes);
  if (bytes) {
    snprintf(t->why, sizeof t->why, "%lld bytes of host memory are left", bytes);
    main_fail(t, "closing the driver", counts);
  }
  const uint32_t bad = t->mode->finish ? t->mode->finish(t) : 0;
  if (bad) main_fail(t, "the end", counts);
}

static void main_mode(const cts_mode *mode, const main_options *options, main_counts *counts) {
  static cts t;
  const unsigned devices = counts->devices;
  if (!cts_start(&t, mode)) {
    printf("%s %s: not tested: %s\n", mode->backend, mode->name, t.why);
    return;
  }
  main_devices(&t, options, counts);
  cts_stop(&t, GM_CLOSE_NORMAL);
  main_leftovers(&t, counts);
  if (counts->devices == devices) printf("%s %s: no device\n", mode->backend, mode->name);
}

static bool main_required(const char *backend) {
  const char *list = getenv("GM_REQUIRE_BACKENDS");
  const size_t length = strlen(backend);
  while (list && *list) {
    const size_t word = strcspn(list, ",");
    if (word == length && strncmp(list, backend, length) == 0) return true;
    list += word + (list[word] == ',');
  }
  return false;
}

static bool main_wanted(const cts_mode *mode, const main_options *options) {
  return (!options->backend || strcmp(options->backend, mode->backend) == 0) &&
         (!options->mode || strcmp(options->mode, mode->name) == 0);
}

static void main_modes(const main_options *options, main_counts *counts) {
  bool matched = false;
  for (const cts_mode *const *mode = cts_modes(); *mode; mode++) {
    if (!main_wanted(*mode, options)) continue;
    matched = true;
    const unsigned devices = counts->devices;
    main_mode(*mode, options, counts);
    if (counts->devices > devices || options->device >= 0 || !main_required((*mode)->backend)) continue;
    counts->failed++;
    printf("  FAIL %s %s: GM_REQUIRE_BACKENDS names it, and there is no device\n", (*mode)->backend, (*mode)->name);
  }
  if (!matched && options->backend && main_required(options->backend)) {
    counts->failed++;
    printf("  FAIL %s: GM_REQUIRE_BACKENDS names it, and it is not built\n", options->backend);
  }
}

static int main_list(void) {
  for (const cts_mode *const *mode = cts_modes(); *mode; mode++) printf("%s %s\n", (*mode)->backend, (*mode)->name);
  for (size_t i = 0; i < MAIN_SUITES; i++) {
    for (uint32_t j = 0; j < main_suites[i]->count; j++) printf("  %s\n", main_suites[i]->cases[j].name);
  }
  return 0;
}

static const char main_help[] =
    "usage: gm_cts [--backend B] [--mode M] [--device I] [--case NAME] [--module FILE] [--driver-prints] [--list] "
    "[--verbose]\n"
    "\n"
    "The conformance suite of backends: it calls the entries of gm_backend_ops (gm/backend.h) on each device.\n"
    "\n"
    "  --module FILE   test the backend of a shared object that exports gm_backend_module, and no other\n"
    "  --backend B     test gm's own backend B alone: cpu, null, cuda, hip, opencl, vulkan\n"
    "  --mode M        one way to get its devices: opened, adopted, ...; see --list\n"
    "  --device I      the device with that index alone\n"
    "  --case NAME     one case; \"point.\" stands for all cases that begin so\n"
    "  --driver-prints show what is printed, but let it fail no case: some drivers print by themselves\n"
    "  --list          list the backends with their modes, and the cases\n"
    "  --verbose       name the cases that pass, too\n"
    "\n"
    "GM_<BACKEND>_LIBRARY and GM_<BACKEND>_OPTIONS reach the backend as they do in gm. A backend that\n"
    "GM_REQUIRE_BACKENDS names (\"cpu,opencl\") fails if it has no device.\n"
    "\n"
    "The last line is \"N passed, N failed\". Exit status: 0 all passed, 1 a case failed, 2 a wrong command line,\n"
    "77 nothing was tested: no device, or no case that the device can take.\n";

static int main_usage(void) {
  fprintf(stderr, "%.*s", (int)strcspn(main_help, "\n") + 1, main_help);
  fprintf(stderr, "gm_cts --help says more\n");
  return 2;
}

/* Is the name in the list of backends, modes or cases? Says so if it is not. */
static bool main_known(const char *what, const char *name, bool known) {
  if (!name || known) return true;
  fprintf(stderr, "gm_cts: there is no %s `%s`; --list has the names\n", what, name);
  return false;
}

static bool main_case_is_there(const char *name) {
  for (size_t i = 0; name && i < MAIN_SUITES; i++) {
    for (uint32_t j = 0; j < main_suites[i]->count; j++) {
      if (main_names(name, main_suites[i]->cases[j].name)) return true;
    }
  }
  return false;
}

/* A backend that is not in this build is known all the same. */
static bool main_names_are_known(const main_options *options) {
  static const char *const backends[] = {"cpu", "null", "cuda", "hip", "opencl", "vulkan"};
  bool backend = false, mode = options->module != NULL, built = false;
  for (size_t i = 0; options->backend && i < sizeof backends / sizeof backends[0]; i++) {
    backend = backend || strcmp(backends[i], options->backend) == 0;
  }
  for (const cts_mode *const *at = cts_modes(); *at; at++) {
    if (options->backend && strcmp(options->backend, (*at)->backend) != 0) continue;
    built = true;
    mode = mode || (options->mode && strcmp(options->mode, (*at)->name) == 0);
  }
  return main_known("case", options->name, main_case_is_there(options->name)) &&
         main_known("backend", options->backend, backend) && main_known("mode", options->mode, mode || !built);
}

static bool main_parse_device(const char *value, long *out) {
  char *end = NULL;
  *out = strtol(value, &end, 10);
  return end != value && !*end && *out >= 0 && *out <= UINT16_MAX;
}

static bool main_parse(int argc, char **argv, main_options *options) {
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (strcmp(argv[i], "--list") == 0) {
      options->list = true;
    } else if (strcmp(argv[i], "--driver-prints") == 0) {
      options->driver_prints = true;
    } else if (strcmp(argv[i], "--help") == 0) {
      options->help = true;
    } else if (strcmp(argv[i], "--verbose") == 0) {
      options->verbose = true;
    } else if (!value) {
      return false;
    } else {
      i++;
      if (strcmp(argv[i - 1], "--backend") == 0)
        options->backend = value;
      else if (strcmp(argv[i - 1], "--mode") == 0)
        options->mode = value;
      else if (strcmp(argv[i - 1], "--case") == 0)
        options->name = value;
      else if (strcmp(argv[i - 1], "--module") == 0)
        options->module = value;
      else if (strcmp(argv[i - 1], "--device") != 0 || !main_parse_device(value, &options->device))
        return false;
    }
  }
  return true;
}

int main(int argc, char **argv) {
  main_options options = {.device = -1};
  main_counts counts = {0};
  cts_mode module;
  char why[256];
  if (!main_parse(argc, argv, &options)) return main_usage();
  if (options.help) return fputs(main_help, stdout) < 0;
  if (options.list) return main_list();
  if (!main_names_are_known(&options)) return 2;
  if (!cts_guard_start()) {
    fprintf(stderr, "gm_cts: the system gives no file of memory\n");
    return 1;
  }
  if (options.module && !cts_module(options.module, &module, why, sizeof why)) {
    fprintf(stderr, "gm_cts: %s\n", why);
    return 1;
  }
  if (options.module)
    main_mode(&module, &options, &counts);
  else
    main_modes(&options, &counts);
  printf("%u skipped, %u known to fail, %u devices\n", counts.skipped, counts.expected, counts.devices);
  printf("%u passed, %u failed\n", counts.passed, counts.failed);
  if (counts.failed) return 1;
  return counts.passed + counts.expected ? 0 : 77;
}
