/* A backend for tests of what the core does with answers. It is an honest one, with every entry and no memory behind
 * it, until one word of one answer is another one. It looks into nothing that it is given, so its own lies do not hurt
 * it.
 *
 *   liar_reset();                    // honest, and learns what each entry gives
 *   ... a scenario ...
 *   liar.lie = (liar_lie){LIAR_memory_alloc, .output = 0, .at = offsetof(gm_memory, bytes), .width = 8, .value = 3};
 *
 * A new entry of the seam does not compile here without a function, and liar_outputs_are_all tells whether that
 * function names all that the entry gives. */
#ifndef GM_TESTS_SUPPORT_LIAR_BACKEND_H
#define GM_TESTS_SUPPORT_LIAR_BACKEND_H

#include "support/liar.h"

/* ---- honest answers ---- */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wunused-function"

static gm_status liar_probe(const gm_backend_host *host, gm_probe_level level, gm_driver_info *out, gm_error *err) {
  *out = (gm_driver_info){.struct_size = sizeof *out, .device_count = 2, .library = "libliar.so", .version = "1"};
  return LIAR_GIVES(probe, out);
}

static gm_status liar_init(const gm_backend_host *host, void **out, gm_error *err) {
  *out = &liar;
  return LIAR_GIVES(init, out);
}

static void liar_fini(void *driver, gm_close_mode mode) { liar.calls++; }

static gm_status liar_device_count(void *driver, uint32_t *out, gm_error *err) {
  *out = 2;
  return LIAR_GIVES(device_count, out);
}

static gm_status liar_device_info(void *driver, uint32_t index, void *device, gm_device_info *out, gm_error *err) {
  *out = (gm_device_info){.struct_size = sizeof *out,
                          .index = index,
                          .api = GM_API_OTHER,
                          .type = GM_DEVICE_TYPE_DISCRETE,
                          .name = "liar",
                          .uuid = {(uint8_t)(index + 1), 7},
                          .numa_node = -1,
                          .total_bytes = UINT64_C(1) << 30,
                          .alignment = 256,
                          .map_atom_bytes = 64,
                          .page_bytes = 4096,
                          .capabilities = (1 << 14) - 1};
  return LIAR_GIVES(device_info, out);
}

static gm_status liar_device_open(void *driver, uint32_t index, void **out, gm_error *err) {
  *out = &liar_devices[index % 2];
  return LIAR_GIVES(device_open, out);
}

static void liar_device_close(void *device, gm_close_mode mode) { liar.calls++; }
static gm_status liar_device_state(void *device, gm_error *err) { return LIAR_GIVES_NOTHING(device_state); }

static gm_status liar_device_native(void *device, gm_native_device *out, gm_error *err) {
  return LIAR_GIVES(device_native, out);
}

static gm_status liar_device_adopt(void *driver, const gm_native_device *native, void **out, gm_error *err) {
  *out = &liar_devices[0];
  return LIAR_GIVES(device_adopt, out);
}

static gm_status liar_device_adopt_alone(const gm_backend_host *a, const gm_native_device *b, void **out,
                                         gm_error *err) {
  *out = &liar_devices[0];
  const gm_status status = LIAR_GIVES(device_adopt_alone, out); /* every second engine brings a loader */
  return status == GM_OK && liar.calls_of[LIAR_device_adopt_alone] % 2 == 0 ? GM_ERR_NOT_SUPPORTED : status;
}

static gm_status liar_stream_adopt(void *device, const gm_native_stream *native, void **out, gm_stream_kind *kind,
                                   gm_error *err) {
  *out = &liar;
  *kind = GM_STREAM_UNORDERED;
  return liar_give(LIAR_stream_adopt, (liar_output[]){{out, sizeof *out}, {kind, sizeof *kind}}, 2, err);
}

static gm_status liar_stream_same(void *device, void *stream, const gm_native_stream *of, bool *out, gm_error *err) {
  *out = true;
  return LIAR_GIVES(stream_same, out);
}

