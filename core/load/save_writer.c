#include "core/load/save_writer.h"

#include "core/base/alloc.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/base/thread.h"

/* A piece is in one place: in a list of free ones, in the queue, or in the hands of one thread. That thread alone
 * looks at it. The lock guards lists and figures, and is never held while a thread reads or writes a piece. */

enum {
  WRITER_PIECES = 32 /* more than have memory: others are lent some */,
  WRITER_THREADS = 6,
  WRITER_PAGE = GM__DATA_FILE_DIRECT
};

static const char writer_refused[] = "the file system takes no writes past its cache";

struct gm__save_writer {
  const gm_services *services;
  gm__side_file *file;
  gm__ring *ring;
  uint64_t piece_bytes;
  gm__mutex lock;
  gm__cond queued; /* a piece went into the queue, or it ends */
  gm__cond freed;  /* a piece was written */
  gm__save_piece pieces[WRITER_PIECES];
  uint32_t made, most;         /* pieces with memory; `most` falls where there is no more */
  gm__save_piece *free, *bare; /* pieces that nobody has: with memory, and without */
  gm__save_piece *queue, **queue_end;
  uint32_t writing; /* pieces in the hands of threads that write */
  uint64_t since;   /* the time from which on there were some */
  bool ends;
  gm_error failed; /* the first failure */
  gm__save_writer_info info;
  gm__thread threads[WRITER_THREADS];
  uint32_t started;
  bool alone; /* the system has no thread */
  bool began; /* a piece was taken */
};

/* ---- writing ---- */

/* REQUIRES: lock. */
static void writer_put_back(gm__save_writer *writer, gm__save_piece *piece) {
  gm__save_piece **list = piece->host ? &writer->free : &writer->bare;
  piece->next = *list;
  *list = piece;
}

gm_status gm__save_writer_begin(const gm_services *services, gm__side_file *file, uint64_t piece_bytes, gm__ring *ring,
                                gm__save_writer **out, gm_error *err) {
  gm__save_writer *writer = gm__alloc(services, sizeof *writer);
  if (!writer) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "save", "no host memory for a writer");
  writer->services = services;
  writer->file = file;
  writer->ring = ring;
  writer->piece_bytes = piece_bytes;
  writer->most = GM__SAVE_PIECES;
  for (uint32_t i = 0; i < WRITER_PIECES; i++) writer_put_back(writer, &writer->pieces[i]);
  writer->queue_end = &writer->queue;
  writer->info.why = gm__side_file_is_direct(file) ? "" : writer_refused;
  gm__mutex_init(&writer->lock, GM__RANK_LEAF);
  gm__cond_init(&writer->queued);
  gm__cond_init(&writer->freed);
  *out = writer;
  return GM_OK;
}

/* Writes the first piece of the queue. False: there is none. REQUIRES: lock, which is given away meanwhile. */
static bool writer_step(gm__save_writer *writer) {
  gm__save_piece *piece = writer->queue;
  uint64_t direct = 0;
  gm_error why = {.status = GM_OK};
  if (!piece) return false;
  writer->queue = piece->next;
  if (!writer->queue) writer->queue_end = &writer->queue;
  if (!writer->writing++) writer->since = gm__now_ns();
  const bool dead = writer->failed.status;
  gm__mutex_unlock(&writer->lock);
  if (!dead) (void)gm__side_file_write(writer->file, piece->at, piece->from, piece->bytes, &direct, &why);
  gm__mutex_lock(&writer->lock);
  if (why.status && !writer->failed.status) writer->failed = why;
  writer->info.direct_bytes += direct;
  if (!gm__side_file_is_direct(writer->file)) writer->info.why = writer_refused;
  if (!--writer->writing) writer->info.write_ns += gm__now_ns() - writer->since;
  writer_put_back(writer, piece);
  gm__cond_signal(&writer->freed);
  return true;
}

static void writer_run(void *arg) {
  gm__save_writer *writer = arg;
  gm__mutex_lock(&writer->lock);
  while (!writer->ends) {
    if (!writer_step(writer)) gm__cond_wait(&writer->queued, &writer->lock);
  }
  gm__mutex_unlock(&writer->lock);
}

/* One thread more, while the queue has work for it. */
static void writer_hire(gm__save_writer *writer) {
  if (writer->alone || writer->started == WRITER_THREADS) return;
  gm__thread *thread = &writer->threads[writer->started];
  writer->alone = gm__thread_create(thread, "gm-save", writer_run, writer, NULL) != GM_OK;
  writer->started += !writer->alone;
}

/* ---- pieces ---- */

/* Memory for a piece. */
static gm_status writer_make(const gm__save_writer *writer, gm__save_piece *piece, gm_error *err) {
  if (writer->ring) {
    const gm_status status = gm__ring_take(writer->ring, 0, &piece->slot, err);
    if (!status) piece->host = piece->slot->host;
    return status;
  }
  piece->memory = gm__alloc(writer->services, (size_t)(writer->piece_bytes + WRITER_PAGE));
  if (!piece->memory) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "save", "no host memory for a piece");
  piece->host = (unsigned char *)(uintptr_t)gm__round_up((uintptr_t)piece->memory, WRITER_PAGE);
  return GM_OK;
}

