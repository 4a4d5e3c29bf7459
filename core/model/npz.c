/* Invariants: the list of members ends where the archive's last record begins, and every member lies before the list.
 * Members do not overlap, so their bytes are no more than the file's. Names are ended where their ".npy" began.
 * The records are those of PKWARE's APPNOTE 6.3: 4.3.7 (member), 4.3.12 (list), 4.3.14 to 4.3.16 (ends), 4.5.3 (64
 * bits). */
#include "core/model/npz.h"

#include <string.h>

#include "core/base/error.h"
#include "core/base/little.h"
#include "core/base/utf8.h"
#include "core/model/model_memory.h"

enum {
  NPZ_END_BYTES = 22,
  NPZ_COMMENT_MOST = 65535,
  NPZ_LOCATOR_BYTES = 20,
  NPZ_END64_BYTES = 56,
  NPZ_ENTRY_BYTES = 46,
  NPZ_MEMBER_BYTES = 30,
  NPZ_LIST_MOST = 100000000 /* as the header of safetensors */
};

typedef struct npz_list {
  uint64_t count, bytes, at;
} npz_list;

/* One entry of the list. */
typedef struct npz_entry {
  const unsigned char *record; /* of the list */
  uint64_t at;                 /* of the record, in the file */
  uint32_t flags, method;
  uint64_t packed, bytes, member_at;
  uint32_t name_bytes, extra_bytes, comment_bytes;
} npz_entry;

bool gm__npz_is(const unsigned char first[GM__ZIP_MAGIC_BYTES]) {
  return memcmp(first, "PK\003\004", GM__ZIP_MAGIC_BYTES) == 0 || memcmp(first, "PK\005\006", GM__ZIP_MAGIC_BYTES) == 0;
}

static gm_status npz_broken(const gm__npy_source *source, uint64_t at, const char *what, gm_error *err) {
  return gm__model_fail(err, GM_ERR_FORMAT, source->path, at, "a zip file: %s", what);
}

/* ---- where the list is ---- */

/* The last record, before whose comment nothing of the archive ends. */
static gm_status npz_find_end(const gm__npy_source *source, unsigned char end[NPZ_END_BYTES], uint64_t *out_at,
                              gm_error *err) {
  const uint64_t most = NPZ_END_BYTES + NPZ_COMMENT_MOST, bytes = source->length < most ? source->length : most;
  const uint64_t begin = source->length - bytes;
  void *tail = NULL;
  gm_status status = gm__model_alloc(source->services, bytes, 1, &tail, err);
  if (status == GM_OK) status = gm__npy_take(source, begin, tail, bytes, err);
  bool found = false;
  for (uint64_t at = bytes; status == GM_OK && !found && at-- >= 1;) {
    const unsigned char *here = (const unsigned char *)tail + at;
    if (bytes - at < NPZ_END_BYTES || memcmp(here, "PK\005\006", 4) != 0) continue;
    found = gm__le_get(here + 20, 2) == bytes - at - NPZ_END_BYTES;
    if (found) memcpy(end, here, NPZ_END_BYTES);
    *out_at = begin + at;
  }
  gm__model_release(source->services, tail, bytes, 1);
  if (status == GM_OK && !found) status = npz_broken(source, source->length, "it is cut off", err);
  return status;
}

/* Numbers beyond 32 bits stand in a record of their own before the last one. */
static gm_status npz_find_end64(const gm__npy_source *source, uint64_t end_at, npz_list *list, uint64_t *out_end,
                                gm_error *err) {
  unsigned char locator[NPZ_LOCATOR_BYTES], record[NPZ_END64_BYTES];
  if (end_at < NPZ_LOCATOR_BYTES) return npz_broken(source, end_at, "its 64-bit record is missing", err);
  gm_status status = gm__npy_take(source, end_at - NPZ_LOCATOR_BYTES, locator, sizeof locator, err);
  if (status != GM_OK) return status;
  const uint64_t at = gm__le_get(locator + 8, 8);
  if (memcmp(locator, "PK\006\007", 4) != 0 || at > end_at - NPZ_LOCATOR_BYTES ||
      end_at - NPZ_LOCATOR_BYTES - at < sizeof record) {
    return npz_broken(source, end_at - NPZ_LOCATOR_BYTES, "its 64-bit record is missing", err);
  }
  status = gm__npy_take(source, at, record, sizeof record, err);
  if (status != GM_OK) return status;
  if (memcmp(record, "PK\006\006", 4) != 0) return npz_broken(source, at, "its 64-bit record is missing", err);
  *list = (npz_list){gm__le_get(record + 32, 8), gm__le_get(record + 40, 8), gm__le_get(record + 48, 8)};
  *out_end = at;
  return GM_OK;
}

