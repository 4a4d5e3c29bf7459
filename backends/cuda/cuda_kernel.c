#include "backends/cuda/cuda_kernel.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"

static bool kernel_count_name(void *user, const char *name) {
  (void)name;
  ++*(uint32_t *)user;
  return true;
}

uint32_t gm__cuda_kernel_cards(const char *root) {
  uint32_t count = 0;
  return gm__file_names(root, "/proc/driver/nvidia/gpus", kernel_count_name, &count) == GM__FILE_OK ? count : 0;
}

static bool kernel_has_folder(const char *root, const char *path) {
  uint32_t count = 0;
  return gm__file_names(root, path, kernel_count_name, &count) == GM__FILE_OK;
}

bool gm__cuda_kernel_present(const char *root) {
  return kernel_has_folder(root, "/proc/driver/nvidia") || kernel_has_folder(root, "/sys/module/nvgpu") ||
         gm__cuda_kernel_wsl(root);
}

bool gm__cuda_kernel_wsl(const char *root) {
  char text[512];
  if (gm__file_text(root, "/proc/version", text, sizeof text) != GM__FILE_OK) return false;
  for (char *c = text; *c; c++) *c = (char)tolower((unsigned char)*c);
  return strstr(text, "microsoft") != NULL;
}

void gm__cuda_kernel_version(const char *root, char *out, size_t capacity) {
  char text[64];
  if (gm__file_text(root, "/sys/module/nvidia/version", text, sizeof text) != GM__FILE_OK) text[0] = 0;
  text[strcspn(text, "\r\n")] = 0;
  snprintf(out, capacity, "%s", text);
}
