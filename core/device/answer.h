/* What a backend answers is input. Each answer is looked at here, where it enters the core: nonsense that gm would
 * reckon with is refused with GM_ERR_DRIVER and the backend's name, nonsense that people would only read is mended. */
#ifndef GM_CORE_DEVICE_ANSWER_H
#define GM_CORE_DEVICE_ANSWER_H

#include "core/device/device.h"

/* No driver rounds by more: the largest alignment, atom or granule that is believed. */
#define GM__ANSWER_UNIT_MOST (UINT64_C(1) << 30)

/* A power of two up to GM__ANSWER_UNIT_MOST. */
bool gm__answer_is_unit(uint64_t bytes);

/* Whatever someone else has left in it, its texts end, its bools and `type` are of their kind, it has no capability
 * that gm does not know, and a unit that nobody reckons with is 1 where it is none. */
void gm__answer_mend_info(gm_device_info *info);

/* DRIVER: `alignment` is no unit. */
gm_status gm__answer_check_info(const gm_device_info *info, gm_error *err);

/* atom_bytes 0 becomes 1. DRIVER: it is no unit. */
gm_status gm__answer_check_type(const char *backend, uint32_t index, gm_memory_type *type, gm_error *err);

/* What a call that makes an object answered: `status`; DRIVER for success with NULL. Without success *object is NULL.
 */
gm_status gm__answer_check_object(const char *backend, const char *op, gm_status status, void **object, gm_error *err);

/* DRIVER: no kind of stream. */
gm_status gm__answer_check_kind(const char *backend, gm_stream_kind kind, gm_error *err);

#endif