static gm_status npz_find_list(const gm__npy_source *source, npz_list *out, gm_error *err) {
  unsigned char end[NPZ_END_BYTES] = {0};
  uint64_t end_at = 0;
  gm_status status = npz_find_end(source, end, &end_at, err);
  if (status != GM_OK) return status;
  *out = (npz_list){gm__le_get(end + 10, 2), gm__le_get(end + 12, 4), gm__le_get(end + 16, 4)};
  if (out->count == UINT16_MAX || out->bytes == UINT32_MAX || out->at == UINT32_MAX) {
    status = npz_find_end64(source, end_at, out, &end_at, err);
  }
  if (status != GM_OK) return status;
  if (out->bytes > end_at || out->at != end_at - out->bytes) {
    return npz_broken(source, end_at, "the list of its members is not where it says", err);
  }
  if (out->bytes > NPZ_LIST_MOST) return npz_broken(source, end_at, "the list of its members is above 100 MB", err);
  return GM_OK;
}

/* ---- one entry ---- */

/* A number that 32 bits do not hold is the next one of the entry's field of 64-bit numbers. */
static bool npz_wide(const unsigned char **at, const unsigned char *end, uint64_t *number) {
  if (*number != UINT32_MAX) return true;
  if (end - *at < 8) return false;
  *number = gm__le_get(*at, 8);
  *at += 8;
  return true;
}

static bool npz_read_wide(npz_entry *entry) {
  const unsigned char *at = entry->record + NPZ_ENTRY_BYTES + entry->name_bytes, *end = at + entry->extra_bytes;
  while (end - at >= 4) {
    const uint64_t kind = gm__le_get(at, 2), bytes = gm__le_get(at + 2, 2);
    at += 4;
    if (bytes > (uint64_t)(end - at)) return false;
    if (kind == 1) {
      end = at + bytes;
      return npz_wide(&at, end, &entry->bytes) && npz_wide(&at, end, &entry->packed) &&
             npz_wide(&at, end, &entry->member_at);
    }
    at += bytes;
  }
  return entry->bytes != UINT32_MAX && entry->packed != UINT32_MAX && entry->member_at != UINT32_MAX;
}

static gm_status npz_read_entry(const gm__npy_source *source, const npz_list *list, const unsigned char *text,
                                uint64_t at, npz_entry *out, gm_error *err) {
  const unsigned char *record = text + at;
  const uint64_t left = list->bytes - at;
  if (left < NPZ_ENTRY_BYTES || memcmp(record, "PK\001\002", 4) != 0) {
    return npz_broken(source, list->at + at, "a member must be listed here", err);
  }
  *out = (npz_entry){.record = record,
                     .at = list->at + at,
                     .flags = (uint32_t)gm__le_get(record + 8, 2),
                     .method = (uint32_t)gm__le_get(record + 10, 2),
                     .packed = gm__le_get(record + 20, 4),
                     .bytes = gm__le_get(record + 24, 4),
                     .member_at = gm__le_get(record + 42, 4),
                     .name_bytes = (uint32_t)gm__le_get(record + 28, 2),
                     .extra_bytes = (uint32_t)gm__le_get(record + 30, 2),
                     .comment_bytes = (uint32_t)gm__le_get(record + 32, 2)};
  const uint64_t more = (uint64_t)out->name_bytes + out->extra_bytes + out->comment_bytes;
  if (more > left - NPZ_ENTRY_BYTES || !npz_read_wide(out)) {
    return npz_broken(source, out->at, "the entry of a member is cut off", err);
  }
  return GM_OK;
}

/* The member's name in the list's text, ended where ".npy" began. */
static gm_status npz_name(const gm__npy_source *source, const npz_entry *entry, gm__json_text *out, gm_error *err) {
  char *name = (char *)(uintptr_t)(entry->record + NPZ_ENTRY_BYTES);
  if (entry->name_bytes < 5 || memcmp(name + entry->name_bytes - 4, ".npy", 4) != 0) {
    return gm__model_fail(err, GM_ERR_FORMAT, source->path, entry->at,
                          "this is an archive with members that are no NumPy arrays, such as PyTorch's checkpoints; gm "
                          "reads no pickles. Save it as safetensors");
  }
  const uint64_t bytes = entry->name_bytes - 4;
  if (memchr(name, '\0', bytes) || !gm__utf8_is(name, bytes))
    return npz_broken(source, entry->at, "the name of a member is not UTF-8", err);
  name[bytes] = '\0';
  *out = (gm__json_text){.text = name, .length = bytes, .at = (uint64_t)NPZ_ENTRY_BYTES};
  return GM_OK;
}

