/* From model files into a store, and from a store into a file. A file's tensors are values under a prefix of keys: the
 * tensor "wte" under the prefix "gpt" has the key "gpt/wte". Every call is thread-safe. */
#ifndef GM_STORE_FILE_H
#define GM_STORE_FILE_H

#include "gm/store.h"

GM_BEGIN_DECLS

typedef struct gm_model gm_model; /* gm/model.h opens one */

/* Puts each tensor of a model into a store, as gm_store_put_tensor does, one after the other in the order of
 * gm_model_tensor. So a model may be larger than the device: what came first goes down. Keys that were there get the
 * new values. `prefix` NULL, "" and "/": the keys are the names. Each tensor is read whole before its key changes. gm
 * takes host memory for the largest one.
 *
 * gm checks all names before it puts anything. After a later failure the keys of earlier tensors have their new values,
 * and the others are as they were. The message names tensor and file.
 *
 * Errors: those of gm_store_put_tensor. INVALID_ARGUMENT also: the prefix, or a model of gm_model_open_header.
 * NOT_SUPPORTED: the prefix and a tensor's name are no key in its normal form, such as "a//b", or too long.
 * NOT_SUPPORTED also: a row of a tensor is no whole number of its type's blocks. NOT_FOUND, IO: a file is gone, shrank
 * or changed since gm_model_open. */
GM_API gm_status gm_store_load(gm_store *store, const char *prefix, const gm_model *model, gm_error *err);

/* Opens the model at `path`, puts its tensors into a store and closes it. Errors: those of gm_model_open and
 * gm_store_load. */
GM_API gm_status gm_store_load_file(gm_store *store, const char *prefix, const char *path, gm_error *err);

/* Saves the tensors of the keys below `prefix` to one file at `path`. A name that ends in ".gguf" makes a GGUF file.
 * One that ends in ".npz" makes an archive of NumPy's arrays, which is not compressed. One that ends in ".npy" makes
 * one array, of the only key. Every other name makes a safetensors file. In GGUF and safetensors the data begins at a
 * multiple of 4096 bytes. The tensors' names are the keys without the prefix. `prefix` NULL, "" and "/": all keys.
 * Values stay where they are: each is read from the device, from host memory or from its tier. A value in a tier is
 * read twice. gm takes at most 24 MiB of host memory. A value that is in host memory or a tier takes up to twice its
 * bytes beside that, one value at a time.
 *
 * gm writes a side file beside it, whose name ends in ".gm-save". Once that is on the disk, it gets the name of
 * `path`. Until then the earlier file at `path` is as it was, also after a crash. On GM_OK the file and its name are
 * on the disk. It has every value that was put before the call. A value that is put during the call is in the file, or
 * the one before it is. The file keeps the owner and mode of an earlier one. A new file is for its user alone. Side
 * files of a process that ended go with the next save to `path`.
 *
 * Errors: INVALID_ARGUMENT: the prefix, or `path` is NULL or empty. NOT_FOUND: no key is below the prefix, or there is
 * no such folder. NOT_SUPPORTED: the format cannot hold a value, which the message names. Such are lists and
 * dictionaries, keys that are not UTF-8, and the prefix itself. safetensors has no quantised types, and no key
 * "__metadata__". NumPy also has no bfloat16 and no type of 8 bits or fewer that is no integer. GGUF has no unsigned
 * types, booleans, complex types and small floats. It has at most four dimensions, none of them 0, and names of at most
 * 63 bytes. NOT_SUPPORTED also: the header is above 100 MB (GGUF: 256 MB), or several keys for one array. BUSY: another
 * thread or process saves to `path`, or the type or shape of a key changed during the call. IO: the disk is full, or
 * `path` is no regular file or may not be written. OUT_OF_HOST_MEMORY, FORKED, and those of gm_value_read and of the
 * tiers. After a failure the earlier file is there. Where only the last step fails, which tells the disk of the name,
 * the new one may be. */
GM_API gm_status gm_store_save(gm_store *store, const char *prefix, const char *path, gm_error *err);

GM_END_DECLS

#endif