static gm_status liar_stream_name(void *device, const gm_native_stream *of, gm_stream_name *out, gm_error *err) {
  *out =
      (gm_stream_name){{1, liar.calls_of[LIAR_stream_name] / 2}}; /* every second time the handle is a new stream's */
  return LIAR_GIVES(stream_name, out);
}

static gm_status liar_device_sync(void *device, gm_error *err) { return LIAR_GIVES_NOTHING(device_sync); }

static gm_status liar_device_call(void *device, gm_status (*call)(void *user, gm_error *err), void *user,
                                  gm_error *err) {
  const gm_status status = call(user, err);
  return status == GM_OK ? LIAR_GIVES_NOTHING(device_call) : status;
}

static gm_backend_point liar_point(void) { return (gm_backend_point){1, ++liar.made}; }

static gm_status liar_point_import(void *device, const gm_native_point *native, gm_backend_point *out, gm_error *err) {
  *out = liar_point();
  return LIAR_GIVES(point_import, out);
}

/* At new addresses. */
static gm_memory liar_memory(uint64_t bytes, uint64_t align, uint32_t type) {
  const uint64_t unit = align > UINT64_C(1) << 21 ? align : UINT64_C(1) << 21;
  liar.address = (liar.address + unit - 1) / unit * unit;
  const gm_memory memory = {.handle = ++liar.made, .address = liar.address, .bytes = bytes, .type = type};
  liar.address += bytes + unit;
  return memory;
}

static gm_status liar_memory_wrap(void *device, const gm_native_memory *native, gm_memory *out, gm_error *err) {
  *out = liar_memory(5000, 0, 0);
  out->wrapped = true;
  return LIAR_GIVES(memory_wrap, out);
}

static gm_status liar_point_native(void *device, const gm_backend_point *point, gm_native_point *out, gm_error *err) {
  return LIAR_GIVES(point_native, out);
}

static gm_status liar_figures(void *driver, uint32_t index, void *device, gm_raw_figures *out, gm_error *err) {
  *out = (gm_raw_figures){.struct_size = sizeof *out};
  out->driver = (gm_raw_reply){GM_RAW_OK, 0, UINT64_C(1) << 30, UINT64_C(1) << 30};
  return LIAR_GIVES(figures, out);
}

static gm_status liar_memory_type_count(void *device, uint32_t *out, gm_error *err) {
  *out = 3;
  return LIAR_GIVES(memory_type_count, out);
}

static gm_status liar_memory_type(void *device, uint32_t type, gm_memory_type *out, gm_error *err) {
  static const uint32_t flags[] = {GM_MEMORY_DEVICE_LOCAL, GM_MEMORY_HOST_VISIBLE | GM_MEMORY_PINNED,
                                   GM_MEMORY_MANAGED | GM_MEMORY_HOST_POINTER};
  *out = (gm_memory_type){.struct_size = sizeof *out,
                          .flags = flags[type % 3],
                          .heap = type,
                          .heap_bytes = UINT64_C(1) << 30,
                          .atom_bytes = type == 1 ? 64 : 1,
                          .share_kinds = type ? 0 : 1u << GM_SHARE_IPC};
  return LIAR_GIVES(memory_type, out);
}

static gm_status liar_memory_alloc(void *device, const gm_memory_params *params, gm_memory *out, gm_error *err) {
  if (params->bytes > UINT64_C(1) << 30 || (params->type == 2 && params->bytes > LIAR_MAP_BYTES)) {
    return gm__fail(err, GM_ERR_OUT_OF_DEVICE_MEMORY, "memory_alloc", "too much");
  }
  *out = liar_memory(params->bytes, params->align, params->type);
  const gm_status status = LIAR_GIVES(memory_alloc, out);
  if (params->type == 2) out->host = liar_mapped; /* that one gm may use: nobody can tell whether it is one */
  return status;
}

static gm_status liar_memory_free(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  return LIAR_GIVES_NOTHING(memory_free);
}
static gm_status liar_memory_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                    gm_native_memory *out, gm_error *err) {
  return LIAR_GIVES(memory_native, out);
}

