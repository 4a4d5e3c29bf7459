/* gm declares the part of HIP's runtime compiler (hiprtc) that it calls, so it needs no ROCm. GM_HIP_OFFICIAL puts the
 * official header in its place (tests/abi). */
#ifndef GM_BACKENDS_HIP_RTC_ABI_H
#define GM_BACKENDS_HIP_RTC_ABI_H

#include <stddef.h>

#ifdef GM_HIP_OFFICIAL
#include <hip/hip_version.h>
#include <hip/hiprtc.h>
#else

typedef struct _hiprtcProgram *hiprtcProgram;

/* Those that the code speaks of; hip_rtc.c knows more by number. */
typedef enum hiprtcResult { HIPRTC_SUCCESS = 0, HIPRTC_ERROR_COMPILATION = 6 } hiprtcResult;

#endif

/* Lists of texts. In 7.0 their pointers became constant, which changes nothing for a caller in C. */
#if defined GM_HIP_OFFICIAL && HIP_VERSION < 70000000
typedef const char **gm__hiprtc_texts;
#else
typedef const char *const *gm__hiprtc_texts;
#endif

#endif
