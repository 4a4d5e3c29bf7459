/* libz, opened when it is first asked for. Nothing of gm links it. GM_ZLIB_LIBRARY names another file. It stays until
 * the process ends. Thread-safe. */
#ifndef GM_CORE_BASE_ZLIB_H
#define GM_CORE_BASE_ZLIB_H

#include "core/base/inner.h"
#include "gm/status.h"

typedef struct gm__zlib gm__zlib;

#ifdef GM_HAVE_ZLIB

#include <zlib.h>

/* The calls that gm makes. Those that have another name in zlib.h are macros there. */
struct gm__zlib {
  int (*inflate_init)(z_stream *stream, int window_bits, const char *version, int stream_bytes);
  int (*inflate)(z_stream *stream, int flush);
  int (*inflate_reset)(z_stream *stream);
  int (*inflate_end)(z_stream *stream);
  int (*deflate_init)(z_stream *stream, int level, int method, int window_bits, int memory, int strategy,
                      const char *version, int stream_bytes);
  int (*deflate)(z_stream *stream, int flush);
  int (*deflate_end)(z_stream *stream);
  unsigned long (*crc32)(unsigned long before, const Bytef *bytes, z_size_t count);
};

#endif

/* NULL: this build has no zlib, or the library is missing or too old. NOT_SUPPORTED in `err` says why. */
GM__INNER const gm__zlib *gm__zlib_open(gm_error *err);

#endif
