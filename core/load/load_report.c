#include "core/base/error.h"
#include "core/load/load_job.h"

gm_status gm__load_report(gm__load_job *job, uint64_t tensor, gm_error *err) {
  job->progress.tensor = job->model->tensors[tensor]->name.text;
  if (!job->params.progress || job->params.progress(job->params.user, &job->progress)) return GM_OK;
  return gm__fail(err, GM_ERR_CANCELLED, "gm_model_load", "cancelled by the caller, after %llu of %llu bytes %s",
                  (unsigned long long)job->progress.done_bytes, (unsigned long long)job->progress.total_bytes,
                  job->progress.verifying ? "verified" : "loaded");
}
