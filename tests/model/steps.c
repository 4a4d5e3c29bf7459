#include "model/model.h"

/* Make `to` follow the block's last work. */
static void order_after(model *m, const owned *o, gm_stream *to) {
  if (!o->stream) return;
  if (o->stream == to) {
    CHECK_OK(m, gm_stream_barrier(to, &err));
    return;
  }
  gm_point point = {0};
  CHECK_OK(m, gm_stream_record(o->stream, &point, &err));
  CHECK_OK(m, gm_stream_wait(to, &point, &err));
  gm_point_release(m->device, &point);
}

/* Submitted and not waited for: it may well still be running when the block is freed. */
static void fill(worker *w, owned *o, gm_stream *stream) {
  model *m = w->m;
  order_after(m, o, stream);
  o->pattern = roll(w);
  o->stream = stream;
  o->filled = true;
  gm_point point = {0};
  CHECK_OK(m, gm_block_fill(m->pool, &o->block, 0, o->block.bytes, &o->pattern, 8, stream, &point, &err));
  gm_point_release(m->device, &point);
}

/* Keep a stream busy for a while, so that what is submitted next runs late. Each has scratch memory of its own. */
static void delay(model *m, gm_stream *stream) {
  uint32_t at = 0;
  while (at + 1 < m->stream_count && m->streams[at] != stream) at++;
  for (int i = 0; m->has_memory && i < 4; i++) {
    gm_point point = {0};
    CHECK_OK(m, gm_stream_barrier(stream, &err));
    CHECK_OK(m, gm_block_fill(m->scratch_pool, &m->scratch, (uint64_t)at * SCRATCH, SCRATCH, "late", 4, stream, &point,
                              &err));
    gm_point_release(m->device, &point);
  }
}

static void write_by_host(worker *w, owned *o, gm_stream *stream) {
  model *m = w->m;
  unsigned char bytes[WINDOW];
  order_after(m, o, stream);
  uint64_t at = o->block.bytes > WINDOW ? below(w, o->block.bytes - WINDOW) : 0;
  uint64_t count = o->block.bytes - at < WINDOW ? o->block.bytes - at : WINDOW;
  for (uint64_t i = 0; i < count; i++) bytes[i] = ((unsigned char *)&o->pattern)[(at + i) % 8];
  CHECK_OK(m, gm_block_write(m->pool, &o->block, at, bytes, count, stream, NULL, &err));
  o->stream = stream;
}

static bool window_is_right(model *m, const owned *o, uint64_t at, gm_stream *stream) {
  unsigned char bytes[WINDOW];
  uint64_t count = o->block.bytes - at < WINDOW ? o->block.bytes - at : WINDOW;
  gm_error err = {.status = GM_OK};
  gm_status status = gm_block_read(m->pool, &o->block, at, bytes, count, stream, NULL, &err);
  if (status) {
    complain(m, "gm_block_read: %s", err.message);
    return false;
  }
  for (uint64_t i = 0; i < count; i++) {
    if (bytes[i] != ((const unsigned char *)&o->pattern)[(at + i) % 8]) return false;
  }
  return true;
}

void verify(worker *w, owned *o, gm_stream *stream) {
  model *m = w->m;
  if (!m->has_memory || !o->filled) return;
  order_after(m, o, stream);
  uint64_t last = o->block.bytes > WINDOW ? o->block.bytes - WINDOW : 0;
  bool right = window_is_right(m, o, 0, stream) && window_is_right(m, o, last, stream) &&
               window_is_right(m, o, last ? below(w, last) : 0, stream);
  CHECK(m, right, "contents of the block at 0x%" PRIx64 " of %" PRIu64 " bytes changed", o->block.address,
        o->block.bytes);
  o->stream = stream;
}

/* The answer asks this of the owner of the stream. */
static bool obey(model *m, gm_acquire answer, const owned *o, gm_stream *stream) {
  if (answer == GM_ACQUIRE_NEEDS_BARRIER) CHECK_OK(m, gm_stream_barrier(stream, &err));
  if (answer == GM_ACQUIRE_NEEDS_WAIT) {
    gm_point point = gm_block_point(m->pool, &o->block);
    CHECK_OK(m, gm_stream_wait(stream, &point, &err));
  }
  return answer <= GM_ACQUIRE_NEEDS_BARRIER;
}

static void check_zero(worker *w, owned *o) {
  o->pattern = 0;
  o->filled = true;
  verify(w, o, o->stream ? o->stream : any_stream(w));
}

/* One of the bits. */
static uint32_t any_bit(worker *w, uint32_t bits) {
  for (uint64_t skip = below(w, (uint64_t)__builtin_popcount(bits)); skip; skip--) bits &= bits - 1;
  return bits & (0 - bits);
}

