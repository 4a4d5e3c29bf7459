#include "cards.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engines.h"
#include "gm/native_cuda.h"
#include "gm/native_hip.h"

struct gm_card {
  gm_device *device;
  gm_pool *pool;
  gm_api api; /* CUDA or HIP */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows; cards stay once they are open */
static _Atomic(gm_card *) cards[GM_CARDS_MOST];

static bool may_use(const char *backend) {
  const char *only = getenv("GM_BACKENDS");
  return !only || !*only || strstr(only, backend);
}

/* CUDA, or HIP where there is no CUDA. Adopting asks no list of backends, and a machine may have both drivers. */
static gm_status adopt(gm_context *context, int ordinal, gm_card *card, gm_error *err) {
  const gm_cuda_device cuda = {.head = {sizeof cuda, GM_API_CUDA}, .ordinal = ordinal};
  const gm_hip_device hip = {.head = {sizeof hip, GM_API_HIP}, .ordinal = ordinal};
  gm_error other;
  *err = (gm_error){.status = GM_ERR_NOT_FOUND, .op = "gm_card_of", .message = "GM_BACKENDS has neither cuda nor hip"};
  card->api = GM_API_CUDA;
  if (may_use("cuda") && gm_device_adopt(context, &cuda.head, &card->device, err) == GM_OK) return GM_OK;
  card->api = GM_API_HIP;
  gm_error *why = may_use("cuda") ? &other : err;
  if (may_use("hip") && gm_device_adopt(context, &hip.head, &card->device, why) == GM_OK) return GM_OK;
  return err->status;
}

static gm_status open_card(gm_context *context, int ordinal, gm_card *card, gm_error *err) {
  const gm_pool_params params = {.struct_size = sizeof params, .name = "card", .no_vmm = true};
  gm_status status = adopt(context, ordinal, card, err);
  if (status == GM_OK) status = gm_pool_create(card->device, &params, &card->pool, err);
  if (status && card->device) (void)gm_device_close(card->device, NULL);
  return status;
}

static gm_card *make_card(int ordinal) {
  gm_error err = {.status = GM_ERR_OUT_OF_HOST_MEMORY, .op = "gm_card_of"};
  gm_context *context = gm_engines_context();
  gm_card *card = context ? calloc(1, sizeof *card) : NULL;
  if (!context || (card && open_card(context, ordinal, card, &err) == GM_OK)) return card;
  free(card);
  gm_engines_note(&err);
  return NULL;
}

gm_card *gm_card_if_open(int ordinal) { return ordinal >= 0 && ordinal < GM_CARDS_MOST ? cards[ordinal] : NULL; }

gm_card *gm_card_of(int ordinal) {
  gm_card *card = gm_card_if_open(ordinal);
  if (card) return card;
  if (ordinal < 0 || ordinal >= GM_CARDS_MOST) {
    const gm_error err = {.status = GM_ERR_INVALID_ARGUMENT, .op = "gm_card_of", .message = "there is no such ordinal"};
    gm_engines_note(&err);
    return NULL;
  }
  pthread_mutex_lock(&lock);
  if (!cards[ordinal]) cards[ordinal] = make_card(ordinal);
  card = cards[ordinal];
  pthread_mutex_unlock(&lock);
  return card;
}

gm_pool *gm_card_pool(gm_card *card) { return card->pool; }

gm_stream *gm_card_stream(gm_card *card, const void *native) {
  const gm_cuda_stream cuda = {.head = {sizeof cuda, GM_API_CUDA}, .stream = (uintptr_t)native};
  const gm_hip_stream hip = {.head = {sizeof hip, GM_API_HIP}, .stream = (uintptr_t)native};
  gm_error err = {.status = GM_OK};
  gm_stream *stream = NULL;
  if (gm_stream_of(card->device, card->api == GM_API_HIP ? &hip.head : &cuda.head, &stream, &err))
    gm_engines_note(&err);
  return stream;
}

gm_status gm_card_forget(gm_card *card, const void *native, gm_error *err) {
  const gm_cuda_stream cuda = {.head = {sizeof cuda, GM_API_CUDA}, .stream = (uintptr_t)native};
  const gm_hip_stream hip = {.head = {sizeof hip, GM_API_HIP}, .stream = (uintptr_t)native};
  return gm_stream_forget(card->device, card->api == GM_API_HIP ? &hip.head : &cuda.head, err);
}

void *gm_card_alloc(gm_card *card, gm_pool *pool, uint64_t bytes, const void *native) {
  gm_stream *stream = gm_card_stream(card, native);
  const gm_request request = {.bytes = bytes, .flags = GM_INSERT_WAIT, .stream = stream};
  void *pointer = stream ? gm_malloc(pool, bytes, stream) : NULL;
  if (stream && !pointer) gm_engines_note_refusal(pool, &request);
  return pointer;
}

/* An engine may destroy a stream before memory that is freed in its order, or the whole device. Its work may still run,
 * so the memory waits for all streams that gm knows. */
gm_status gm_card_free(gm_card *card, gm_pool *pool, void *pointer, const void *native) {
  gm_stream *stream = gm_card_stream(card, native);
  gm_block block;
  const bool orphan = !stream && gm_block_of(pool, pointer, &block) == GM_OK;
  const gm_status status = orphan ? gm_use_on_all(pool, &block) : GM_OK;
  return status ? status : gm_free_ptr(pool, pointer, 0, stream);
}

void *gm_cards_alloc(uint64_t bytes, int ordinal, void *stream) {
  gm_card *card = gm_card_of(ordinal);
  return card ? gm_card_alloc(card, card->pool, bytes, stream) : NULL;
}

int gm_cards_free(void *pointer, int ordinal, void *stream) {
  gm_card *card = gm_card_if_open(ordinal);
  return card ? (int)gm_card_free(card, card->pool, pointer, stream) : GM_ERR_INVALID_ARGUMENT;
}

int gm_cards_memory(int ordinal, uint64_t *free_bytes, uint64_t *total_bytes) {
  gm_card *card = gm_card_of(ordinal);
  gm_memory_info info = {.struct_size = sizeof info};
  gm_error err = {.status = GM_ERR_INVALID_ARGUMENT};
  if (!card || gm_device_memory_info(card->device, &info, &err)) return (int)err.status;
  *free_bytes = info.free_bytes + gm_engines_figure(card->pool, "reclaimable_bytes");
  *total_bytes = info.total_bytes;
  return GM_OK;
}

void *gm_cards_base(const void *pointer, uint64_t *out_bytes) {
  gm_pointer_info found = {.struct_size = sizeof found};
  gm_memory memory;
  uint64_t offset;
  for (int i = 0; i < GM_CARDS_MOST; i++) {
    gm_card *card = gm_card_if_open(i);
    if (!card || gm_pointer_find(card->device, pointer, &found)) continue;
    if (gm_block_memory(found.pool, &found.block, &memory, &offset)) return NULL;
    *out_bytes = memory.bytes;
    return (void *)(uintptr_t)memory.address; /* NOLINT(performance-no-int-to-ptr): an address is a number in gm */
  }
  return NULL;
}

uint64_t gm_cards_figure(int ordinal, const char *name) {
  gm_card *card = gm_card_if_open(ordinal);
  return card ? gm_engines_figure(card->pool, name) : UINT64_MAX;
}

static gm_status close_card(gm_card *card, gm_error *err) {
  gm_status status = gm_pool_destroy(card->pool, err);
  if (status == GM_OK) card->pool = NULL;
  return status ? status : gm_device_close(card->device, err);
}

int gm_cards_close(void) {
  gm_error err = {.status = GM_OK};
  gm_status status = GM_OK;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < GM_CARDS_MOST && status == GM_OK; i++) {
    gm_card *card = cards[i];
    if (card) status = close_card(card, &err);
    if (card && status == GM_OK) free(card), cards[i] = NULL;
  }
  pthread_mutex_unlock(&lock);
  if (status) gm_engines_note(&err);
  return (int)status;
}
