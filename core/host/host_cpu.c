#include "core/host/host_readers.h"

#include <string.h>

#include "core/base/file.h"

/* Keys under which architectures give a name, best first: x86, MIPS, PowerPC, older Arm, RISC-V. */
static const char *const cpu_keys[] = {"model name", "cpu model", "cpu", "Hardware", "Processor", "uarch"};

enum { CPU_KEYS = sizeof cpu_keys / sizeof *cpu_keys };

typedef struct cpu_search {
  size_t rank; /* of the key found so far; CPU_KEYS: none */
  char *name;
  size_t capacity;
} cpu_search;

/* Copies with runs of white space as one blank and other control characters left out: Intel pads its names. */
static void cpu_copy(const char *text, char *out, size_t capacity) {
  size_t length = 0;
  for (bool gap = false; *text && length + 1 < capacity; text++) {
    unsigned char c = (unsigned char)*text;
    gap |= c <= ' ';
    if (c <= ' ' || c == 0x7f) continue;
    if (gap && length) out[length++] = ' ';
    gap = false;
    if (length + 1 < capacity) out[length++] = *text;
  }
  out[length] = 0;
}

static bool cpu_is_key(const char *line, const char *colon, const char *key) {
  size_t length = strlen(key);
  return strncmp(line, key, length) == 0 && line + length + strspn(line + length, " \t") == colon;
}

static bool cpu_name_line(void *user, char *line) {
  cpu_search *search = user;
  const char *colon = strchr(line, ':');
  if (!colon) return true;
  for (size_t rank = 0; rank < search->rank; rank++) {
    if (!cpu_is_key(line, colon, cpu_keys[rank])) continue;
    cpu_copy(colon + 1, search->name, search->capacity);
    if (search->name[0]) search->rank = rank;
    break;
  }
  return search->rank > 0;
}

void gm__host_cpu_name(const char *root, gm__host_scratch *scratch, char *out, size_t capacity) {
  out[0] = 0;
  cpu_search search = {CPU_KEYS, out, capacity};
  gm__file_long_lines(root, "/proc/cpuinfo", scratch->line, cpu_name_line, &search);
  if (search.rank < CPU_KEYS) return;
  /* Arm and RISC-V boards name the board, which is more than nothing. The file ends with a NUL. */
  char model[256];
  gm__file_text(root, "/sys/firmware/devicetree/base/model", model, sizeof model);
  cpu_copy(model, out, capacity);
}

static bool cpu_count_line(void *user, char *line) {
  uint32_t *count = user;
  const char *colon = strchr(line, ':');
  if (colon && cpu_is_key(line, colon, "processor") && *count < UINT32_MAX) ++*count;
  return true;
}

uint32_t gm__host_cpu_cores(const char *root, const gm__id_set *allowed, gm__host_scratch *scratch) {
  gm__file_text(root, "/sys/devices/system/cpu/online", scratch->line, sizeof scratch->line);
  if (gm__id_set_parse(scratch->line, &scratch->some)) return gm__id_set_count(&scratch->some, allowed);
  if (allowed) return gm__id_set_count(allowed, NULL);
  uint32_t count = 0;
  gm__file_lines(root, "/proc/cpuinfo", cpu_count_line, &count);
  return count;
}
