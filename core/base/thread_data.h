/* The model of data that each thread has for itself. glibc keeps room for libraries that are loaded at run time, and
 * finds such data without a call. musl keeps none, and would not load the library: there the compiler's own model. */
#ifndef GM_CORE_BASE_THREAD_DATA_H
#define GM_CORE_BASE_THREAD_DATA_H

#include <stdint.h> /* tells which C library it is */

#ifdef __GLIBC__
#define GM__THREAD_DATA __attribute__((tls_model("initial-exec")))
#else
#define GM__THREAD_DATA
#endif

#endif
