#include "core/device/answer.h"

#include <inttypes.h>
#include <string.h>

#include "core/base/error.h"

static const uint64_t answer_capabilities = 0
#define X(name, bit, word, text) | (UINT64_C(1) << (bit))
    GM_CAPABILITY_MAP(X)
#undef X
    ;

bool gm__answer_is_unit(uint64_t bytes) {
  return bytes > 0 && (bytes & (bytes - 1)) == 0 && bytes <= GM__ANSWER_UNIT_MOST;
}

/* A bool that somebody else has written can hold any byte, and must not be read as one before. */
static void answer_mend_bool(bool *value) {
  unsigned char byte;
  memcpy(&byte, value, sizeof byte);
  *value = byte != 0;
}

static void answer_end_text(char *text, size_t capacity) { text[capacity - 1] = '\0'; }

void gm__answer_mend_info(gm_device_info *info) {
  answer_end_text(info->backend, sizeof info->backend);
  answer_end_text(info->name, sizeof info->name);
  answer_end_text(info->vendor, sizeof info->vendor);
  answer_end_text(info->driver, sizeof info->driver);
  answer_end_text(info->version, sizeof info->version);
  answer_end_text(info->capability, sizeof info->capability);
  answer_end_text(info->pci, sizeof info->pci);
  answer_end_text(info->partition, sizeof info->partition);
  answer_mend_bool(&info->uuid_derived);
  answer_mend_bool(&info->has_luid);
  answer_mend_bool(&info->unified);
  answer_mend_bool(&info->simulated);
  if ((unsigned)info->type > GM_DEVICE_TYPE_CPU) info->type = GM_DEVICE_TYPE_UNKNOWN;
  if ((unsigned)info->api > GM_API_OTHER) info->api = GM_API_OTHER;
  if (info->numa_node < 0) info->numa_node = -1;
  if (!gm__answer_is_unit(info->map_atom_bytes)) info->map_atom_bytes = 1;
  info->capabilities &= answer_capabilities;
}

gm_status gm__answer_check_info(const gm_device_info *info, gm_error *err) {
  if (gm__answer_is_unit(info->alignment)) return GM_OK;
  return gm__fail(err, GM_ERR_DRIVER, 0, "device_info", "backend %s gives an alignment of %" PRIu64, info->backend,
                  info->alignment);
}

gm_status gm__answer_check_type(const char *backend, uint32_t index, gm_memory_type *type, gm_error *err) {
  if (type->atom_bytes == 0) type->atom_bytes = 1;
  if (gm__answer_is_unit(type->atom_bytes)) return GM_OK;
  return gm__fail(err, GM_ERR_DRIVER, 0, "memory_type",
                  "backend %s gives memory type %" PRIu32 " an atom of %" PRIu64 " bytes", backend, index,
                  type->atom_bytes);
}

gm_status gm__answer_check_object(const char *backend, const char *op, gm_status status, void **object, gm_error *err) {
  if (status != GM_OK) *object = NULL;
  if (status != GM_OK || *object) return status;
  return gm__fail(err, GM_ERR_DRIVER, 0, op, "backend %s answered success without an object", backend);
}

gm_status gm__answer_check_kind(const char *backend, gm_stream_kind kind, gm_error *err) {
  if ((unsigned)kind <= GM_STREAM_UNORDERED) return GM_OK;
  return gm__fail(err, GM_ERR_DRIVER, 0, "stream_create", "backend %s gives a stream of kind %u", backend,
                  (unsigned)kind);
}
