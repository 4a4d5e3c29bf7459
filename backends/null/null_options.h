/* The options of the null backend: "capacity=80G,devices=2,latency=1000". */
#ifndef GM_BACKENDS_NULL_NULL_OPTIONS_H
#define GM_BACKENDS_NULL_NULL_OPTIONS_H

#include <stdint.h>

#include "gm/status.h"

enum { GM__NULL_DEVICES_MAX = 16 };

typedef struct gm__null_options {
  uint64_t capacity;      /* bytes of each device; default 80G, at most 1024T */
  uint64_t devices;       /* 1 to 16; default 1 */
  uint64_t max_alloc;     /* largest single allocation; default 0: the capacity bounds it */
  uint64_t alignment;     /* of every address and every charged size, a power of two; default 256 */
  uint64_t align_granule; /* VMM granularity, a power of two from 64, not below `alignment`; default 2M */
  uint64_t latency;       /* virtual nanoseconds of each submitted piece of work; default 0 */
} gm__null_options;

/* GM_ERR_INVALID_ARGUMENT names the unknown option, or the option that is out of range. */
gm_status gm__null_options_parse(const char *text, gm__null_options *out, gm_error *err);

#endif
