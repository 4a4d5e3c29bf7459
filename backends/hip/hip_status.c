#include "backends/hip/hip_status.h"

#include "core/base/code_table.h"
#include "core/base/error.h"

/* By number, because a library may be newer than any header. DEVICE_LOST are those that stem from work that failed on
 * the device, after which the runtime aborts or answers no more. */
static const gm__code hip_codes[] = {
    {0, GM_OK, "hipSuccess"},
    {1, GM_ERR_DRIVER, "hipErrorInvalidValue"},
    {2, GM_ERR_OUT_OF_DEVICE_MEMORY, "hipErrorOutOfMemory"},
    {3, GM_ERR_UNAVAILABLE, "hipErrorNotInitialized"},
    {4, GM_ERR_UNAVAILABLE, "hipErrorDeinitialized"},
    {12, GM_ERR_DRIVER, "hipErrorInvalidPitchValue"},
    {17, GM_ERR_DRIVER, "hipErrorInvalidDevicePointer"},
    {21, GM_ERR_DRIVER, "hipErrorInvalidMemcpyDirection"},
    {35, GM_ERR_UNAVAILABLE, "hipErrorInsufficientDriver"},
    {100, GM_ERR_UNAVAILABLE, "hipErrorNoDevice"},
    {101, GM_ERR_DRIVER, "hipErrorInvalidDevice"},
    {200, GM_ERR_DRIVER, "hipErrorInvalidImage"},
    {201, GM_ERR_DRIVER, "hipErrorInvalidContext"},
    {205, GM_ERR_DRIVER, "hipErrorMapFailed"},
    {206, GM_ERR_DRIVER, "hipErrorUnmapFailed"},
    {208, GM_ERR_DRIVER, "hipErrorAlreadyMapped"},
    {209, GM_ERR_DRIVER, "hipErrorNoBinaryForGpu"},
    {211, GM_ERR_DRIVER, "hipErrorNotMapped"},
    {214, GM_ERR_DEVICE_LOST, "hipErrorECCNotCorrectable"},
    {217, GM_ERR_NOT_SUPPORTED, "hipErrorPeerAccessUnsupported"},
    {300, GM_ERR_DRIVER, "hipErrorInvalidSource"},
    {304, GM_ERR_SYSTEM, "hipErrorOperatingSystem"},
    {400, GM_ERR_DRIVER, "hipErrorInvalidHandle"},
    {401, GM_ERR_DRIVER, "hipErrorIllegalState"},
    {500, GM_ERR_DRIVER, "hipErrorNotFound"},
    {600, GM_ERR_DRIVER, "hipErrorNotReady"},
    {700, GM_ERR_DEVICE_LOST, "hipErrorIllegalAddress"},
    {701, GM_ERR_DRIVER, "hipErrorLaunchOutOfResources"},
    {702, GM_ERR_DEVICE_LOST, "hipErrorLaunchTimeOut"},
    {704, GM_ERR_DRIVER, "hipErrorPeerAccessAlreadyEnabled"},
    {705, GM_ERR_DRIVER, "hipErrorPeerAccessNotEnabled"},
    {708, GM_ERR_DRIVER, "hipErrorSetOnActiveProcess"},
    {709, GM_ERR_DEVICE_LOST, "hipErrorContextIsDestroyed"},
    {710, GM_ERR_DEVICE_LOST, "hipErrorAssert"},
    {712, GM_ERR_INVALID_ARGUMENT, "hipErrorHostMemoryAlreadyRegistered"},
    {713, GM_ERR_INVALID_ARGUMENT, "hipErrorHostMemoryNotRegistered"},
    {719, GM_ERR_DEVICE_LOST, "hipErrorLaunchFailure"},
    {801, GM_ERR_NOT_SUPPORTED, "hipErrorNotSupported"},
    {900, GM_ERR_NOT_SUPPORTED, "hipErrorStreamCaptureUnsupported"},
    {901, GM_ERR_NOT_SUPPORTED, "hipErrorStreamCaptureInvalidated"},
    {905, GM_ERR_NOT_SUPPORTED, "hipErrorStreamCaptureIsolation"},
    {906, GM_ERR_NOT_SUPPORTED, "hipErrorStreamCaptureImplicit"},
    {907, GM_ERR_NOT_SUPPORTED, "hipErrorCapturedEvent"},
    {999, GM_ERR_DRIVER, "hipErrorUnknown"},
    {1052, GM_ERR_DRIVER, "hipErrorRuntimeMemory"},
    {1053, GM_ERR_DRIVER, "hipErrorRuntimeOther"},
};

static const gm__code *hip_status_find(int number) {
  return gm__code_find(hip_codes, sizeof hip_codes / sizeof hip_codes[0], number);
}

gm_status gm__hip_status(int code) { return hip_status_find(code)->status; }

const char *gm__hip_code_name(int code) { return hip_status_find(code)->name; }

bool gm__hip_released(hipError_t code) { return code == hipSuccess || code == hipErrorDeinitialized; }

gm_status gm__hip_fail_as(gm_error *err, gm_status status, hipError_t code, const char *op) {
  return gm__fail(err, status, (int)code, op, "%s: %s (%d): %s", op, gm__hip_code_name((int)code), (int)code,
                  gm_status_text(status));
}

gm_status gm__hip_fail(gm_error *err, hipError_t code, const char *op) {
  const gm_status status = gm__hip_status((int)code);
  return gm__hip_fail_as(err, status == GM_OK ? GM_ERR_DRIVER : status, code, op);
}

gm_status gm__hip_nonsense(gm_error *err, const char *op, const char *what) {
  return gm__fail(err, GM_ERR_DRIVER, 0, op, "%s: HIP answered success, and %s", op, what);
}
