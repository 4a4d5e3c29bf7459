#include "tests/simulated/cuda/sim_script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simulated/cuda/sim_call.h"
#include "tests/simulated/cuda/sim_name.h"

typedef struct script_failure {
  char symbol[64];
  uint64_t left; /* calls until it happens; 0: each call */
  CUresult code;
  bool sticky, spent;
} script_failure;

enum { SCRIPT_FAILURES = 64 };

sim_script sim_script_now;
bool (*sim_script_link)(const char *spec);
static script_failure script_failures[SCRIPT_FAILURES];
static int script_failure_count;
static uint64_t script_state = 1;

uint64_t sim_script_random(void) {
  script_state ^= script_state << 13;
  script_state ^= script_state >> 7;
  script_state ^= script_state << 17;
  return script_state;
}

/* "12", "12k", "12m", "12g": powers of 1024. */
static bool script_bytes(const char *text, uint64_t *out, const char **end_out) {
  char *end = NULL;
  unsigned long long number = strtoull(text, &end, 0);
  if (end == text) return false;
  const char *units = "kmg";
  const char *unit = *end ? strchr(units, *end | 0x20) : NULL;
  if (unit) {
    number <<= 10 * (unit - units + 1);
    end++;
  }
  *out = number;
  *end_out = end;
  return true;
}

static bool script_number(const char *text, uint64_t *out) {
  const char *end = NULL;
  return script_bytes(text, out, &end) && !*end;
}

/* One number per device, the last one for all that follow. */
static bool script_list(const char *text, uint64_t out[SIM_MAX_DEVICES]) {
  uint64_t number = 0;
  bool more = true;
  for (int i = 0; i < SIM_MAX_DEVICES; i++) {
    if (more) {
      const char *end = NULL;
      if (!script_bytes(text, &number, &end) || (*end && *end != ',')) return false;
      more = *end == ',';
      text = end + 1;
    }
    out[i] = number;
  }
  return true;
}

static bool script_has(const char *list, const char *word) {
  size_t length = strlen(word);
  for (const char *at = list; (at = strstr(at, word)); at += length) {
    bool begins = at == list || at[-1] == ',';
    if (begins && (at[length] == ',' || !at[length])) return true;
  }
  return false;
}

static bool script_set_without(const char *list) {
  static const struct {
    const char *word;
    unsigned group;
  } groups[] = {{"pools", SIM_POOLS},     {"vmm", SIM_VMM},         {"peer", SIM_PEER},
                {"hostreg", SIM_HOSTREG}, {"managed", SIM_MANAGED}, {"ipc", SIM_IPC}};
  sim_script_now.without = 0;
  for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++)
    if (script_has(list, groups[i].word)) sim_script_now.without |= groups[i].group;
  return sim_script_now.without || !*list;
}

static bool script_set_meminfo(const char *word) {
  static const char *const words[] = {"true", "fail", "free_above_total", "zero", "oom"};
  for (int i = 0; i < 5; i++) {
    if (strcmp(word, words[i]) != 0) continue;
    sim_script_now.meminfo = (sim_meminfo)i;
    return true;
  }
  return false;
}

static bool script_set_hostile(const char *list) {
  sim_script_now.hostile_names = script_has(list, "names");
  sim_script_now.hostile_pci = script_has(list, "pci");
  sim_script_now.hostile_null = script_has(list, "null_success");
  sim_script_now.hostile_granularity = script_has(list, "granularity");
  sim_script_now.hostile_count = script_has(list, "counts") ? -1 : script_has(list, "counts_huge") ? INT32_MAX : 0;
  return true;
}

static bool script_set_lost(const char *text) {
  const char *end = NULL;
  if (!script_bytes(text, &sim_script_now.lost_after, &end)) return false;
  sim_script_now.lost_done = 0;
  sim_script_now.lost_code = *end == ':' ? atoi(end + 1) : CUDA_ERROR_ILLEGAL_ADDRESS;
  return sim_script_now.lost_code > 0;
}

static bool script_set_granularity(const char *text) {
  const char *end = NULL;
  sim_script *script = &sim_script_now;
  if (!script_bytes(text, &script->granularity, &end)) return false;
  script->exportable_granularity = script->granularity;
  return *end != ':' || script_number(end + 1, &script->exportable_granularity);
}

static bool script_set_word(const char *name, const char *value, bool *known) {
  sim_script *script = &sim_script_now;
  *known = true;
  if (strcmp(name, "TOTAL") == 0) return script_list(value, script->total);
  if (strcmp(name, "OTHERS") == 0) return script_list(value, script->others);
  if (strcmp(name, "NO") == 0) return script_set_without(value);
  if (strcmp(name, "MEMINFO") == 0) return script_set_meminfo(value);
  if (strcmp(name, "HOSTILE") == 0) return script_set_hostile(value);
  if (strcmp(name, "LOST_AFTER") == 0) return script_set_lost(value);
  if (strcmp(name, "GRANULARITY") == 0) return script_set_granularity(value);
  if (strcmp(name, "LINK") == 0) return !sim_script_link || sim_script_link(value);
  if (strcmp(name, "FAIL") == 0) return sim_script_add_failures(value);
  if (strcmp(name, "IOMMU") == 0) return script->iommu = strcmp(value, "1") == 0, true;
  if (strcmp(name, "PEER") == 0) return script->peer_silent = strcmp(value, "silent") == 0, true;
  if (strcmp(name, "EXIT") == 0) return script->crash_after_exit = strcmp(value, "crash_after_atexit") == 0;
  if (strcmp(name, "FREE") == 0) return script->free_does_not_wait = strcmp(value, "nowait") == 0, true;
  *known = false;
  return false;
}