/* The request asks for certain memory, or not. There are few different wishes, so that a thread knows them. */
static void wish_for_memory(worker *w, gm_request *request) {
  static const uint32_t usages[] = {GM_USAGE_UNIFORM, GM_USAGE_TRANSFER | GM_USAGE_READBACK, GM_USAGE_INDIRECT};
  const model *m = w->m;
  if (chance(w, 10)) request->usage = usages[below(w, 3)];
  const uint64_t what = below(w, 100);
  if (what < 10) {
    request->must_be = GM_ANYWHERE;
  } else if (what < 20 && m->has_memory) {
    request->flags |= GM_HOST_VISIBLE;
    request->must_be = GM_ANYWHERE; /* few devices' own memory can be mapped */
  } else if (what < 30) {
    request->prefer = GM_MEMORY_HOST_CACHED | (chance(w, 50) ? GM_MEMORY_SYSTEM : 0);
  } else if (what < 45) {
    request->memory_types = any_bit(w, m->types);
    request->must_be = GM_ANYWHERE;
  } else if (what < 50 && m->mapped_types && !m->spans) {
    request->flags |= GM_MAPPED;
    request->must_be = GM_ANYWHERE;
  }
}

static void check_memory(model *m, const gm_request *request, const owned *o) {
  gm_memory memory;
  uint64_t offset;
  void *host = NULL;
  if (!o->block.address) return; /* it has several */
  const gm_status status = gm_block_memory(m->pool, &o->block, &memory, &offset);
  CHECK(m, status == GM_OK, "gm_block_memory: %s", gm_status_name(status));
  CHECK(m, !request->memory_types || request->memory_types >> memory.type & 1, "memory of type %u, not of 0x%x",
        memory.type, request->memory_types);
  if (!(request->flags & GM_MAPPED)) return;
  CHECK_OK(m, gm_block_host(m->pool, &o->block, &host, &err));
  CHECK(m, m->mapped_types >> memory.type & 1, "a mapped block of type %u", memory.type);
}

static bool take_block(worker *w, owned *o) {
  model *m = w->m;
  gm_request request = {.bytes = o->asked, .stream = chance(w, 80) ? any_stream(w) : NULL, .tag = m->tags[below(w, 4)]};
  if (chance(w, 30)) request.align = 1u << below(w, 13);
  if (chance(w, 50)) request.flags |= GM_INSERT_WAIT;
  if (chance(w, 5)) request.flags |= GM_ZERO;
  wish_for_memory(w, &request);
  if (m->has_memory && chance(w, 2)) request.flags |= GM_COMMIT;
  if (m->spans) request.flags |= GM_ALLOW_SPANS;
  if (!m->spans && chance(w, 5)) request.flags |= GM_DEDICATED;
  gm_acquire answer = gm_alloc(m->pool, &request, &o->block);
  CHECK(m, answer <= GM_ACQUIRE_OVER_LIMIT, "gm_alloc of %" PRIu64 " bytes answered %d", o->asked, (int)answer);
  if (!obey(m, answer, o, request.stream)) return false;
  o->stream = request.stream;
  o->tag = request.tag;
  CHECK(m, request.align == 0 || o->block.address % request.align == 0, "0x%" PRIx64 " is not aligned to %u",
        o->block.address, request.align);
  check_memory(m, &request, o);
  if (request.flags & GM_ZERO) check_zero(w, o);
  return true;
}

static bool take_pointer(worker *w, owned *o) {
  model *m = w->m;
  gm_stream *stream = chance(w, 50) ? any_stream(w) : NULL;
  const char *pointer = gm_malloc(m->pool, o->asked, stream);
  if (!pointer) return false;
  gm_status status = gm_block_of(m->pool, pointer + below(w, o->asked), &o->block);
  CHECK(m, status == GM_OK, "gm_block_of: %s", gm_status_name(status));
  CHECK(m, o->block.address == (uintptr_t)pointer, "gm_block_of found another block");
  o->stream = stream;
  o->by_pointer = true;
  gm_pointer_info info = {.struct_size = sizeof info};
  const uint64_t offset = below(w, o->asked);
  status = gm_pointer_find(m->device, pointer + offset, &info);
  CHECK(m, status == GM_OK && info.pool == m->pool && info.offset == offset && info.requested_bytes == o->asked,
        "gm_pointer_find: %s", gm_status_name(status));
  CHECK(m, info.stream == (stream ? gm_stream_id(stream) : 0), "gm_pointer_find tells another stream");
  return true;
}

/* A block of several memories: each is a live range. */
static uint32_t spans_of(model *m, const owned *o, gm_block_span *spans) {
  uint32_t count = 0;
  CHECK_OK(m, gm_block_spans(m->pool, &o->block, 0, GM_BLOCK_SPANS_MOST, spans, &count, &err));
  return count;
}

static void add_spans(model *m, owned *o) {
  gm_block_span spans[GM_BLOCK_SPANS_MOST];
  uint64_t end = 0;
  o->spans = spans_of(m, o, spans);
  o->in_use = 0;
  for (uint32_t i = 0; i < o->spans; i++) {
    CHECK(m, spans[i].offset == end, "memory %u of a block begins at %" PRIu64, i, spans[i].offset);
    CHECK(m, gm_free(m->pool, &spans[i].block, NULL) == GM_ERR_INVALID_ARGUMENT, "gm_free of one memory of several");
    end += spans[i].bytes;
    o->in_use += spans[i].block.bytes;
    add_range(m, &spans[i].block);
  }
  CHECK(m, o->spans > 1 && end == o->block.bytes, "%u memories of %" PRIu64 " bytes", o->spans, end);
  atomic_fetch_add(&m->spanned, 1);
}

