/* Symbol visibility and C++ linkage. The library exports only declarations marked GM_API. Every other header includes
 * this one, so it also refuses processors that gm is not for. */
#ifndef GM_EXPORT_H
#define GM_EXPORT_H

#include <stdint.h>

#if UINTPTR_MAX < UINT64_MAX
#error "gm needs 64-bit pointers: its addresses have 64 bits, and a pointer of this target cuts them off"
#endif

#if defined(_WIN32)
#if defined(GM_STATIC)
#define GM_API
#elif defined(GM_BUILDING)
#define GM_API __declspec(dllexport)
#else
#define GM_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define GM_API __attribute__((visibility("default")))
#else
#define GM_API
#endif

#if defined(__GNUC__)
#define GM_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define GM_PRINTF(text, first)
#endif

/* A function that still works, and that new code does not call. The library itself is built without the mark. */
#if defined(__GNUC__) && !defined(GM_BUILDING)
#define GM_DEPRECATED(advice) __attribute__((deprecated(advice)))
#else
#define GM_DEPRECATED(advice)
#endif

#ifdef __cplusplus
#define GM_BEGIN_DECLS extern "C" {
#define GM_END_DECLS }
#else
#define GM_BEGIN_DECLS
#define GM_END_DECLS
#endif

#endif