static gm_status liar_view_create(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                  uint32_t usage, uint64_t *out, gm_error *err) {
  *out = ++liar.made;
  return LIAR_GIVES(view_create, out);
}
static gm_status liar_view_destroy(void *device, uint64_t view, gm_close_mode mode, gm_error *err) {
  return LIAR_GIVES_NOTHING(view_destroy);
}

/* Every range needs a view. */
static gm_status liar_view_native(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, uint64_t view,
                                  gm_native_memory *out, gm_error *err) {
  return view ? LIAR_GIVES(view_native, out) : GM_ERR_NOT_SUPPORTED;
}

static gm_status liar_map(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                          uint32_t mode, void **out, gm_error *err) {
  *out = liar_mapped;
  return LIAR_GIVES(map, out);
}
static gm_status liar_unmap(void *device, void *stream, const gm_memory *memory, void *pointer, gm_error *err) {
  return LIAR_GIVES_NOTHING(unmap);
}
static gm_status liar_flush(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes, gm_error *err) {
  return LIAR_GIVES_NOTHING(flush);
}
static gm_status liar_invalidate(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                 gm_error *err) {
  return LIAR_GIVES_NOTHING(invalidate);
}
static gm_status liar_commit(void *device, void *stream, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                             gm_error *err) {
  return LIAR_GIVES_NOTHING(commit);
}

static gm_status liar_stream_create(void *device, void **out, gm_stream_kind *kind, gm_error *err) {
  *out = &liar;
  *kind = GM_STREAM_FIFO_IF_BARRIER;
  return liar_give(LIAR_stream_create, (liar_output[]){{out, sizeof *out}, {kind, sizeof *kind}}, 2, err);
}
static void liar_stream_close(void *device, void *stream, gm_close_mode mode) { liar.calls++; }
static gm_status liar_stream_flush(void *of, void *stream, gm_error *err) { return LIAR_GIVES_NOTHING(stream_flush); }
static gm_status liar_stream_sync(void *device, void *stream, gm_error *err) { return LIAR_GIVES_NOTHING(stream_sync); }

static gm_status liar_point_record(void *device, void *stream, gm_backend_point *out, gm_error *err) {
  *out = liar_point();
  return LIAR_GIVES(point_record, out);
}

/* Not at the first look. */
static gm_status liar_point_done(void *device, const gm_backend_point *point, bool *out, gm_error *err) {
  *out = liar.calls_of[LIAR_point_done] % 3 != 0;
  return LIAR_GIVES(point_done, out);
}

static gm_status liar_point_wait(void *device, const gm_backend_point *point, uint64_t timeout_ns, gm_error *err) {
  return LIAR_GIVES_NOTHING(point_wait);
}

static gm_status liar_point_wait_on(void *device, void *stream, const gm_backend_point *point, gm_error *err) {
  return LIAR_GIVES_NOTHING(point_wait_on);
}

static gm_status liar_stream_barrier(void *d, void *s, gm_error *err) { return LIAR_GIVES_NOTHING(stream_barrier); }

static gm_status liar_point_copy(void *device, const gm_backend_point *point, gm_backend_point *out, gm_error *err) {
  *out = *point;
  return LIAR_GIVES(point_copy, out);
}

static void liar_point_release(void *device, const gm_backend_point *point, gm_close_mode mode) { liar.calls++; }

static gm_status liar_stream_capturing(void *device, void *stream, bool *out, gm_error *err) {
  *out = false;
  return LIAR_GIVES(stream_capturing, out);
}

/* Copies: the point, if it is wanted. */
#define LIAR_COPIES(name)       \
  if (out) *out = liar_point(); \
  return LIAR_GIVES(name, out)

static gm_status liar_copy_to_device(void *device, void *stream, const gm_memory *dst, uint64_t offset, const void *src,
                                     uint64_t bytes, gm_backend_point *out, gm_error *err) {
  LIAR_COPIES(copy_to_device);
}

