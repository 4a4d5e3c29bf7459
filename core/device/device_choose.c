/* Opening the device on which some bytes fit. Invariant: each device that was opened and not taken is closed again. */
#include <stdio.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/device/device.h"
#include "core/discovery/device_figures.h"
#include "core/discovery/selection.h"

/* No other device would do better. */
static bool device_open_is_over(gm_status status) {
  return status == GM_ERR_OUT_OF_HOST_MEMORY || status == GM_ERR_INVALID_ARGUMENT || status == GM_ERR_FORKED;
}

/* Asks the open device itself: what was known of it before may have been an estimate, and others may have come. *why is
 * "" if the bytes fit, and if the device works and does not say. */
static gm_status device_ask_room(gm_device *device, const gm__choosing *choosing, gm__choosing_why *why,
                                 gm_error *err) {
  gm_memory_info memory = {.struct_size = sizeof memory};
  const gm__figures_subject subject = {.driver = device->driver, .info = &device->info, .device = device->handle};
  const gm_status status = gm__device_figures(&subject, &memory, err);
  gm_error lost;
  if (status) return status;
  if (memory.free_state != GM_FIGURE_UNKNOWN) {
    gm__choosing_judge(choosing, &memory, why);
  } else if (device->ops->device_state(device->handle, &lost)) {
    snprintf(why->text, sizeof why->text, "does not work: %.*s", GM__CHOOSING_REASON, lost.message);
  }
  return GM_OK;
}

/* Opens the chosen device, and closes it again if the bytes do not fit. *out stays NULL then, and *why says why. */
static gm_status device_open_chosen(gm_context *ctx, const gm__choosing *choosing, const gm_selection *chosen,
                                    gm_device **out, gm__choosing_why *why, gm_error *err) {
  gm_device *device = NULL;
  gm_error refusal = {.status = GM_OK};
  gm_status status = gm_device_open(ctx, &chosen->id, &device, &refusal);
  if (status && err) *err = refusal;
  if (device_open_is_over(status)) return status;
  if (status) {
    snprintf(why->text, sizeof why->text, "cannot be opened: %.*s", GM__CHOOSING_REASON, refusal.message);
    return GM_OK;
  }
  status = device_ask_room(device, choosing, why, err);
  if (status || why->text[0]) {
    gm_device_close(device, NULL);
  } else {
    *out = device;
  }
  return status;
}

/* Each round takes one device out of the choice, so it ends. */
static gm_status device_open_best(gm_context *ctx, gm__choosing *choosing, gm_selection *chosen, gm_device **out,
                                  gm_error *err) {
  gm_device *device = NULL;
  gm_status status = GM_OK;
  while (!status && !device) {
    gm__choosing_why why = {.text = ""};
    status = gm__choosing_best(choosing, chosen, err);
    if (!status) status = device_open_chosen(ctx, choosing, chosen, &device, &why, err);
    if (why.text[0]) gm__choosing_refuse(choosing, chosen, &why);
  }
  if (!status) *out = device;
  return status;
}

gm_status gm_open_for_bytes(gm_context *ctx, const char *prefer, uint64_t bytes, gm_device **out, gm_error *err) {
  GM__UNCANCELLED();
  static const char op[] = "gm_open_for_bytes";
  if (!out) return gm__bad_argument(err, op, "`out` is NULL");
  const gm_select_params params = {.struct_size = sizeof params, .prefer = prefer};
  gm__choosing *choosing = NULL;
  gm_status status = gm__context_check(ctx, op, err);
  if (!status) status = gm__choosing_begin(ctx, bytes, &params, &choosing, err);
  if (status) return status;
  const gm_services *services = gm__context_services(ctx);
  gm_selection *chosen = gm__alloc(services, sizeof *chosen); /* it is too large for a small stack */
  status = chosen ? device_open_best(ctx, choosing, chosen, out, err)
                  : gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, op, "no host memory to select");
  gm__release(services, chosen, chosen ? sizeof *chosen : 0);
  gm__choosing_end(choosing);
  return status;
}
