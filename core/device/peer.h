/* Ways from a device to another one's memory: what the driver says of them, and which of them gm has opened. When
 * one of the two devices closes, gm forgets the way. */
#ifndef GM_CORE_DEVICE_PEER_H
#define GM_CORE_DEVICE_PEER_H

#include "core/device/device.h"

typedef enum gm__peer_proof { GM__PEER_UNPROVEN = 0, GM__PEER_GOOD, GM__PEER_BROKEN } gm__peer_proof;

typedef struct gm__peer_way {
  struct gm__peer_way *next;
  gm_device *device;      /* whose work goes this way */
  const gm_device *other; /* whose memory lies at its end; of another context: a mark only, and never open */
  uint64_t other_id;
  gm__mutex lock;      /* held while the backend opens or shuts it, and while `barred` changes; before the context's */
  _Atomic bool open;   /* peer_enable succeeded, and gm will disable it */
  _Atomic bool barred; /* the program disabled it: copies do not open it by themselves */
  _Atomic bool reported; /* that copies are staged */
  _Atomic int proof;     /* gm__peer_proof: do copies of the driver bring the bytes? */
} gm__peer_way;

/* The facts that gm keeps about the way; the first question makes it. NULL without host memory. Good until one of the
 * two devices closes. */
gm__peer_way *gm__peer_way_to(gm_device *device, const gm_device *other);

/* True when one driver of one context serves both. Only then a backend can be asked about the two. */
static inline bool gm__peer_is_kin(const gm_device *device, const gm_device *other) {
  return device->driver == other->driver;
}

/* Ask the driver about the way. NOT_SUPPORTED: its API has no peers, or the two have different drivers; `err` says
 * which. */
gm_status gm__peer_ask(gm_device *device, gm_device *other, gm_peer_info *out, gm_error *err);

/* Open or shut a way between kin because the program says so, with what is mapped at its end. A second call is no
 * error. Thread-safe: calls follow each other. */
gm_status gm__peer_open(gm__peer_way *way, gm_device *other, gm_error *err);
gm_status gm__peer_shut(gm__peer_way *way, gm_device *other, gm_error *err);

/* Open the way for a copy. *out_barred: the program has shut the way, before this call or while it waited. Then the
 * way stays shut, which is no failure. */
gm_status gm__peer_open_for_copy(gm__peer_way *way, gm_device *other, bool *out_barred, gm_error *err);

/* For code that maps memory (vmm_map, vmm_access), because enabling a way does not cover mapped memory. Every device
 * with an open way to `owner`, now or later, gets access. Forget the range before it is unmapped. Neither a pool's
 * nor an arena's lock may be held. Thread-safe. OUT_OF_HOST_MEMORY, the backend's answer; then the range is
 * forgotten. */
gm_status gm__peer_note_range(gm_device *owner, uint64_t address, uint64_t bytes, gm_error *err);
void gm__peer_forget_range(gm_device *owner, uint64_t address);

/* At the device's closing: shut what is open from and to it, and forget the rest. */
void gm__peer_end(gm_device *device, bool forked);

#endif
