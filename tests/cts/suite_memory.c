/* Allocation: sizes, alignments, refusals, native objects, views, commit, host registration. */
#include <stdlib.h>
#include <string.h>

#include "cts/cts.h"

#define MIB (UINT64_C(1) << 20)

static gm_status memory_take(cts *t, const gm_memory_params *params, gm_memory *out) {
  const gm_status status = t->ops->memory_alloc(t->device, params, out, &t->err);
  if (status == GM_OK) t->memories[t->memory_count++] = *out;
  return status;
}

static void memory_is_sane(cts *t, const gm_memory *memory, uint32_t type, uint64_t bytes, uint64_t align) {
  CTS_CHECK(t, memory->handle != 0);
  CTS_CHECK(t, memory->bytes >= bytes);
  CTS_CHECK(t, memory->type == type && !memory->wrapped);
  if (!(t->types[type].flags & GM_MEMORY_APART)) {
    CTS_CHECK(t, !(t->info.capabilities & GM_CAP_ADDRESS) == !memory->address);
  }
  CTS_CHECK(t, memory->address % align == 0);
  CTS_CHECK(t, !(t->types[type].flags & GM_MEMORY_HOST_POINTER) == !memory->host);
  CTS_CHECK(t, memory->bytes - bytes <= UINT64_C(1) << 30 && memory->address <= UINT64_MAX - memory->bytes);
}

static void memory_sizes(cts *t) {
  static const uint64_t sizes[] = {1,    3,    16,    255, 256,     257,      4095,
                                   4096, 4097, 65535, MIB, MIB + 1, 32 * MIB, 37 * MIB + 13};
  for (uint32_t type = 0; type < t->type_count && !t->failed; type++) {
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && !t->failed; i++) {
      gm_memory memory;
      if (!cts_memory(t, type, cts_room(t, type, sizes[i], 1), &memory)) return;
      memory_is_sane(t, &memory, type, cts_room(t, type, sizes[i], 1), t->info.alignment);
      cts_memory_free(t, &memory);
    }
  }
}

/* The address, and the offset in the native object, which is 0. */
static void memory_aligned(cts *t, uint64_t align, uint32_t flags) {
  const gm_memory_params params = {
      .struct_size = sizeof params, .type = t->type, .bytes = 5000, .align = align, .flags = flags};
  gm_memory memory;
  CTS_OK(t, memory_take(t, &params, &memory));
  memory_is_sane(t, &memory, t->type, 5000, align);
  CTS_CHECK(t, (uintptr_t)memory.host % align == 0);
  CTS_CHECK(t, !t->mode->check_native || t->mode->check_native(t, &memory, 0, 5000));
  CTS_CHECK(t, !t->mode->check_native || t->mode->check_native(t, &memory, 4096, 904));
}

static void memory_alignments(cts *t) {
  for (uint64_t align = 1; align <= 2 * MIB && !t->failed; align *= 2) {
    memory_aligned(t, align, 0);
    if (!t->failed) memory_aligned(t, align, GM_ALLOC_DEDICATED);
  }
}

/* Memory at an aligned place is memory as any other. */
static void memory_aligned_contents(cts *t) {
  enum { BYTES = 70000 };
  static unsigned char want[BYTES], got[BYTES];
  void *stream;
  if (!cts_stream(t, &stream)) return;
  for (uint64_t align = 4096; align <= 65536; align *= 2) {
    const gm_memory_params params = {.struct_size = sizeof params, .type = t->type, .bytes = BYTES, .align = align};
    gm_memory memory;
    CTS_OK(t, memory_take(t, &params, &memory));
    cts_noise(t, want, BYTES);
    CTS_OK(t, t->ops->copy_to_device(t->device, stream, &memory, 0, want, BYTES, NULL, &t->err));
    CTS_OK(t, t->ops->fill(t->device, stream, &memory, 100, 1000, "abcd", 4, NULL, &t->err));
    cts_oracle_fill(want + 100, 1000, (const unsigned char *)"abcd", 4);
    CTS_OK(t, t->ops->copy_to_host(t->device, stream, &memory, 0, got, BYTES, NULL, &t->err));
    if (!cts_same(t, got, want, BYTES, "in memory at an aligned place")) return;
  }
}

