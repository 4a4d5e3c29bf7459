/* Writes the file of a disk tier, for cases: write_tier FILE KEY=BYTES... In a key, %XX is the byte of that number.
 * Each value has so many bytes, which the key decides. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gm/tier.h"

static size_t write_key(const char *text, unsigned char *out) {
  size_t count = 0;
  while (*text && *text != '=' && count < GM_TIER_KEY_MOST) {
    unsigned byte = (unsigned char)*text;
    const bool coded = byte == '%' && sscanf(text + 1, "%2x", &byte) == 1;
    out[count++] = (unsigned char)byte;
    text += coded ? 3 : 1;
  }
  return count;
}

static gm_status write_value(gm_tier *tier, const char *text, gm_error *err) {
  static unsigned char key[GM_TIER_KEY_MOST];
  const char *bytes = strrchr(text, '=');
  const size_t key_bytes = write_key(text, key), count = bytes ? strtoul(bytes + 1, NULL, 10) : 0;
  unsigned char *value = malloc(count + 1);
  if (!value) return GM_ERR_OUT_OF_HOST_MEMORY;
  unsigned seed = key[0];
  for (size_t i = 0; i < count; i++) value[i] = (unsigned char)((seed = seed * 1664525 + 1013904223) >> 24);
  const gm_tier_part part = {value, count};
  const gm_status status = gm_tier_put(tier, key, key_bytes, &part, 1, err);
  free(value);
  return status;
}

int main(int argc, char **argv) {
  gm_context *ctx = NULL;
  gm_tier *tier = NULL;
  gm_error err = {.status = GM_OK};
  gm_status status = argc > 1 ? gm_context_create(NULL, &ctx, &err) : GM_ERR_INVALID_ARGUMENT;
  if (!status) status = gm_tier_open(ctx, "disk", argv[1], NULL, &tier, &err);
  for (int i = 2; i < argc && !status; i++) status = write_value(tier, argv[i], &err);
  if (status) fprintf(stderr, "write_tier: %s\n", err.message);
  if (gm_tier_close(tier, NULL) || gm_context_destroy(ctx, NULL)) status = GM_ERR_IO;
  return status ? 1 : 0;
}
