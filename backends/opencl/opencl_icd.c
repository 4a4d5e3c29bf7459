#include "backends/opencl/opencl_icd.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/env.h"
#include "core/base/error.h"

static bool icd_ends_with(const char *text, const char *end) {
  const size_t length = strlen(text), end_length = strlen(end);
  return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* A manifest is one line: the name of the driver's library. */
static void icd_read_manifest(const char *path, gm__opencl_icds *out) {
  char line[512] = "";
  FILE *file = fopen(path, "re");
  if (!file) return;
  if (fgets(line, sizeof line, file) && line[0]) {
    out->count++;
    if (strstr(line, "pocl")) out->pocl = true;
  }
  fclose(file);
}

static void icd_read_directory(const char *path, gm__opencl_icds *out) {
  DIR *directory = opendir(path);
  if (!directory) return;
  for (const struct dirent *entry; (entry = readdir(directory));) {
    char file[512];
    if (!icd_ends_with(entry->d_name, ".icd")) continue;
    const int length = snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
    if (length > 0 && (size_t)length < sizeof file) icd_read_manifest(file, out);
  }
  closedir(directory);
}

void gm__opencl_icds_read(gm__opencl_icds *out) {
  const char *wanted = gm__env("OCL_ICD_VENDORS");
  const char *where = wanted && *wanted ? wanted : "/etc/OpenCL/vendors";
  struct stat found;
  *out = (gm__opencl_icds){0};
  snprintf(out->where, sizeof out->where, "%s", where);
  if (stat(where, &found) == 0 && S_ISDIR(found.st_mode)) {
    icd_read_directory(where, out);
  } else if (icd_ends_with(where, ".icd")) {
    icd_read_manifest(where, out);
  } else if (wanted && *wanted) {
    out->count = 1; /* the library itself, by path or by bare name; only loading it would tell more */
    out->pocl = strstr(where, "pocl") != NULL;
  }
}

static bool icd_readable(const char *root, const char *path) {
  char full[512];
  snprintf(full, sizeof full, "%s%s", root, path);
  return access(full, R_OK) == 0;
}

/* PoCL 3.1 was seen to abort in two cases. Without the processors' topology its hwloc finds no memory. A folder of
 * nodes without nodes fails an assertion of hwloc. A missing /proc does no harm. */
static const char *icd_missing_for_pocl(const char *root) {
  static const char *const topology = "/sys/devices/system/cpu/cpu0/topology";
  static const char *const nodes = "/sys/devices/system/node", *const online = "/sys/devices/system/node/online";
  if (!icd_readable(root, topology)) return topology;
  return icd_readable(root, nodes) && !icd_readable(root, online) ? online : NULL;
}

gm_status gm__opencl_icds_check(const gm__opencl_icds *icds, const char *root, gm_error *err) {
  const char *missing = icds->pocl ? icd_missing_for_pocl(root ? root : "") : NULL;
  if (!missing) return GM_OK;
  return gm__fail(err, GM_ERR_UNAVAILABLE, "clGetPlatformIDs",
                  "not called: %s cannot be read, and PoCL, listed in %s, would abort this process without it; mount "
                  "/sys, or set OCL_ICD_VENDORS to a directory without PoCL",
                  missing, icds->where);
}
