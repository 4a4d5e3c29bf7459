/* Invariants: nothing is believed before it is held against the bytes that the file has. Values come before tensors,
 * since one of them is the alignment. */
#include "core/model/gguf.h"

#include <string.h>

#include "core/model/gguf_values.h"

enum { GGUF_VERSION_LAST = 3, GGUF_ALIGNMENT_DEFAULT = 32 };

bool gm__gguf_is(const unsigned char first[GM__GGUF_MAGIC_BYTES]) {
  return memcmp(first, "GGUF", GM__GGUF_MAGIC_BYTES) == 0;
}

static bool gguf_read_version(gm__gguf_reader *reader) {
  uint64_t magic = 0;
  if (!gm__gguf_take(reader, GM__GGUF_MAGIC_BYTES, "the magic", &magic)) return false;
  if (!gm__gguf_is((const unsigned char *)reader->contents->header)) {
    return gm__gguf_fail(reader, GM_ERR_FORMAT, 0, "no GGUF file: it does not begin with \"GGUF\"");
  }
  if (!gm__gguf_u32(reader, "the version", &reader->version)) return false;
  uint32_t version = reader->version, swapped = version >> 24 | (version >> 8 & 0xff00);
  if ((version & 0xffff) == 0 && swapped > 0 && swapped <= GGUF_VERSION_LAST) {
    return gm__gguf_fail(reader, GM_ERR_NOT_SUPPORTED, 4,
                         "a big-endian GGUF file: its numbers are the wrong way round");
  }
  if (version >= 1 && version <= GGUF_VERSION_LAST) return true;
  return gm__gguf_fail(reader, version == 0 ? GM_ERR_FORMAT : GM_ERR_NOT_SUPPORTED, 4,
                       "GGUF version %u, gm knows 1 to %d", version, (int)GGUF_VERSION_LAST);
}

static bool gguf_alignment(gm__gguf_reader *reader, uint64_t *out) {
  const gm__value *value = gm__contents_find_value(reader->contents, "general.alignment");
  *out = GGUF_ALIGNMENT_DEFAULT;
  if (!value) return true;
  bool good = value->type == GM__GGUF_U32 && gm__value_u64(reader->contents, value, 0, out);
  if (good && *out >= 1 && (*out & (*out - 1)) == 0) return true;
  return gm__gguf_fail(reader, GM_ERR_FORMAT, value->key.at, "general.alignment is no power of two of type u32");
}

/* Where the data begins: the file may end before where no tensor has any. */
static bool gguf_place_data(gm__gguf_reader *reader, uint64_t alignment) {
  gm__contents *contents = reader->contents;
  contents->data_at = (reader->at + alignment - 1) / alignment * alignment;
  if (contents->header_only) {
    contents->data_bytes = UINT64_MAX - contents->data_at;
  } else if (reader->file_bytes > contents->data_at) {
    contents->data_bytes = reader->file_bytes - contents->data_at;
  }
  return gm__gguf_place_tensors(reader);
}

/* Strings among the values are what gm_model_metadata gives. */
static bool gguf_list_strings(gm__gguf_reader *reader) {
  gm__contents *contents = reader->contents;
  for (uint64_t i = 0; i < contents->value_count; i++) {
    const gm__value *value = &contents->values[i];
    if (value->type != GM__GGUF_STRING) continue;
    gm__metadata pair = {value->key, gm__value_string(contents, value, 0)};
    if (!gm__gguf_keep(reader, gm__contents_add_metadata(reader->services, contents, &pair, reader->err))) return false;
  }
  return true;
}

static bool gguf_read_all(gm__gguf_reader *reader) {
  uint64_t tensors = 0, values = 0, alignment = 0;
  if (!gguf_read_version(reader) || !gm__gguf_size(reader, "the number of tensors", &tensors) ||
      !gm__gguf_size(reader, "the number of values", &values)) {
    return false;
  }
  bool read = gm__gguf_read_values(reader, values) && gguf_alignment(reader, &alignment) &&
              gm__gguf_read_tensors(reader, tensors, alignment);
  gm__gguf_point_keys(reader->contents);
  return read && gguf_place_data(reader, alignment) && gguf_list_strings(reader);
}

static gm_status gguf_build(gm__gguf_reader *reader, gm__contents *out) {
  gguf_read_all(reader);
  return gm__contents_finish(reader->services, reader->status, reader->contents, out);
}

gm_status gm__gguf_read(const gm_services *services, const gm__input_file *file, const char *path, bool header_only,
                        gm__contents *out, gm_error *err) {
  gm__contents contents = {.header_only = header_only};
  gm__gguf_reader reader = {
      .services = services, .path = path, .file = file, .file_bytes = file->bytes, .contents = &contents, .err = err};
  return gguf_build(&reader, out);
}

gm_status gm__gguf_parse(const gm_services *services, const void *bytes, uint64_t length, const char *path,
                         bool header_only, gm__contents *out, gm_error *err) {
  gm__contents contents = {.header_only = header_only};
  gm__gguf_reader reader = {
      .services = services, .path = path, .memory = bytes, .file_bytes = length, .contents = &contents, .err = err};
  return gguf_build(&reader, out);
}
