/* The parts of ONNX Runtime's C interface that gm and its check use, without ONNX Runtime's headers.
 *
 * OrtApi is a table of functions that grows at its end alone. So a position says the same in every version that has it,
 * and GetApi(n) answers with a table that has all positions of version 1.n. Members that nobody here calls are gaps.
 * Opaque types have ONNX Runtime's own tags. check_abi.c holds this file against onnxruntime_c_api.h where that is
 * there; gm_ort_open tries some calls. */
#ifndef GM_INTEGRATIONS_ONNXRUNTIME_ORT_ABI_H
#define GM_INTEGRATIONS_ONNXRUNTIME_ORT_ABI_H

#include <stddef.h>
#include <stdint.h>

struct OrtAllocator;
struct OrtApiBase;
struct OrtEnv;
struct OrtIoBinding;
struct OrtKeyValuePairs;
struct OrtMemoryInfo;
struct OrtRunOptions;
struct OrtSession;
struct OrtSessionOptions;
struct OrtStatus; /* NULL is success */
struct OrtSyncStream;
struct OrtValue;

/* Values of its enumerations. */
enum {
  ORT_FAIL = 1,
  ORT_LOG_ERROR = 3,
  ORT_LOG_FATAL = 4,
  ORT_DEVICE_ALLOCATOR = 0, /* also of an allocator that is more than that: the arena's own value is ONNX Runtime's */
  ORT_MEMORY_DEFAULT = 0,
  ORT_PARALLEL = 1,
  ORT_FLOAT = 1
};

/* The first version with `reserve`, with `get_stats` and `alloc_on_stream`, and with `shrink`. */
enum { ORT_SINCE_RESERVE = 18, ORT_SINCE_STREAMS = 23, ORT_SINCE_SHRINK = 25 };

/* OrtAllocator. ONNX Runtime reads the later members as far as `version` says that they are there. Never grows. */
typedef struct ort_allocator {
  uint32_t version;
  void *(*alloc)(struct OrtAllocator *self, size_t bytes);
  void (*free)(struct OrtAllocator *self, void *pointer);
  const struct OrtMemoryInfo *(*info)(const struct OrtAllocator *self);
  void *(*reserve)(struct OrtAllocator *self, size_t bytes);
  struct OrtStatus *(*get_stats)(const struct OrtAllocator *self, struct OrtKeyValuePairs **out);
  void *(*alloc_on_stream)(struct OrtAllocator *self, size_t bytes, struct OrtSyncStream *stream);
  struct OrtStatus *(*shrink)(struct OrtAllocator *self);
} ort_allocator;

typedef void ort_gap(void);

