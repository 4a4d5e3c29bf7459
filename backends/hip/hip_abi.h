/* gm declares the part of HIP's runtime API that it calls, so it needs no ROCm. The names are AMD's. GM_HIP_OFFICIAL
 * puts the official header in their place; tests/abi compares the two that way. Two things differ between versions: the
 * values of hipMemoryType, and hipMemAllocationProp before 6.0. The code that uses them says how. */
#ifndef GM_BACKENDS_HIP_ABI_H
#define GM_BACKENDS_HIP_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef GM_HIP_OFFICIAL
#include <hip/hip_runtime_api.h>
#else

typedef void *hipDeviceptr_t;
typedef int hipDevice_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct ihipMemGenericAllocationHandle *hipMemGenericAllocationHandle_t;

/* Those that the code speaks of; hip_status.c knows more by number. */
typedef enum hipError_t {
  hipSuccess = 0,
  hipErrorInvalidValue = 1,
  hipErrorOutOfMemory = 2,
  hipErrorNotInitialized = 3,
  hipErrorDeinitialized = 4,
  hipErrorNoDevice = 100,
  hipErrorInvalidDevice = 101,
  hipErrorNotReady = 600,
  hipErrorIllegalAddress = 700,
  hipErrorPeerAccessAlreadyEnabled = 704,
  hipErrorPeerAccessNotEnabled = 705,
  hipErrorNotSupported = 801,
  hipErrorStreamCaptureImplicit = 906,
  hipErrorUnknown = 999
} hipError_t;

/* The numbering of HIP 5.0 and newer. */
typedef enum hipDeviceAttribute_t {
  hipDeviceAttributeConcurrentManagedAccess = 9,
  hipDeviceAttributeIntegrated = 16,
  hipDeviceAttributeManagedMemory = 24,
  hipDeviceAttributeVirtualMemoryManagementSupported = 89,
  hipDeviceAttributeHostRegisterSupported = 90
} hipDeviceAttribute_t;

typedef enum hipDeviceP2PAttr {
  hipDevP2PAttrPerformanceRank = 0,
  hipDevP2PAttrNativeAtomicSupported = 2
} hipDeviceP2PAttr;

typedef enum hipMemcpyKind {
  hipMemcpyHostToHost = 0,
  hipMemcpyHostToDevice = 1,
  hipMemcpyDeviceToHost = 2,
  hipMemcpyDeviceToDevice = 3,
  hipMemcpyDefault = 4
} hipMemcpyKind;

typedef enum hipMemoryAdvise {
  hipMemAdviseSetReadMostly = 1,
  hipMemAdviseUnsetReadMostly = 2,
  hipMemAdviseSetPreferredLocation = 3,
  hipMemAdviseUnsetPreferredLocation = 4,
  hipMemAdviseSetAccessedBy = 5,
  hipMemAdviseUnsetAccessedBy = 6
} hipMemoryAdvise;

typedef enum hipStreamCaptureStatus {
  hipStreamCaptureStatusNone = 0,
  hipStreamCaptureStatusActive = 1,
  hipStreamCaptureStatusInvalidated = 2
} hipStreamCaptureStatus;

typedef enum hipStreamCaptureMode {
  hipStreamCaptureModeGlobal = 0,
  hipStreamCaptureModeThreadLocal = 1,
  hipStreamCaptureModeRelaxed = 2
} hipStreamCaptureMode;

typedef enum hipMemAllocationType { hipMemAllocationTypePinned = 1 } hipMemAllocationType;

typedef enum hipMemAllocationHandleType {
  hipMemHandleTypeNone = 0,
  hipMemHandleTypePosixFileDescriptor = 1
} hipMemAllocationHandleType;

typedef enum hipMemLocationType { hipMemLocationTypeDevice = 1 } hipMemLocationType;
typedef enum hipMemAccessFlags { hipMemAccessFlagsProtReadWrite = 3 } hipMemAccessFlags;
typedef enum hipMemAllocationGranularity_flags {
  hipMemAllocationGranularityMinimum = 0
} hipMemAllocationGranularity_flags;

#define hipCpuDeviceId ((int)-1)
#define hipStreamNonBlocking 0x01
#define hipEventDisableTiming 0x02
#define hipMemAttachGlobal 0x01
#define hipHostMallocPortable 0x01
#define hipHostMallocMapped 0x02
#define hipHostRegisterPortable 0x01
#define hipHostRegisterMapped 0x02
#define HIP_IPC_HANDLE_SIZE 64
#define hipStreamPerThread ((hipStream_t)2)

typedef struct hipUUID_t {
  char bytes[16];
} hipUUID;

typedef struct hipPointerAttribute_t {
  int type; /* hipMemoryType, whose values changed in 6.0 */
  int device;
  void *devicePointer;
  void *hostPointer;
  int isManaged;
  unsigned allocationFlags;
} hipPointerAttribute_t;

typedef struct hipIpcMemHandle_st {
  char reserved[HIP_IPC_HANDLE_SIZE];
} hipIpcMemHandle_t;

typedef struct hipMemLocation {
  hipMemLocationType type;
  int id;
} hipMemLocation;

typedef struct hipMemAccessDesc {
  hipMemLocation location;
  hipMemAccessFlags flags;
} hipMemAccessDesc;

typedef struct hipMemAllocationProp { /* as of 6.0 */
  hipMemAllocationType type;
  hipMemAllocationHandleType requestedHandleType;
  hipMemLocation location;
  void *win32HandleMetaData;
  struct {
    unsigned char compressionType;
    unsigned char gpuDirectRDMACapable;
    unsigned short usage;
  } allocFlags;
} hipMemAllocationProp;

#endif
#endif
