/* - gm_bench --peer FILE [--config TEXT] --trace FILE [--runs N [--plain] | --once | --check]
 * - gm_bench --peer FILE [--config TEXT] --micro pair|random|cross [--threads N] [--runs N] [--pairs N]
 *   [--plain]
 * - gm_bench --own
 * metadata|tracking|recording|scale|plain-pair|typed-pair|rare-pair|fixed-pair|future-pair|scope|devices
 *   [--runs N] [--pairs N]
 *
 * One allocator, one case, one process. It prints one "name value" a line, times in nanoseconds. docs/performance.md
 * says what is measured how. With --plain no single event is timed, so that the same instructions run each time. `gmem
 * bench` and scripts/bench run this for every allocator and case. Exit code 1 with a reason on standard error when it
 * cannot, or a check finds blocks that overlap; 2 for bad usage. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/measure/peer.h"
#include "bench/micro/crew.h"
#include "bench/micro/micro.h"
#include "bench/own/own.h"
#include "bench/trace/replay.h"

typedef struct bench_arguments {
  const char *peer, *config, *trace, *micro, *own;
  micro_params params;
  bool once, check;
} bench_arguments;

static int bench_usage(void) {
  fprintf(stderr,
          "usage: gm_bench --peer FILE [--config TEXT] --trace FILE [--runs N [--plain] | --once | --check]\n"
          "       gm_bench --peer FILE [--config TEXT] --micro pair|random|cross [--threads N] [--runs N] [--pairs N]\n"
          "       gm_bench --own "
          "metadata|tracking|recording|scale|plain-pair|typed-pair|rare-pair|fixed-pair|future-pair|scope|devices"
          " [--runs N] [--pairs N]\n");
  return 2;
}

/* 1 to `most`; 0: none of them. */
static unsigned bench_count(const char *text, unsigned long most) {
  char *end;
  unsigned long value = strtoul(text, &end, 10);
  return *end || value > most ? 0 : (unsigned)value;
}

static bool bench_option(bench_arguments *arguments, int option) {
  switch (option) {
    case 'p': arguments->peer = optarg; return true;
    case 'c': arguments->config = optarg; return true;
    case 't': arguments->trace = optarg; return true;
    case 'm': arguments->micro = optarg; return micro_find(optarg) != NULL;
    case 'o': arguments->own = optarg; return own_find(optarg) != NULL;
    case 'n': return (arguments->params.threads = bench_count(optarg, CREW_MOST)) > 0;
    case 'r': return (arguments->params.runs = bench_count(optarg, 1000000)) > 0;
    case 'a': return (arguments->params.pairs = bench_count(optarg, 100000000)) > 0;
    case '1': return (arguments->once = true);
    case 'k': return (arguments->check = true);
    case 'l': return (arguments->params.plain = true);
    default: return false;
  }
}

static bool bench_parse(int argc, char **argv, bench_arguments *out) {
  static const struct option options[] = {
      {"peer", required_argument, NULL, 'p'},  {"config", required_argument, NULL, 'c'},
      {"trace", required_argument, NULL, 't'}, {"micro", required_argument, NULL, 'm'},
      {"own", required_argument, NULL, 'o'},   {"threads", required_argument, NULL, 'n'},
      {"runs", required_argument, NULL, 'r'},  {"pairs", required_argument, NULL, 'a'},
      {"once", no_argument, NULL, '1'},        {"check", no_argument, NULL, 'k'},
      {"plain", no_argument, NULL, 'l'},       {NULL, 0, NULL, 0}};
  for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    if (!bench_option(out, option)) return false;
  }
  bool one_case = !!out->trace + !!out->micro + !!out->own == 1;
  return one_case && optind == argc && (out->peer || out->own);
}

static int bench_trace(const peer_library *peer, const bench_arguments *arguments) {
  bench_events events;
  int result = bench_events_read(arguments->trace, &events);
  if (result == 0 && arguments->check) {
    result = replay_check(peer, &events, stdout);
  } else if (result == 0) {
    result =
        replay_measure(peer, &events, arguments->once ? 0 : arguments->params.runs, !arguments->params.plain, stdout);
  }
  bench_events_free(&events);
  return result;
}

static int bench_work(const bench_arguments *arguments) {
  const micro_params *params = &arguments->params;
  peer_library peer = {.init = NULL};
  if (arguments->own) return own_find(arguments->own)(params->pairs, params->runs, stdout);
  if (peer_open(arguments->peer, arguments->config, &peer) != 0) return -1;
  if (arguments->trace) return bench_trace(&peer, arguments);
  if (params->threads > 1 && !(peer.threads && peer.threads())) {
    fprintf(stderr, "gm_bench: %s: is for one thread\n", arguments->peer);
    return -1;
  }
  return micro_find(arguments->micro)(&peer, params, stdout);
}

/* Peers are not made to be taken down, so nothing of theirs runs at the end. */
int main(int argc, char **argv) {
  bench_arguments arguments = {.config = "", .params = {.threads = 1, .runs = 7, .pairs = 200000}};
  if (!bench_parse(argc, argv, &arguments)) return bench_usage();
  bool failed = bench_work(&arguments) != 0;
  if (fflush(stdout) != 0) failed = true;
  _exit(failed ? 1 : 0);
}
