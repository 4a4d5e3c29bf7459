/* Threads that share a set of slots, each with a stream. A slot has the key that was loaded into it last. Needs
 * cmocka.h included before. */
#ifndef GM_TESTS_TRANSFER_SLOT_CROWD_H
#define GM_TESTS_TRANSFER_SLOT_CROWD_H

#include <stdatomic.h>

#include "core/base/thread.h"
#include "support/random.h"
#include "transfer/slot_scene.h"

enum { HANDS = 3 };

typedef struct crowd {
  slot_scene scene;
  _Atomic unsigned there[SLOTS]; /* the key that was loaded into a slot */
  _Atomic unsigned wrong;
  size_t calls;
} crowd;

typedef struct crowd_hand {
  gm__thread thread;
  crowd *crowd;
  gm_stream *stream;
  uint64_t random;
} crowd_hand;

static inline gm_status crowd_load(void *user, const void *key, size_t key_bytes, const gm_slot *slot,
                                   gm_point *out_ready, gm_error *err) {
  crowd *c = user;
  const unsigned char name = *(const unsigned char *)key;
  (void)key_bytes, (void)out_ready, (void)err;
  if (name == KEYS) return GM_ERR_IO;
  atomic_store(&c->there[slot->index], name);
  return GM_OK;
}

static inline void crowd_run(void *arg) {
  crowd_hand *hand = arg;
  crowd *c = hand->crowd;
  for (size_t i = 0; i < c->calls; i++) {
    const uint64_t what = test_random(&hand->random);
    const unsigned char key = (unsigned char)(what % (KEYS + 1));
    gm_point point = {0, 0, 0};
    gm_slot slot;
    if (what >> 8 & 7) {
      if (gm_slots_get(c->scene.slots, &key, 1, what >> 16 & 3, hand->stream, &slot, NULL)) continue;
      c->wrong += atomic_load(&c->there[slot.index]) != key;
      if (what >> 24 & 1) c->wrong += gm_stream_record(hand->stream, &point, NULL) != GM_OK;
      c->wrong += atomic_load(&c->there[slot.index]) != key;
      c->wrong += gm_slots_release(c->scene.slots, slot.lease, &point, NULL) != GM_OK;
      gm_point_release(c->scene.device, &point);
    } else {
      (void)gm_slots_drop(c->scene.slots, &key, 1, NULL);
    }
  }
}

#endif