/* OrtApi. Never grows: what is new comes behind it. */
typedef struct ort_api {
  struct OrtStatus *(*create_status)(int code, const char *message);
  int (*get_error_code)(const struct OrtStatus *status);
  const char *(*get_error_message)(const struct OrtStatus *status);
  struct OrtStatus *(*create_env)(int log_level, const char *name, struct OrtEnv **out);
  ort_gap *gap_4[4];
  struct OrtStatus *(*create_session_from_array)(const struct OrtEnv *env, const void *model, size_t bytes,
                                                 const struct OrtSessionOptions *options, struct OrtSession **out);
  struct OrtStatus *(*run)(struct OrtSession *session, const struct OrtRunOptions *options, const char *const *inputs,
                           const struct OrtValue *const *values, size_t input_count, const char *const *outputs,
                           size_t output_count, struct OrtValue **out);
  struct OrtStatus *(*create_session_options)(struct OrtSessionOptions **out);
  ort_gap *gap_11[2];
  struct OrtStatus *(*set_execution_mode)(struct OrtSessionOptions *options, int mode);
  ort_gap *gap_14[5];
  struct OrtStatus *(*disable_cpu_arena)(struct OrtSessionOptions *options);
  ort_gap *gap_20[4];
  struct OrtStatus *(*set_intra_op_threads)(struct OrtSessionOptions *options, int count);
  struct OrtStatus *(*set_inter_op_threads)(struct OrtSessionOptions *options, int count);
  ort_gap *gap_26[22];
  struct OrtStatus *(*create_tensor)(struct OrtAllocator *allocator, const int64_t *shape, size_t rank, int type,
                                     struct OrtValue **out);
  struct OrtStatus *(*create_tensor_over)(const struct OrtMemoryInfo *info, void *data, size_t bytes,
                                          const int64_t *shape, size_t rank, int type, struct OrtValue **out);
  ort_gap *gap_50[1];
  struct OrtStatus *(*get_tensor_data)(struct OrtValue *value, void **out);
  ort_gap *gap_52[16];
  struct OrtStatus *(*create_memory_info)(const char *name, int allocator_type, int ordinal, int memory_type,
                                          struct OrtMemoryInfo **out);
  struct OrtStatus *(*create_cpu_memory_info)(int allocator_type, int memory_type, struct OrtMemoryInfo **out);
  ort_gap *gap_70[1];
  struct OrtStatus *(*memory_info_get_name)(const struct OrtMemoryInfo *info, const char **out);
  ort_gap *gap_72[3];
  struct OrtStatus *(*allocator_alloc)(struct OrtAllocator *allocator, size_t bytes, void **out);
  struct OrtStatus *(*allocator_free)(struct OrtAllocator *allocator, void *pointer);
  ort_gap *gap_77[15];
  void (*release_env)(struct OrtEnv *env);
  void (*release_status)(struct OrtStatus *status);
  void (*release_memory_info)(struct OrtMemoryInfo *info);
  void (*release_session)(struct OrtSession *session);
  void (*release_value)(struct OrtValue *value);
  ort_gap *gap_97[3];
  void (*release_session_options)(struct OrtSessionOptions *options);
  ort_gap *gap_101[29];
  struct OrtStatus *(*add_session_config_entry)(struct OrtSessionOptions *options, const char *key, const char *value);
  struct OrtStatus *(*create_allocator)(const struct OrtSession *session, const struct OrtMemoryInfo *info,
                                        struct OrtAllocator **out);
  void (*release_allocator)(struct OrtAllocator *allocator);
  struct OrtStatus *(*run_with_binding)(struct OrtSession *session, const struct OrtRunOptions *options,
                                        const struct OrtIoBinding *binding);
  struct OrtStatus *(*create_io_binding)(struct OrtSession *session, struct OrtIoBinding **out);
  void (*release_io_binding)(struct OrtIoBinding *binding);
  struct OrtStatus *(*bind_input)(struct OrtIoBinding *binding, const char *name, const struct OrtValue *value);
  struct OrtStatus *(*bind_output)(struct OrtIoBinding *binding, const char *name, const struct OrtValue *value);
  ort_gap *gap_138[12];
  struct OrtStatus *(*add_initializer)(struct OrtSessionOptions *options, const char *name,
                                       const struct OrtValue *value);
  ort_gap *gap_151[25];
  struct OrtStatus *(*register_allocator)(struct OrtEnv *env, struct OrtAllocator *allocator);
  struct OrtStatus *(*unregister_allocator)(struct OrtEnv *env, const struct OrtMemoryInfo *info);
  ort_gap *gap_178[50];
  struct OrtStatus *(*register_custom_ops_library)(struct OrtSessionOptions *options, const char *path);
  ort_gap *gap_229[66];
  /* From ORT_SINCE_STREAMS on. */
  void (*create_key_values)(struct OrtKeyValuePairs **out);
  void (*add_key_value)(struct OrtKeyValuePairs *pairs, const char *key, const char *value);
  const char *(*get_key_value)(const struct OrtKeyValuePairs *pairs, const char *key);
  ort_gap *gap_298[2];
  void (*release_key_values)(struct OrtKeyValuePairs *pairs);
  ort_gap *gap_301[18];
  struct OrtStatus *(*allocator_get_stats)(const struct OrtAllocator *allocator, struct OrtKeyValuePairs **out);
  ort_gap *gap_320[64];
  void *(*sync_stream_get_handle)(struct OrtSyncStream *stream);
} ort_api;

#define ORT_AT(member, position) \
  _Static_assert(offsetof(ort_api, member) == (position) * sizeof(ort_gap *), "OrtApi: " #member)
ORT_AT(create_status, 0);
ORT_AT(get_error_code, 1);
ORT_AT(get_error_message, 2);
ORT_AT(create_env, 3);
ORT_AT(create_session_from_array, 8);
ORT_AT(run, 9);
ORT_AT(create_session_options, 10);
ORT_AT(set_execution_mode, 13);
ORT_AT(disable_cpu_arena, 19);
ORT_AT(set_intra_op_threads, 24);
ORT_AT(set_inter_op_threads, 25);
ORT_AT(create_tensor, 48);
ORT_AT(create_tensor_over, 49);
ORT_AT(get_tensor_data, 51);
ORT_AT(create_memory_info, 68);
ORT_AT(create_cpu_memory_info, 69);
ORT_AT(memory_info_get_name, 71);
ORT_AT(allocator_alloc, 75);
ORT_AT(allocator_free, 76);
ORT_AT(release_env, 92);
ORT_AT(release_status, 93);
ORT_AT(release_memory_info, 94);
ORT_AT(release_session, 95);
ORT_AT(release_value, 96);
ORT_AT(release_session_options, 100);
ORT_AT(add_session_config_entry, 130);
ORT_AT(create_allocator, 131);
ORT_AT(release_allocator, 132);
ORT_AT(run_with_binding, 133);
ORT_AT(create_io_binding, 134);
ORT_AT(release_io_binding, 135);
ORT_AT(bind_input, 136);
ORT_AT(bind_output, 137);
ORT_AT(add_initializer, 150);
ORT_AT(register_allocator, 176);
ORT_AT(unregister_allocator, 177);
ORT_AT(register_custom_ops_library, 228);
ORT_AT(create_key_values, 295);
ORT_AT(add_key_value, 296);
ORT_AT(get_key_value, 297);
ORT_AT(release_key_values, 300);
ORT_AT(allocator_get_stats, 319);
ORT_AT(sync_stream_get_handle, 384);
#undef ORT_AT

/* OrtApiBase, which OrtGetApiBase returns. Never grows. */
typedef struct ort_api_base {
  const ort_api *(*get_api)(uint32_t version);
  const char *(*get_version)(void);
} ort_api_base;

#endif
