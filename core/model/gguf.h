/* The header of one GGUF file (versions 1 to 3, little-endian): read, checked, and turned into a table of contents.
 * Pure: no device, no file but the one handed in. Every check of the format is made here. Counts and lengths are
 * held against the rest of the file before anything is allocated. No key is there twice, types are known, and rows
 * have whole blocks. Data lies at multiples of the alignment, inside the file and without overlap. Not thread-safe
 * while parsing; read-only after. */
#ifndef GM_CORE_MODEL_GGUF_H
#define GM_CORE_MODEL_GGUF_H

#include "core/base/input_file.h"
#include "core/model/contents.h"

enum { GM__GGUF_MAGIC_BYTES = 4 };
/* gm's limits. The largest known headers have some 20 MB, a hundred values, and 800,000 strings in lists of them. */
enum { GM__GGUF_HEADER_MAX = 64 << 20, GM__GGUF_VALUES_MAX = 1 << 16, GM__GGUF_STRINGS_MAX = 1 << 21 };

/* Whether these four bytes begin a GGUF file. No safetensors file that is accepted begins so. */
bool gm__gguf_is(const unsigned char first[GM__GGUF_MAGIC_BYTES]);

/* Read and check the header of an open file; `path` is for messages. With `header_only` the data may be cut off. On
 * failure *out is all zero. GM_ERR_FORMAT names the path, the byte in the file, and the key or tensor.
 * GM_ERR_NOT_SUPPORTED: big-endian, a newer version, a type that left the format, more than four dimensions, a
 * header above GM__GGUF_HEADER_MAX, too many values or strings. GM_ERR_IO, GM_ERR_OUT_OF_HOST_MEMORY. */
gm_status gm__gguf_read(const gm_services *services, const gm__input_file *file, const char *path, bool header_only,
                        gm__contents *out, gm_error *err);

/* Like gm__gguf_read, from a file in memory, which is not kept. */
gm_status gm__gguf_parse(const gm_services *services, const void *bytes, uint64_t length, const char *path,
                         bool header_only, gm__contents *out, gm_error *err);

#endif
