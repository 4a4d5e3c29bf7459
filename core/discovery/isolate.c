/* Invariant: the helper's answer is checked like a caller's file, because a driver ran in that process. */
#include "core/discovery/isolate.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/discovery/answer.h"
#include "core/discovery/device_entry.h"
#include "core/discovery/helper.h"

static bool isolate_head_ok(const gm__driver *driver, const gm__isolate_head *head) {
  return head->magic == GM__ISOLATE_MAGIC && head->info_size == sizeof head->info &&
         head->entry_size == sizeof(gm_device_entry) && head->entry_count <= GM__ANSWER_DEVICES_MAX &&
         strncmp(head->info.name, driver->info.name, sizeof head->info.name) == 0 &&
         strcmp(gm_status_name(head->info.status), gm_status_name((gm_status)-1)) != 0 &&
         (head->info.status == GM_OK) == (head->entry_count > 0);
}

/* The backend is who we asked for, and its devices are numbered as they came. */
static void isolate_enter(gm__driver *driver, gm__isolate_head *head, gm_device_entry *entries) {
  memcpy(head->info.name, driver->info.name, sizeof head->info.name);
  head->info.api = driver->info.api;
  driver->info = head->info;
  for (uint32_t i = 0; i < head->entry_count; i++) {
    gm__answer_mend_entry(&entries[i]);
    gm__device_entry_enter(driver, i, &entries[i]);
  }
}

static gm_status isolate_receive(gm__driver *driver, const gm__helper *child, gm_error *err) {
  const gm_services *services = gm__context_services(driver->ctx);
  gm__isolate_head head;
  gm_status status = gm__helper_read(child, &head, sizeof head, err);
  if (status != GM_OK) return status;
  gm__answer_mend_backend(&head.info);
  if (!isolate_head_ok(driver, &head)) {
    return gm__fail(err, GM_ERR_FORMAT, "gm-probe",
                    "the probe helper is not of this version of gm, or its answer is damaged");
  }
  size_t bytes = head.entry_count * sizeof(gm_device_entry);
  gm_device_entry *entries = gm__alloc(services, bytes);
  if (!entries) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm-probe", "no host memory for its answer");
  status = gm__helper_read(child, entries, bytes, err);
  if (status != GM_OK) {
    gm__release(services, entries, bytes);
    return status;
  }
  gm__release(services, driver->entries, driver->entry_count * sizeof *driver->entries);
  driver->entries = entries;
  driver->entry_count = head.entry_count;
  isolate_enter(driver, &head, entries);
  if (head.info.status != GM_OK && err) *err = head.info.reason;
  return head.info.status;
}

bool gm__isolate_looks(gm_api api, const gm_device_entry *entry) {
  const gm_memory_info *memory = &entry->memory;
  const bool asks = api == GM_API_CUDA || api == GM_API_HIP || api == GM_API_OTHER;
  return asks && entry->info.type != GM_DEVICE_TYPE_CPU &&
         (memory->free_state == GM_FIGURE_UNKNOWN || memory->free_source == GM_SOURCE_OWN_ACCOUNTING);
}

/* A look of the helper is of one moment, so its figure is an estimate. One without a figure leaves the entry as it is.
 */
static void isolate_enter_look(gm_device_entry *entry, const gm__isolate_look *look) {
  if (look->status != GM_OK) return;
  gm_device_entry seen = *entry;
  seen.memory = look->memory;
  gm__answer_mend_entry(&seen);
  if (seen.memory.free_state == GM_FIGURE_UNKNOWN) return;
  seen.memory.free_state = GM_FIGURE_ESTIMATED;
  entry->memory = seen.memory;
}

/* Reads the looks. *out_index: the card that was open when they ended. */
static gm_status isolate_receive_looks(gm__driver *driver, gm__helper *child, uint32_t *out_index, gm_error *err) {
  for (uint32_t i = 0; i < driver->entry_count; i++) {
    gm__isolate_look look;
    if (!gm__isolate_looks(driver->info.api, &driver->entries[i])) continue;
    *out_index = i;
    gm__helper_limit(child, GM__ISOLATE_LOOK_MS);
    const gm_status status = gm__helper_read(child, &look, sizeof look, err);
    if (status != GM_OK) return status;
    if (look.index != i) return gm__fail(err, GM_ERR_FORMAT, "gm-probe", "the probe helper's look is damaged");
    isolate_enter_look(&driver->entries[i], &look);
  }
  return GM_OK;
}

/* The backend has answered: whatever comes now is about one card. */
static void isolate_look(gm__driver *driver, gm__helper *child) {
  uint32_t index = 0;
  gm_error why = {.status = GM_OK};
  gm_status status = isolate_receive_looks(driver, child, &index, &why);
  status = gm__helper_end(child, status, &why);
  const bool hung = status == GM_ERR_TIMEOUT, killed = status == GM_ERR_UNAVAILABLE && why.native_code;
  if (!hung && !killed) return;
  driver->deadly = driver->entries[index].id;
  gm__fail_native(
      &driver->deadly_why, status, why.native_code, "gm-probe",
      hung ? "did not open in %d s in the probe helper" : "opening it ended the probe helper with signal %d",
      hung ? GM__ISOLATE_LOOK_MS / 1000 : (int)why.native_code);
}

gm_status gm__isolate(gm__driver *driver, gm_error *err) {
  gm__helper child;
  const char *const words[GM__HELPER_WORDS] = {driver->info.name, driver->library, driver->options,
                                               driver->module[0] ? driver->module : NULL};
  gm_status status = gm__helper_start(driver->ctx, words, GM__ISOLATE_TIMEOUT_MS, &child, err);
  if (status != GM_OK) return status;
  driver->deadly_why = (gm_error){.status = GM_OK};
  status = isolate_receive(driver, &child, err);
  if (status != GM_OK) return gm__helper_end(&child, status, err);
  isolate_look(driver, &child);
  return GM_OK;
}