static gm_status liar_copy_to_host(void *device, void *stream, const gm_memory *src, uint64_t offset, void *dst,
                                   uint64_t bytes, gm_backend_point *out, gm_error *err) {
  LIAR_COPIES(copy_to_host);
}

static gm_status liar_copy(void *device, void *stream, const gm_copy_item *item, gm_backend_point *out, gm_error *err) {
  LIAR_COPIES(copy);
}

static gm_status liar_fill(void *device, void *stream, const gm_memory *dst, uint64_t offset, uint64_t bytes,
                           const void *pattern, uint32_t pattern_bytes, gm_backend_point *out, gm_error *err) {
  LIAR_COPIES(fill);
}

static gm_status liar_rect_to_device(void *device, void *stream, const gm_memory *dst, const void *src,
                                     const gm_rect *rect, gm_backend_point *out, gm_error *err) {
  LIAR_COPIES(rect_to_device);
}

static gm_status liar_rect_to_host(void *device, void *stream, const gm_memory *src, void *dst, const gm_rect *rect,
                                   gm_backend_point *out, gm_error *err) {
  LIAR_COPIES(rect_to_host);
}

static gm_status liar_rect_copy(void *device, void *stream, const gm_memory *dst, const gm_memory *src,
                                const gm_rect *rect, gm_backend_point *out, gm_error *err) {
  LIAR_COPIES(rect_copy);
}

static gm_status liar_copy_many(void *device, void *stream, const gm_copy_item *items, uint32_t count,
                                gm_backend_point *out, gm_error *err) {
  LIAR_COPIES(copy_many);
}

static gm_status liar_expand(void *device, void *stream, const gm_memory *dst, uint64_t dst_offset,
                             const gm_memory *src, uint64_t src_offset, uint64_t count, gm_dtype from,
                             gm_backend_point *out, gm_error *err) {
  LIAR_COPIES(expand);
}

static gm_status liar_copy_record(void *device, uintptr_t native, const gm_copy_item *item, gm_error *err) {
  return LIAR_GIVES_NOTHING(copy_record);
}

/* None: gm would write there, and nobody can tell whether it is memory. test_host_range has words that it refuses. */
static gm_status liar_host_alloc(void *device, uint64_t bytes, void **out, gm_error *err) {
  return bytes ? GM_ERR_NOT_SUPPORTED : LIAR_GIVES(host_alloc, out);
}

static gm_status liar_host_register(void *device, void *pointer, uint64_t bytes, gm_error *err) {
  return LIAR_GIVES_NOTHING(host_register);
}

static gm_status liar_host_unregister(void *device, void *pointer, gm_close_mode mode, gm_error *err) {
  return LIAR_GIVES_NOTHING(host_unregister);
}

static gm_status liar_vmm_granularity(void *device, const gm_vmm_props *props, uint64_t *out, gm_error *err) {
  *out = UINT64_C(1) << 21;
  return LIAR_GIVES(vmm_granularity, out);
}

static gm_status liar_vmm_reserve(void *device, uint64_t bytes, uint64_t align, uint64_t *out, gm_error *err) {
  *out = liar_memory(bytes, align, 0).address;
  return LIAR_GIVES(vmm_reserve, out);
}

static gm_status liar_vmm_unreserve(void *device, uint64_t address, uint64_t bytes, gm_close_mode mode, gm_error *err) {
  return LIAR_GIVES_NOTHING(vmm_unreserve);
}

static gm_status liar_vmm_create(void *device, const gm_vmm_props *props, uint64_t bytes, uint64_t *out,
                                 gm_error *err) {
  *out = ++liar.made;
  return LIAR_GIVES(vmm_create, out);
}

static gm_status liar_vmm_destroy(void *device, uint64_t handle, uint64_t bytes, gm_close_mode mode, gm_error *err) {
  return LIAR_GIVES_NOTHING(vmm_destroy);
}

