/* Virtual memory: addresses and what is behind them are separate. */
#include <string.h>

#include "cts/cts.h"

static void vmm_granularity(cts *t) {
  for (uint32_t type = 0; type < t->type_count; type++) {
    const gm_vmm_props props = {.type = type};
    uint64_t granule = 0;
    const gm_status status = t->ops->vmm_granularity(t->device, &props, &granule, &t->err);
    if (status == GM_ERR_NOT_SUPPORTED && type > 0) continue; /* not every type can be mapped in pieces */
    CTS_CHECK(t, status == GM_OK && granule && !(granule & (granule - 1)));
  }
}

static void vmm_reserve(cts *t) {
  const gm_vmm_props props = {0};
  uint64_t granule, addresses[4];
  CTS_OK(t, t->ops->vmm_granularity(t->device, &props, &granule, &t->err));
  for (unsigned i = 0; i < 4; i++) {
    const uint64_t align = granule << i;
    CTS_OK(t, t->ops->vmm_reserve(t->device, 5 * granule, align, &addresses[i], &t->err));
    CTS_CHECK(t, addresses[i] && addresses[i] % align == 0);
    for (unsigned j = 0; j < i; j++) {
      CTS_CHECK(t, addresses[j] + 5 * granule <= addresses[i] || addresses[i] + 5 * granule <= addresses[j]);
    }
  }
  for (unsigned i = 0; i < 4; i++) {
    CTS_OK(t, t->ops->vmm_unreserve(t->device, addresses[i], 5 * granule, GM_CLOSE_NORMAL, &t->err));
  }
}

static void vmm_map_and_unmap(cts *t) {
  enum { PIECES = 6 };
  const gm_vmm_props props = {0};
  const gm_backend_ops *ops = t->ops;
  uint64_t granule, address, handles[PIECES];
  void *stream;
  if (!cts_stream(t, &stream)) return; /* some binds need a queue that was lent */
  CTS_OK(t, ops->vmm_granularity(t->device, &props, &granule, &t->err));
  CTS_OK(t, ops->vmm_reserve(t->device, 2 * PIECES * granule, 0, &address, &t->err));
  for (unsigned i = 0; i < PIECES; i++) {
    CTS_OK(t, ops->vmm_create(t->device, &props, 2 * granule, &handles[i], &t->err));
    CTS_CHECK(t, handles[i] != 0);
  }
  for (unsigned round = 0; round < 3; round++) {
    for (unsigned i = 0; i < PIECES; i++) {
      const uint64_t at = address + 2 * granule * ((i + round) % PIECES);
      CTS_OK(t, ops->vmm_map(t->device, at, 2 * granule, handles[i], 0, &t->err));
      CTS_OK(t, ops->vmm_access(t->device, at, 2 * granule, &t->err));
    }
    for (unsigned i = 0; i < PIECES; i++) {
      CTS_OK(t, ops->vmm_unmap(t->device, address + 2 * granule * i, 2 * granule, &t->err));
    }
  }
  for (unsigned i = 0; i < PIECES; i++) {
    CTS_OK(t, ops->vmm_destroy(t->device, handles[i], 2 * granule, GM_CLOSE_NORMAL, &t->err));
  }
  CTS_OK(t, ops->vmm_unreserve(t->device, address, 2 * PIECES * granule, GM_CLOSE_NORMAL, &t->err));
}

/* The memory that copies take for a part of a reserved range. */
static gm_status vmm_memory(cts *t, uint64_t address, uint64_t bytes, gm_memory *out) {
  const gm_status status = t->ops->vmm_memory(t->device, address, bytes, 0, out, &t->err);
  if (status == GM_OK) t->memories[t->memory_count++] = *out;
  if (status != GM_ERR_NOT_SUPPORTED) return status;
  *out = (gm_memory){.handle = address, .address = address, .bytes = bytes, .wrapped = true};
  return GM_OK;
}

typedef struct vmm_scene {
  uint64_t granule, address, handles[2];
  void *stream;
} vmm_scene;

