/* gm's declarations of HIP against a list of facts. With GM_HIP_OFFICIAL it is compiled a second time: the official
 * header against that list, and its prototypes against those of gm's table. Nothing of it runs. */
#include "backends/hip/hip_abi.h"
#include "backends/hip/hip_rtc_abi.h"

#define NUMBER(name, value) _Static_assert((int)name == value, #name);
#define SIZE(type, bytes) _Static_assert(sizeof(type) == bytes, #type);
#define OFFSET(type, member, bytes) _Static_assert(offsetof(type, member) == bytes, #type "." #member);
#if !defined GM_HIP_OFFICIAL || HIP_VERSION >= 60000000
#define NEW_NUMBER(name, value) NUMBER(name, value)
#define NEW_SIZE(type, bytes) SIZE(type, bytes)
#define NEW_OFFSET(type, member, bytes) OFFSET(type, member, bytes)
#else
#define NEW_NUMBER(name, value)
#define NEW_SIZE(type, bytes)
#define NEW_OFFSET(type, member, bytes)
#endif

#include "tests/abi/hip_facts.def"

#ifdef GM_HIP_OFFICIAL
/* Newer than the oldest header that is met. */
hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device);

#define X(need, fault, symbol, parameters, arguments) \
  _Static_assert(_Generic(&symbol, hipError_t(*) parameters : 1, default : 0), #symbol " differs");
#include "backends/hip/hip_syms.def"
#undef X
#define X(need, fault, symbol, parameters, arguments) \
  _Static_assert(_Generic(&symbol, hiprtcResult(*) parameters : 1, default : 0), #symbol " differs");
#include "backends/hip/hip_rtc_syms.def"
#undef X
#endif
