/* The entries of gm_backend_ops, group by group, for the code that checks and fills a table. A test holds this list
 * against the struct: a slot that is in one and not in the other fails. */
#ifndef GM_CORE_DISCOVERY_BACKEND_ENTRIES_H
#define GM_CORE_DISCOVERY_BACKEND_ENTRIES_H

/* X(group, name, parameters). All of these return gm_status. */
#define GM__BACKEND_ENTRIES(X)                                                                                         \
  X(DRIVER, probe, (const gm_backend_host *a, gm_probe_level b, gm_driver_info *c, gm_error *err))                     \
  X(DRIVER, init, (const gm_backend_host *a, void **b, gm_error *err))                                                 \
  X(INFO, device_count, (void *a, uint32_t *b, gm_error *err))                                                         \
  X(INFO, device_info, (void *a, uint32_t b, void *c, gm_device_info *d, gm_error *err))                               \
  X(DEVICE, device_open, (void *a, uint32_t b, void **c, gm_error *err))                                               \
  X(DEVICE, device_state, (void *a, gm_error *err))                                                                    \
  X(DEVICE, device_native, (void *a, gm_native_device *b, gm_error *err))                                              \
  X(ADOPT, device_adopt, (void *a, const gm_native_device *b, void **c, gm_error *err))                                \
  X(ADOPT, stream_adopt, (void *a, const gm_native_stream *b, void **c, gm_stream_kind *d, gm_error *err))             \
  X(ADOPT, point_import, (void *a, const gm_native_point *b, gm_backend_point *c, gm_error *err))                      \
  X(WRAP, memory_wrap, (void *a, const gm_native_memory *b, gm_memory *c, gm_error *err))                              \
  X(EXPORT, point_native, (void *a, const gm_backend_point *b, gm_native_point *c, gm_error *err))                     \
  X(FIGURES, figures, (void *a, uint32_t b, void *c, gm_raw_figures *d, gm_error *err))                                \
  X(TYPES, memory_type_count, (void *a, uint32_t *b, gm_error *err))                                                   \
  X(TYPES, memory_type, (void *a, uint32_t b, gm_memory_type *c, gm_error *err))                                       \
  X(MEMORY, memory_alloc, (void *a, const gm_memory_params *b, gm_memory *c, gm_error *err))                           \
  X(MEMORY, memory_free, (void *a, const gm_memory *b, gm_close_mode c, gm_error *err))                                \
  X(MEMORY, memory_native, (void *a, const gm_memory *b, uint64_t c, uint64_t d, gm_native_memory *e, gm_error *err))  \
  X(VIEW, view_create, (void *a, const gm_memory *b, uint64_t c, uint64_t d, uint32_t e, uint64_t *f, gm_error *err))  \
  X(VIEW, view_destroy, (void *a, uint64_t b, gm_close_mode c, gm_error *err))                                         \
  X(MAP, map, (void *a, void *b, const gm_memory *c, uint64_t d, uint64_t e, uint32_t f, void **g, gm_error *err))     \
  X(MAP, unmap, (void *a, void *b, const gm_memory *c, void *d, gm_error *err))                                        \
  X(MAP, flush, (void *a, const gm_memory *b, uint64_t c, uint64_t d, gm_error *err))                                  \
  X(MAP, invalidate, (void *a, const gm_memory *b, uint64_t c, uint64_t d, gm_error *err))                             \
  X(COMMIT, commit, (void *a, void *b, const gm_memory *c, uint64_t d, uint64_t e, gm_error *err))                     \
  X(STREAM, stream_create, (void *a, void **b, gm_stream_kind *c, gm_error *err))                                      \
  X(STREAM, stream_flush, (void *a, void *b, gm_error *err))                                                           \
  X(STREAM, stream_sync, (void *a, void *b, gm_error *err))                                                            \
  X(POINT, point_record, (void *a, void *b, gm_backend_point *c, gm_error *err))                                       \
  X(POINT, point_done, (void *a, const gm_backend_point *b, bool *c, gm_error *err))                                   \
  X(POINT, point_wait, (void *a, const gm_backend_point *b, uint64_t c, gm_error *err))                                \
  X(POINT, point_wait_on, (void *a, void *b, const gm_backend_point *c, gm_error *err))                                \
  X(POINT, stream_barrier, (void *a, void *b, gm_error *err))                                                          \
  X(CAPTURE, stream_capturing, (void *a, void *b, bool *c, gm_error *err))                                             \
  X(COPY, copy_to_device,                                                                                              \
    (void *a, void *b, const gm_memory *c, uint64_t d, const void *e, uint64_t f, gm_backend_point *g, gm_error *err)) \
  X(COPY, copy_to_host,                                                                                                \
    (void *a, void *b, const gm_memory *c, uint64_t d, void *e, uint64_t f, gm_backend_point *g, gm_error *err))       \
  X(COPY, copy, (void *a, void *b, const gm_copy_item *c, gm_backend_point *d, gm_error *err))                         \
  X(COPY, fill,                                                                                                        \
    (void *a, void *b, const gm_memory *c, uint64_t d, uint64_t e, const void *f, uint32_t g, gm_backend_point *h,     \
     gm_error *err))                                                                                                   \
  X(COPY_MORE, rect_to_device,                                                                                         \
    (void *a, void *b, const gm_memory *c, const void *d, const gm_rect *e, gm_backend_point *f, gm_error *err))       \
  X(COPY_MORE, rect_to_host,                                                                                           \
    (void *a, void *b, const gm_memory *c, void *d, const gm_rect *e, gm_backend_point *f, gm_error *err))             \
  X(COPY_MORE, rect_copy,                                                                                              \
    (void *a, void *b, const gm_memory *c, const gm_memory *d, const gm_rect *e, gm_backend_point *f, gm_error *err))  \
  X(COPY_MORE, copy_many, (void *a, void *b, const gm_copy_item *c, uint32_t d, gm_backend_point *e, gm_error *err))   \
  X(EXPAND, expand,                                                                                                    \
    (void *a, void *b, const gm_memory *c, uint64_t d, const gm_memory *e, uint64_t f, uint64_t g, gm_dtype h,         \
     gm_backend_point *i, gm_error *err))                                                                              \
  X(COPY_MORE, copy_record, (void *a, uintptr_t b, const gm_copy_item *c, gm_error *err))                              \
  X(REGISTER, host_register, (void *a, void *b, uint64_t c, gm_error *err))                                            \
  X(REGISTER, host_unregister, (void *a, void *b, gm_close_mode c, gm_error *err))                                     \
  X(HOST_ALLOC, host_alloc, (void *a, uint64_t b, void **c, gm_error *err))                                            \
  X(VMM, vmm_granularity, (void *a, const gm_vmm_props *b, uint64_t *c, gm_error *err))                                \
  X(VMM, vmm_reserve, (void *a, uint64_t b, uint64_t c, uint64_t *d, gm_error *err))                                   \
  X(VMM, vmm_unreserve, (void *a, uint64_t b, uint64_t c, gm_close_mode d, gm_error *err))                             \
  X(VMM, vmm_create, (void *a, const gm_vmm_props *b, uint64_t c, uint64_t *d, gm_error *err))                         \
  X(VMM, vmm_destroy, (void *a, uint64_t b, uint64_t c, gm_close_mode d, gm_error *err))                               \
  X(VMM, vmm_map, (void *a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, gm_error *err))                            \
  X(VMM, vmm_unmap, (void *a, uint64_t b, uint64_t c, gm_error *err))                                                  \
  X(VMM, vmm_access, (void *a, uint64_t b, uint64_t c, gm_error *err))                                                 \
  X(RANGE, vmm_memory, (void *a, uint64_t b, uint64_t c, uint32_t d, gm_memory *e, gm_error *err))                     \
  X(POINT_COPY, point_copy, (void *a, const gm_backend_point *b, gm_backend_point *c, gm_error *err))                  \
  X(STREAM_SAME, stream_same, (void *a, void *b, const gm_native_stream *c, bool *d, gm_error *err))                   \
  X(STREAM_NAME, stream_name, (void *a, const gm_native_stream *b, gm_stream_name *c, gm_error *err))                  \
  X(DEVICE_SYNC, device_sync, (void *a, gm_error *err))                                                                \
  X(VIEW_NATIVE, view_native,                                                                                          \
    (void *a, const gm_memory *b, uint64_t c, uint64_t d, uint64_t e, gm_native_memory *f, gm_error *err))             \
  X(DEVICE_CALL, device_call, (void *a, gm_status (*b)(void *c, gm_error *d), void *e, gm_error *err))                 \
  X(PEER, peer_info, (void *a, void *b, gm_peer_info *c, gm_error *err))                                               \
  X(PEER, peer_enable, (void *a, void *b, gm_error *err))                                                              \
  X(PEER, peer_disable, (void *a, void *b, gm_close_mode c, gm_error *err))                                            \
  X(PEER, peer_access, (void *a, void *b, uint64_t c, uint64_t d, gm_error *err))                                      \
  X(PEER, peer_copy, (void *a, void *b, void *c, const gm_copy_item *d, gm_backend_point *e, gm_error *err))           \
  X(ALONE, device_adopt_alone, (const gm_backend_host *a, const gm_native_device *b, void **c, gm_error *err))         \
  X(SHARE, share_export, (void *a, const gm_memory *b, gm_share_kind c, gm_shared *d, gm_error *err))                  \
  X(SHARE, share_import, (void *a, const gm_shared *b, gm_memory *c, gm_error *err))                                   \
  X(SHARE, share_close, (void *a, const gm_memory *b, gm_close_mode c, gm_error *err))                                 \
  X(SHARE, share_export_vmm, (void *a, uint64_t b, uint64_t c, gm_shared *d, gm_error *err))                           \
  X(SHARE, share_import_vmm, (void *a, const gm_shared *b, uint64_t *c, gm_error *err))                                \
  X(MANAGED, managed_prefetch,                                                                                         \
    (void *a, void *b, const gm_memory *c, uint64_t d, uint64_t e, gm_managed_place f, gm_backend_point *g,            \
     gm_error *err))                                                                                                   \
  X(MANAGED, managed_advise,                                                                                           \
    (void *a, const gm_memory *b, uint64_t c, uint64_t d, gm_managed_advice e, gm_managed_place f, bool g,             \
     gm_error *err))

/* The entries that return nothing: X(group, name, parameters). */
#define GM__BACKEND_VOID_ENTRIES(X)                            \
  X(DRIVER, fini, (void *a, gm_close_mode b))                  \
  X(DEVICE, device_close, (void *a, gm_close_mode b))          \
  X(STREAM, stream_close, (void *a, void *b, gm_close_mode c)) \
  X(POINT, point_release, (void *a, const gm_backend_point *b, gm_close_mode c))

#endif
