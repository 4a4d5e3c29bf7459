/* HIP's runtime compiler: text in, code of one architecture out. Its library is looked for when it is first needed,
 * next to the runtime that is loaded, then by the soname of the runtime's version, then in the runtime itself, which
 * had it before 7.0: a compiler of another version may make code that the runtime cannot load. Thread-safe, no state.
 */
#ifndef GM_BACKENDS_HIP_RTC_H
#define GM_BACKENDS_HIP_RTC_H

#include "backends/hip/hip_driver.h"
#include "backends/hip/hip_rtc_abi.h"

typedef struct gm__hip_rtc_syms {
#define X(need, fault, symbol, parameters, arguments) hiprtcResult(*symbol) parameters;
#include "backends/hip/hip_rtc_syms.def"
#undef X
} gm__hip_rtc_syms;

/* What was compiled; the caller gives it back. */
typedef struct gm__hip_code {
  void *bytes;
  size_t size;
} gm__hip_code;

/* Compile `text` for `architecture` ("gfx90a"; "": that of the thread's current device). Takes up to seconds. The
 * library stays loaded for the life of the process. UNAVAILABLE: there is no compiler, and where it was looked for;
 * DRIVER: it failed, with the first words of its log, or what it gave cannot be; OUT_OF_HOST_MEMORY. */
gm_status gm__hip_rtc_compile(const gm__hip_driver *driver, const char *architecture, const char *text,
                              gm__hip_code *out, gm_error *err);

void gm__hip_rtc_release(const gm__hip_driver *driver, const gm__hip_code *code);

#endif
