#include "backends/vulkan/vulkan_manifest.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "core/base/env.h"

static bool manifest_name(const char *name) {
  size_t length = strlen(name);
  return length > 5 && !strcmp(name + length - 5, ".json");
}

static bool manifest_in(const char *base, const char *tail) {
  char path[512];
  int length = snprintf(path, sizeof path, "%s%s/vulkan/icd.d", base, tail);
  DIR *folder = length > 0 && (size_t)length < sizeof path ? opendir(path) : NULL;
  if (!folder) return false;
  bool found = false;
  for (const struct dirent *entry; !found && (entry = readdir(folder)) != NULL;) found = manifest_name(entry->d_name);
  closedir(folder);
  return found;
}

static bool manifest_by_environment(void) {
  static const char *const names[] = {"VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    const char *value = gm__env(names[i]);
    if (value && *value) return true;
  }
  return false;
}

bool gm__vulkan_manifest_any(void) {
  static const char *const system[] = {"/etc", "/usr/local/etc", "/usr/local/share", "/usr/share"};
  if (manifest_by_environment()) return true;
  for (size_t i = 0; i < sizeof system / sizeof system[0]; i++) {
    if (manifest_in(system[i], "")) return true;
  }
  const char *home = gm__env("HOME");
  return home && *home == '/' && (manifest_in(home, "/.local/share") || manifest_in(home, "/.config"));
}