bool sim_script_set(const char *name, const char *value) {
  bool known = false;
  bool good = script_set_word(name, value, &known);
  if (known) return good;
  sim_script *script = &sim_script_now;
  uint64_t devices = (uint64_t)script->devices, version = (uint64_t)script->version;
  uint64_t init = (uint64_t)script->init_code, integrated = script->integrated, mig = script->mig;
  uint64_t read_only = script->read_only_register, wsl = script->wsl;
  struct {
    const char *name;
    uint64_t *number;
  } numbers[] = {{"DEVICES", &devices},
                 {"FRAGMENT", &script->fragment},
                 {"OOM_AFTER", &script->oom_after},
                 {"PINNED", &script->pinned},
                 {"LATENCY_US", &script->latency_us},
                 {"COPY_MBPS", &script->copy_mbps},
                 {"CONTEXT_BYTES", &script->context_bytes},
                 {"SEED", &script_state},
                 {"VERSION", &version},
                 {"INTEGRATED", &integrated},
                 {"MIG", &mig},
                 {"READ_ONLY", &read_only},
                 {"WSL", &wsl},
                 {"INIT", &init}};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    if (strcmp(name, numbers[i].name) != 0) continue;
    if (!script_number(value, numbers[i].number) || devices > SIM_MAX_DEVICES) return false;
    script->devices = (int)devices;
    script->version = (int)version;
    script->init_code = (int)init;
    script->integrated = integrated != 0;
    script->mig = mig != 0;
    script->read_only_register = read_only != 0;
    script->wsl = wsl != 0;
    if (numbers[i].number == &script->oom_after) script->oom_done = 0;
    if (!script_state) script_state = 1;
    return true;
  }
  return false;
}

void sim_script_load(void) {
  static const char *const names[] = {"DEVICES",    "TOTAL", "OTHERS",      "FRAGMENT",      "OOM_AFTER",  "PINNED",
                                      "LATENCY_US", "SEED",  "COPY_MBPS",   "VERSION",       "INTEGRATED", "MIG",
                                      "INIT",       "NO",    "MEMINFO",     "HOSTILE",       "LOST_AFTER", "FAIL",
                                      "EXIT",       "FREE",  "GRANULARITY", "CONTEXT_BYTES", "READ_ONLY",  "WSL",
                                      "PEER",       "IOMMU", "LINK"};
  sim_script_now = (sim_script){.devices = 1,
                                .version = 13000,
                                .latency_us = 100,
                                .context_bytes = 4 << 20,
                                .granularity = 2 << 20,
                                .exportable_granularity = 2 << 20};
  for (int i = 0; i < SIM_MAX_DEVICES; i++) sim_script_now.total[i] = (uint64_t)1 << 30;
  script_state = 0x9e3779b97f4a7c15u;
  sim_script_clear_failures();
  if (sim_script_link) sim_script_link("off");
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char variable[40];
    snprintf(variable, sizeof variable, "SIMCUDA_%s", names[i]);
    const char *value = getenv(variable);
    if (value && !sim_script_set(names[i], value)) fprintf(stderr, "simulated CUDA: bad %s=%s\n", variable, value);
  }
}

void sim_script_clear_failures(void) { script_failure_count = 0; }

static bool script_add_failure(const char *text, size_t length) {
  char copy[128];
  if (script_failure_count == SCRIPT_FAILURES || length >= sizeof copy) return false;
  snprintf(copy, sizeof copy, "%.*s", (int)length, text);
  script_failure failure = {.code = CUDA_ERROR_UNKNOWN};
  char *rest = copy;
  const char *symbol = strsep(&rest, ":");
  const char *calls = strsep(&rest, ":");
  const char *code = strsep(&rest, ":");
  if (!calls || !*symbol || strlen(symbol) >= sizeof failure.symbol) return false;
  snprintf(failure.symbol, sizeof failure.symbol, "%s", symbol);
  if (strcmp(calls, "*") != 0 && (!script_number(calls, &failure.left) || !failure.left)) return false;
  if (code) failure.code = (CUresult)atoi(code);
  failure.sticky = rest && strcmp(rest, "sticky") == 0;
  script_failures[script_failure_count++] = failure;
  return true;
}

bool sim_script_add_failures(const char *text) {
  while (*text) {
    size_t length = strcspn(text, ",");
    if (!script_add_failure(text, length)) return false;
    text += length + (text[length] == ',');
  }
  return true;
}

CUresult sim_script_failure(const char *symbol, bool *sticky) {
  for (int i = 0; i < script_failure_count; i++) {
    script_failure *failure = &script_failures[i];
    if (failure->spent || !sim_name_matches(failure->symbol, symbol)) continue;
    if (failure->left > 1) {
      failure->left--;
      continue;
    }
    failure->spent = failure->left == 1;
    *sticky = failure->sticky;
    return failure->code;
  }
  return CUDA_SUCCESS;
}
