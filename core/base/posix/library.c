#include "core/base/library.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The memory sanitizer does not see what the loader writes. */
#ifdef __has_feature
#if __has_feature(memory_sanitizer)
#include <sanitizer/msan_interface.h>
#define LIBRARY_WRITTEN(text) __msan_unpoison_string(text)
#endif
#endif
#ifndef LIBRARY_WRITTEN
#define LIBRARY_WRITTEN(text) ((void)(text))
#endif

bool gm__library_name_ok(const char *name) {
  bool dots = strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
  return name[0] == '/' || (name[0] && !dots && !strchr(name, '/'));
}

/* ld.so begins its message with the bare name when it finds no such file. It begins with a path for a file that it
 * cannot load, and with another library's name when that one is missing. The rest of the text may be translated. */
static bool library_is_absent(const char *name, const char *message) {
  if (name[0] == '/') return access(name, F_OK) != 0;
  size_t length = strlen(name);
  return strncmp(message, name, length) == 0 && message[length] == ':';
}

void *gm__library_open(const char *name, char *why, size_t capacity) {
  void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (handle) return handle;
  const char *message = dlerror();
  if (!message) message = "dlopen failed without a reason";
  snprintf(why, capacity, "%s", library_is_absent(name, message) ? "" : message);
  return NULL;
}

void gm__library_close(void *handle) { dlclose(handle); }

void *gm__library_symbol(void *handle, const char *name) { return dlsym(handle, name); }

const char *gm__library_path(void *handle) {
  struct link_map *map = NULL;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || !map->l_name) return "";
  LIBRARY_WRITTEN(map->l_name);
  return map->l_name;
}

typedef struct library_seek {
  size_t left; /* the number of libraries to skip */
  char path[1024];
} library_seek;

static int library_seek_step(struct dl_phdr_info *info, size_t bytes, void *user) {
  (void)bytes;
  library_seek *seek = user;
  if (seek->left--) return 0;
  int length = snprintf(seek->path, sizeof seek->path, "%s", info->dlpi_name ? info->dlpi_name : "");
  if (length < 0 || (size_t)length >= sizeof seek->path) seek->path[0] = '\0';
  return 1;
}

static void library_keep_if(const char *path, const char *symbol) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (!handle) return;
  void *kept = dlsym(handle, symbol) ? dlopen(path, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE) : NULL;
  if (kept) dlclose(kept);
  dlclose(handle);
}

/* Open them one by one, because nothing may be opened during the walk. */
void gm__library_keep_exporting(const char *symbol) {
  for (size_t index = 0;; index++) {
    library_seek seek = {.left = index};
    if (!dl_iterate_phdr(library_seek_step, &seek)) return;
    if (seek.path[0] == '/') library_keep_if(seek.path, symbol);
  }
}
