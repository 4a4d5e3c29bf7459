/* Outputs: an entry that answers anything but GM_OK has written nothing. lifecycle.host_memory_fails asks this of the
 * entries that take host memory; here are the other ways to fail. A failure leaves nothing else behind, either. */
#include <string.h>

#include "cts/cts.h"

/* `call` answers `want` with a reason, and leaves the painted `out` alone. */
#define OUTPUT_KEPT(t, call, want, out)                                  \
  do {                                                                   \
    cts_paint(&(out), sizeof(out));                                      \
    CTS_IS(t, call, want);                                               \
    CTS_CHECK(t, cts_painted(&(out), sizeof(out)));                      \
    CTS_CHECK(t, (t)->err.status == (want) && (t)->err.message[0] != 0); \
  } while (0)

/* The machine's own memory is spared: others live in it. */
static bool output_spares(cts *t) {
  const gm_memory_type *type = &t->types[t->type];
  const bool spares = (!type->heap_bytes && !t->info.total_bytes) ||
                      type->flags & (GM_MEMORY_PINNED | GM_MEMORY_SYSTEM | GM_MEMORY_MANAGED);
  if (spares) cts_skip(t, "the memory is the machine's, or the device does not say how much it has");
  return spares;
}

/* Takes memory that nobody touches until there is no more. `memory` is painted before each call. GM_OK: there is no
 * end. */
static gm_status output_take_all(cts *t, gm_memory *memory) {
  enum { MOST = 24 };
  const uint64_t heap = t->types[t->type].heap_bytes ? t->types[t->type].heap_bytes : t->info.total_bytes;
  const uint64_t most = t->types[t->type].max_alloc_bytes ? t->types[t->type].max_alloc_bytes : t->info.max_alloc_bytes;
  const uint64_t each = most && most < heap ? most : heap / 4;
  const gm_memory_params params = {.struct_size = sizeof params, .type = t->type, .bytes = each};
  gm_status status = GM_OK;
  for (uint32_t i = 0; i < MOST && !status; i++) {
    cts_paint(memory, sizeof *memory);
    status = t->ops->memory_alloc(t->device, &params, memory, &t->err);
    if (!status) t->memories[t->memory_count++] = *memory;
  }
  if (!status) cts_skip(t, "the system gives more memory than the device has");
  return status;
}

static void output_out_of_device_memory(cts *t) {
  gm_memory memory;
  if (output_spares(t)) return;
  const gm_status status = output_take_all(t, &memory);
  if (!status) return;
  CTS_CHECK(t, status == GM_ERR_OUT_OF_DEVICE_MEMORY || status == GM_ERR_ALLOCATION_TOO_LARGE ||
                   status == GM_ERR_OUT_OF_HOST_MEMORY || status == GM_ERR_PINNED_LIMIT);
  CTS_CHECK(t, cts_painted(&memory, sizeof memory));
  CTS_CHECK(t, t->err.status == status && t->err.message[0]);
}

/* ---- after the device was full ---- */

enum { FULL_BYTES = 4096 };

/* Frees all but the first. */
static void full_give_back(cts *t) {
  while (t->memory_count > 1 && !t->failed) {
    const gm_memory last = t->memories[t->memory_count - 1];
    cts_memory_free(t, &last);
  }
}

static void full_works(cts *t, void *stream, const gm_memory *memory) {
  unsigned char want[FULL_BYTES], got[FULL_BYTES] = {0}, pattern[8];
  const gm_copy_item item = {memory, 0, memory, FULL_BYTES / 2, FULL_BYTES / 2};
  cts_noise(t, want, sizeof want);
  cts_noise(t, pattern, sizeof pattern);
  CTS_OK(t, t->ops->copy_to_device(t->device, stream, memory, 0, want, sizeof want, NULL, &t->err));
  CTS_OK(t, t->ops->fill(t->device, stream, memory, 100, 200, pattern, 8, NULL, &t->err));
  CTS_OK(t, t->ops->copy(t->device, stream, &item, NULL, &t->err));
  CTS_OK(t, t->ops->copy_to_host(t->device, stream, memory, 0, got, sizeof got, NULL, &t->err));
  cts_oracle_fill(want + 100, 200, pattern, 8);
  memcpy(want + FULL_BYTES / 2, want, FULL_BYTES / 2);
  cts_same(t, got, want, sizeof got, "after a failed allocation");
}

