/* A backend's answers are input. These functions look at each one where it enters the core. They refuse nonsense that
 * gm would reckon with: GM_ERR_DRIVER with the backend's name. They mend nonsense that only people would read. Answers
 * about memory: core/device/memory_answer.h. */
#ifndef GM_CORE_DISCOVERY_ANSWER_H
#define GM_CORE_DISCOVERY_ANSWER_H

#include "gm/backend.h"
#include "gm/device.h"

/* No driver rounds by more. gm believes no larger alignment, atom or granule. */
#define GM__ANSWER_UNIT_MOST (UINT64_C(1) << 30)

enum { GM__ANSWER_DEVICES_MAX = 256 }; /* of one backend */

/* True for a power of two up to GM__ANSWER_UNIT_MOST. */
bool gm__answer_is_unit(uint64_t bytes);

/* Call it before the first read of a bool that somebody else has written: such a bool can hold any byte. */
void gm__answer_mend_bool(bool *value);

/* Afterwards each text ends, and bools and `type` hold values of their kind. Capabilities that gm does not know are
 * gone, and an atom that is no unit is 1. */
void gm__answer_mend_info(gm_device_info *info);

/* Mend all that another process says of a device, and of its backend. */
void gm__answer_mend_entry(gm_device_entry *entry);
void gm__answer_mend_backend(gm_backend_info *info);

/* Mend a probe's finding: its texts; a count of devices that cannot be becomes 0. */
void gm__answer_mend_found(gm_driver_info *found);

/* Mend what one device says of another. */
void gm__answer_mend_peer(gm_peer_info *info);

/* Mend a backend's reason, so that gm can keep it. */
void gm__answer_mend_reason(gm_error *reason);

/* DRIVER: `alignment` is no unit. */
gm_status gm__answer_check_info(const gm_device_info *info, gm_error *err);

/* atom_bytes 0 becomes 1. DRIVER: it is no unit. */
gm_status gm__answer_check_type(const char *backend, uint32_t index, gm_memory_type *type, gm_error *err);

/* `status` is the answer of a call that makes an object. Returns it, or DRIVER for success with NULL. Without success
 * *object is NULL afterwards. */
gm_status gm__answer_check_object(const char *backend, const char *op, gm_status status, void **object, gm_error *err);

/* DRIVER: no kind of stream. */
gm_status gm__answer_check_kind(const char *backend, gm_stream_kind kind, gm_error *err);

#endif
