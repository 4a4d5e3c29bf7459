#include <inttypes.h>
#include <stdio.h>

#include "core/base/text.h"
#include "gm/size.h"

/* Tenths of 2^shift bytes, rounded to the nearest. Whole units and the rest apart: bytes * 10 may not fit, the rest,
 * below 2^60, does. */
static uint64_t format_tenths(uint64_t bytes, uint32_t shift) {
  uint64_t unit = UINT64_C(1) << shift;
  return (bytes >> shift) * 10 + (bytes % unit * 10 + unit / 2) / unit;
}

size_t gm_format_bytes(uint64_t bytes, char *buf, size_t capacity) {
  static const char units[] = "KMGTPE";
  char text[16];
  uint32_t unit = 0;
  uint64_t tenths = 0;
  int length;
  if (bytes < 1024) {
    length = snprintf(text, sizeof text, "%" PRIu64 " B", bytes);
  } else {
    while (unit < 5 && bytes >> (10 * (unit + 2))) unit++;
    tenths = format_tenths(bytes, 10 * (unit + 1));
    if (tenths >= 10240) unit++, tenths = 10; /* 1023.96 MiB is 1 GiB */
    length = tenths % 10
                 ? snprintf(text, sizeof text, "%" PRIu64 ".%u %ciB", tenths / 10, (unsigned)(tenths % 10), units[unit])
                 : snprintf(text, sizeof text, "%" PRIu64 " %ciB", tenths / 10, units[unit]);
  }
  if (capacity) snprintf(buf, capacity, "%s", text);
  return (size_t)length;
}

gm_status gm_parse_bytes(const char *text, uint64_t *out) {
  if (!text || !out) return GM_ERR_INVALID_ARGUMENT;
  return gm__text_u64("gm_parse_bytes", text, out, NULL);
}