static void vmm_scene_end(cts *t, const vmm_scene *scene) {
  const gm_backend_ops *ops = t->ops;
  for (int i = 0; i < 2; i++) {
    ops->vmm_unmap(t->device, scene->address + (uint64_t)(2 * i) * scene->granule, scene->granule, NULL);
    CTS_OK(t, ops->vmm_destroy(t->device, scene->handles[i], scene->granule, GM_CLOSE_NORMAL, &t->err));
  }
  cts_clean(t, GM_CLOSE_NORMAL); /* the memory over the range goes before the range */
  CTS_OK(t, ops->vmm_unreserve(t->device, scene->address, 4 * scene->granule, GM_CLOSE_NORMAL, &t->err));
}

/* Two pieces with a hole between them. */
static void vmm_scene_make(cts *t, vmm_scene *out) {
  const gm_vmm_props props = {0};
  const gm_backend_ops *ops = t->ops;
  if (!cts_stream(t, &out->stream)) return;
  CTS_OK(t, ops->vmm_granularity(t->device, &props, &out->granule, &t->err));
  CTS_OK(t, ops->vmm_reserve(t->device, 4 * out->granule, 0, &out->address, &t->err));
  for (int i = 0; i < 2; i++) {
    const uint64_t at = out->address + (uint64_t)(2 * i) * out->granule;
    CTS_OK(t, ops->vmm_create(t->device, &props, out->granule, &out->handles[i], &t->err));
    CTS_OK(t, ops->vmm_map(t->device, at, out->granule, out->handles[i], 0, &t->err));
    CTS_OK(t, ops->vmm_access(t->device, at, out->granule, &t->err));
  }
}

/* The bytes are the piece's and go with it: written at one address, read at another. */
static void vmm_contents_run(cts *t, const vmm_scene *scene) {
  enum { BYTES = 3001, AT = 77 };
  static unsigned char want[2][BYTES], got[BYTES];
  const gm_backend_ops *ops = t->ops;
  const uint64_t granule = scene->granule, last = scene->address + 3 * granule;
  void *stream = scene->stream;
  gm_memory memory;
  CTS_OK(t, vmm_memory(t, scene->address, 4 * granule, &memory));
  CTS_CHECK(t, memory.handle && memory.address == scene->address && memory.bytes == 4 * granule && memory.wrapped);
  for (unsigned i = 0; i < 2; i++) {
    cts_noise(t, want[i], BYTES);
    CTS_OK(t, ops->copy_to_device(t->device, stream, &memory, 2 * i * granule + AT, want[i], BYTES, NULL, &t->err));
  }
  CTS_OK(t, ops->vmm_unmap(t->device, scene->address + 2 * granule, granule, &t->err));
  CTS_OK(t, ops->vmm_map(t->device, last, granule, scene->handles[1], 0, &t->err));
  CTS_OK(t, ops->vmm_access(t->device, last, granule, &t->err));
  CTS_OK(t, ops->copy_to_host(t->device, stream, &memory, 3 * granule + AT, got, BYTES, NULL, &t->err));
  const bool moved = cts_same(t, got, want[1], BYTES, "read where the piece went");
  CTS_OK(t, ops->copy_to_host(t->device, stream, &memory, AT, got, BYTES, NULL, &t->err));
  const bool stayed = cts_same(t, got, want[0], BYTES, "read where the other piece stayed");
  CTS_OK(t, ops->vmm_unmap(t->device, last, granule, &t->err));
  CTS_OK(t, ops->vmm_map(t->device, scene->address + 2 * granule, granule, scene->handles[1], 0, &t->err));
  CTS_CHECK(t, moved && stayed);
}

static void vmm_contents(cts *t) {
  vmm_scene scene = {0};
  vmm_scene_make(t, &scene);
  if (t->failed) return;
  vmm_contents_run(t, &scene);
  vmm_scene_end(t, &scene);
}

/* A range is memory like any other as far as something is mapped. It has fills, copies within it, its native object,
 * and where the type has pointers, one. */
