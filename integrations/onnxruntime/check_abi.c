/* ort_abi.h held against ONNX Runtime's own header: this compiles only if they agree. A build that does not find the
 * header leaves this file out. The check then stands on what the calls do. */
#include <onnxruntime_c_api.h>

#define ORT_FAIL OURS_FAIL /* our names for their values, where both have the name */
#define ORT_PARALLEL OURS_PARALLEL
#include "ort_abi.h"
#undef ORT_FAIL
#undef ORT_PARALLEL

#define SAME_VALUE(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)
SAME_VALUE(OURS_FAIL, ORT_FAIL);
SAME_VALUE(OURS_PARALLEL, ORT_PARALLEL);
SAME_VALUE(ORT_LOG_ERROR, ORT_LOGGING_LEVEL_ERROR);
SAME_VALUE(ORT_LOG_FATAL, ORT_LOGGING_LEVEL_FATAL);
SAME_VALUE(ORT_DEVICE_ALLOCATOR, OrtDeviceAllocator);
SAME_VALUE(ORT_MEMORY_DEFAULT, OrtMemTypeDefault);
SAME_VALUE(ORT_FLOAT, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);

#define SAME_PLACE(ours, theirs) _Static_assert(offsetof(ort_api, ours) == offsetof(OrtApi, theirs), #theirs)
SAME_PLACE(create_status, CreateStatus);
SAME_PLACE(get_error_code, GetErrorCode);
SAME_PLACE(get_error_message, GetErrorMessage);
SAME_PLACE(create_env, CreateEnv);
SAME_PLACE(create_session_from_array, CreateSessionFromArray);
SAME_PLACE(run, Run);
SAME_PLACE(create_session_options, CreateSessionOptions);
SAME_PLACE(set_execution_mode, SetSessionExecutionMode);
SAME_PLACE(disable_cpu_arena, DisableCpuMemArena);
SAME_PLACE(set_intra_op_threads, SetIntraOpNumThreads);
SAME_PLACE(set_inter_op_threads, SetInterOpNumThreads);
SAME_PLACE(create_tensor, CreateTensorAsOrtValue);
SAME_PLACE(create_tensor_over, CreateTensorWithDataAsOrtValue);
SAME_PLACE(get_tensor_data, GetTensorMutableData);
SAME_PLACE(create_memory_info, CreateMemoryInfo);
SAME_PLACE(create_cpu_memory_info, CreateCpuMemoryInfo);
SAME_PLACE(memory_info_get_name, MemoryInfoGetName);
SAME_PLACE(allocator_alloc, AllocatorAlloc);
SAME_PLACE(allocator_free, AllocatorFree);
SAME_PLACE(release_env, ReleaseEnv);
SAME_PLACE(release_status, ReleaseStatus);
SAME_PLACE(release_memory_info, ReleaseMemoryInfo);
SAME_PLACE(release_session, ReleaseSession);
SAME_PLACE(release_value, ReleaseValue);
SAME_PLACE(release_session_options, ReleaseSessionOptions);
SAME_PLACE(add_session_config_entry, AddSessionConfigEntry);
SAME_PLACE(create_allocator, CreateAllocator);
SAME_PLACE(release_allocator, ReleaseAllocator);
SAME_PLACE(run_with_binding, RunWithBinding);
SAME_PLACE(create_io_binding, CreateIoBinding);
SAME_PLACE(release_io_binding, ReleaseIoBinding);
SAME_PLACE(bind_input, BindInput);
SAME_PLACE(bind_output, BindOutput);
SAME_PLACE(add_initializer, AddInitializer);
SAME_PLACE(register_allocator, RegisterAllocator);
SAME_PLACE(unregister_allocator, UnregisterAllocator);
SAME_PLACE(register_custom_ops_library, RegisterCustomOpsLibrary_V2);
#if ORT_API_VERSION >= 23
SAME_PLACE(create_key_values, CreateKeyValuePairs);
SAME_PLACE(add_key_value, AddKeyValuePair);
SAME_PLACE(get_key_value, GetKeyValue);
SAME_PLACE(release_key_values, ReleaseKeyValuePairs);
SAME_PLACE(allocator_get_stats, AllocatorGetStats);
SAME_PLACE(sync_stream_get_handle, SyncStream_GetHandle);
#endif

#define SAME_MEMBER(ours, theirs) \
  _Static_assert(offsetof(ort_allocator, ours) == offsetof(OrtAllocator, theirs), #theirs)
SAME_MEMBER(version, version);
SAME_MEMBER(alloc, Alloc);
SAME_MEMBER(free, Free);
SAME_MEMBER(info, Info);
#if ORT_API_VERSION >= 18
SAME_MEMBER(reserve, Reserve);
#endif
#if ORT_API_VERSION >= 23
SAME_MEMBER(get_stats, GetStats);
SAME_MEMBER(alloc_on_stream, AllocOnStream);
#endif
#if ORT_API_VERSION >= 25
SAME_MEMBER(shrink, Shrink);
#endif

_Static_assert(offsetof(ort_api_base, get_api) == offsetof(OrtApiBase, GetApi), "GetApi");
_Static_assert(offsetof(ort_api_base, get_version) == offsetof(OrtApiBase, GetVersionString), "GetVersionString");
