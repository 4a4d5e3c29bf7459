/* UMF's disjoint pool over a provider that takes from the fake device. Config "": as it comes (pools up to 2 MiB).
 * Config "big": pools up to 1 GiB, 64 slabs kept in each bucket, slabs of 2 MiB and more. It knows no streams. */
#include <stdio.h>
#include <string.h>
#include <umf.h>
#include <umf/memory_pool.h>
#include <umf/memory_provider.h>
#include <umf/memory_provider_ops.h>
#include <umf/pools/pool_disjoint.h>

#include "bench/peers/fake_figures.h"

static umf_memory_pool_handle_t umf_pool;
static int umf_big;

static umf_result_t provider_initialize(const void *params, void **out) {
  (void)params;
  *out = &umf_big; /* anything but NULL: the device is the process's own */
  return UMF_RESULT_SUCCESS;
}

static umf_result_t provider_finalize(void *provider) {
  (void)provider;
  return UMF_RESULT_SUCCESS;
}

static umf_result_t provider_alloc(void *provider, size_t bytes, size_t align, void **out) {
  (void)provider, (void)align;
  *out = (void *)fake_device_alloc(bytes);
  return *out ? UMF_RESULT_SUCCESS : UMF_RESULT_ERROR_OUT_OF_HOST_MEMORY;
}

static umf_result_t provider_free(void *provider, void *pointer, size_t bytes) {
  (void)provider, (void)bytes;
  return fake_device_free((uintptr_t)pointer) == 0 ? UMF_RESULT_SUCCESS : UMF_RESULT_ERROR_INVALID_ARGUMENT;
}

static umf_result_t provider_last_error(void *provider, const char **out_text, int32_t *out_number) {
  (void)provider;
  *out_text = "";
  *out_number = 0;
  return UMF_RESULT_SUCCESS;
}

static umf_result_t provider_recommended_page(void *provider, size_t bytes, size_t *out) {
  (void)provider, (void)bytes;
  *out = (size_t)2 << 20;
  return UMF_RESULT_SUCCESS;
}

static umf_result_t provider_least_page(void *provider, const void *pointer, size_t *out) {
  (void)provider, (void)pointer;
  *out = 4096;
  return UMF_RESULT_SUCCESS;
}

static umf_result_t provider_name(void *provider, const char **out) {
  (void)provider;
  *out = "fake";
  return UMF_RESULT_SUCCESS;
}

static umf_result_t provider_line(void *provider, size_t *out) {
  (void)provider;
  *out = 64;
  return UMF_RESULT_SUCCESS;
}

static umf_result_t provider_purge(void *provider, void *pointer, size_t bytes) {
  (void)provider, (void)pointer, (void)bytes;
  return UMF_RESULT_ERROR_NOT_SUPPORTED;
}

static umf_result_t provider_merge(void *provider, void *low, void *high, size_t bytes) {
  (void)provider, (void)low, (void)high, (void)bytes;
  return UMF_RESULT_ERROR_NOT_SUPPORTED;
}

static umf_result_t provider_split(void *provider, void *pointer, size_t bytes, size_t first) {
  (void)provider, (void)pointer, (void)bytes, (void)first;
  return UMF_RESULT_SUCCESS;
}

static umf_result_t umf_params(umf_disjoint_pool_params_handle_t *out) {
  umf_result_t result = umfDisjointPoolParamsCreate(out);
  if (result != UMF_RESULT_SUCCESS || !umf_big) return result;
  umfDisjointPoolParamsSetMaxPoolableSize(*out, (size_t)1 << 30);
  umfDisjointPoolParamsSetCapacity(*out, 64);
  return umfDisjointPoolParamsSetSlabMinSize(*out, (size_t)2 << 20);
}

PEER_API int peer_init(const char *config) {
  static umf_memory_provider_ops_t ops;
  ops.version = UMF_PROVIDER_OPS_VERSION_CURRENT;
  ops.initialize = provider_initialize;
  ops.finalize = provider_finalize;
  ops.alloc = provider_alloc;
  ops.free = provider_free;
  ops.get_last_native_error = provider_last_error;
  ops.get_recommended_page_size = provider_recommended_page;
  ops.get_min_page_size = provider_least_page;
  ops.get_name = provider_name;
  ops.get_cache_line_size = provider_line;
  ops.ext_purge_lazy = ops.ext_purge_force = provider_purge;
  ops.ext_allocation_merge = provider_merge;
  ops.ext_allocation_split = provider_split;
  umf_big = strcmp(config, "big") == 0;
  umf_memory_provider_handle_t provider;
  umf_disjoint_pool_params_handle_t params;
  umf_result_t result = umfMemoryProviderCreate(&ops, NULL, &provider);
  if (result == UMF_RESULT_SUCCESS) result = umf_params(&params);
  if (result == UMF_RESULT_SUCCESS) result = umfPoolCreate(umfDisjointPoolOps(), provider, params, 0, &umf_pool);
  if (result != UMF_RESULT_SUCCESS) fprintf(stderr, "umf: error %d\n", (int)result);
  return result == UMF_RESULT_SUCCESS ? 0 : -1;
}

PEER_API void *peer_alloc(size_t bytes, uint64_t stream) {
  (void)stream;
  return umfPoolMalloc(umf_pool, bytes);
}

PEER_API void peer_free(void *pointer, size_t bytes, uint64_t stream) {
  (void)bytes, (void)stream;
  umfPoolFree(umf_pool, pointer);
}

PEER_API const char *peer_name(void) { return umf_big ? "UMF big" : "UMF"; }
