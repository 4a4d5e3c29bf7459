/* Archives of NumPy's arrays (.npz): a zip file whose members are .npy files, as numpy.savez writes it. Members that
 * are stored lie in the file as they are. Not thread-safe while reading; read-only after. */
#ifndef GM_CORE_MODEL_NPZ_H
#define GM_CORE_MODEL_NPZ_H

#include "core/model/npy.h"

enum { GM__ZIP_MAGIC_BYTES = 4 };

/* Does a file begin as a zip file does? */
bool gm__npz_is(const unsigned char first[GM__ZIP_MAGIC_BYTES]);

/* Read the list of members, and the header of each. A tensor has the name of its member, without ".npy". On failure
 * *out is all zero. Errors: those of gm__npy_header. FORMAT also: a broken archive, or one with other members, such as
 * PyTorch's checkpoints. NOT_SUPPORTED: compressed or encrypted members. */
gm_status gm__npz_read(const gm__npy_source *source, gm__contents *out, gm_error *err);

#endif
