/* Numbers of the formats, as bits of a float of 32 bits. */
#ifndef GM_CORE_STAGING_CONVERT_NUMBERS_H
#define GM_CORE_STAGING_CONVERT_NUMBERS_H

#define CONVERT_SIGN 0x80000000u
#define CONVERT_INFINITY 0x7f800000u
#define CONVERT_FP16_LEAST 0x38800000u     /* 2^-14, the least normal number of fp16 */
#define CONVERT_FP16_TOO_LARGE 0x477ff000u /* 65520, from which on infinity is nearest */
#define CONVERT_FP16_BIAS 0x38000000u      /* between the two exponents */

#endif
