#include "tools/gmem/store/tier_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TIER_PIECE = 1 << 20 }; /* as the chunks of a file: a piece is unpacked once */

static gm_status tier_no_memory(gm_error *err) {
  *err = (gm_error){.status = GM_ERR_OUT_OF_HOST_MEMORY};
  snprintf(err->message, sizeof err->message, "no host memory for the keys of the file");
  return err->status;
}

/* ---- keys ---- */

static bool tier_keys_grow(tier_file *file) {
  if (file->count < file->room) return true;
  const size_t room = file->room ? file->room * 2 : 64;
  tier_key *keys = realloc(file->keys, room * sizeof *keys);
  if (!keys) return false;
  file->keys = keys;
  file->room = room;
  return true;
}

typedef struct tier_listing {
  tier_file *file;
  bool no_memory;
} tier_listing;

static bool tier_take_key(void *user, const void *key, size_t key_bytes, uint64_t value_bytes) {
  tier_listing *listing = user;
  tier_file *file = listing->file;
  listing->no_memory = true;
  if (!tier_keys_grow(file)) return false;
  tier_key *own = &file->keys[file->count];
  own->bytes = malloc(key_bytes);
  if (!own->bytes) return false;
  memcpy(own->bytes, key, key_bytes);
  own->count = key_bytes;
  own->value_bytes = value_bytes;
  file->count++;
  listing->no_memory = false;
  return true;
}

static int tier_key_compare(const void *first, const void *second) {
  const tier_key *a = first, *b = second;
  const size_t both = a->count < b->count ? a->count : b->count;
  const int order = memcmp(a->bytes, b->bytes, both);
  return order ? order : (a->count > b->count) - (a->count < b->count);
}

static gm_status tier_list_keys(tier_file *file, gm_error *err) {
  tier_listing listing = {file, false};
  gm_status status = gm_tier_list(file->tier, NULL, 0, tier_take_key, &listing, err);
  if (listing.no_memory) status = tier_no_memory(err);
  if (status == GM_OK && file->count) qsort(file->keys, file->count, sizeof *file->keys, tier_key_compare);
  return status;
}

char *tier_key_text(const tier_key *key) {
  char *text = malloc(key->count * 4 + 1), *to = text;
  for (size_t i = 0; text && i < key->count; i++) {
    const unsigned char byte = ((const unsigned char *)key->bytes)[i];
    const bool plain = byte >= ' ' && byte <= '~' && byte != '\\';
    if (plain) *to++ = (char)byte;
    if (!plain) to += snprintf(to, 5, "\\x%02x", byte);
  }
  if (text) *to = '\0';
  return text;
}

/* ---- the file ---- */

gm_status tier_file_open(tier_file *file, gm_context *ctx, const char *path, gm_error *err) {
  const gm_tier_params params = {.struct_size = sizeof params, .read_only = true};
  *file = (tier_file){.stats.struct_size = sizeof file->stats};
  gm_status status = gm_tier_open(ctx, "disk", path, &params, &file->tier, err);
  if (status == GM_OK) status = gm_tier_get_stats(file->tier, &file->stats, err);
  return status == GM_OK ? tier_list_keys(file, err) : status;
}

gm_status tier_file_close(tier_file *file, gm_error *err) {
  const gm_status status = gm_tier_close(file->tier, err);
  for (size_t i = 0; i < file->count; i++) free(file->keys[i].bytes);
  free(file->keys);
  *file = (tier_file){.tier = NULL};
  return status;
}

gm_status tier_file_describe(const tier_file *file, const tier_key *key, gm_tier_value_info *out) {
  gm_tier_value *value = NULL;
  *out = (gm_tier_value_info){.struct_size = sizeof *out};
  gm_status status = gm_tier_value_open(file->tier, key->bytes, key->count, &value, NULL, NULL);
  if (status == GM_OK) status = gm_tier_value_describe(value, out, NULL);
  gm_tier_value_close(value);
  return status;
}

const char *tier_codec_name(gm_tier_codec codec) {
  switch (codec) {
    case GM_TIER_CODEC_NONE: return "none";
    case GM_TIER_CODEC_LZ4: return "lz4";
    case GM_TIER_CODEC_ZSTD: return "zstd";
    default: return "?";
  }
}

gm_status tier_file_check(tier_file *file, const tier_key *key, uint64_t *done, gm_error *err) {
  gm_tier_value *value = NULL;
  uint64_t bytes = 0;
  void *piece = malloc(TIER_PIECE);
  if (!piece) return tier_no_memory(err);
  gm_status status = gm_tier_value_open(file->tier, key->bytes, key->count, &value, &bytes, err);
  for (uint64_t at = 0, some; status == GM_OK && at < bytes; at += some) {
    some = bytes - at < TIER_PIECE ? bytes - at : TIER_PIECE;
    status = gm_tier_value_read(value, at, piece, some, err);
    if (status == GM_OK) *done += some;
  }
  gm_tier_value_close(value);
  free(piece);
  return status;
}
