/* HIP's runtime compiler turns text into code for one architecture. gm looks for its library when it first needs it:
 * next to the loaded runtime, then by the soname of the runtime's version. Before 7.0 the runtime itself has it. A
 * compiler of another version may make code that the runtime cannot load. Thread-safe, no state. */
#ifndef GM_BACKENDS_HIP_RTC_H
#define GM_BACKENDS_HIP_RTC_H

#include "backends/hip/hip_driver.h"
#include "backends/hip/hip_rtc_abi.h"

typedef struct gm__hip_rtc_syms {
#define X(need, fault, symbol, parameters, arguments) hiprtcResult(*symbol) parameters;
#include "backends/hip/hip_rtc_syms.def"
#undef X
} gm__hip_rtc_syms;

/* Compile `text` for `architecture`, such as "gfx90a"; "" means that of the thread's current device. This takes up to
 * seconds. The library stays loaded for the life of the process. UNAVAILABLE: there is no compiler, and the reason says
 * where gm looked. DRIVER: the compiler failed, and the reason has the first words of its log; or its code cannot be
 * right. OUT_OF_HOST_MEMORY. The caller gives the code back. */
gm_status gm__hip_rtc_compile(const gm__hip_driver *driver, const char *architecture, const char *text,
                              gm__runtime_code *out, gm_error *err);

void gm__hip_rtc_release(const gm__hip_driver *driver, const gm__runtime_code *code);

#endif