static void memory_usages(cts *t) {
  static const uint32_t usages[] = {GM_USAGE_TRANSFER, GM_USAGE_STORAGE,
                                    GM_USAGE_UNIFORM,  GM_USAGE_INDIRECT,
                                    GM_USAGE_READBACK, GM_USAGE_TRANSFER | GM_USAGE_STORAGE | GM_USAGE_INDIRECT};
  for (size_t i = 0; i < sizeof usages / sizeof usages[0] && !t->failed; i++) {
    for (uint32_t flags = 0; flags <= GM_ALLOC_DEDICATED; flags += GM_ALLOC_DEDICATED) {
      const gm_memory_params params = {
          .struct_size = sizeof params, .type = t->type, .bytes = 70000, .usage = usages[i], .flags = flags};
      gm_memory memory;
      CTS_OK(t, memory_take(t, &params, &memory));
    }
  }
}

static void memory_refused(cts *t, const gm_memory_params *params, gm_status want, gm_status or_want) {
  gm_memory memory, untouched;
  memset(&memory, 0x5a, sizeof memory);
  memset(&untouched, 0x5a, sizeof untouched);
  const gm_status status = t->ops->memory_alloc(t->device, params, &memory, &t->err);
  if (status != or_want) CTS_IS(t, status, want);
  CTS_CHECK(t, memcmp(&memory, &untouched, sizeof memory) == 0);
  CTS_CHECK(t, t->err.status == status && t->err.message[0]);
  CTS_CHECK(t, t->ops->memory_alloc(t->device, params, &memory, NULL) == status);
}

static void memory_wrong_arguments(cts *t) {
  const gm_memory_params nothing = {.struct_size = sizeof nothing};
  const gm_memory_params crooked = {.struct_size = sizeof crooked, .bytes = 64, .align = 48};
  const gm_memory_params no_type = {.struct_size = sizeof no_type, .bytes = 64, .type = t->type_count};
  memory_refused(t, &nothing, GM_ERR_INVALID_ARGUMENT, GM_ERR_INVALID_ARGUMENT);
  memory_refused(t, &crooked, GM_ERR_INVALID_ARGUMENT, GM_ERR_INVALID_ARGUMENT);
  memory_refused(t, &no_type, GM_ERR_INVALID_ARGUMENT, GM_ERR_INVALID_ARGUMENT);
}

static void memory_too_large(cts *t) {
  const uint64_t sizes[] = {UINT64_C(1) << 62, UINT64_C(1) << 63, UINT64_MAX - 4096, UINT64_MAX};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && !t->failed; i++) {
    const gm_memory_params params = {.struct_size = sizeof params, .bytes = sizes[i]};
    memory_refused(t, &params, GM_ERR_ALLOCATION_TOO_LARGE, GM_ERR_OUT_OF_DEVICE_MEMORY);
  }
  if (t->failed || !t->info.max_alloc_bytes) return;
  const gm_memory_params params = {.struct_size = sizeof params, .bytes = t->info.max_alloc_bytes + 1};
  memory_refused(t, &params, GM_ERR_ALLOCATION_TOO_LARGE, GM_ERR_ALLOCATION_TOO_LARGE);
}

/* All bytes of each are written, also those beyond the bytes that were asked for, and both ends of each are read. */
static void memory_live_ones_keep_apart(cts *t) {
  enum { COUNT = 64 };
  gm_memory memories[COUNT];
  void *stream;
  if (!cts_stream(t, &stream)) return;
  for (int i = 0; i < COUNT; i++) {
    const uint64_t bytes = 1 + cts_random(t, 20000);
    if (!cts_memory(t, (uint32_t)cts_random(t, t->type_count), bytes, &memories[i])) return;
    for (int j = 0; j < i; j++) {
      const gm_memory *a = &memories[j], *b = &memories[i];
      CTS_CHECK(t, a->handle != b->handle);
      CTS_CHECK(t, !a->address || a->address + a->bytes <= b->address || b->address + b->bytes <= a->address);
    }
    const uint8_t value = (uint8_t)i;
    CTS_OK(t, t->ops->fill(t->device, stream, &memories[i], 0, memories[i].bytes, &value, 1, NULL, &t->err));
  }
  for (int i = 0; i < COUNT && (t->has & CTS_CONTENTS); i++) {
    unsigned char ends[2] = {0xff, 0xff};
    const uint64_t last = memories[i].bytes - 1;
    CTS_OK(t, t->ops->copy_to_host(t->device, stream, &memories[i], 0, &ends[0], 1, NULL, &t->err));
    CTS_OK(t, t->ops->copy_to_host(t->device, stream, &memories[i], last, &ends[1], 1, NULL, &t->err));
    CTS_CHECK(t, ends[0] == i && ends[1] == i);
  }
}

