/* Codecs in tests: rooms with a guard behind them, and pieces. Needs cmocka.h included before. */
#ifndef GM_TESTS_SUPPORT_CODEC_SCENE_H
#define GM_TESTS_SUPPORT_CODEC_SCENE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "gm/codec.h"

enum { ROOM_GUARD = 32, ROOM_FILL = 0xa5 };

/* Memory that was written, with a guard behind it. */
static inline unsigned char *room_new(uint64_t bytes) {
  unsigned char *room = malloc(bytes + ROOM_GUARD);
  assert_non_null(room);
  memset(room, ROOM_FILL, bytes + ROOM_GUARD);
  return room;
}

static inline void room_check(const unsigned char *room, uint64_t bytes) {
  for (int i = 0; i < ROOM_GUARD; i++) assert_int_equal(room[bytes + (uint64_t)i], ROOM_FILL);
}

static inline const gm_codec *codec(const char *name) {
  const gm_codec *found = gm_codec_find(name);
  assert_non_null(found);
  assert_string_equal(found->name, name);
  return found;
}

typedef struct packed {
  unsigned char *piece;
  uint64_t bytes, most;
} packed;

static inline packed pack(const gm_codec *with, const unsigned char *from, uint64_t bytes) {
  packed p = {NULL, 0, 0};
  assert_int_equal(gm_codec_most(with, bytes, &p.most, NULL), GM_OK);
  p.piece = room_new(p.most);
  assert_int_equal(gm_codec_encode(with, from, bytes, p.piece, p.most, &p.bytes, NULL), GM_OK);
  assert_true(p.bytes <= p.most);
  room_check(p.piece, p.most);
  return p;
}

#endif
