/* Preloaded into engines that unload a driver, in builds with AddressSanitizer: libraries stay, so that a leak has a
 * name. Mesa keeps a table of the processor's caches in a static variable (on AMD, util/u_cpu_detect.c), and loses it
 * when it is unloaded. */
int dlclose(void *library);

int dlclose(void *library) {
  (void)library;
  return 0;
}
