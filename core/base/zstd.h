/* libzstd, opened when it is first asked for. Nothing of gm links it. GM_ZSTD_LIBRARY names another file. It stays
 * until the process ends. Thread-safe. */
#ifndef GM_CORE_BASE_ZSTD_H
#define GM_CORE_BASE_ZSTD_H

#include <stddef.h>

#include "core/base/inner.h"
#include "gm/status.h"

/* The calls that gm makes. Names and meanings are those of zstd.h; the contexts have names of their own here. */
typedef struct gm__zstd_encoder gm__zstd_encoder;
typedef struct gm__zstd_decoder gm__zstd_decoder;
typedef struct gm__zstd {
  gm__zstd_encoder *(*encoder_new)(void);
  size_t (*encoder_free)(gm__zstd_encoder *encoder);
  size_t (*encoder_set)(gm__zstd_encoder *encoder, int parameter, int value);
  size_t (*encode)(gm__zstd_encoder *encoder, void *to, size_t capacity, const void *from, size_t bytes);
  gm__zstd_decoder *(*decoder_new)(void);
  size_t (*decoder_free)(gm__zstd_decoder *decoder);
  size_t (*decode)(gm__zstd_decoder *decoder, void *to, size_t capacity, const void *from, size_t bytes);
  unsigned (*is_error)(size_t answer);
} gm__zstd;

/* Numbers of zstd.h that gm passes. */
enum {
  GM__ZSTD_LEVEL = 100,         /* ZSTD_c_compressionLevel */
  GM__ZSTD_LEAST_MATCH = 105,   /* ZSTD_c_minMatch */
  GM__ZSTD_LITERALS = 1002,     /* ZSTD_c_literalCompressionMode, which zstd may change: it may refuse this */
  GM__ZSTD_LITERALS_HUFFMAN = 1 /* ZSTD_ps_enable, before 1.5.0 ZSTD_lcm_huffman */
};

/* NULL: the library is missing or too old. NOT_SUPPORTED in `err` says why. */
GM__INNER const gm__zstd *gm__zstd_open(gm_error *err);

#endif
