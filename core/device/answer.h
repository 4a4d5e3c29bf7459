/* What a backend answers is input. Each answer is looked at here, where it enters the core: nonsense that gm would
 * reckon with is refused with GM_ERR_DRIVER and the backend's name, nonsense that people would only read is mended. */
#ifndef GM_CORE_DEVICE_ANSWER_H
#define GM_CORE_DEVICE_ANSWER_H

#include "core/device/device.h"

/* No driver rounds by more: the largest alignment, atom or granule that is believed. */
#define GM__ANSWER_UNIT_MOST (UINT64_C(1) << 30)

enum { GM__ANSWER_DEVICES_MAX = 256 }; /* of one backend */

/* A power of two up to GM__ANSWER_UNIT_MOST. */
bool gm__answer_is_unit(uint64_t bytes);

/* A bool that somebody else has written can hold any byte: it must not be read as one before. */
void gm__answer_mend_bool(bool *value);

/* Whatever someone else has left in it, its texts end, its bools and `type` are of their kind, it has no capability
 * that gm does not know, and a unit that nobody reckons with is 1 where it is none. */
void gm__answer_mend_info(gm_device_info *info);

/* The same for all that a process of somebody else's says of a device, and of its backend. */
void gm__answer_mend_entry(gm_device_entry *entry);
void gm__answer_mend_backend(gm_backend_info *info);

/* What a probe found: texts, and a count of devices that cannot be is 0. */
void gm__answer_mend_found(gm_driver_info *found);

/* What two devices have of each other. */
void gm__answer_mend_peer(gm_peer_info *info);

/* What a backend says why, so that it can be kept. */
void gm__answer_mend_reason(gm_error *reason);

/* DRIVER: `alignment` is no unit. */
gm_status gm__answer_check_info(const gm_device_info *info, gm_error *err);

/* atom_bytes 0 becomes 1. DRIVER: it is no unit. */
gm_status gm__answer_check_type(const char *backend, uint32_t index, gm_memory_type *type, gm_error *err);

/* What a call that makes an object answered: `status`; DRIVER for success with NULL. Without success *object is NULL.
 */
gm_status gm__answer_check_object(const char *backend, const char *op, gm_status status, void **object, gm_error *err);

/* What was asked of memory that a backend gives. */
typedef struct gm__answer_asked {
  const char *op;
  uint64_t bytes;
  uint32_t type;
  uint64_t align;   /* 0: any */
  uint64_t address; /* of so many bytes, no more; 0: any */
} gm__answer_asked;

/* `wrapped` is mended. DRIVER: no handle, fewer bytes or more than rounding explains, another address or type, an end
 * behind all addresses, a host pointer of a type that has none. What came is let go of with memory_free then. */
gm_status gm__answer_check_memory(const gm_device *device, const gm__answer_asked *asked, gm_memory *memory,
                                  gm_error *err);

/* Reserved addresses. DRIVER: 0, no multiple of `align`, an end behind all addresses. */
gm_status gm__answer_check_range(const gm_device *device, uint64_t address, uint64_t bytes, uint64_t align,
                                 gm_error *err);

/* What the engine lent; `wrapped` is set. DRIVER: no handle, no bytes, an end behind all addresses, a host pointer of a
 * type that has none. What came is let go of. */
gm_status gm__answer_check_wrapped(const gm_device *device, gm_memory *memory, gm_error *err);

/* The same for memory of another process, all `bytes` of it. */
gm_status gm__answer_check_import(const gm_device *device, uint64_t bytes, gm_memory *memory, gm_error *err);

/* What a call that makes a native object of a block answered: `status`; DRIVER for success with 0. */
gm_status gm__answer_check_word(const gm_device *device, const char *op, gm_status status, uint64_t word,
                                gm_error *err);

/* DRIVER: no kind of stream. */
gm_status gm__answer_check_kind(const char *backend, gm_stream_kind kind, gm_error *err);

#endif
