#include "core/base/shadow.h"

#include <stddef.h>

/* These are weak. The sanitizer's runtime may be linked to this library, exported by the program, or missing. */
void __asan_poison_memory_region(void const volatile *bytes, size_t count) __attribute__((weak));
void __asan_unpoison_memory_region(void const volatile *bytes, size_t count) __attribute__((weak));

bool gm__shadow_present(void) { return __asan_poison_memory_region && __asan_unpoison_memory_region; }

void gm__shadow_close(const void *bytes, uint64_t count) {
  if (gm__shadow_present()) __asan_poison_memory_region(bytes, (size_t)count);
}

void gm__shadow_open(const void *bytes, uint64_t count) {
  if (gm__shadow_present()) __asan_unpoison_memory_region(bytes, (size_t)count);
}
