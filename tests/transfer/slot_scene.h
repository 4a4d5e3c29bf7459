/* A set of slots for tests, and a loader. Needs cmocka.h included before. */
#ifndef GM_TESTS_TRANSFER_SLOT_SCENE_H
#define GM_TESTS_TRANSFER_SLOT_SCENE_H

#include "gm/slots.h"
#include "transfer/transfer_world.h"

enum { SLOTS = 4, BYTES = 300, STRIDE = 512, KEYS = 9 };

/* Keys are one byte, and each byte of a slot tells the key and how often that was loaded. */
typedef struct slot_scene {
  gm_pool *pool;
  gm_device *device;
  gm_stream *stream;
  gm_slots *slots;
  unsigned versions[256];
  gm_status fail;
  bool late;                                /* loads tell a point */
  void (*during)(struct slot_scene *scene); /* in a loader */
  gm_error err;
} slot_scene;

static inline unsigned char slot_byte(unsigned key, unsigned version) {
  return (unsigned char)(key * 7 + version * 31);
}

static inline gm_status scene_load(void *user, const void *key, size_t key_bytes, const gm_slot *slot,
                                   gm_point *out_ready, gm_error *err) {
  slot_scene *s = user;
  static unsigned char bytes[256][BYTES]; /* a load may go on after this call */
  const unsigned char name = *(const unsigned char *)key;
  assert_int_equal(key_bytes, 1);
  assert_int_equal(slot->lease, 0);
  if (s->during) s->during(s);
  if (s->fail) {
    if (err && s->fail == GM_ERR_IO) *err = (gm_error){.status = s->fail, .message = "the file is gone"};
    return s->fail;
  }
  const unsigned char byte = slot_byte(name, ++s->versions[name]);
  for (unsigned i = 0; bytes[byte][0] != byte && i < BYTES; i++) bytes[byte][BYTES - 1 - i] = byte;
  if (!s->pool) return GM_OK; /* a device without memory */
  return gm_block_write(s->pool, &slot->block, slot->offset, bytes[byte], BYTES, s->late ? s->stream : NULL,
                        s->late ? out_ready : NULL, err);
}

static inline gm_slots_params scene_params(slot_scene *s, uint32_t flags) {
  return (gm_slots_params){.struct_size = sizeof(gm_slots_params),
                           .slots = SLOTS,
                           .slot_bytes = BYTES,
                           .load = scene_load,
                           .user = s,
                           .flags = flags};
}

static inline bool scene_open(transfer_world *w, slot_scene *s, const char *backend, uint32_t flags) {
  memset(s, 0, sizeof *s);
  world_begin(w);
  if (!world_add(w, backend, 0)) {
    world_finish(w);
    return false;
  }
  s->pool = w->ends[0].pool;
  s->device = w->ends[0].device;
  s->stream = w->ends[0].stream;
  const gm_slots_params params = scene_params(s, flags);
  world_ok(gm_slots_create(s->pool, &params, &s->slots, err));
  return true;
}

static inline void scene_close(transfer_world *w, slot_scene *s) {
  world_ok(gm_slots_destroy(s->slots, err));
  assert_int_equal(world_stats(&w->ends[0]).active, 1); /* the world's own */
  world_finish(w);
}

static inline gm_slots_stats scene_stats(slot_scene *s) {
  gm_slots_stats stats = {.struct_size = sizeof stats};
  assert_int_equal(gm_slots_get_stats(s->slots, &stats, NULL), GM_OK);
  return stats;
}

static inline gm_status scene_get(slot_scene *s, unsigned key, uint32_t flags, gm_slot *out) {
  const unsigned char name = (unsigned char)key;
  s->err = (gm_error){.message = ""};
  return gm_slots_get(s->slots, &name, 1, flags, NULL, out, &s->err);
}

static inline void scene_use(slot_scene *s, unsigned key) {
  gm_slot slot;
  assert_int_equal(scene_get(s, key, 0, &slot), GM_OK);
  assert_int_equal(gm_slots_release(s->slots, slot.lease, NULL, NULL), GM_OK);
}

static inline bool scene_has(slot_scene *s, unsigned key) {
  gm_slot slot;
  const gm_status status = scene_get(s, key, GM_SLOTS_NO_LOAD, &slot);
  if (status) return false;
  assert_int_equal(gm_slots_release(s->slots, slot.lease, NULL, NULL), GM_OK);
  return true;
}

#define refused(s, call, wanted, text)                                                  \
  do {                                                                                  \
    (s)->err = (gm_error){.message = ""};                                               \
    assert_int_equal((call), (wanted));                                                 \
    if (!strstr((s)->err.message, (text))) assert_string_equal((s)->err.message, text); \
  } while (0)

#endif