static gm_status liar_vmm_map(void *device, uint64_t address, uint64_t bytes, uint64_t handle, uint64_t offset,
                              gm_error *err) {
  return LIAR_GIVES_NOTHING(vmm_map);
}

static gm_status liar_vmm_unmap(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  return LIAR_GIVES_NOTHING(vmm_unmap);
}

static gm_status liar_vmm_access(void *device, uint64_t address, uint64_t bytes, gm_error *err) {
  return LIAR_GIVES_NOTHING(vmm_access);
}

static gm_status liar_vmm_memory(void *device, uint64_t address, uint64_t bytes, uint32_t type, gm_memory *out,
                                 gm_error *err) {
  *out = (gm_memory){.handle = ++liar.made, .address = address, .bytes = bytes, .type = type};
  return LIAR_GIVES(vmm_memory, out);
}

static gm_status liar_peer_info(void *device, void *other, gm_peer_info *out, gm_error *err) {
  *out = (gm_peer_info){.struct_size = sizeof *out, .direct = true, .rank = 0};
  return LIAR_GIVES(peer_info, out);
}

static gm_status liar_peer_enable(void *device, void *other, gm_error *err) { return LIAR_GIVES_NOTHING(peer_enable); }

static gm_status liar_peer_disable(void *device, void *other, gm_close_mode mode, gm_error *err) {
  return LIAR_GIVES_NOTHING(peer_disable);
}

static gm_status liar_peer_access(void *device, void *other, uint64_t address, uint64_t bytes, gm_error *err) {
  return LIAR_GIVES_NOTHING(peer_access);
}

static gm_status liar_peer_copy(void *device, void *stream, void *src_device, const gm_copy_item *item,
                                gm_backend_point *out, gm_error *err) {
  LIAR_COPIES(peer_copy);
}

static gm_status liar_share_export(void *device, const gm_memory *memory, gm_share_kind kind, gm_shared *out,
                                   gm_error *err) {
  *out = (gm_shared){.struct_size = sizeof *out,
                     .kind = kind,
                     .bytes = memory->bytes,
                     .whole_bytes = memory->bytes,
                     .fd = -1,
                     .ipc = {1}};
  return LIAR_GIVES(share_export, out);
}

static gm_status liar_share_import(void *device, const gm_shared *shared, gm_memory *out, gm_error *err) {
  *out = liar_memory(shared->whole_bytes, 0, 0);
  out->wrapped = true;
  return LIAR_GIVES(share_import, out);
}

static gm_status liar_share_close(void *device, const gm_memory *memory, gm_close_mode mode, gm_error *err) {
  return LIAR_GIVES_NOTHING(share_close);
}

static gm_status liar_share_export_vmm(void *device, uint64_t handle, uint64_t bytes, gm_shared *out, gm_error *err) {
  return LIAR_GIVES(share_export_vmm, out);
}

static gm_status liar_share_import_vmm(void *device, const gm_shared *shared, uint64_t *out, gm_error *err) {
  return LIAR_GIVES(share_import_vmm, out);
}

static gm_status liar_managed_prefetch(void *device, void *stream, const gm_memory *memory, uint64_t offset,
                                       uint64_t bytes, gm_managed_place place, gm_backend_point *out, gm_error *err) {
  LIAR_COPIES(managed_prefetch);
}

static gm_status liar_managed_advise(void *device, const gm_memory *memory, uint64_t offset, uint64_t bytes,
                                     gm_managed_advice advice, gm_managed_place place, bool give, gm_error *err) {
  return LIAR_GIVES_NOTHING(managed_advise);
}

#pragma GCC diagnostic pop

static const gm_backend_ops liar_ops = {.abi = GM_BACKEND_ABI,
                                        .struct_size = sizeof(gm_backend_ops),
                                        .name = "other",
                                        .api = GM_API_OTHER,
                                        .capabilities = UINT64_MAX,
#define X(group, name, parameters) .name = liar_##name,
                                        GM__BACKEND_ENTRIES(X) GM__BACKEND_VOID_ENTRIES(X)
#undef X
};

#endif
