/* A backend's answers about memory of an open device. They are input, like those of core/device/answer.h. Each check
 * refuses nonsense with GM_ERR_DRIVER and the backend's name. Where a backend said success, a check that refuses gives
 * back what came. */
#ifndef GM_CORE_DEVICE_MEMORY_ANSWER_H
#define GM_CORE_DEVICE_MEMORY_ANSWER_H

#include "core/device/device.h"

/* The question of gm. */
typedef struct gm__answer_asked {
  const char *op;
  uint64_t bytes;
  uint32_t type;
  uint64_t align;   /* 0: any */
  uint64_t address; /* exactly `bytes` at this address; 0: any address, and rounding is fine */
} gm__answer_asked;

/* Memory that the backend gave; `wrapped` is mended. DRIVER: no handle, fewer bytes or more than rounding explains,
 * another address or type. It refuses an end behind all addresses, too, and a host pointer of a type that has none. */
gm_status gm__answer_check_memory(const gm_device *device, const gm__answer_asked *asked, gm_memory *memory,
                                  gm_error *err);

/* Addresses that the backend reserved. DRIVER: 0, no multiple of `align`, an end behind all addresses. */
gm_status gm__answer_check_range(const gm_device *device, uint64_t address, uint64_t bytes, uint64_t align,
                                 gm_error *err);

/* Memory that the engine lent; `wrapped` is set. DRIVER: no handle, no bytes, an end behind all addresses, a host
 * pointer of a type that has none. */
gm_status gm__answer_check_wrapped(const gm_device *device, gm_memory *memory, gm_error *err);

/* Memory of another process. DRIVER: no handle, fewer than `bytes`, an end behind all addresses, a host pointer of a
 * type that has none. */
gm_status gm__answer_check_import(const gm_device *device, uint64_t bytes, gm_memory *memory, gm_error *err);

/* `status` is the answer of a call that makes a native object of a block. Returns it, or DRIVER for success with 0. */
gm_status gm__answer_check_word(const gm_device *device, const char *op, gm_status status, uint64_t word,
                                gm_error *err);

#endif
