/* A simulated hiprtc: "compiles" gm's programs and no other, for the architecture that is asked for, else for that of
 * the simulated device. */
#include "tests/simulated/hip/sim_hiprtc.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/shared/runtime/runtime_program_text.h"
#include "tests/simulated/hip/sim_hiprtc_image.h"

struct _hiprtcProgram {
  char *text;
  char code[128]; /* "" until compiled */
  char log[128];
};

enum {
#define X(need, fault, symbol, parameters, arguments) RTC_##symbol,
#include "backends/hip/hip_rtc_syms.def"
#undef X
  RTC_ENTRIES
};

static const char *const rtc_names[] = {
#define X(need, fault, symbol, parameters, arguments) #symbol,
#include "backends/hip/hip_rtc_syms.def"
#undef X
};

static pthread_mutex_t rtc_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  long calls, fail_at;
  int code;
} rtc_entries[RTC_ENTRIES];
static long rtc_programs, rtc_size;
static bool rtc_none;

static int rtc_entry(const char *name, size_t length) {
  for (int i = 0; i < RTC_ENTRIES; i++) {
    if (strlen(rtc_names[i]) == length && strncmp(rtc_names[i], name, length) == 0) return i;
  }
  return -1;
}

static long rtc_fail(const char *what) {
  char name[64];
  long n;
  int code;
  if (sscanf(what, "%63s %ld %d", name, &n, &code) != 3) return -1;
  const int entry = rtc_entry(name, strlen(name));
  if (entry < 0) return -1;
  rtc_entries[entry].fail_at = rtc_entries[entry].calls + n;
  rtc_entries[entry].code = code;
  return 0;
}

static long rtc_set(bool none, long size) {
  rtc_none = none;
  rtc_size = size;
  return 0;
}

static long rtc_zero(void) {
  memset(rtc_entries, 0, sizeof rtc_entries);
  return rtc_set(false, 0);
}

static long rtc_command(const char *command) {
  if (strcmp(command, "zero") == 0) return rtc_zero();
  if (strcmp(command, "programs") == 0) return rtc_programs;
  if (strcmp(command, "none") == 0) return rtc_set(true, 0);
  if (strncmp(command, "size ", 5) == 0) return rtc_set(false, atol(command + 5));
  if (strncmp(command, "fail ", 5) == 0) return rtc_fail(command + 5);
  if (strncmp(command, "calls ", 6) != 0) return -1;
  const int entry = rtc_entry(command + 6, strlen(command + 6));
  return entry < 0 ? -1 : rtc_entries[entry].calls;
}

long simHiprtcControl(const char *command) {
  pthread_mutex_lock(&rtc_lock);
  const long answer = rtc_command(command);
  pthread_mutex_unlock(&rtc_lock);
  return answer;
}

/* The lock is held until rtc_leave, also when the call is to fail. */
static hiprtcResult rtc_enter(int entry) {
  pthread_mutex_lock(&rtc_lock);
  const bool fails = ++rtc_entries[entry].calls == rtc_entries[entry].fail_at;
  return fails ? (hiprtcResult)rtc_entries[entry].code : HIPRTC_SUCCESS;
}

static hiprtcResult rtc_leave(hiprtcResult result) {
  pthread_mutex_unlock(&rtc_lock);
  return result;
}

static const hiprtcResult rtc_invalid_program = (hiprtcResult)4, rtc_invalid_option = (hiprtcResult)5;

hiprtcResult hiprtcCreateProgram(hiprtcProgram *program, const char *text, const char *name, int count,
                                 gm__hiprtc_texts headers, gm__hiprtc_texts names) {
  const hiprtcResult wrong = rtc_enter(RTC_hiprtcCreateProgram);
  if (wrong != HIPRTC_SUCCESS || rtc_none) return rtc_leave(wrong);
  if (!program || !text || !name || count || headers || names) return rtc_leave(rtc_invalid_program);
  *program = calloc(1, sizeof **program);
  (*program)->text = strdup(text);
  rtc_programs++;
  return rtc_leave(HIPRTC_SUCCESS);
}

hiprtcResult hiprtcDestroyProgram(hiprtcProgram *program) {
  const hiprtcResult wrong = rtc_enter(RTC_hiprtcDestroyProgram);
  if (wrong != HIPRTC_SUCCESS) return rtc_leave(wrong);
  free((*program)->text);
  free(*program);
  *program = NULL;
  rtc_programs--;
  return rtc_leave(HIPRTC_SUCCESS);
}

static bool rtc_knows(const char *text) {
  for (int i = 0; i < GM__RUNTIME_PROGRAMS; i++) {
    if (strcmp(text, gm__runtime_program_texts[i]) == 0) return true;
  }
  return false;
}

static hiprtcResult rtc_compile(hiprtcProgram program, int count, gm__hiprtc_texts options) {
  static const char option[] = "--offload-arch=gfx";
  const char *device = getenv("SIMHIP_ARCH"), *architecture = device ? device : SIM_HIP_ARCHITECTURE;
  if (count > 1 || (count == 1 && strncmp(options[0], option, sizeof option - 1) != 0)) return rtc_invalid_option;
  if (count == 1) architecture = options[0] + sizeof "--offload-arch=" - 1;
  if (!rtc_knows(program->text)) {
    snprintf(program->log, sizeof program->log, "gm.hip:1: error: the simulated compiler knows gm's programs alone");
    return HIPRTC_ERROR_COMPILATION;
  }
  snprintf(program->code, sizeof program->code, SIM_HIP_IMAGE_HEAD "%s" SIM_HIP_IMAGE_TAIL, architecture);
  return HIPRTC_SUCCESS;
}

hiprtcResult hiprtcCompileProgram(hiprtcProgram program, int count, gm__hiprtc_texts options) {
  const hiprtcResult wrong = rtc_enter(RTC_hiprtcCompileProgram);
  if (wrong != HIPRTC_SUCCESS) snprintf(program->log, sizeof program->log, "gm.hip:3: error: as scripted");
  return rtc_leave(wrong != HIPRTC_SUCCESS ? wrong : rtc_compile(program, count, options));
}

hiprtcResult hiprtcGetCodeSize(hiprtcProgram program, size_t *bytes) {
  const hiprtcResult wrong = rtc_enter(RTC_hiprtcGetCodeSize);
  *bytes = rtc_size ? (size_t)(rtc_size < 0 ? 0 : rtc_size) : strlen(program->code) + 1;
  return rtc_leave(wrong);
}

hiprtcResult hiprtcGetCode(hiprtcProgram program, char *code) {
  const hiprtcResult wrong = rtc_enter(RTC_hiprtcGetCode);
  if (wrong == HIPRTC_SUCCESS) memcpy(code, program->code, strlen(program->code) + 1);
  return rtc_leave(wrong);
}

hiprtcResult hiprtcGetProgramLogSize(hiprtcProgram program, size_t *bytes) {
  const hiprtcResult wrong = rtc_enter(RTC_hiprtcGetProgramLogSize);
  *bytes = program->log[0] ? strlen(program->log) + 1 : 0;
  return rtc_leave(wrong);
}

hiprtcResult hiprtcGetProgramLog(hiprtcProgram program, char *text) {
  const hiprtcResult wrong = rtc_enter(RTC_hiprtcGetProgramLog);
  memcpy(text, program->log, strlen(program->log) + 1);
  return rtc_leave(wrong);
}
