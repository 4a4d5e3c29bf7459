/* The common parts of the tests' cards: the CPU backend in disguise, as a device with memory of its own. */
#ifndef GM_TESTS_SUPPORT_DISCRETE_CARD_H
#define GM_TESTS_SUPPORT_DISCRETE_CARD_H

#include "backends/cpu/cpu_backend.h"

static uint32_t card_types; /* how many types of memory the card has */

static inline gm_status card_info(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err) {
  const gm_status status = gm__cpu_backend.device_info(driver, index, device, out, err);
  out->unified = false;
  out->type = GM_DEVICE_TYPE_DISCRETE;
  return status;
}

static inline gm_status card_type_count(void *device, uint32_t *out, gm_error *err) {
  (void)device, (void)err;
  *out = card_types;
  return GM_OK;
}

/* The backend of a card with so many types. The caller puts its own entries in. */
static inline gm_backend_ops card_backend(uint32_t types) {
  gm_backend_ops ops = gm__cpu_backend;
  card_types = types;
  ops.name = "card";
  ops.api = GM_API_OTHER;
  ops.device_info = card_info;
  ops.memory_type_count = card_type_count;
  return ops;
}

#endif
