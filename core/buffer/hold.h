/* The holders of a buffer keep it where it is. They are calls and callers that hold it, streams that use it, and the
 * one thread that moves it. Takes the lock of gm_pool.buffers; no lock of a higher rank may be held. */
#ifndef GM_CORE_BUFFER_HOLD_H
#define GM_CORE_BUFFER_HOLD_H

#include "core/buffer/buffer.h"

/* True for a buffer that is not NULL and, in debug builds, not released for the last time. */
static inline bool gm__buffer_is(const gm_buffer *buffer) {
  return buffer && gm__object_is(&buffer->head, GM__KIND_BUFFER);
}

/* INVALID_ARGUMENT for NULL and, in debug builds, for a buffer that was released for the last time; the errors of
 * gm__pool_alive. */
gm_status gm__buffer_check(const gm_buffer *buffer, const char *op, gm_error *err);

/* INVALID_ARGUMENT unless `stream`, which may be NULL, is one of the pool's device. `name` is the parameter's. */
gm_status gm__buffer_check_stream(const gm_pool *pool, const gm_stream *stream, const char *op, const char *name,
                                  gm_error *err);

/* The pool gets what a buffer needs that may move or falls back. It must come before gm__buffer_enlist of that one.
 * OUT_OF_HOST_MEMORY. */
gm_status gm__buffer_queues_begin(gm_pool *pool, gm_error *err);

/* The buffer joins the list of its pool, or leaves it. It leaves once nobody moves it. */
void gm__buffer_enlist(gm_buffer *buffer);
void gm__buffer_delist(gm_buffer *buffer);

/* Forgets what streams were unlocked with. REQUIRES: the buffer is seized, or out of the list, or its
 * pool ends by force. */
void gm__buffer_forget_uses(gm_buffer *buffer);
/* Drops the points that have passed. REQUIRES: the lock of gm_pool.buffers, or that the buffer is seized. */
void gm__buffer_prune_uses(gm_buffer *buffer);

/* Keeps the buffer where it is until gm__buffer_let_go. Waits while another thread moves it. */
void gm__buffer_hold(gm_buffer *buffer);

/* Does what gm__buffer_hold does, without the wait. REQUIRES: the lock of gm_pool.buffers, and nobody moves it. */
void gm__buffer_hold_more(gm_buffer *buffer);
void gm__buffer_let_go(gm_buffer *buffer);
bool gm__buffer_is_held(const gm_buffer *buffer);

/* Gives somebody the block of a buffer, once nobody moves it. False: it lives in plain host memory. */
bool gm__buffer_show(gm_buffer *buffer, gm_block *out);

/* Where the buffer is, once nobody moves it. */
gm_location gm__buffer_where(const gm_buffer *buffer);

/* Takes the buffer for a move, until gm__buffer_settle. It waits for other moves. BUSY: somebody holds it. The move
 * follows what streams were unlocked with: `stream` waits for them, or the host where it is NULL. */
gm_status gm__buffer_seize(gm_buffer *buffer, gm_stream *stream, const char *op, gm_error *err);
void gm__buffer_settle(gm_buffer *buffer);

/* The buffer is at that place from now on. REQUIRES: it is seized. */
void gm__buffer_put(gm_buffer *buffer, const gm__place *at);

/* Is the buffer off the device, and may gm bring it back? REQUIRES: the lock of gm_pool.buffers. */
bool gm__buffer_may_return(const gm_buffer *buffer);

/* Puts the buffer where a gm__buffer_search finds it as it is now. REQUIRES: the lock of gm_pool.buffers. */
void gm__buffer_queue(gm_buffer *buffer);

/* Would gm__buffer_try_seize seize it? REQUIRES: the lock of gm_pool.buffers. */
bool gm__buffer_may_seize(gm_buffer *buffer);

/* Seizes it as gm__buffer_seize does, without any wait. False: somebody holds it, moves it, or may still use it.
 * REQUIRES: the lock of gm_pool.buffers. */
bool gm__buffer_try_seize(gm_buffer *buffer);

/* A search among the buffers of a pool that may leave the device, the coldest first and persistent ones last. Or, with
 * `back`, among those that may come back, the hottest first. It takes the same few steps for each buffer it gives. */
typedef struct gm__buffer_search {
  gm_pool *pool;
  bool back;
  uint64_t wait_ns;     /* for `back`: buffers that were put off the device wait so long (gm__heat_has_waited) */
  size_t looks;         /* so many buffers it passes over, at the most, because they are in use or wait */
  gm__heat_node passed; /* those */
} gm__buffer_search;

void gm__buffer_search_begin(gm__buffer_search *search);

/* The next one, seized as by gm__buffer_try_seize. NULL: there is none. The caller settles it. */
gm_buffer *gm__buffer_search_next(gm__buffer_search *search);
void gm__buffer_search_end(gm__buffer_search *search);

/* Walks over the buffers of a pool that exist now. It settles `from` (NULL: the walk begins), and seizes the next one
 * without a wait for its streams. Buffers that somebody has locked are passed over, or, without `pass`, end the walk
 * with *held. NULL: there are no more. */
gm_buffer *gm__buffer_walk(gm_pool *pool, gm_buffer *from, bool pass, bool *held);

/* Seizes all buffers of a pool at once, without a wait for their streams. *first names them for gm__buffer_settle_all;
 * buffers that are made later are not among them. False: somebody has locked or moves one; none is seized. */
bool gm__buffer_seize_all(gm_pool *pool, gm_buffer **first);
void gm__buffer_settle_all(gm_pool *pool, gm_buffer *first);

/* Puts a move behind the work of all streams, for a buffer that gm__buffer_walk seized. */
gm_status gm__buffer_follow(gm_buffer *buffer, gm_stream *stream, gm_error *err);

#endif
