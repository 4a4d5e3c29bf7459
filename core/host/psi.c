#include "core/host/host_readers.h"

#include <string.h>

#include "core/base/decimal.h"
#include "core/base/file.h"

typedef struct psi_lines {
  gm_host_stall *some;
  gm_host_stall *full;
} psi_lines;

/* "12.34" is 1234; the kernel always writes two decimals. */
static bool psi_centi(const char *text, uint32_t *out) {
  uint64_t whole;
  const char *dot;
  if (!gm__decimal(text, &dot, &whole) || whole > 100 || *dot != '.') return false;
  uint64_t hundredths;
  const char *end;
  if (!gm__decimal(dot + 1, &end, &hundredths) || end != dot + 3) return false;
  if (*end != ' ' && *end != 0) return false;
  *out = (uint32_t)(whole * 100 + hundredths);
  return true;
}

static void psi_parse(const char *fields, gm_host_stall *out) {
  const char *average = strstr(fields, " avg10="), *total = strstr(fields, " total=");
  gm_host_stall stall = {.valid = true};
  const char *end;
  if (!average || !psi_centi(average + 7, &stall.avg10_centi)) return;
  if (!total || !gm__decimal(total + 7, &end, &stall.total_us) || (*end != ' ' && *end != 0)) return;
  *out = stall;
}

static bool psi_line(void *user, char *line) {
  psi_lines *lines = user;
  if (strncmp(line, "some ", 5) == 0) psi_parse(line + 4, lines->some);
  if (strncmp(line, "full ", 5) == 0) psi_parse(line + 4, lines->full);
  return true;
}

void gm__psi_read(const char *root, gm_host_stall *out_some, gm_host_stall *out_full) {
  *out_some = *out_full = (gm_host_stall){0};
  gm__file_lines(root, "/proc/pressure/memory", psi_line, &(psi_lines){out_some, out_full});
}