static void vmm_range_run(cts *t, const vmm_scene *scene) {
  enum { BYTES = 5003, AT = 33, FROM = 7 };
  static unsigned char want[BYTES], got[BYTES];
  const gm_backend_ops *ops = t->ops;
  const uint64_t there = 2 * scene->granule;
  gm_memory memory;
  CTS_OK(t, vmm_memory(t, scene->address, 4 * scene->granule, &memory));
  CTS_OK(t, ops->fill(t->device, scene->stream, &memory, there, BYTES, "abcd", 4, NULL, &t->err));
  for (unsigned i = 0; i < BYTES; i++) want[i] = (unsigned char)"abcd"[i % 4];
  CTS_OK(t, ops->copy_to_host(t->device, scene->stream, &memory, there, got, BYTES, NULL, &t->err));
  if (!cts_same(t, got, want, BYTES, "filled")) return;
  cts_noise(t, want, BYTES);
  const gm_copy_item item = {&memory, there + FROM, &memory, AT, BYTES};
  CTS_OK(t, ops->copy_to_device(t->device, scene->stream, &memory, there + FROM, want, BYTES, NULL, &t->err));
  CTS_OK(t, ops->copy(t->device, scene->stream, &item, NULL, &t->err));
  CTS_OK(t, ops->copy_to_host(t->device, scene->stream, &memory, AT, got, BYTES, NULL, &t->err));
  if (!cts_same(t, got, want, BYTES, "copied from piece to piece")) return;
  if (t->types[0].flags & GM_MEMORY_HOST_POINTER) {
    CTS_CHECK(t, memory.host && (uintptr_t)memory.host == memory.address && memory.type == 0);
    cts_same(t, (unsigned char *)memory.host + AT, want, BYTES, "seen by the host");
    CTS_CHECK(t, !t->mode->check_native || t->mode->check_native(t, &memory, there, BYTES));
  }
}

static void vmm_range(cts *t) {
  vmm_scene scene = {0};
  vmm_scene_make(t, &scene);
  if (t->failed) return;
  vmm_range_run(t, &scene);
  vmm_scene_end(t, &scene);
}

/* The host's own view of a piece, as of any memory of the type. */
static void vmm_host_map_run(cts *t, const vmm_scene *scene) {
  enum { BYTES = 3001, AT = 129 };
  static unsigned char want[BYTES], got[BYTES];
  const gm_backend_ops *ops = t->ops;
  const uint64_t there = 2 * scene->granule + AT;
  gm_memory memory;
  void *pointer = NULL;
  CTS_OK(t, vmm_memory(t, scene->address, 4 * scene->granule, &memory));
  CTS_OK(t, ops->map(t->device, scene->stream, &memory, there, BYTES, GM_MAP_WRITE, &pointer, &t->err));
  cts_noise(t, want, BYTES);
  memcpy(pointer, want, BYTES);
  CTS_OK(t, ops->flush(t->device, &memory, there, BYTES, &t->err));
  CTS_OK(t, ops->unmap(t->device, scene->stream, &memory, pointer, &t->err));
  CTS_OK(t, ops->copy_to_host(t->device, scene->stream, &memory, there, got, BYTES, NULL, &t->err));
  cts_same(t, got, want, BYTES, "written by the host");
}

static void vmm_host_map(cts *t) {
  vmm_scene scene = {0};
  if (!(t->types[0].flags & GM_MEMORY_HOST_POINTER)) {
    cts_skip(t, "a range may be out of the host's reach");
    return;
  }
  vmm_scene_make(t, &scene);
  if (t->failed) return;
  vmm_host_map_run(t, &scene);
  vmm_scene_end(t, &scene);
}

/* Exclusive memory: pieces change places with what is in them, wait unmapped, and the others do not notice. */
typedef struct vmm_pieces {
  uint64_t granule, address, handles[3];
  void *stream;
  gm_memory memory;
} vmm_pieces;

enum { VMM_PIECES = 3, VMM_BYTES = 2003 };

static void vmm_put(cts *t, const vmm_pieces *s, unsigned piece, unsigned place) {
  const uint64_t at = s->address + 2 * place * s->granule;
  CTS_OK(t, t->ops->vmm_map(t->device, at, 2 * s->granule, s->handles[piece], 0, &t->err));
  CTS_OK(t, t->ops->vmm_access(t->device, at, 2 * s->granule, &t->err));
}

