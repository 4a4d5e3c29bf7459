/* Element types of tensors, and the bytes they take. Every function is pure and thread-safe. */
#ifndef GM_DTYPE_H
#define GM_DTYPE_H

#include <stdint.h>

#include "gm/status.h"

GM_BEGIN_DECLS

/* Columns: enumerator, number, name, elements and bytes of one block. The numbers never change; new ones go last.
 * Block-quantised types are those of ggml. */
#define GM_DTYPE_MAP(X)                            \
  X(GM_DTYPE_F64, 0, "f64", 1, 8)                  \
  X(GM_DTYPE_F32, 1, "f32", 1, 4)                  \
  X(GM_DTYPE_F16, 2, "f16", 1, 2)                  \
  X(GM_DTYPE_BF16, 3, "bf16", 1, 2)                \
  X(GM_DTYPE_F8_E4M3, 4, "f8_e4m3", 1, 1)          \
  X(GM_DTYPE_F8_E5M2, 5, "f8_e5m2", 1, 1)          \
  X(GM_DTYPE_I64, 6, "i64", 1, 8)                  \
  X(GM_DTYPE_I32, 7, "i32", 1, 4)                  \
  X(GM_DTYPE_I16, 8, "i16", 1, 2)                  \
  X(GM_DTYPE_I8, 9, "i8", 1, 1)                    \
  X(GM_DTYPE_U64, 10, "u64", 1, 8)                 \
  X(GM_DTYPE_U32, 11, "u32", 1, 4)                 \
  X(GM_DTYPE_U16, 12, "u16", 1, 2)                 \
  X(GM_DTYPE_U8, 13, "u8", 1, 1)                   \
  X(GM_DTYPE_BOOL, 14, "bool", 1, 1)               \
  X(GM_DTYPE_C64, 15, "c64", 1, 8)                 \
  X(GM_DTYPE_Q4_0, 16, "q4_0", 32, 18)             \
  X(GM_DTYPE_Q4_1, 17, "q4_1", 32, 20)             \
  X(GM_DTYPE_Q5_0, 18, "q5_0", 32, 22)             \
  X(GM_DTYPE_Q5_1, 19, "q5_1", 32, 24)             \
  X(GM_DTYPE_Q8_0, 20, "q8_0", 32, 34)             \
  X(GM_DTYPE_Q2_K, 21, "q2_k", 256, 84)            \
  X(GM_DTYPE_Q3_K, 22, "q3_k", 256, 110)           \
  X(GM_DTYPE_Q4_K, 23, "q4_k", 256, 144)           \
  X(GM_DTYPE_Q5_K, 24, "q5_k", 256, 176)           \
  X(GM_DTYPE_Q6_K, 25, "q6_k", 256, 210)           \
  X(GM_DTYPE_IQ4_NL, 26, "iq4_nl", 32, 18)         \
  X(GM_DTYPE_IQ4_XS, 27, "iq4_xs", 256, 136)       \
  X(GM_DTYPE_MXFP4, 28, "mxfp4", 32, 17)           \
  X(GM_DTYPE_F8_E8M0, 29, "f8_e8m0", 1, 1)         \
  X(GM_DTYPE_F4, 30, "f4", 2, 1)                   \
  X(GM_DTYPE_F6_E2M3, 31, "f6_e2m3", 4, 3)         \
  X(GM_DTYPE_F6_E3M2, 32, "f6_e3m2", 4, 3)         \
  X(GM_DTYPE_F8_E4M3FNUZ, 33, "f8_e4m3fnuz", 1, 1) \
  X(GM_DTYPE_F8_E5M2FNUZ, 34, "f8_e5m2fnuz", 1, 1) \
  X(GM_DTYPE_Q8_1, 35, "q8_1", 32, 36)             \
  X(GM_DTYPE_Q8_K, 36, "q8_k", 256, 292)           \
  X(GM_DTYPE_IQ1_S, 37, "iq1_s", 256, 50)          \
  X(GM_DTYPE_IQ1_M, 38, "iq1_m", 256, 56)          \
  X(GM_DTYPE_IQ2_XXS, 39, "iq2_xxs", 256, 66)      \
  X(GM_DTYPE_IQ2_XS, 40, "iq2_xs", 256, 74)        \
  X(GM_DTYPE_IQ2_S, 41, "iq2_s", 256, 82)          \
  X(GM_DTYPE_IQ3_XXS, 42, "iq3_xxs", 256, 98)      \
  X(GM_DTYPE_IQ3_S, 43, "iq3_s", 256, 110)         \
  X(GM_DTYPE_TQ1_0, 44, "tq1_0", 256, 54)          \
  X(GM_DTYPE_TQ2_0, 45, "tq2_0", 256, 66)          \
  X(GM_DTYPE_NVFP4, 46, "nvfp4", 64, 36)           \
  X(GM_DTYPE_Q1_0, 47, "q1_0", 128, 18)            \
  X(GM_DTYPE_Q2_0, 48, "q2_0", 64, 18)

typedef enum gm_dtype {
#define X(name, value, text, elements, bytes) name = value,
  GM_DTYPE_MAP(X)
#undef X
} gm_dtype;

/* Returns the name of a type, such as "bf16". Another number gives "?". The string is static and never NULL. */
GM_API const char *gm_dtype_name(gm_dtype dtype);

/* Finds a type by its name, in upper or lower case: "BF16" of safetensors, "Q4_K" of GGUF. NOT_FOUND: there is no such
 * type. INVALID_ARGUMENT: an argument is NULL. After a failure *out is unchanged. */
GM_API gm_status gm_dtype_from_name(const char *name, gm_dtype *out);

/* Returns the elements and bytes of one block of a type. A block of a plain type is one element. Either output may be
 * NULL. INVALID_ARGUMENT: there is no such type. */
GM_API gm_status gm_dtype_block(gm_dtype dtype, uint32_t *out_elements, uint32_t *out_bytes);

/* Returns the exact bytes of `elements` elements. After a failure *out is unchanged. INVALID_ARGUMENT: there is no such
 * type, the elements are no whole number of blocks, the bytes exceed 2^64-1, or `out` is NULL. */
GM_API gm_status gm_dtype_bytes(gm_dtype dtype, uint64_t elements, uint64_t *out);

GM_END_DECLS

#endif
