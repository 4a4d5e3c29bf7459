/* gm_cts: the conformance suite on each device of each backend.
 *
 *   gm_cts [--backend B] [--mode M] [--device I] [--case NAME] [--module FILE] [--list] [--verbose]
 *
 * Prints "N passed, N failed" last; exit code 0 when none failed, 77 when there was no device to test, 2 bad usage.
 * A backend named in GM_REQUIRE_BACKENDS ("cpu,opencl") that has no device is a failure. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cts/modes.h"

typedef struct main_options {
  const char *backend, *mode, *name, *module;
  long device; /* -1: all */
  bool list, verbose;
} main_options;

typedef struct main_counts {
  unsigned passed, failed, skipped, expected, devices;
} main_counts;

/* What a device skipped, told at its end, reason by reason. */
enum { MAIN_SKIPS = 128 };
typedef struct main_skips {
  unsigned count;
  const char *names[MAIN_SKIPS];
  char why[MAIN_SKIPS][120];
} main_skips;

static main_skips main_skipped;

static const cts_suite *const main_suites[] = {
    &cts_info_suite,   &cts_memory_suite, &cts_mapping_suite,   &cts_stream_suite, &cts_copy_suite, &cts_rect_suite,
    &cts_thread_suite, &cts_vmm_suite,    &cts_lifecycle_suite, &cts_adopt_suite,  &cts_peer_suite, &cts_share_suite,
};
enum { MAIN_SUITES = sizeof main_suites / sizeof main_suites[0] };

/* "mapping." stands for every case that begins so. */
static const char *main_reason(const cts_reason *list, const char *name) {
  for (; list && list->what; list++) {
    const size_t length = strlen(list->what);
    if (list->what[length - 1] == '.' ? strncmp(list->what, name, length) == 0 : strcmp(list->what, name) == 0) {
      return list->why;
    }
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
  if (options->name && strcmp(options->name, one->name) != 0) return;
  const char *missing = cts_missing(t, one->needs);
  if (!missing) missing = main_reason(t->mode->unsupported, one->name);
  if (missing) {
    main_skip(counts, one->name, missing);
    return;
  }
  t->name = one->name;
  t->failed = t->skipped = false;
  t->random = 20251120;
  const uint32_t types = one->needs & CTS_EACH_TYPE ? t->type_count : 1;
  for (t->type = 0; t->type < types && !t->failed && !t->skipped; t->type++) {
    one->run(t);
    cts_clean(t, GM_CLOSE_NORMAL);
  }
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

/* What the backend has left behind: host memory, engine objects that did not survive, validation messages. */
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

static int main_usage(void) {
  fprintf(stderr,
          "usage: gm_cts [--backend B] [--mode M] [--device I] [--case NAME] [--module FILE] [--list] [--verbose]\n");
  return 2;
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
  if (options.list) return main_list();
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
  return counts.devices ? 0 : 77;
}