/* Memory that was another's before holds what it is given, however it is written and read, and however late. */
static void memory_contents_after_reuse(cts *t) {
  enum { BYTES = 60000, ROUNDS = 6 };
  static unsigned char want[BYTES], got[BYTES];
  void *streams[2];
  if (!cts_stream(t, &streams[0]) || !cts_stream(t, &streams[1])) return;
  for (int round = 0; round < ROUNDS; round++) {
    gm_memory memory;
    if (!cts_memory(t, t->type, BYTES, &memory)) return;
    cts_noise(t, want, BYTES);
    CTS_OK(t, t->ops->copy_to_device(t->device, streams[round % 2], &memory, 0, want, BYTES, NULL, &t->err));
    for (int again = 0; again < 2; again++) {
      memset(got, 0, BYTES);
      CTS_OK(t, t->ops->copy_to_host(t->device, streams[again], &memory, 0, got, BYTES, NULL, &t->err));
      if (!cts_same(t, got, want, BYTES, "in memory that was used before")) return;
    }
    cts_memory_free(t, &memory);
  }
}

static void memory_churn(cts *t) {
  const long long before = atomic_load(&t->heap.live_bytes);
  for (int i = 0; i < 300 && !t->failed; i++) {
    gm_memory memory;
    if (!cts_memory(t, (uint32_t)i % t->type_count, 1 + cts_random(t, 300000), &memory)) return;
    cts_memory_free(t, &memory);
  }
  /* A backend may keep some records for the next allocation, but not one for each. */
  CTS_CHECK(t, atomic_load(&t->heap.live_bytes) <= before + 65536);
}

static void memory_native(cts *t) {
  gm_memory memory;
  if (!cts_memory(t, t->type, 100000, &memory)) return;
  gm_native_memory head = {.struct_size = sizeof head, .api = GM_API_OTHER};
  CTS_IS(t, t->ops->memory_native(t->device, &memory, 0, 100, &head, &t->err), GM_ERR_INVALID_ARGUMENT);
  head.api = t->ops->api;
  CTS_IS(t, t->ops->memory_native(t->device, &memory, 0, 100, &head, &t->err), GM_ERR_INVALID_ARGUMENT);
  if (t->mode->check_native) {
    CTS_CHECK(t, t->mode->check_native(t, &memory, 0, memory.bytes));
    CTS_CHECK(t, t->mode->check_native(t, &memory, 4096, 1000));
  }
}

static void view_of_ranges(cts *t) {
  const uint64_t unit = t->info.alignment > 256 ? t->info.alignment : 256;
  gm_memory memory;
  if (!cts_memory(t, t->type, 8 * unit, &memory)) return;
  uint64_t views[3] = {0};
  const gm_status first = t->ops->view_create(t->device, &memory, 0, 8 * unit, 0, &views[0], &t->err);
  if (first == GM_ERR_NOT_SUPPORTED && t->types[t->type].flags & GM_MEMORY_APART) return;
  CTS_IS(t, first, GM_OK);
  CTS_OK(t, t->ops->view_create(t->device, &memory, unit, unit, GM_USAGE_STORAGE, &views[1], &t->err));
  CTS_OK(t, t->ops->view_create(t->device, &memory, 2 * unit, 3 * unit, 0, &views[2], &t->err));
  for (int i = 0; i < 3; i++) CTS_CHECK(t, views[i] != 0);
  CTS_CHECK(t, views[0] != views[1] && views[1] != views[2]);
  for (int i = 0; i < 3; i++) CTS_OK(t, t->ops->view_destroy(t->device, views[i], GM_CLOSE_NORMAL, &t->err));
}

