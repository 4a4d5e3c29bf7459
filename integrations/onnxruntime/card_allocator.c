#include "card_allocator.h"

#include <pthread.h>
#include <stdlib.h>

#include "../shared/cards.h"
#include "../shared/engines.h"
#include "ort_open.h"

enum { STREAMS = 64 };

typedef struct card_allocator {
  ort_allocator head; /* first: what ONNX Runtime has */
  const ort_api *api;
  struct OrtMemoryInfo *info;
  gm_card *card;
  pthread_mutex_t lock; /* guards what follows */
  struct {
    uint64_t id; /* never used again, so it finds no other stream */
    gm_stream *stream;
  } streams[STREAMS]; /* those that asked last */
  unsigned next;
} card_allocator;

static card_allocator *of(const struct OrtAllocator *self) { return (card_allocator *)(uintptr_t)self; } /* NOLINT */

static void remember(card_allocator *it, gm_stream *stream) {
  const uint64_t id = gm_stream_id(stream);
  bool known = false;
  pthread_mutex_lock(&it->lock);
  for (unsigned i = 0; i < STREAMS && !known; i++) known = it->streams[i].id == id;
  if (!known) {
    it->streams[it->next].id = id, it->streams[it->next].stream = stream;
    it->next = (it->next + 1) % STREAMS;
  }
  pthread_mutex_unlock(&it->lock);
}

/* NULL: it is not among those that asked last. */
static gm_stream *recall(card_allocator *it, uint64_t id) {
  gm_stream *stream = NULL;
  pthread_mutex_lock(&it->lock);
  for (unsigned i = 0; i < STREAMS && !stream; i++)
    if (it->streams[i].id == id) stream = it->streams[i].stream;
  pthread_mutex_unlock(&it->lock);
  return stream;
}

static void *take_on(struct OrtAllocator *self, size_t bytes, struct OrtSyncStream *on) {
  card_allocator *it = of(self);
  if (bytes == 0) return NULL;
  void *native = on ? it->api->sync_stream_get_handle(on) : NULL;
  gm_stream *order = gm_card_stream(it->card, native);
  if (order) remember(it, order);
  void *pointer = order ? gm_card_alloc(it->card, gm_card_pool(it->card), bytes, native) : NULL;
  if (!pointer) gm_ort_raise();
  return pointer;
}

static void *take(struct OrtAllocator *self, size_t bytes) { return take_on(self, bytes, NULL); }

/* ONNX Runtime names no stream here. A stream that has closed has done its work, and its id is 0. */
static void release(struct OrtAllocator *self, void *pointer) {
  card_allocator *it = of(self);
  gm_pool *pool = gm_card_pool(it->card);
  gm_pointer_info found = {.struct_size = sizeof found};
  if (!pointer || gm_pointer_find(gm_pool_device(pool), pointer, &found)) return;
  gm_stream *order = found.stream ? recall(it, found.stream) : NULL;
  if (found.stream && !order) {
    (void)gm_use_on_all(pool, &found.block);
    order = gm_card_stream(it->card, NULL);
  }
  (void)gm_free_ptr(pool, pointer, 0, order);
}

static const struct OrtMemoryInfo *info_of(const struct OrtAllocator *self) { return of(self)->info; }

static bool fill(card_allocator *it, const struct OrtApiBase *base, int ordinal) {
  const ort_allocator head = {0, take, release, info_of, take, NULL, take_on, NULL};
  it->head = head;
  it->card = gm_card_of(ordinal);
  it->api = it->card ? gm_ort_open(base, &it->head.version) : NULL;
  return it->api &&
         !it->api->create_memory_info("Cuda", ORT_DEVICE_ALLOCATOR, ordinal, ORT_MEMORY_DEFAULT, &it->info) &&
         !pthread_mutex_init(&it->lock, NULL);
}

struct OrtAllocator *gm_ort_card_allocator_create(const struct OrtApiBase *base, int ordinal) {
  const gm_error err = {.status = GM_ERR_OUT_OF_HOST_MEMORY, .op = "gm_ort_card_allocator_create"};
  card_allocator *it = calloc(1, sizeof *it);
  if (!it) gm_engines_note(&err);
  if (it && fill(it, base, ordinal)) return (struct OrtAllocator *)(void *)it;
  free(it);
  return NULL;
}

void gm_ort_card_allocator_destroy(struct OrtAllocator *allocator) {
  if (!allocator) return;
  of(allocator)->api->release_memory_info(of(allocator)->info);
  pthread_mutex_destroy(&of(allocator)->lock);
  free(of(allocator));
}
