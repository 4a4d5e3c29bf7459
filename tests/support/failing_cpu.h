/* Wrappers of every call in the CPU backend's table, which can be made to fail. A file that includes this defines
 * first:
 *
 *   static bool cpu_call_fails(unsigned entry, int *code);   // counts the call; true: it is to fail with *code
 *
 * and gives cpu_call_wrap to the backend through a gm_symbol_hook. */
#ifndef GM_TESTS_SUPPORT_FAILING_CPU_H
#define GM_TESTS_SUPPORT_FAILING_CPU_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "backends/cpu/cpu_syms.h"

static bool cpu_call_fails(unsigned entry, int *code);

enum {
#define X(fault, result, symbol, parameters, arguments) CPU_##symbol,
#include "backends/cpu/cpu_syms.def"
#undef X
  CPU_ENTRIES
};

static const char *const cpu_call_names[] = {
#define X(fault, result, symbol, parameters, arguments) #symbol,
#include "backends/cpu/cpu_syms.def"
#undef X
};

enum { CPU_STAYS = 4 }; /* MREMAP_DONTUNMAP, which older headers do not have: the addresses of what is moved stay */

static gm__cpu_syms cpu_real;
static atomic_long *cpu_call_live; /* bytes mapped and descriptors of its own, less what was given back */

/* A release that fails has let go all the same: else the system, not gm, would keep it. Where gm then asks once more,
 * there is nothing left to do. */
static void *cpu_call_gone;

static inline bool cpu_call_again(unsigned entry, const void *address) {
  if (entry != CPU_munmap || !address || address != cpu_call_gone) return false;
  cpu_call_gone = NULL;
  return true;
}

static inline bool cpu_call_maps(unsigned entry) { return entry == CPU_mmap || entry == CPU_mremap; }

static inline void cpu_call_mapped(const unsigned char *begin, size_t bytes) {
  const unsigned char *gone = cpu_call_gone;
  if (begin <= gone && gone < begin + bytes) cpu_call_gone = NULL; /* something else is there now */
}

static inline bool cpu_call_releases(unsigned entry) {
  return entry == CPU_munmap || entry == CPU_munlock || entry == CPU_close;
}

static inline void cpu_call_account(unsigned entry, size_t bytes, int flags) {
  long change = 0;
  if (entry == CPU_mmap && !(flags & MAP_FIXED)) change = (long)bytes;
  if (entry == CPU_munmap) change = -(long)bytes;
  if (entry == CPU_mremap) change = flags & CPU_STAYS ? (long)bytes : -(long)bytes;
  if (entry == CPU_memfd_create || entry == CPU_duplicate) change = 1;
  if (entry == CPU_close) change = -1;
  atomic_fetch_add(cpu_call_live, change);
}

/* Wrappers without a parameter of this name see these. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
static const size_t bytes = 0;
static const int flags = 0;
static void *const address = NULL;

#define BAD_CODE (-1)
#define BAD_ADDRESS MAP_FAILED
#define ANSWER_CODE NULL
#define ANSWER_ADDRESS answer
#define X(fault, result, symbol, parameters, arguments)                                          \
  static result cpu_call_##symbol parameters {                                                   \
    int code = 0;                                                                                \
    const bool failing = cpu_call_fails(CPU_##symbol, &code);                                    \
    result answer = BAD_##fault;                                                                 \
    if (cpu_call_again(CPU_##symbol, address)) return (result)0;                                 \
    if (!failing || cpu_call_releases(CPU_##symbol)) answer = cpu_real.symbol arguments;         \
    if (answer != BAD_##fault) cpu_call_account(CPU_##symbol, (size_t)bytes, (int)flags);        \
    if (cpu_call_maps(CPU_##symbol) && !failing) cpu_call_mapped(ANSWER_##fault, (size_t)bytes); \
    if (!failing) return answer;                                                                 \
    if (CPU_##symbol == CPU_munmap) cpu_call_gone = (void *)(uintptr_t)address;                  \
    errno = code;                                                                                \
    return BAD_##fault;                                                                          \
  }
#include "backends/cpu/cpu_syms.def"
#undef X
#pragma GCC diagnostic pop

static inline void *cpu_call_wrap(const char *symbol, void *real) {
#define X(fault, result, symbol_, parameters, arguments) \
  if (strcmp(symbol, #symbol_) == 0) {                   \
    result(*wrapper) parameters = cpu_call_##symbol_;    \
    memcpy(&cpu_real.symbol_, &real, sizeof real);       \
    memcpy(&real, &wrapper, sizeof real);                \
    return real;                                         \
  }
#include "backends/cpu/cpu_syms.def"
#undef X
  return real;
}

#endif