/* A range with an object of its own: by its address, as all of the memory, or by a view. */
static void view_as_a_native_object(cts *t) {
  const uint64_t unit = t->info.alignment > 256 ? t->info.alignment : 256;
  unsigned char room[256];
  gm_native_memory *native = (gm_native_memory *)room;
  gm_memory memory;
  uint64_t view = 0;
  if (!cts_memory(t, t->type, 8 * unit, &memory)) return;
  memset(room, 0, sizeof room);
  *native = (gm_native_memory){.struct_size = sizeof room, .api = t->ops->api};
  const gm_status plain = t->ops->view_native(t->device, &memory, unit, unit, 0, native, &t->err);
  if (plain == GM_OK) return; /* by its address */
  CTS_IS(t, plain, GM_ERR_NOT_SUPPORTED);
  CTS_OK(t, t->ops->view_create(t->device, &memory, unit, unit, 0, &view, &t->err));
  CTS_OK(t, t->ops->view_native(t->device, &memory, unit, unit, view, native, &t->err));
  native->api = GM_API_OTHER;
  CTS_IS(t, t->ops->view_native(t->device, &memory, unit, unit, view, native, &t->err), GM_ERR_INVALID_ARGUMENT);
  CTS_OK(t, t->ops->view_destroy(t->device, view, GM_CLOSE_NORMAL, &t->err));
}

static void commit_keeps_contents(cts *t) {
  const uint64_t bytes = 3 * MIB + 77;
  unsigned char *want = malloc(bytes), *got = calloc(1, bytes);
  gm_memory memory;
  void *stream;
  if (want && got && cts_stream(t, &stream) && cts_memory(t, t->type, bytes, &memory)) {
    cts_noise(t, want, bytes);
    const gm_backend_ops *ops = t->ops;
    gm_status status = ops->copy_to_device(t->device, stream, &memory, 0, want, bytes, NULL, &t->err);
    if (status == GM_OK) status = ops->commit(t->device, stream, &memory, 4097, 2 * MIB, &t->err);
    if (status == GM_OK) status = ops->commit(t->device, stream, &memory, 0, bytes, &t->err);
    if (status == GM_OK) status = ops->copy_to_host(t->device, stream, &memory, 0, got, bytes, NULL, &t->err);
    cts_status(t, status, GM_OK, "write, commit, read", __FILE__, __LINE__);
    if (!t->failed) cts_same(t, got, want, bytes, "after commit");
  }
  free(want);
  free(got);
}

static void commit_at_allocation(cts *t) {
  for (uint32_t type = 0; type < t->type_count && !t->failed; type++) {
    const gm_memory_params params = {
        .struct_size = sizeof params, .type = type, .bytes = 4 * MIB + 1, .flags = GM_ALLOC_COMMIT};
    gm_memory memory;
    CTS_OK(t, memory_take(t, &params, &memory));
    cts_memory_free(t, &memory);
  }
}

/* Copies from a registered range and into it, with a point and without, that begin and end anywhere in it. */
static void registration_copies(cts *t, unsigned char *host, uint64_t bytes) {
  const gm_backend_ops *ops = t->ops;
  void *stream;
  gm_memory memory;
  if (!cts_stream(t, &stream) || !cts_memory(t, 0, bytes, &memory)) return;
  unsigned char *want = malloc(bytes);
  for (uint64_t i = 0; i < bytes; i++) want[i] = host[i] = (unsigned char)(i * 37 + i / 251);
  for (int waits = 0; waits < 2 && !t->failed; waits++) {
    gm_backend_point point = {0}, *out = waits ? NULL : &point;
    gm_status status = ops->copy_to_device(t->device, stream, &memory, 3, host + 5, bytes - 9, out, &t->err);
    if (status == GM_OK && out) status = ops->point_wait(t->device, &point, UINT64_MAX, &t->err);
    if (status == GM_OK && out) ops->point_release(t->device, &point, GM_CLOSE_NORMAL);
    memset(host, 0, bytes);
    if (status == GM_OK) status = ops->copy_to_host(t->device, stream, &memory, 3, host + 5, bytes - 9, out, &t->err);
    if (status == GM_OK && out) status = ops->point_wait(t->device, &point, UINT64_MAX, &t->err);
    if (status == GM_OK && out) ops->point_release(t->device, &point, GM_CLOSE_NORMAL);
    cts_status(t, status, GM_OK, "write and read", __FILE__, __LINE__);
    if (!t->failed) cts_same(t, host + 5, want + 5, bytes - 9, "in registered memory");
    memcpy(host, want, bytes);
  }
  free(want);
}

