/* The part of a config.json about quantised weights. */
#ifndef GM_CORE_MODEL_CONFIG_QUANTISED_H
#define GM_CORE_MODEL_CONFIG_QUANTISED_H

#include "core/model/json_scan.h"

typedef struct gm__quantised {
  char method[32];      /* "fp8", "gptq", ...; "": not stated */
  uint64_t bits, group; /* 0: not stated */
  bool four, eight;     /* bitsandbytes: load_in_4bit, load_in_8bit */
} gm__quantised;

/* Read the object behind the key quantization_config. False: the scan has the problem. */
bool gm__quantised_read(gm__json_scan *scan, gm__quantised *out);

/* Bits of each element of a quantised matrix, its scales included; 0: gm does not know the method. *experts_only: only
 * the matrices of experts are quantised.
 *
 * Sources: a group of GPTQ and AWQ has a scale of 16 bits and a zero point. A block of 32 elements of MXFP4 has a scale
 * of 8 bits, one of 16 of NVFP4 too. NF4 of bitsandbytes has 32 bits for 64 elements. */
double gm__quantised_bits(const gm__quantised *stated, bool *experts_only);

#endif