/* An allocation that fails is over: the next call of each kind knows nothing of it. */
static void full_leaves_no_error(cts *t) {
  void *stream;
  gm_memory memory, unused;
  if (output_spares(t) || !cts_stream(t, &stream) || !cts_memory(t, t->type, FULL_BYTES, &memory)) return;
  if (!output_take_all(t, &unused)) return;
  full_give_back(t);
  if (!t->failed) full_works(t, stream, &memory);
  if (!t->failed && cts_memory(t, t->type, FULL_BYTES, &memory)) full_works(t, stream, &memory);
}

static uint64_t full_free_bytes(cts *t) {
  gm_raw_figures figures = {.struct_size = sizeof figures};
  const gm_status status = t->ops->figures(t->driver, t->info.index, t->device, &figures, &t->err);
  const bool known = status == GM_OK && figures.driver.state == GM_RAW_OK && figures.place == GM_RAW_OWN_MEMORY;
  return known ? figures.driver.free_bytes : GM_UNKNOWN_BYTES;
}

/* A failed allocation keeps nothing. Others on a card move the figure, and a driver may take some for itself at first.
 * One round in which all comes back is enough. */
static void full_comes_back(cts *t) {
  gm_memory memory, unused;
  bool back = false;
  if (output_spares(t) || !cts_memory(t, t->type, FULL_BYTES, &memory)) return;
  for (int round = 0; round < 8 && !back && !t->failed; round++) {
    const uint64_t before = full_free_bytes(t);
    if (before == GM_UNKNOWN_BYTES) {
      cts_skip(t, "the backend gives no free figure of a card's own memory");
      return;
    }
    if (!output_take_all(t, &unused)) return;
    full_give_back(t);
    back = full_free_bytes(t) >= before;
  }
  CTS_CHECK(t, back);
}

static void output_of_missing_devices(cts *t) {
  gm_device_info info;
  gm_raw_figures figures;
  void *device;
  for (uint64_t i = 0; i < 2; i++) {
    uint32_t index = UINT32_MAX;
    if (i) CTS_OK(t, t->ops->device_count(t->driver, &index, &t->err));
    OUTPUT_KEPT(t, t->ops->device_info(t->driver, index, NULL, &info, &t->err), GM_ERR_NOT_FOUND, info);
    OUTPUT_KEPT(t, t->ops->device_open(t->driver, index, &device, &t->err), GM_ERR_NOT_FOUND, device);
    OUTPUT_KEPT(t, t->ops->figures(t->driver, index, NULL, &figures, &t->err), GM_ERR_NOT_FOUND, figures);
  }
}

static void output_of_missing_types(cts *t) {
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t number = i ? UINT32_MAX : t->type_count;
    const gm_memory_params params = {.struct_size = sizeof params, .type = number, .bytes = 4096};
    gm_memory_type type;
    gm_memory memory;
    OUTPUT_KEPT(t, t->ops->memory_type(t->device, number, &type, &t->err), GM_ERR_INVALID_ARGUMENT, type);
    OUTPUT_KEPT(t, t->ops->memory_alloc(t->device, &params, &memory, &t->err), GM_ERR_INVALID_ARGUMENT, memory);
  }
}

/* Room for any native struct, with a head that no backend takes. */
typedef union output_native {
  struct {
    uint32_t struct_size;
    gm_api api;
  } head;
  unsigned char bytes[256];
} output_native;

static void output_native_begin(output_native *native, gm_api api, uint32_t bytes) {
  cts_paint(native, sizeof *native);
  native->head.struct_size = bytes;
  native->head.api = api;
}

static bool output_native_kept(const output_native *native) {
  return cts_painted(native->bytes + sizeof native->head, sizeof native->bytes - sizeof native->head);
}

