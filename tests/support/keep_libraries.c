/* In every test program of a sanitized build, and preloaded into engines that unload a driver: a library that was
 * loaded stays. A leak keeps its name so: Mesa keeps a table of the processor's caches in a static variable (on AMD,
 * util/u_cpu_detect.c). It loses the table when it is unloaded. The sanitizers clear their shadow of each library that
 * comes or goes, and the thread sanitizer lists all libraries at each dlopen. That was nine tenths of the time of
 * Vulkan's tests. Other builds unload. */
#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

int gm_keep_libraries_close(void *library) __asm__("dlclose") __attribute__((weak)); /* a test may have its own */
void *gm_keep_libraries_open(const char *file, int mode) __asm__("dlopen") __attribute__((weak));

typedef void *(*open_function)(const char *file, int mode);

static open_function open_of(void *library) {
  void *const symbol = dlsym(library, "dlopen");
  open_function function;
  memcpy(&function, &symbol, sizeof function);
  return function;
}

int gm_keep_libraries_close(void *library) {
  (void)library;
  return 0;
}

/* One that is there already comes from libc: the sanitizer knows it. */
void *gm_keep_libraries_open(const char *file, int mode) {
  static _Atomic(open_function) known_sanitizer, known_libc;
  open_function of_sanitizer = atomic_load(&known_sanitizer), of_libc = atomic_load(&known_libc);
  if (!of_libc) {
    of_sanitizer = open_of(RTLD_NEXT);
    of_libc = open_of(of_sanitizer("libc.so.6", RTLD_LAZY | RTLD_NOLOAD));
    atomic_store(&known_sanitizer, of_sanitizer);
    atomic_store(&known_libc, of_libc);
  }
  void *const there = of_libc(file, mode | RTLD_NOLOAD);
  return there ? there : of_sanitizer(file, mode);
}
