#include "core/tier/remote/remote_reply.h"

#include <string.h>

#include "core/base/alloc.h"
#include "core/base/error.h"
#include "core/tier/remote/hiredis.h"

/* Invariants. An item belongs to its array as soon as it is made; the root belongs to the reader until the answer is
 * whole. An array takes no memory for items that did not come. */

enum { REPLY_BYTES_MOST = 24 << 20, REPLY_ITEMS_MOST = 1 << 18 };

#if HIREDIS_MAJOR >= 1
typedef size_t reply_count;
#else
typedef int reply_count;
#endif

static gm__reply *reply_make(const redisReadTask *task, gm__reply_kind kind, const char *text, size_t bytes) {
  gm__reply_reader *reader = task->privdata;
  if (++reader->items > REPLY_ITEMS_MOST) {
    reader->too_large = true;
    return NULL;
  }
  gm__reply *reply = gm__alloc(reader->services, sizeof *reply + bytes + 1);
  if (!reply) {
    reader->no_memory = true;
    return NULL;
  }
  reply->kind = kind;
  reply->bytes = bytes;
  if (bytes) memcpy(reply->text, text, bytes);
  gm__reply *array = task->parent ? task->parent->obj : NULL;
  if (!array) return reader->root = reply;
  if (array->last)
    array->last->next = reply;
  else
    array->first = reply;
  array->last = reply;
  array->count++;
  return reply;
}

static void *reply_string(const redisReadTask *task, char *text, size_t bytes) {
  const gm__reply_kind kind = task->type == REDIS_REPLY_ERROR    ? GM__REPLY_ERROR
                              : task->type == REDIS_REPLY_STATUS ? GM__REPLY_STATUS
                              : task->type == REDIS_REPLY_STRING ? GM__REPLY_STRING
                                                                 : GM__REPLY_OTHER;
  return reply_make(task, kind, text, bytes);
}

static void *reply_array(const redisReadTask *task, reply_count count) {
  (void)count; /* what a server says will come need not come */
  return reply_make(task, GM__REPLY_ARRAY, NULL, 0);
}

static void *reply_integer(const redisReadTask *task, long long number) {
  gm__reply *reply = reply_make(task, GM__REPLY_INTEGER, NULL, 0);
  if (reply) reply->number = number;
  return reply;
}

static void *reply_nil(const redisReadTask *task) { return reply_make(task, GM__REPLY_NIL, NULL, 0); }

#if HIREDIS_MAJOR >= 1
static void *reply_double(const redisReadTask *task, double number, char *text, size_t bytes) {
  (void)number, (void)text, (void)bytes;
  return reply_make(task, GM__REPLY_OTHER, NULL, 0);
}

static void *reply_bool(const redisReadTask *task, int number) {
  (void)number;
  return reply_make(task, GM__REPLY_OTHER, NULL, 0);
}
#endif

/* Depth is bounded by hiredis. */
void gm__reply_free(const gm_services *services, gm__reply *reply) {
  if (!reply) return;
  for (gm__reply *item = reply->first, *next; item; item = next) {
    next = item->next;
    gm__reply_free(services, item);
  }
  gm__release(services, reply, sizeof *reply + reply->bytes + 1);
}

/* hiredis does not say which reader it is: the reader frees its root by itself. */
static void reply_leave(void *object) { (void)object; }

static const redisReplyObjectFunctions reply_functions = {
    .createString = reply_string,
    .createArray = reply_array,
    .createInteger = reply_integer,
#if HIREDIS_MAJOR >= 1
    .createDouble = reply_double,
    .createBool = reply_bool,
#endif
    .createNil = reply_nil,
    .freeObject = reply_leave,
};

static gm_status reply_no_memory(gm_error *err) {
  return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, "redisReaderFeed", "no host memory for a server's answer");
}

gm_status gm__reply_reader_open(gm__reply_reader *reader, const gm_services *services, gm_error *err) {
  *reader = (gm__reply_reader){.services = services};
  const gm__hiredis *calls = gm__hiredis_open(err);
  if (!calls) return GM_ERR_NOT_SUPPORTED;
  redisReader *own = calls->reader_new((redisReplyObjectFunctions *)(uintptr_t)&reply_functions);
  if (!own) return reply_no_memory(err);
  own->maxbuf = 0; /* else hiredis 0.14 asserts that it gets memory for a smaller buffer */
  own->privdata = reader;
  reader->calls = calls;
  reader->own = own;
  return GM_OK;
}

void gm__reply_reader_close(gm__reply_reader *reader) {
  if (reader->own) reader->calls->reader_free(reader->own);
  gm__reply_free(reader->services, reader->root);
  *reader = (gm__reply_reader){.services = reader->services};
}

static gm_status reply_too_large(gm_error *err) {
  return gm__fail(err, GM_ERR_FORMAT, "redisReaderFeed", "the server's answer is too large");
}

gm_status gm__reply_reader_feed(gm__reply_reader *reader, const void *bytes, size_t count, gm_error *err) {
  reader->fed += count;
  if (reader->fed > REPLY_BYTES_MOST) return reply_too_large(err);
  if (reader->calls->reader_feed(reader->own, bytes, count) == REDIS_OK) return GM_OK;
  return reply_no_memory(err);
}

gm_status gm__reply_reader_next(gm__reply_reader *reader, gm__reply **out, gm_error *err) {
  redisReader *own = reader->own;
  void *whole = NULL;
  *out = NULL;
  if (reader->calls->reader_next(own, &whole) != REDIS_OK) {
    if (reader->too_large) return reply_too_large(err);
    if (reader->no_memory || own->err == REDIS_ERR_OOM) return reply_no_memory(err);
    return gm__fail(err, GM_ERR_FORMAT, "redisReaderGetReply", "the server's answer is none: %.100s", own->errstr);
  }
  if (!whole) return GM_OK;
  reader->root = NULL;
  reader->items = 0;
  reader->fed = own->len - own->pos;
  *out = whole;
  return GM_OK;
}

bool gm__reply_reader_has_rest(const gm__reply_reader *reader) {
  const redisReader *own = reader->own;
  return own->len > own->pos;
}

bool gm__reply_is_error(const gm__reply *reply, const char *word) {
  const size_t length = strlen(word);
  if (reply->kind != GM__REPLY_ERROR || reply->bytes < length) return false;
  return memcmp(reply->text, word, length) == 0;
}
