/* The turn of a card: one thread at a time asks for its room, and takes or promises bytes of it. Where promises are
 * shared (key reserve.share), one process of the user at a time does. */
#ifndef GM_CORE_ROOM_CARD_TURN_H
#define GM_CORE_ROOM_CARD_TURN_H

#include "core/context/context.h"
#include "core/room/card.h"
#include "core/room/promise_file.h"

/* The aim of a turn. */
typedef enum gm__card_aim {
  GM__CARD_TAKE,       /* bytes of the card, beside what others promise */
  GM__CARD_TAKE_ALONE, /* bytes of the card, whatever other processes promise */
  GM__CARD_PROMISE     /* a promise, which others must know */
} gm__card_aim;

typedef struct gm__card_turn {
  gm_context *ctx;
  gm__card *card;
  gm__promise_file *file; /* NULL: the turn is within the process */
  gm__promise_turn turn;
  uint64_t before; /* what the process had promised when the turn began */
  bool require;    /* a promise that others cannot see is none */
} gm__card_turn;

/* Begins the turn of a card, and looks what other processes promise. For a promise under "require" (reserve.share), a
 * failure of the file is one of this call, and the turn has not begun. Otherwise the answer is GM_OK.
 * Where this process has promised or wants to promise something, the log tells a failure, once for each reason.
 * REQUIRES: only locks above GROW. */
gm_status gm__card_turn_begin(gm_context *ctx, gm__card *card, gm__card_aim aim, gm__card_turn *out, gm_error *err);

/* Tells other processes what this one promises now, and looks once more what they promise. A failure only where
 * reserve.share is "require"; else what was not told is told in a later turn. The card stays this thread's until
 * gm__card_turn_end. */
gm_status gm__card_turn_tell(gm__card_turn *self, gm_error *err);

/* Ends the turn, and tells others what they do not know yet. */
void gm__card_turn_end(gm__card_turn *self);

/* Looks what other processes promise on a card, without a turn. A look that fails leaves what was known before. */
void gm__card_look(gm_context *ctx, gm__card *card);

#endif