static void remove_spans(model *m, const owned *o) {
  gm_block_span spans[GM_BLOCK_SPANS_MOST];
  const uint32_t count = spans_of(m, o, spans);
  for (uint32_t i = 0; i < count; i++) remove_range(m, &spans[i].block);
}

/* The quota holds at every moment: what this thread knows of is held by then, and given back later. */
static void hold(worker *w, const owned *o) {
  model *m = w->m;
  if (!m->quota || !o->tag) return;
  for (int i = 1; i < 4; i++) {
    if (m->tags[i] != o->tag) continue;
    const uint64_t held = atomic_fetch_add(&m->held[i], o->asked) + o->asked;
    CHECK(m, held <= m->quota, "tag %d holds %" PRIu64 " bytes, its quota is %" PRIu64, i, held, m->quota);
  }
}

static void let_go(worker *w, const owned *o) {
  for (int i = 1; i < 4 && w->m->quota; i++) {
    if (w->m->tags[i] == o->tag) atomic_fetch_sub(&w->m->held[i], o->asked);
  }
}

void welcome(worker *w, owned *o) {
  model *m = w->m;
  atomic_fetch_add(&m->allocs, 1);
  hold(w, o);
  CHECK(m, o->block.bytes >= o->asked, "%" PRIu64 " bytes for %" PRIu64, o->block.bytes, o->asked);
  o->in_use = o->block.bytes;
  o->spans = 1;
  if (o->block.address) {
    add_range(m, &o->block);
  } else {
    add_spans(m, o);
  }
  if (chance(w, 90)) fill(w, o, o->stream ? o->stream : any_stream(w));
}

bool take(worker *w, uint64_t bytes, owned *out) {
  *out = (owned){.asked = bytes, .long_lived = chance(w, 5)};
  if (!(chance(w, 20) ? take_pointer(w, out) : take_block(w, out))) {
    atomic_fetch_add(&w->m->refused, 1);
    return false;
  }
  welcome(w, out);
  return true;
}

void keep(worker *w, owned *o) {
  if (!put(w->m, o)) give(w, o);
}

/* Free by one of the ways that the contract allows when work of o->stream may still run. */
static gm_stream *prepare_free(worker *w, const owned *o) {
  model *m = w->m;
  if (!o->stream) return chance(w, 50) ? any_stream(w) : NULL;
  switch (below(w, 4)) {
    case 0: CHECK_OK(m, gm_stream_sync(o->stream, &err)); return NULL;
    case 1: {
      gm_stream *other = any_stream(w);
      if (other != o->stream) order_after(m, o, other);
      return other;
    }
    case 2: {
      gm_status status = gm_use_on(m->pool, &o->block, o->stream);
      CHECK(m, status == GM_OK, "gm_use_on: %s", gm_status_name(status));
      return any_stream(w);
    }
    default: return o->stream;
  }
}

void give(worker *w, const owned *o) {
  model *m = w->m;
  gm_stream *stream = prepare_free(w, o);
  if (o->block.address) {
    remove_range(m, &o->block);
  } else {
    remove_spans(m, o);
  }
  let_go(w, o);
  void *pointer = (void *)(uintptr_t)o->block.address;
  gm_status status = o->by_pointer ? gm_free_ptr(m->pool, pointer, chance(w, 50) ? o->asked : 0, stream)
                                   : gm_free(m->pool, &o->block, stream);
  CHECK(m, status == GM_OK, "gm_free: %s", gm_status_name(status));
  if (!chance(w, 10)) return;
  status = gm_free(m->pool, &o->block, NULL);
  CHECK(m, status == GM_ERR_INVALID_ARGUMENT, "a second gm_free answered %s", gm_status_name(status));
}

void step_give(worker *w) {
  owned o;
  if (!pick(w, &o)) return;
  if (chance(w, 50)) verify(w, &o, o.stream ? o.stream : any_stream(w));
  bool late = chance(w, 10);
  if (late) { /* work that still runs when the next owner begins, and that it must not see */
    gm_stream *stream = any_stream(w);
    delay(w->m, stream);
    fill(w, &o, stream);
  }
  give(w, &o);
  if (late && take(w, o.asked, &o)) keep(w, &o);
}

void step_use(worker *w) {
  owned o;
  if (!pick(w, &o)) return;
  gm_stream *stream = any_stream(w);
  if (stream != o.stream) { /* its owner frees it without a word about this stream */
    gm_status status = gm_use_on(w->m->pool, &o.block, stream);
    CHECK(w->m, status == GM_OK, "gm_use_on: %s", gm_status_name(status));
  }
  switch (o.filled ? below(w, 3) : 0) {
    case 0: fill(w, &o, stream); break;
    case 1: write_by_host(w, &o, stream); break;
    default: verify(w, &o, stream); break;
  }
  keep(w, &o);
}

void step_take(worker *w) {
  owned o;
  if (take(w, test_log_uniform(&w->random, w->m->largest), &o)) keep(w, &o);
}
