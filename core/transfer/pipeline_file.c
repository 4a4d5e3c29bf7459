/* Files at the ends of a pipeline: its first stage reads one, its last stage writes one. */
#include <inttypes.h>

#include "core/base/error.h"
#include "core/base/saturate.h"
#include "core/file/file.h"
#include "core/transfer/pipeline.h"

static gm_status file_check_from(gm_pipeline_file *from, const char *op, gm_error *err) {
  if (from->file->fresh) return gm__bad_argument(err, op, "the file in `from` is from gm_file_create");
  const uint64_t size = gm_file_size(from->file);
  if (from->offset > size || from->bytes > size - from->offset) {
    return gm__bad_argument(err, op, "`from`: %" PRIu64 " bytes at %" PRIu64 " end behind the file, which has %" PRIu64,
                            from->bytes, from->offset, size);
  }
  if (!from->bytes) from->bytes = size - from->offset;
  return GM_OK;
}

gm_status gm__pipeline_check_files(gm_pipeline_params *params, const char *op, gm_error *err) {
  if (params->from.file && params->source)
    return gm__bad_argument(err, op, "there are a `source` and a file in `from`");
  if (params->to.file && params->sink) return gm__bad_argument(err, op, "there are a `sink` and a file in `to`");
  if (params->to.file && !params->out_bytes) return gm__bad_argument(err, op, "a file in `to` needs `out_bytes`");
  if (params->to.file && !params->to.file->fresh) {
    return gm__bad_argument(err, op, "the file in `to` is not from gm_file_create");
  }
  return params->from.file ? file_check_from(&params->from, op, err) : GM_OK;
}

/* A failure of the file's own call: with the byte where the piece begins, too. */
static gm_status file_fail(gm_status status, uint64_t at, const gm_error *why, gm_error *err) {
  return gm__fail_native(err, status, why->native_code, why->op, "from byte %" PRIu64 " on: %s", at, why->message);
}

gm_status gm__pipeline_read_file(gm_pipeline *pipeline, void *host, uint64_t *out_bytes, gm_error *err) {
  const gm_pipeline_file *from = &pipeline->params.from;
  const uint64_t bytes = gm__min(from->bytes - pipeline->file_read, pipeline->params.read_bytes);
  const uint64_t at = from->offset + pipeline->file_read;
  gm_error why = {.status = GM_OK};
  const gm_status status = gm_file_read(from->file, at, host, bytes, &why);
  if (status != GM_OK) return file_fail(status, at, &why, err);
  pipeline->file_read += bytes;
  *out_bytes = bytes;
  return GM_OK;
}

gm_status gm__pipeline_write_file(gm_pipeline *pipeline, const void *host, uint64_t bytes, gm_error *err) {
  const gm_pipeline_file *to = &pipeline->params.to;
  const uint64_t at = gm__add_sat(to->offset, pipeline->file_written);
  if (to->bytes && bytes > to->bytes - pipeline->file_written) {
    return gm__fail(err, GM_ERR_OVER_LIMIT, "gm_pipeline",
                    "%.300s: %" PRIu64 " bytes at %" PRIu64 " end behind the %" PRIu64 " of `to`", to->file->path,
                    bytes, at, to->bytes);
  }
  gm_error why = {.status = GM_OK};
  const gm_status status = gm_file_write(to->file, at, host, bytes, &why);
  if (status != GM_OK) return file_fail(status, at, &why, err);
  pipeline->file_written += bytes;
  return GM_OK;
}
