#include "tests/simulated/cuda/sim_control.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_capture.h"
#include "tests/simulated/cuda/sim_context.h"
#include "tests/simulated/cuda/sim_device.h"
#include "tests/simulated/cuda/sim_event.h"
#include "tests/simulated/cuda/sim_link.h"
#include "tests/simulated/cuda/sim_module.h"
#include "tests/simulated/cuda/sim_name.h"
#include "tests/simulated/cuda/sim_pool.h"
#include "tests/simulated/cuda/sim_queue.h"
#include "tests/simulated/cuda/sim_range.h"
#include "tests/simulated/cuda/sim_stream.h"
#include "tests/simulated/cuda/sim_symbol.h"
#include "tests/simulated/cuda/sim_vmm.h"

typedef struct control_reply {
  char *text;
  size_t capacity, length;
} control_reply;

enum { CONTROL_DONE = 0, CONTROL_BAD = 1, CONTROL_LEAKS = 2 };

__attribute__((format(printf, 2, 3))) static void control_say(control_reply *reply, const char *format, ...) {
  if (reply->length >= reply->capacity) return;
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(reply->text + reply->length, reply->capacity - reply->length, format, arguments);
  va_end(arguments);
  if (length > 0) reply->length += (size_t)length;
}

typedef struct control_figure {
  const char *name;
  uint64_t number;
} control_figure;

/* The figures that a program that cleaned up leaves at 0. */
static size_t control_live(control_figure out[16]) {
  const control_figure figures[] = {
      {"contexts", (uint64_t)sim_context_count(-1)}, {"primary_references", (uint64_t)sim_context_primary_references()},
      {"allocations", sim_range_count(SIM_DEVICE)},  {"pooled", sim_range_count(SIM_POOLED)},
      {"mappings", sim_range_count(SIM_MAPPED)},     {"opened", sim_range_count(SIM_OPENED)},
      {"pinned", sim_range_count(SIM_HOST)},         {"registered", sim_range_count(SIM_REGISTERED)},
      {"managed", sim_range_count(SIM_SHARED)},      {"handles", (uint64_t)sim_vmm_handles()},
      {"reservations", sim_vmm_reservations()},      {"pools", (uint64_t)sim_pool_count()},
      {"streams", (uint64_t)sim_stream_count()},     {"events", (uint64_t)sim_event_count()},
      {"modules", (uint64_t)sim_module_count()},     {"graphs", (uint64_t)sim_capture_graphs()}};
  memcpy(out, figures, sizeof figures);
  return sizeof figures / sizeof figures[0];
}

static int control_statistics(const char *argument, control_reply *reply) {
  control_figure live[16];
  size_t count = control_live(live);
  (void)argument;
  for (size_t i = 0; i < count; i++) control_say(reply, "%s %" PRIu64 "\n", live[i].name, live[i].number);
  control_say(reply, "pending %" PRIu64 "\n", sim_queue_pending());
  control_say(reply, "newest_stream %" PRIu64 "\n", sim_queue_newest());
  control_say(reply, "physical %" PRIu64 "\n", sim_phys_count());
  control_say(reply, "allocation_bytes %" PRIu64 "\n", sim_range_bytes(SIM_DEVICE) + sim_range_bytes(SIM_POOLED));
  control_say(reply, "calls %" PRIu64 "\n", sim_call_total());
  control_say(reply, "dropped_calls %" PRIu64 "\n", sim_call_dropped());
  control_say(reply, "early %" PRIu64 "\n", sim_link_early());
  control_say(reply, "now %" PRIu64 "\n", (uint64_t)sim_link_now_ns());
  control_say(reply, "lost %d\n", (int)sim_call_lost());
  return CONTROL_DONE;
}

static int control_leaks(const char *argument, control_reply *reply) {
  control_figure live[16];
  size_t count = control_live(live);
  int answer = CONTROL_DONE;
  (void)argument;
  for (size_t i = 0; i < count; i++) {
    if (!live[i].number) continue;
    control_say(reply, "%s %" PRIu64 "\n", live[i].name, live[i].number);
    answer = CONTROL_LEAKS;
  }
  return answer;
}

/* One number: "get streams". */
static int control_get(const char *name, control_reply *reply) {
  char text[2048];
  control_reply all = {text, sizeof text, 0};
  control_statistics("", &all);
  size_t length = strlen(name);
  for (const char *line = text; *line; line = strchr(line, '\n') + 1) {
    if (strncmp(line, name, length) != 0 || line[length] != ' ') continue;
    control_say(reply, "%.*s", (int)strcspn(line + length + 1, "\n"), line + length + 1);
    return CONTROL_DONE;
  }
  return CONTROL_BAD;
}

static int control_symbols(const char *argument, control_reply *reply) {
  (void)argument;
  for (int id = 0; id < SIM_ID_COUNT; id++) control_say(reply, "%s %d\n", sim_symbols[id].name, sim_symbols[id].since);
  return CONTROL_DONE;
}

static int control_calls(const char *name, control_reply *reply) {
  uint64_t count = 0;
  for (int id = 0; id < SIM_ID_COUNT; id++)
    if (!*name || sim_name_matches(name, sim_symbols[id].name)) count += sim_call_count((sim_id)id);
  control_say(reply, "%" PRIu64, count);
  return CONTROL_DONE;
}