static void vmm_exclusive_run(cts *t, const vmm_pieces *s) {
  static unsigned char want[VMM_PIECES][VMM_BYTES], got[VMM_BYTES];
  const gm_backend_ops *ops = t->ops;
  for (unsigned round = 0; round < 2 * VMM_PIECES && !t->failed; round++) {
    for (unsigned i = 0; i < VMM_PIECES; i++) vmm_put(t, s, i, (i + round) % VMM_PIECES);
    for (unsigned i = 0; i < VMM_PIECES && !t->failed; i++) {
      const uint64_t at = (2 * ((i + round) % VMM_PIECES) + 1) * s->granule;
      if (round) CTS_OK(t, ops->copy_to_host(t->device, s->stream, &s->memory, at, got, VMM_BYTES, NULL, &t->err));
      if (round) cts_same(t, got, want[i], VMM_BYTES, "what came with the piece");
      cts_noise(t, want[i], VMM_BYTES);
      CTS_OK(t, ops->copy_to_device(t->device, s->stream, &s->memory, at, want[i], VMM_BYTES, NULL, &t->err));
    }
    CTS_OK(t, ops->vmm_unmap(t->device, s->address, 2 * s->granule, &t->err));
    for (unsigned i = 1; i < VMM_PIECES; i++) {
      CTS_OK(t, ops->vmm_unmap(t->device, s->address + 2 * i * s->granule, 2 * s->granule, &t->err));
    }
  }
}

static void vmm_exclusive(cts *t) {
  const gm_vmm_props props = {.exclusive = true};
  const gm_backend_ops *ops = t->ops;
  vmm_pieces s = {0};
  const gm_status status = ops->vmm_granularity(t->device, &props, &s.granule, &t->err);
  if (status == GM_ERR_NOT_SUPPORTED) {
    cts_skip(t, "there is no exclusive memory");
    return;
  }
  CTS_OK(t, status);
  if (!cts_stream(t, &s.stream)) return;
  const uint64_t bytes = 2 * VMM_PIECES * s.granule;
  CTS_OK(t, ops->vmm_reserve(t->device, bytes, 0, &s.address, &t->err));
  CTS_OK(t, vmm_memory(t, s.address, bytes, &s.memory));
  for (unsigned i = 0; i < VMM_PIECES; i++) {
    CTS_OK(t, ops->vmm_create(t->device, &props, 2 * s.granule, &s.handles[i], &t->err));
  }
  vmm_exclusive_run(t, &s);
  vmm_put(t, &s, 0, 0); /* a mapping outlives its handle */
  for (unsigned i = 0; i < VMM_PIECES; i++) {
    CTS_OK(t, ops->vmm_destroy(t->device, s.handles[i], 2 * s.granule, GM_CLOSE_NORMAL, &t->err));
  }
  CTS_OK(t, ops->vmm_unmap(t->device, s.address, 2 * s.granule, &t->err));
  cts_clean(t, GM_CLOSE_NORMAL);
  CTS_OK(t, ops->vmm_unreserve(t->device, s.address, bytes, GM_CLOSE_NORMAL, &t->err));
}

static const cts_case vmm_cases[] = {
    {"vmm.granularity", vmm_granularity, CTS_VMM},
    {"vmm.reserve", vmm_reserve, CTS_VMM},
    {"vmm.map_and_unmap", vmm_map_and_unmap, CTS_VMM},
    {"vmm.contents", vmm_contents, CTS_VMM | CTS_CONTENTS},
    {"vmm.range", vmm_range, CTS_VMM | CTS_CONTENTS},
    {"vmm.host_map", vmm_host_map, CTS_VMM | CTS_CONTENTS | CTS_MAP},
    {"vmm.exclusive", vmm_exclusive, CTS_VMM | CTS_CONTENTS},
};
const cts_suite cts_vmm_suite = {vmm_cases, sizeof vmm_cases / sizeof vmm_cases[0]};
