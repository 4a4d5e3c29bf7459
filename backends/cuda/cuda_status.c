#include "backends/cuda/cuda_status.h"

#include "core/base/code_table.h"
#include "core/base/error.h"

/* By number, because a driver may be newer than any header. DEVICE_LOST are those after which, as the header says, the
 * process can do nothing more with the context ("inconsistent state"), and what is no better: an uncorrectable error of
 * memory or link, a device-side assert, a context that was destroyed, an MPS server that is gone. */
static const gm__code cuda_codes[] = {
    {0, GM_OK, "CUDA_SUCCESS"},
    {1, GM_ERR_DRIVER, "CUDA_ERROR_INVALID_VALUE"},
    {2, GM_ERR_OUT_OF_DEVICE_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
    {3, GM_ERR_UNAVAILABLE, "CUDA_ERROR_NOT_INITIALIZED"},
    {4, GM_ERR_UNAVAILABLE, "CUDA_ERROR_DEINITIALIZED"},
    {34, GM_ERR_UNAVAILABLE, "CUDA_ERROR_STUB_LIBRARY"},
    {36, GM_ERR_UNAVAILABLE, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER"},
    {46, GM_ERR_UNAVAILABLE, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
    {100, GM_ERR_UNAVAILABLE, "CUDA_ERROR_NO_DEVICE"},
    {101, GM_ERR_DRIVER, "CUDA_ERROR_INVALID_DEVICE"},
    {102, GM_ERR_UNAVAILABLE, "CUDA_ERROR_DEVICE_NOT_LICENSED"},
    {201, GM_ERR_DRIVER, "CUDA_ERROR_INVALID_CONTEXT"},
    {205, GM_ERR_DRIVER, "CUDA_ERROR_MAP_FAILED"},
    {206, GM_ERR_DRIVER, "CUDA_ERROR_UNMAP_FAILED"},
    {208, GM_ERR_DRIVER, "CUDA_ERROR_ALREADY_MAPPED"},
    {214, GM_ERR_DEVICE_LOST, "CUDA_ERROR_ECC_UNCORRECTABLE"},
    {215, GM_ERR_NOT_SUPPORTED, "CUDA_ERROR_UNSUPPORTED_LIMIT"},
    {217, GM_ERR_NOT_SUPPORTED, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"},
    {220, GM_ERR_DEVICE_LOST, "CUDA_ERROR_NVLINK_UNCORRECTABLE"},
    {226, GM_ERR_DEVICE_LOST, "CUDA_ERROR_CONTAINED"},
    {304, GM_ERR_SYSTEM, "CUDA_ERROR_OPERATING_SYSTEM"},
    {400, GM_ERR_DRIVER, "CUDA_ERROR_INVALID_HANDLE"},
    {401, GM_ERR_DRIVER, "CUDA_ERROR_ILLEGAL_STATE"},
    {500, GM_ERR_DRIVER, "CUDA_ERROR_NOT_FOUND"},
    {600, GM_ERR_DRIVER, "CUDA_ERROR_NOT_READY"},
    {700, GM_ERR_DEVICE_LOST, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {702, GM_ERR_DEVICE_LOST, "CUDA_ERROR_LAUNCH_TIMEOUT"},
    {704, GM_ERR_DRIVER, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"},
    {705, GM_ERR_DRIVER, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"},
    {708, GM_ERR_DRIVER, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE"},
    {709, GM_ERR_DEVICE_LOST, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
    {710, GM_ERR_DEVICE_LOST, "CUDA_ERROR_ASSERT"},
    {712, GM_ERR_INVALID_ARGUMENT, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
    {713, GM_ERR_INVALID_ARGUMENT, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"},
    {714, GM_ERR_DEVICE_LOST, "CUDA_ERROR_HARDWARE_STACK_ERROR"},
    {715, GM_ERR_DEVICE_LOST, "CUDA_ERROR_ILLEGAL_INSTRUCTION"},
    {716, GM_ERR_DEVICE_LOST, "CUDA_ERROR_MISALIGNED_ADDRESS"},
    {717, GM_ERR_DEVICE_LOST, "CUDA_ERROR_INVALID_ADDRESS_SPACE"},
    {718, GM_ERR_DEVICE_LOST, "CUDA_ERROR_INVALID_PC"},
    {719, GM_ERR_DEVICE_LOST, "CUDA_ERROR_LAUNCH_FAILED"},
    {721, GM_ERR_DEVICE_LOST, "CUDA_ERROR_TENSOR_MEMORY_LEAK"},
    {800, GM_ERR_NOT_SUPPORTED, "CUDA_ERROR_NOT_PERMITTED"},
    {801, GM_ERR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
    {802, GM_ERR_UNAVAILABLE, "CUDA_ERROR_SYSTEM_NOT_READY"},
    {803, GM_ERR_UNAVAILABLE, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
    {804, GM_ERR_UNAVAILABLE, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"},
    {805, GM_ERR_UNAVAILABLE, "CUDA_ERROR_MPS_CONNECTION_FAILED"},
    {807, GM_ERR_UNAVAILABLE, "CUDA_ERROR_MPS_SERVER_NOT_READY"},
    {808, GM_ERR_UNAVAILABLE, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED"},
    {810, GM_ERR_DEVICE_LOST, "CUDA_ERROR_MPS_CLIENT_TERMINATED"},
    {900, GM_ERR_NOT_SUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
    {901, GM_ERR_NOT_SUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
    {905, GM_ERR_NOT_SUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
    {906, GM_ERR_NOT_SUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"},
    {907, GM_ERR_NOT_SUPPORTED, "CUDA_ERROR_CAPTURED_EVENT"},
    {909, GM_ERR_DRIVER, "CUDA_ERROR_TIMEOUT"},
    {911, GM_ERR_DEVICE_LOST, "CUDA_ERROR_EXTERNAL_DEVICE"},
    {999, GM_ERR_DRIVER, "CUDA_ERROR_UNKNOWN"},
};

static const gm__code *cuda_status_find(int number) {
  return gm__code_find(cuda_codes, sizeof cuda_codes / sizeof cuda_codes[0], number);
}

gm_status gm__cuda_status(int code) { return cuda_status_find(code)->status; }

const char *gm__cuda_code_name(int code) { return cuda_status_find(code)->name; }

bool gm__cuda_released(CUresult code) { return code == CUDA_SUCCESS || code == CUDA_ERROR_DEINITIALIZED; }

gm_status gm__cuda_fail_as(gm_error *err, gm_status status, CUresult code, const char *op) {
  return gm__fail(err, status, (int)code, op, "%s: %s (%d): %s", op, gm__cuda_code_name((int)code), (int)code,
                  gm_status_text(status));
}

gm_status gm__cuda_fail(gm_error *err, CUresult code, const char *op) {
  const gm_status status = gm__cuda_status((int)code);
  return gm__cuda_fail_as(err, status == GM_OK ? GM_ERR_DRIVER : status, code, op);
}

gm_status gm__cuda_nonsense(gm_error *err, const char *op, const char *what) {
  return gm__fail(err, GM_ERR_DRIVER, 0, op, "%s: the CUDA driver answered success, and %s", op, what);
}