static gm__save_piece *writer_pop(gm__save_piece **list) {
  gm__save_piece *piece = *list;
  if (piece) *list = piece->next;
  return piece;
}

/* A piece that nobody has. It may have no memory yet. NULL: there is none. REQUIRES: lock. */
static gm__save_piece *writer_pick(gm__save_writer *writer, bool lent) {
  gm__save_piece *piece = lent ? writer_pop(&writer->bare) : NULL;
  if (!piece) piece = writer_pop(&writer->free);
  if (piece || lent || writer->made == writer->most) return piece;
  piece = writer_pop(&writer->bare);
  writer->made += piece != NULL;
  return piece;
}

/* Waits for a piece. Without a thread the caller writes. REQUIRES: lock. */
static gm__save_piece *writer_wait(gm__save_writer *writer, bool lent) {
  gm__save_piece *piece;
  while (!(piece = writer_pick(writer, lent))) {
    if (writer->started || !writer_step(writer)) gm__cond_wait(&writer->freed, &writer->lock);
  }
  return piece;
}

static gm_status writer_failure(const gm__save_writer *writer, gm_error *err) {
  if (writer->failed.status && err) *err = writer->failed;
  return writer->failed.status;
}

/* A piece, with memory unless it is lent some. NULL with GM_OK: there was no memory, and other pieces have some. */
static gm_status writer_get(gm__save_writer *writer, bool lent, gm__save_piece **out, gm_error *err) {
  gm__mutex_lock(&writer->lock);
  gm__save_piece *piece = writer_wait(writer, lent);
  gm__mutex_unlock(&writer->lock);
  *out = piece;
  gm_error why = {.status = GM_OK};
  if (lent || piece->host) return GM_OK;
  const gm_status status = writer_make(writer, piece, &why);
  gm__mutex_lock(&writer->lock);
  if (status) {
    writer->most = --writer->made;
    writer_put_back(writer, piece);
    *out = NULL;
  } else {
    writer->info.host_bytes += writer->piece_bytes;
  }
  const bool fatal = status && !writer->made;
  gm__mutex_unlock(&writer->lock);
  if (fatal && err) *err = why;
  return fatal ? status : GM_OK;
}

gm_status gm__save_writer_take(gm__save_writer *writer, bool lent, gm__save_piece **out, gm_error *err) {
  gm__save_piece *piece = NULL;
  gm_status status = GM_OK;
  if (writer->began) writer_hire(writer);
  writer->began = true;
  while (!piece && !status) status = writer_get(writer, lent, &piece, err);
  if (status) return status;
  gm__mutex_lock(&writer->lock);
  status = writer_failure(writer, err);
  if (status) writer_put_back(writer, piece);
  gm__mutex_unlock(&writer->lock);
  *out = status ? NULL : piece;
  return status;
}

void gm__save_writer_give(gm__save_writer *writer, gm__save_piece *piece) {
  gm__mutex_lock(&writer->lock);
  piece->next = NULL;
  *writer->queue_end = piece;
  writer->queue_end = &piece->next;
  gm__cond_signal(&writer->queued);
  gm__mutex_unlock(&writer->lock);
}

/* ---- the end ---- */

gm_status gm__save_writer_settle(gm__save_writer *writer, gm_error *err) {
  gm__mutex_lock(&writer->lock);
  while (writer->queue || writer->writing) {
    if (!writer_step(writer)) gm__cond_wait(&writer->freed, &writer->lock);
  }
  const gm_status status = writer_failure(writer, err);
  gm__mutex_unlock(&writer->lock);
  return status;
}

void gm__save_writer_end(gm__save_writer *writer) {
  if (!writer) return;
  gm__mutex_lock(&writer->lock);
  writer->ends = true; /* what is in the queue is not written any more */
  gm__cond_broadcast(&writer->queued);
  gm__mutex_unlock(&writer->lock);
  for (uint32_t i = 0; i < writer->started; i++) gm__thread_join(&writer->threads[i]);
  for (uint32_t i = 0; i < WRITER_PIECES; i++) {
    gm__save_piece *piece = &writer->pieces[i];
    if (piece->slot) gm__ring_give(writer->ring, piece->slot, NULL);
    gm__release(writer->services, piece->memory, (size_t)(writer->piece_bytes + WRITER_PAGE));
  }
  gm__cond_destroy(&writer->queued);
  gm__cond_destroy(&writer->freed);
  gm__mutex_destroy(&writer->lock);
  gm__release(writer->services, writer, sizeof *writer);
}

void gm__save_writer_figures(gm__save_writer *writer, gm__save_writer_info *out) {
  gm__mutex_lock(&writer->lock);
  *out = writer->info;
  gm__mutex_unlock(&writer->lock);
}
