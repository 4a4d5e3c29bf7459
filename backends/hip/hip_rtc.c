#include "backends/hip/hip_rtc.h"

#include <stdio.h>
#include <string.h>

#include "backends/shared/code_table.h"
#include "core/base/alloc.h"
#include "core/base/error.h"

enum {
  RTC_PATH = 512,
  RTC_NAME = 32,
  RTC_LOG_MAX = 1 << 20,  /* of a log; a longer one is not asked for */
  RTC_CODE_MAX = 64 << 20 /* of gm's few functions; more is taken for nonsense */
};

static const gm__symbol rtc_rows[] = {
#define REQUIRED true
#define OPTIONAL false
#define X(need, fault, symbol, parameters, arguments) {#symbol, offsetof(gm__hip_rtc_syms, symbol), need},
#include "backends/hip/hip_rtc_syms.def"
#undef X
#undef OPTIONAL
#undef REQUIRED
};

static const gm__code rtc_codes[] = {
    {0, GM_OK, "HIPRTC_SUCCESS"},
    {1, GM_ERR_OUT_OF_HOST_MEMORY, "HIPRTC_ERROR_OUT_OF_MEMORY"},
    {2, GM_ERR_DRIVER, "HIPRTC_ERROR_PROGRAM_CREATION_FAILURE"},
    {3, GM_ERR_DRIVER, "HIPRTC_ERROR_INVALID_INPUT"},
    {4, GM_ERR_DRIVER, "HIPRTC_ERROR_INVALID_PROGRAM"},
    {5, GM_ERR_DRIVER, "HIPRTC_ERROR_INVALID_OPTION"},
    {6, GM_ERR_DRIVER, "HIPRTC_ERROR_COMPILATION"},
    {7, GM_ERR_DRIVER, "HIPRTC_ERROR_BUILTIN_OPERATION_FAILURE"},
    {11, GM_ERR_DRIVER, "HIPRTC_ERROR_INTERNAL_ERROR"},
};

typedef struct rtc_job {
  const gm_services *services;
  gm__hip_rtc_syms rtc;
  hiprtcProgram program;
} rtc_job;

static gm_status rtc_fail(gm_error *err, hiprtcResult code, const char *op, const char *log) {
  static const gm__code_table codes = {"hiprtc", rtc_codes, sizeof rtc_codes / sizeof rtc_codes[0]};
  const gm__code *known = gm__code_find(&codes, (int)code);
  return gm__fail_native(err, known->status, (int)code, op, "%s: %s (%d)%s%.200s", op, known->name, (int)code,
                         *log ? ": " : "", log);
}

/* The file beside the loaded runtime; "" where the runtime's folder is not known. */
static void rtc_beside(const char *runtime, const char *name, char *out, size_t capacity) {
  const char *slash = strrchr(runtime, '/');
  out[0] = 0;
  if (!slash) return;
  const int length = snprintf(out, capacity, "%.*s/%s", (int)(slash - runtime), runtime, name);
  if (length < 0 || (size_t)length >= capacity) out[0] = 0;
}

static gm_status rtc_open(const gm__hip_driver *driver, gm__dynlib **out, gm_error *err) {
  char name[RTC_NAME], beside[RTC_PATH];
  const char *runtime = gm__dynlib_path(driver->base.lib), *names[4] = {NULL};
  size_t count = 0;
  snprintf(name, sizeof name, "libhiprtc.so.%d", driver->version / 10000000);
  rtc_beside(runtime, name, beside, sizeof beside);
  if (beside[0]) names[count++] = beside;
  names[count++] = name;
  if (driver->version < GM__HIP_7) names[count++] = runtime;
  const gm__dynlib_spec spec = {.backend = "hip", .names = names, .advice = "install ROCm's hiprtc"};
  return gm__dynlib_open(driver->base.services, &spec, out, err);
}

