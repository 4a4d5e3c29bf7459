#include "core/discovery/answer.h"

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

void gm__answer_mend_bool(bool *value) {
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
  gm__answer_mend_bool(&info->uuid_derived);
  gm__answer_mend_bool(&info->has_luid);
  gm__answer_mend_bool(&info->unified);
  gm__answer_mend_bool(&info->simulated);
  if ((unsigned)info->type > GM_DEVICE_TYPE_CPU) info->type = GM_DEVICE_TYPE_UNKNOWN;
  if ((unsigned)info->api > GM_API_OTHER) info->api = GM_API_OTHER;
  if (info->numa_node < 0) info->numa_node = -1;
  if (!gm__answer_is_unit(info->map_atom_bytes)) info->map_atom_bytes = 1;
  info->capabilities &= answer_capabilities;
}

static void answer_mend_memory(gm_memory_info *memory) {
  memory->struct_size = sizeof *memory;
  gm__answer_mend_bool(&memory->unified);
  if ((unsigned)memory->free_state > GM_FIGURE_KNOWN) memory->free_state = GM_FIGURE_UNKNOWN;
  if ((unsigned)memory->total_source > GM_SOURCE_GROUP) memory->total_source = GM_SOURCE_NONE;
  if ((unsigned)memory->free_source > GM_SOURCE_GROUP) memory->free_source = GM_SOURCE_NONE;
  if (memory->free_state == GM_FIGURE_UNKNOWN) memory->free_bytes = GM_UNKNOWN_BYTES;
  if (memory->free_bytes == GM_UNKNOWN_BYTES) memory->free_state = GM_FIGURE_UNKNOWN;
  if (memory->free_state != GM_FIGURE_UNKNOWN && memory->free_bytes > memory->total_bytes) {
    memory->free_bytes = memory->total_bytes;
    memory->free_state = GM_FIGURE_ESTIMATED;
  }
}

void gm__answer_mend_entry(gm_device_entry *entry) {
  entry->struct_size = sizeof *entry;
  gm__answer_mend_info(&entry->info);
  answer_mend_memory(&entry->memory);
  answer_end_text(entry->id.backend, sizeof entry->id.backend);
  answer_end_text(entry->id.partition, sizeof entry->id.partition);
  gm__answer_mend_bool(&entry->host_pool);
  gm__answer_mend_bool(&entry->counted);
}

void gm__answer_mend_reason(gm_error *reason) {
  answer_end_text(reason->op, sizeof reason->op);
  answer_end_text(reason->message, sizeof reason->message);
}

void gm__answer_mend_backend(gm_backend_info *info) {
  info->struct_size = sizeof *info;
  gm__answer_mend_bool(&info->simulated);
  answer_end_text(info->name, sizeof info->name);
  answer_end_text(info->library, sizeof info->library);
  answer_end_text(info->version, sizeof info->version);
  gm__answer_mend_reason(&info->reason);
  if ((unsigned)info->api > GM_API_OTHER) info->api = GM_API_OTHER;
}

void gm__answer_mend_found(gm_driver_info *found) {
  gm__answer_mend_bool(&found->simulated);
  answer_end_text(found->library, sizeof found->library);
  answer_end_text(found->version, sizeof found->version);
  if (found->device_count > GM__ANSWER_DEVICES_MAX) found->device_count = 0;
}

void gm__answer_mend_peer(gm_peer_info *info) {
  answer_end_text(info->why, sizeof info->why);
  gm__answer_mend_bool(&info->direct);
  gm__answer_mend_bool(&info->atomics);
  if (info->rank < 0) info->rank = -1;
}

gm_status gm__answer_check_info(const gm_device_info *info, gm_error *err) {
  if (gm__answer_is_unit(info->alignment)) return GM_OK;
  return gm__fail(err, GM_ERR_DRIVER, "device_info", "backend %s gives an alignment of %" PRIu64, info->backend,
                  info->alignment);
}

enum {
  ANSWER_TYPE_FLAGS = GM_MEMORY_DEVICE_LOCAL | GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_COHERENT |
                      GM_MEMORY_HOST_CACHED | GM_MEMORY_HOST_POINTER | GM_MEMORY_PINNED | GM_MEMORY_MANAGED |
                      GM_MEMORY_APART | GM_MEMORY_WRITE_COMBINED | GM_MEMORY_LAZY | GM_MEMORY_SYSTEM |
                      GM_MEMORY_PERSISTENT_MAP
};

/* An older backend does not know the newer words. A pointer needs no mapping, and page-locked memory is the host's. */
static void answer_mend_type(gm_memory_type *type) {
  const uint32_t card = GM_MEMORY_DEVICE_LOCAL | GM_MEMORY_MANAGED;
  if (type->atom_bytes == 0) type->atom_bytes = 1;
  type->flags &= ANSWER_TYPE_FLAGS;
  if (type->flags & GM_MEMORY_HOST_POINTER) type->flags |= GM_MEMORY_PERSISTENT_MAP;
  if (type->flags & GM_MEMORY_PINNED && !(type->flags & card)) type->flags |= GM_MEMORY_SYSTEM;
}

/* The reason why the flags cannot be true; NULL: they can. */
static const char *answer_type_flaw(uint32_t flags) {
  const bool seen = flags & (GM_MEMORY_HOST_VISIBLE | GM_MEMORY_HOST_POINTER);
  if (flags & GM_MEMORY_WRITE_COMBINED && flags & GM_MEMORY_HOST_CACHED) return "both cached and write-combined";
  if (flags & GM_MEMORY_WRITE_COMBINED && !seen) return "write-combined, but the host cannot see it";
  if (flags & GM_MEMORY_PERSISTENT_MAP && !seen) return "mapped for life, but the host cannot see it";
  if (flags & GM_MEMORY_SYSTEM && flags & GM_MEMORY_MANAGED) return "system memory that migrates to the card";
  return NULL;
}

gm_status gm__answer_check_type(const char *backend, uint32_t index, gm_memory_type *type, gm_error *err) {
  answer_mend_type(type);
  const char *flaw = answer_type_flaw(type->flags);
  if (flaw) {
    return gm__fail(err, GM_ERR_DRIVER, "memory_type", "backend %s gives memory type %" PRIu32 " flags 0x%x: %s",
                    backend, index, type->flags, flaw);
  }
  if (gm__answer_is_unit(type->atom_bytes)) return GM_OK;
  return gm__fail(err, GM_ERR_DRIVER, "memory_type",
                  "backend %s gives memory type %" PRIu32 " an atom of %" PRIu64 " bytes", backend, index,
                  type->atom_bytes);
}

gm_status gm__answer_check_object(const char *backend, const char *op, gm_status status, void **object, gm_error *err) {
  if (status != GM_OK) *object = NULL;
  if (status != GM_OK || *object) return status;
  return gm__fail(err, GM_ERR_DRIVER, op, "backend %s answered success without an object", backend);
}

gm_status gm__answer_check_kind(const char *backend, gm_stream_kind kind, gm_error *err) {
  if ((unsigned)kind <= GM_STREAM_UNORDERED) return GM_OK;
  return gm__fail(err, GM_ERR_DRIVER, "stream_create", "backend %s gives a stream of kind %u", backend, (unsigned)kind);
}
