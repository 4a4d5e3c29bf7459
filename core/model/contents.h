/* The table of contents of one model file, whatever its format: tensors, their places, and what the file says about
 * itself. A reader fills it; the model only asks. Read-only when filled. */
#ifndef GM_CORE_MODEL_CONTENTS_H
#define GM_CORE_MODEL_CONTENTS_H

#include "core/model/json_scan.h"
#include "gm/model.h"
#include "gm/model_value.h"
#include "gm/services.h"

typedef struct gm__tensor {
  gm__json_text name;
  uint64_t begin; /* in the data, which starts behind the header */
  uint64_t bytes;
  uint64_t shape_at; /* its first dimension in gm__contents.dims */
  uint32_t shard;
  uint32_t rank;
  gm_dtype dtype;
} gm__tensor;

typedef struct gm__metadata {
  gm__json_text key;
  gm__json_text value;
} gm__metadata;

/* A string of the header's text, ended by a NUL. */
typedef struct gm__header_string {
  uint32_t at;
  uint32_t length;
} gm__header_string;

/* A typed value of GGUF. Numbers stay in the header's text, as the file has them. */
typedef struct gm__value {
  gm__json_text key;
  uint32_t type;         /* of GGUF: see gguf_values.h */
  uint32_t element_type; /* of an array */
  uint64_t count;        /* elements of an array; bytes of a string */
  uint64_t at;           /* in the header's text; of an array of strings the first in gm__contents.strings */
} gm__value;

typedef struct gm__contents {
  char *header; /* owns the text that the names and strings below point into */
  uint64_t header_bytes;
  uint64_t header_at; /* where that text begins in the file */
  uint64_t data_at;   /* where the data begins in the file */
  uint64_t data_bytes;
  bool header_only;      /* what the file holds behind the header does not count */
  uint64_t tensor_bytes; /* of all tensors; less than data_bytes where a format has room between them */
  gm__tensor *tensors;   /* as the header lists them */
  uint64_t tensor_count, tensor_capacity;
  uint32_t *by_place; /* their numbers in the order of the data */
  uint64_t *dims;
  uint64_t dim_count, dim_capacity;
  gm__metadata *metadata;
  uint64_t metadata_count, metadata_capacity;
  gm__value *values;
  uint64_t value_count, value_capacity;
  uint32_t *by_key; /* numbers of the values, sorted by key */
  gm__header_string *strings;
  uint64_t string_count, string_capacity;
} gm__contents;

/* Free all of it; an all-zero one is harmless. */
void gm__contents_free(const gm_services *services, gm__contents *contents);

/* The end of a reader. With `status` GM_OK *out gets `contents`; else they are freed and *out is all zero. */
gm_status gm__contents_finish(const gm_services *services, gm_status status, gm__contents *contents, gm__contents *out);

/* Add a tensor with its `dims`, outermost first; add metadata. Nothing is checked. */
gm_status gm__contents_add_tensor(const gm_services *services, gm__contents *contents, const gm__tensor *tensor,
                                  const uint64_t *dims, gm_error *err);
gm_status gm__contents_add_metadata(const gm_services *services, gm__contents *contents, const gm__metadata *pair,
                                    gm_error *err);

/* Fill by_place. */
gm_status gm__contents_order(const gm_services *services, gm__contents *contents, gm_error *err);

/* The number of elements of a shape. False: more than 2^64 - 1. A zero anywhere gives zero, whatever the other
 * dimensions are. */
bool gm__shape_elements(const uint64_t *dims, uint32_t rank, uint64_t *out);

/* Make the only tensor of a file: `contents` get a copy of its name, and where its data lie. Its `begin` counts from
 * the file's first byte. Errors: OUT_OF_HOST_MEMORY. */
gm_status gm__contents_only(const gm_services *services, gm__contents *contents, const gm__tensor *tensor,
                            const uint64_t *dims, gm_error *err);

/* "PATH: byte AT: …" into err; of a long path its end. Returns `status`. */
gm_status gm__model_fail(gm_error *err, gm_status status, const char *path, uint64_t at, const char *format, ...)
    GM_PRINTF(5, 6);
#ifdef __clang_analyzer__ /* as for gm__fail */
#define gm__model_fail(err, status, ...) ((void)gm__model_fail((err), (status), __VA_ARGS__), (status))
#endif

/* Let `err` name the call `op` where it names gm_model_open. `err` may be NULL. Returns `status`. */
gm_status gm__model_name_call(gm_status status, const char *op, gm_error *err);

/* Order of two strings by bytes; a shorter one that the other begins with comes first. */
int gm__json_text_compare(const gm__json_text *a, const gm__json_text *b);

#endif