/* The compiler has a whole LLVM inside: it is not unloaded again. */
static gm_status rtc_load(const gm__hip_driver *driver, gm__hip_rtc_syms *out, gm_error *err) {
  gm__dynlib *lib = NULL;
  gm_status status = rtc_open(driver, &lib, err);
  if (status != GM_OK) return status;
  status = gm__dynlib_resolve(lib, rtc_rows, sizeof rtc_rows / sizeof rtc_rows[0], out, driver->base.host.symbol_hook,
                              driver->base.host.symbol_hook_user, err);
  if (status == GM_OK) gm__dynlib_keep(lib);
  gm__dynlib_close(lib);
  return status;
}

/* The compiler's words, for the reason; none where it has none. */
static void rtc_log(const rtc_job *job, char *out, size_t capacity) {
  size_t bytes = 0;
  out[0] = 0;
  if (!job->rtc.hiprtcGetProgramLogSize || !job->rtc.hiprtcGetProgramLog) return;
  if (job->rtc.hiprtcGetProgramLogSize(job->program, &bytes) != HIPRTC_SUCCESS || !bytes || bytes > RTC_LOG_MAX) return;
  char *text = gm__alloc(job->services, bytes + 1);
  if (!text) return;
  if (job->rtc.hiprtcGetProgramLog(job->program, text) == HIPRTC_SUCCESS) {
    text[bytes] = 0;
    snprintf(out, capacity, "%s", text);
  }
  gm__release(job->services, text, bytes + 1);
}

static gm_status rtc_build(const rtc_job *job, const char *architecture, gm_error *err) {
  char option[64], log[256];
  const char *const options[] = {option};
  snprintf(option, sizeof option, "--offload-arch=%.40s", architecture);
  const hiprtcResult code = job->rtc.hiprtcCompileProgram(job->program, architecture[0] ? 1 : 0, options);
  if (code == HIPRTC_SUCCESS) return GM_OK;
  rtc_log(job, log, sizeof log);
  return rtc_fail(err, code, "hiprtcCompileProgram", log);
}

static gm_status rtc_take(const rtc_job *job, gm__runtime_code *out, gm_error *err) {
  size_t size = 0;
  hiprtcResult code = job->rtc.hiprtcGetCodeSize(job->program, &size);
  if (code != HIPRTC_SUCCESS) return rtc_fail(err, code, "hiprtcGetCodeSize", "");
  if (size == 0 || size > RTC_CODE_MAX) {
    return gm__fail(err, GM_ERR_DRIVER, "hiprtcGetCodeSize", "hiprtc says that the code has %zu bytes", size);
  }
  void *bytes = gm__alloc(job->services, size);
  if (!bytes) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "hiprtcGetCode", "no host memory for the code");
  code = job->rtc.hiprtcGetCode(job->program, bytes);
  if (code != HIPRTC_SUCCESS) {
    gm__release(job->services, bytes, size);
    return rtc_fail(err, code, "hiprtcGetCode", "");
  }
  *out = (gm__runtime_code){bytes, bytes, size};
  return GM_OK;
}

gm_status gm__hip_rtc_compile(const gm__hip_driver *driver, const char *architecture, const char *text,
                              gm__runtime_code *out, gm_error *err) {
  rtc_job job = {.services = driver->base.services};
  gm_status status = rtc_load(driver, &job.rtc, err);
  if (status != GM_OK) return status;
  const hiprtcResult code = job.rtc.hiprtcCreateProgram(&job.program, text, "gm.hip", 0, NULL, NULL);
  if (code != HIPRTC_SUCCESS) return rtc_fail(err, code, "hiprtcCreateProgram", "");
  if (!job.program) {
    return gm__fail(err, GM_ERR_DRIVER, "hiprtcCreateProgram", "hiprtcCreateProgram: success, and no program");
  }
  status = rtc_build(&job, architecture, err);
  if (status == GM_OK) status = rtc_take(&job, out, err);
  job.rtc.hiprtcDestroyProgram(&job.program);
  return status;
}

void gm__hip_rtc_release(const gm__hip_driver *driver, const gm__runtime_code *code) {
  gm__release(driver->base.services, code->owned, code->size);
}