static gm_status npz_check_stored(const gm__npy_source *source, const npz_entry *entry, const char *name,
                                  gm_error *err) {
  const char *why = NULL;
  if (entry->flags & 1) why = "is encrypted";
  if (entry->method) why = "is compressed: save it by numpy.savez, not by savez_compressed";
  if (why) {
    return gm__model_fail(err, GM_ERR_NOT_SUPPORTED, source->path, entry->at, "a zip file: \"%.80s\" %s", name, why);
  }
  if (entry->packed == entry->bytes) return GM_OK;
  return npz_broken(source, entry->at, "a member that is not compressed has two sizes", err);
}

/* Where the data of a member lie. */
static gm_status npz_find_member(const gm__npy_source *source, const npz_list *list, const npz_entry *entry,
                                 uint64_t *out_at, gm_error *err) {
  unsigned char record[NPZ_MEMBER_BYTES];
  if (entry->member_at > list->at || list->at - entry->member_at < sizeof record) {
    return npz_broken(source, entry->at, "a member lies outside of the file", err);
  }
  const gm_status status = gm__npy_take(source, entry->member_at, record, sizeof record, err);
  if (status != GM_OK) return status;
  if (memcmp(record, "PK\003\004", 4) != 0) return npz_broken(source, entry->member_at, "a member must be here", err);
  *out_at = entry->member_at + sizeof record + gm__le_get(record + 26, 2) + gm__le_get(record + 28, 2);
  if (*out_at > list->at || list->at - *out_at < entry->bytes) {
    return npz_broken(source, entry->at, "a member lies outside of the file", err);
  }
  return GM_OK;
}

/* ---- the archive ---- */

static gm_status npz_add(const gm__npy_source *source, const npz_list *list, const npz_entry *entry,
                         gm__contents *contents, gm_error *err) {
  gm__tensor tensor = {0};
  uint64_t dims[GM_TENSOR_MAX_RANK], at = 0;
  gm_status status = npz_name(source, entry, &tensor.name, err);
  if (status == GM_OK) status = npz_check_stored(source, entry, tensor.name.text, err);
  if (status == GM_OK) status = npz_find_member(source, list, entry, &at, err);
  if (status == GM_OK) status = gm__npy_header(source, at, at + entry->bytes, false, &tensor, dims, err);
  tensor.name.at += entry->at - list->at;
  return status == GM_OK ? gm__contents_add_tensor(source->services, contents, &tensor, dims, err) : status;
}

static gm_status npz_check_overlap(const gm__npy_source *source, gm__contents *contents, gm_error *err) {
  uint64_t end = 0;
  for (uint64_t i = 0; i < contents->tensor_count; i++) {
    const gm__tensor *tensor = &contents->tensors[contents->by_place[i]];
    if (tensor->begin < end) return npz_broken(source, tensor->begin, "two members overlap", err);
    end = tensor->begin + tensor->bytes;
    contents->tensor_bytes += tensor->bytes;
  }
  return GM_OK;
}

static gm_status npz_add_all(const gm__npy_source *source, const npz_list *list, gm__contents *contents,
                             gm_error *err) {
  uint64_t at = 0;
  const unsigned char *text = (const unsigned char *)contents->header;
  for (uint64_t i = 0; i < list->count; i++) {
    npz_entry entry = {0};
    gm_status status = npz_read_entry(source, list, text, at, &entry, err);
    if (status == GM_OK) status = npz_add(source, list, &entry, contents, err);
    if (status != GM_OK) return status;
    at += (uint64_t)NPZ_ENTRY_BYTES + entry.name_bytes + entry.extra_bytes + entry.comment_bytes;
  }
  if (at == list->bytes) return GM_OK;
  return npz_broken(source, list->at + at, "more members are listed than it has", err);
}

gm_status gm__npz_read(const gm__npy_source *source, gm__contents *out, gm_error *err) {
  gm__contents contents = {0};
  npz_list list = {0};
  void *text = NULL;
  gm_status status = npz_find_list(source, &list, err);
  if (status == GM_OK) status = gm__model_alloc(source->services, list.bytes, 1, &text, err);
  if (status == GM_OK) {
    contents.header = text;
    contents.header_bytes = list.bytes;
    contents.header_at = list.at;
    contents.data_bytes = list.at;
    status = gm__npy_take(source, list.at, text, list.bytes, err);
  }
  if (status == GM_OK) status = npz_add_all(source, &list, &contents, err);
  if (status == GM_OK) status = gm__contents_order(source->services, &contents, err);
  if (status == GM_OK) status = npz_check_overlap(source, &contents, err);
  return gm__contents_finish(source->services, status, &contents, out);
}
