#include <stdio.h>
#include <string.h>

#include "cts/cts.h"

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t oracle_next(cts *t) {
  uint64_t z = t->random += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

uint64_t cts_random(cts *t, uint64_t below) { return oracle_next(t) % below; }

void cts_noise(cts *t, unsigned char *bytes, uint64_t count) {
  for (uint64_t at = 0; at < count; at += 8) {
    const uint64_t word = oracle_next(t);
    memcpy(bytes + at, &word, count - at < 8 ? (size_t)(count - at) : 8);
  }
}

void cts_oracle_fill(unsigned char *dst, uint64_t bytes, const unsigned char *pattern, uint32_t pattern_bytes) {
  /* The first pattern byte by byte; then what is there is doubled, for sanitizers look at each byte of a loop. */
  uint64_t done = bytes < pattern_bytes ? bytes : pattern_bytes;
  for (uint64_t i = 0; i < done; i++) dst[i] = pattern[i];
  while (done < bytes) {
    const uint64_t more = bytes - done < done ? bytes - done : done;
    memcpy(dst + done, dst, (size_t)more);
    done += more;
  }
}

void cts_oracle_rect(unsigned char *dst, const unsigned char *src, const gm_rect *rect) {
  const uint64_t src_row = rect->src_row_pitch ? rect->src_row_pitch : rect->row_bytes;
  const uint64_t dst_row = rect->dst_row_pitch ? rect->dst_row_pitch : rect->row_bytes;
  const uint64_t src_slice = rect->src_slice_pitch ? rect->src_slice_pitch : src_row * rect->rows;
  const uint64_t dst_slice = rect->dst_slice_pitch ? rect->dst_slice_pitch : dst_row * rect->rows;
  for (uint64_t z = 0; z < rect->slices; z++) {
    for (uint64_t y = 0; y < rect->rows; y++) {
      for (uint64_t x = 0; x < rect->row_bytes; x++) {
        dst[rect->dst_offset + z * dst_slice + y * dst_row + x] =
            src[rect->src_offset + z * src_slice + y * src_row + x];
      }
    }
  }
}

bool cts_same(cts *t, const unsigned char *got, const unsigned char *want, uint64_t bytes, const char *what) {
  if (memcmp(got, want, bytes) == 0) return true;
  uint64_t at = 0;
  while (got[at] == want[at]) at++;
  char text[200];
  snprintf(text, sizeof text, "%.120s: byte %llu is 0x%02x, not 0x%02x", what, (unsigned long long)at, got[at],
           want[at]);
  return cts_check(t, false, text, "oracle", 0);
}

enum { ORACLE_PAINT = 0xa5 };

void cts_paint(void *out, size_t bytes) { memset(out, ORACLE_PAINT, bytes); }

bool cts_painted(const void *out, size_t bytes) {
  const unsigned char *at = out;
  for (size_t i = 0; i < bytes; i++) {
    if (at[i] != ORACLE_PAINT) return false;
  }
  return true;
}