/* Another API's struct, and one of ours with nothing behind the head. */
static void output_heads(cts *t, gm_api api) {
  const uint32_t bytes = sizeof(gm_native_memory);
  output_native native;
  gm_memory memory;
  if (!cts_memory(t, 0, 4096, &memory)) return;
  output_native_begin(&native, api, bytes);
  CTS_CHECK(t, t->ops->device_native(t->device, (gm_native_device *)&native, &t->err) != GM_OK);
  CTS_CHECK(t, output_native_kept(&native));
  output_native_begin(&native, api, bytes);
  CTS_CHECK(t, t->ops->memory_native(t->device, &memory, 0, 64, (gm_native_memory *)&native, &t->err) != GM_OK);
  CTS_CHECK(t, output_native_kept(&native));
  output_native_begin(&native, api, bytes);
  CTS_CHECK(t, t->ops->view_native(t->device, &memory, 0, 64, 0, (gm_native_memory *)&native, &t->err) != GM_OK);
  CTS_CHECK(t, output_native_kept(&native));
}

static void output_of_wrong_heads(cts *t) {
  const gm_api other = t->ops->api == GM_API_OTHER ? GM_API_CUDA : GM_API_OTHER;
  output_heads(t, other);
  if (!t->failed) output_heads(t, t->ops->api);
}

static void output_of_refused_loans(cts *t) {
  const gm_native_device device = {.struct_size = sizeof device, .api = t->ops->api};
  const gm_native_stream stream = {.struct_size = sizeof stream, .api = t->ops->api};
  const gm_native_point point = {.struct_size = sizeof point, .api = t->ops->api};
  const gm_native_memory memory = {.struct_size = sizeof memory, .api = t->ops->api};
  void *made;
  gm_stream_kind kind;
  gm_backend_point imported;
  gm_memory wrapped;
  const gm_backend_ops *ops = t->ops;
  OUTPUT_KEPT(t, ops->device_adopt(t->driver, &device, &made, &t->err), GM_ERR_INVALID_ARGUMENT, made);
  cts_paint(&kind, sizeof kind);
  OUTPUT_KEPT(t, ops->stream_adopt(t->device, &stream, &made, &kind, &t->err), GM_ERR_INVALID_ARGUMENT, made);
  CTS_CHECK(t, cts_painted(&kind, sizeof kind));
  OUTPUT_KEPT(t, ops->point_import(t->device, &point, &imported, &t->err), GM_ERR_INVALID_ARGUMENT, imported);
  OUTPUT_KEPT(t, ops->memory_wrap(t->device, &memory, &wrapped, &t->err), GM_ERR_INVALID_ARGUMENT, wrapped);
}

/* A backend may take these, too: gm asks for no such thing. */
static void output_of_virtual_memory(cts *t) {
  const gm_vmm_props missing = {.type = t->type_count};
  const uint64_t bytes = UINT64_C(1) << 62;
  uint64_t number;
  cts_paint(&number, sizeof number);
  if (t->ops->vmm_granularity(t->device, &missing, &number, &t->err)) CTS_CHECK(t, cts_painted(&number, sizeof number));
  cts_paint(&number, sizeof number);
  const gm_status status = t->ops->vmm_reserve(t->device, bytes, 0, &number, &t->err);
  if (status) CTS_CHECK(t, cts_painted(&number, sizeof number));
  if (!status) CTS_OK(t, t->ops->vmm_unreserve(t->device, number, bytes, GM_CLOSE_NORMAL, &t->err));
}

static const cts_case output_cases[] = {
    {"output.out_of_device_memory", output_out_of_device_memory, CTS_EACH_TYPE},
    {"full.leaves_no_error", full_leaves_no_error, CTS_CONTENTS | CTS_EACH_TYPE},
    {"full.comes_back", full_comes_back, CTS_EACH_TYPE},
    {"output.of_missing_devices", output_of_missing_devices, 0},
    {"output.of_missing_types", output_of_missing_types, 0},
    {"output.of_wrong_heads", output_of_wrong_heads, 0},
    {"output.of_refused_loans", output_of_refused_loans, CTS_ADOPT},
    {"output.of_virtual_memory", output_of_virtual_memory, CTS_VMM},
};
const cts_suite cts_output_suite = {output_cases, sizeof output_cases / sizeof output_cases[0]};