static void registration_round_trip(cts *t) {
  enum { BYTES = 20000 };
  unsigned char *memory = malloc(BYTES + 100), *host = memory + 77; /* nothing need be aligned */
  const gm_status status = t->ops->host_register(t->device, host, BYTES, &t->err);
  if (status == GM_ERR_PINNED_LIMIT) {
    cts_skip(t, "the system lets this user lock no memory");
  } else if (status == GM_ERR_NOT_SUPPORTED && !(t->info.capabilities & GM_CAP_REGISTRATION)) {
    cts_skip(t, "the device registers no memory of the caller's");
  } else if (cts_status(t, status, GM_OK, "host_register", __FILE__, __LINE__)) {
    registration_copies(t, host, BYTES);
    const gm_status gone = t->ops->host_unregister(t->device, host, GM_CLOSE_NORMAL, &t->err);
    cts_status(t, gone, GM_OK, "host_unregister", __FILE__, __LINE__);
  }
  free(memory);
}

/* The driver's own host memory: it is as if it were registered. */
static void registration_of_the_drivers_memory(cts *t) {
  enum { BYTES = 20000 };
  void *host = NULL, *none;
  const gm_status status = t->ops->host_alloc(t->device, BYTES, &host, &t->err);
  if (status == GM_ERR_NOT_SUPPORTED) {
    cts_skip(t, "the driver has no host memory of its own");
    return;
  }
  CTS_IS(t, status, GM_OK);
  CTS_CHECK(t, host && (uintptr_t)host % 4096 == 0);
  registration_copies(t, host, BYTES);
  CTS_OK(t, t->ops->host_unregister(t->device, host, GM_CLOSE_NORMAL, &t->err));
  CTS_CHECK(t, t->ops->host_unregister(t->device, host, GM_CLOSE_NORMAL, &t->err) != GM_OK);
  cts_paint(&none, sizeof none);
  CTS_CHECK(t, t->ops->host_alloc(t->device, 0, &none, &t->err) != GM_OK);
  CTS_CHECK(t, t->ops->host_alloc(t->device, UINT64_C(1) << 60, &none, &t->err) != GM_OK);
  CTS_CHECK(t, cts_painted(&none, sizeof none));
}

static const cts_case memory_cases[] = {
    {"memory.sizes", memory_sizes, 0},
    {"memory.alignments", memory_alignments, CTS_EACH_TYPE},
    {"memory.aligned_contents", memory_aligned_contents, CTS_CONTENTS | CTS_EACH_TYPE},
    {"memory.usages", memory_usages, CTS_EACH_TYPE},
    {"memory.wrong_arguments", memory_wrong_arguments, 0},
    {"memory.too_large", memory_too_large, 0},
    {"memory.live_ones_keep_apart", memory_live_ones_keep_apart, 0},
    {"memory.contents_after_reuse", memory_contents_after_reuse, CTS_CONTENTS | CTS_EACH_TYPE},
    {"memory.churn", memory_churn, 0},
    {"memory.native", memory_native, CTS_MEM_NATIVE | CTS_EACH_TYPE},
    {"view.of_ranges", view_of_ranges, CTS_VIEW | CTS_EACH_TYPE},
    {"view.as_a_native_object", view_as_a_native_object, CTS_VIEW | CTS_EACH_TYPE},
    {"commit.keeps_contents", commit_keeps_contents, CTS_COMMIT | CTS_CONTENTS | CTS_EACH_TYPE},
    {"commit.at_allocation", commit_at_allocation, CTS_COMMIT},
    {"registration.round_trip", registration_round_trip, CTS_REGISTER},
    {"registration.of_the_drivers_memory", registration_of_the_drivers_memory, CTS_CONTENTS},
};
const cts_suite cts_memory_suite = {memory_cases, sizeof memory_cases / sizeof memory_cases[0]};
