#include "core/device/import.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/device/device.h"
#include "core/device/memory_answer.h"

/* gm opens a driver allocation as a whole, once for a device, whichever part of it a block is. A driver may refuse to
 * open a handle twice, or give it another address. Invariants, under the device's share_lock: every import in the list
 * has users. An import leaves the list and is closed before any thread can open its handle anew. gm keeps a copy of the
 * descriptor that an import was opened from, so that its inode is not given to another file. */

struct gm__import {
  gm__import *next;
  gm_shared shared; /* as it was opened: kind, whole bytes, IPC bytes; `fd` is gm's own copy, -1: none is kept */
  uint64_t file[2]; /* the file behind `fd`, where a copy is kept */
  gm_memory memory;
  uint64_t users;
};

/* The open import of the same driver allocation. NULL: it is not open, or cannot be told apart. REQUIRES:
 * share_lock. */
static gm__import *import_find(const gm_device *device, const gm_shared *shared, const uint64_t *file) {
  for (gm__import *opened = device->opened; opened; opened = opened->next) {
    const gm_shared *known = &opened->shared;
    if (known->kind != shared->kind || known->whole_bytes != shared->whole_bytes) continue;
    const bool same = file ? known->fd >= 0 && memcmp(opened->file, file, sizeof opened->file) == 0
                           : known->kind == GM_SHARE_IPC && memcmp(known->ipc, shared->ipc, sizeof known->ipc) == 0;
    if (same) return opened;
  }
  return NULL;
}

static void import_discard(const gm_device *device, gm__import *opened) {
  gm__descriptor_close(opened->shared.fd);
  gm__release(gm__context_services(device->ctx), opened, sizeof *opened);
}

static gm_status import_open_new(gm_device *device, const gm_shared *shared, const uint64_t *file, gm__import **out,
                                 gm_error *err) {
  gm__import *opened = gm__alloc(gm__context_services(device->ctx), sizeof *opened);
  if (!opened) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "gm_block_import", "no host memory for its record");
  *opened = (gm__import){.shared = *shared, .users = 1};
  opened->shared.offset = 0;
  opened->shared.bytes = shared->whole_bytes;
  gm_status status = device->ops->share_import(device->handle, &opened->shared, &opened->memory, err);
  opened->shared.fd = -1;
  if (!status) status = gm__answer_check_import(device, shared->whole_bytes, &opened->memory, err);
  if (status) {
    import_discard(device, opened);
    return status;
  }
  if (file) {
    opened->shared.fd = gm__descriptor_copy(shared->fd); /* without one it is merely opened again */
    memcpy(opened->file, file, sizeof opened->file);
  }
  opened->next = device->opened;
  device->opened = opened;
  *out = opened;
  return GM_OK;
}

const gm_memory *gm__import_memory(const gm__import *self) { return &self->memory; }

gm_status gm__import_open(gm_device *device, const gm_shared *shared, gm__import **out, gm_error *err) {
  uint64_t identity[2];
  const bool known =
      (shared->kind == GM_SHARE_FD || shared->kind == GM_SHARE_DMABUF) && gm__descriptor_identity(shared->fd, identity);
  const uint64_t *file = known ? identity : NULL;
  gm_status status = GM_OK;
  gm__mutex_lock(&device->share_lock);
  gm__import *opened = import_find(device, shared, file);
  if (opened) {
    opened->users++;
    *out = opened;
  } else {
    status = import_open_new(device, shared, file, out, err);
  }
  gm__mutex_unlock(&device->share_lock);
  if (status == GM_ERR_DEVICE_LOST) atomic_store(&device->lost, true);
  return status;
}

void gm__import_close(gm_device *device, gm__import *opened) {
  GM__UNCANCELLED();
  const bool forked = gm__context_forked(device->ctx);
  if (!forked) gm__mutex_lock(&device->share_lock);
  const bool last = --opened->users == 0;
  if (last) {
    gm__import **at = &device->opened;
    while (*at != opened) at = &(*at)->next;
    *at = opened->next;
    device->ops->share_close(device->handle, &opened->memory, forked ? GM_CLOSE_ABANDON : GM_CLOSE_NORMAL, NULL);
  }
  if (!forked) gm__mutex_unlock(&device->share_lock);
  if (last) import_discard(device, opened);
}