/* Which entry points were called, and how often: what a sweep goes through. */
static int control_called(const char *argument, control_reply *reply) {
  (void)argument;
  for (int id = 0; id < SIM_ID_COUNT; id++)
    if (sim_call_count((sim_id)id))
      control_say(reply, "%s %" PRIu64 "\n", sim_symbols[id].name, sim_call_count((sim_id)id));
  return CONTROL_DONE;
}

static int control_used(const char *argument, control_reply *reply) {
  int device = atoi(argument);
  if (!sim_device_exists(device)) return CONTROL_BAD;
  control_say(reply, "%" PRIu64, sim_device_used(device));
  return CONTROL_DONE;
}

/* "device N": total, others, used, of the process that asks; for the simulated NVML. */
static int control_device(const char *argument, control_reply *reply) {
  int device = atoi(argument);
  if (!sim_device_exists(device)) return CONTROL_BAD;
  control_say(reply, "%" PRIu64 " %" PRIu64 " %" PRIu64, sim_script_now.total[device], sim_script_now.others[device],
              sim_device_used(device));
  return CONTROL_DONE;
}

static int control_hold(const char *argument, control_reply *reply) {
  (void)reply;
  sim_queue_hold(strtoull(argument, NULL, 0), true);
  return CONTROL_DONE;
}

static int control_release(const char *argument, control_reply *reply) {
  (void)reply;
  sim_queue_hold(strtoull(argument, NULL, 0), false);
  return CONTROL_DONE;
}

static int control_step(const char *argument, control_reply *reply) {
  (void)reply;
  sim_queue_allow(*argument ? strtoull(argument, NULL, 0) : 1);
  return CONTROL_DONE;
}

static int control_fail(const char *argument, control_reply *reply) {
  (void)reply;
  if (!*argument) sim_script_clear_failures();
  return sim_script_add_failures(argument) ? CONTROL_DONE : CONTROL_BAD;
}

static int control_lose(const char *argument, control_reply *reply) {
  (void)reply;
  const CUresult code = (CUresult)(*argument ? atoi(argument) : CUDA_ERROR_UNKNOWN);
  const char *device = strchr(argument, ' ');
  if (device) {
    sim_context_lose(atoi(device + 1), code);
  } else {
    sim_call_lose(code);
  }
  return CONTROL_DONE;
}

static int control_reload(const char *argument, control_reply *reply) {
  (void)argument, (void)reply;
  sim_script_load();
  sim_call_lose(CUDA_SUCCESS);
  for (int device = 0; device < SIM_MAX_DEVICES; device++) sim_context_lose(device, CUDA_SUCCESS);
  sim_call_reset_counts();
  sim_queue_hold(0, false);
  return CONTROL_DONE;
}

static int control_reset_counts(const char *argument, control_reply *reply) {
  (void)argument, (void)reply;
  sim_call_reset_counts();
  return CONTROL_DONE;
}

/* "set LATENCY_US 0": as the variable of that name. */
static int control_set(const char *argument, control_reply *reply) {
  (void)reply;
  char name[64];
  size_t length = strcspn(argument, " ");
  if (length >= sizeof name || !argument[length]) return CONTROL_BAD;
  snprintf(name, sizeof name, "%.*s", (int)length, argument);
  return sim_script_set(name, argument + length + 1) ? CONTROL_DONE : CONTROL_BAD;
}

static int control_advance(const char *argument, control_reply *reply) {
  (void)reply;
  if (!sim_link_is_on()) return CONTROL_BAD;
  sim_link_pass(strtoull(argument, NULL, 0));
  return CONTROL_DONE;
}

/* "use ADDRESS BYTES read" or "write": the host's own use of memory. */
static int control_use(const char *argument, control_reply *reply) {
  uint64_t at = 0, bytes = 0;
  char how[8];
  if (sscanf(argument, "%" SCNu64 " %" SCNu64 " %7s", &at, &bytes, how) != 3) return CONTROL_BAD;
  if (!sim_link_is_on() || (strcmp(how, "read") != 0 && strcmp(how, "write") != 0)) return CONTROL_BAD;
  control_say(reply, "%d", sim_link_use(at, bytes, *how == 'w'));
  return CONTROL_DONE;
}

static const struct {
  const char *word;
  int (*run)(const char *argument, control_reply *reply);
} control_commands[] = {
    {"stats", control_statistics}, {"leaks", control_leaks},     {"get", control_get},
    {"symbols", control_symbols},  {"calls", control_calls},     {"called", control_called},
    {"used", control_used},        {"device", control_device},   {"hold", control_hold},
    {"release", control_release},  {"step", control_step},       {"fail", control_fail},
    {"lose", control_lose},        {"reload", control_reload},   {"zero", control_reset_counts},
    {"set", control_set},          {"advance", control_advance}, {"use", control_use},
};

__attribute__((visibility("default"))) int simCudaControl(const char *command, char *reply, size_t capacity) {
  char none[1];
  control_reply answer = {reply && capacity ? reply : none, reply && capacity ? capacity : sizeof none, 0};
  answer.text[0] = '\0';
  if (!command) return CONTROL_BAD;
  size_t length = strcspn(command, " ");
  const char *argument = command + length + (command[length] == ' ');
  int result = CONTROL_BAD;
  pthread_mutex_lock(&sim_lock);
  for (size_t i = 0; i < sizeof control_commands / sizeof control_commands[0]; i++) {
    const char *word = control_commands[i].word;
    if (strlen(word) == length && strncmp(word, command, length) == 0)
      result = control_commands[i].run(argument, &answer);
  }
  pthread_mutex_unlock(&sim_lock);
  return result;
}
