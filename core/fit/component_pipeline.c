/* Folders of diffusers. model_index.json names components: "vae": ["diffusers", "AutoencoderKL"]. Names are hostile:
 * one that is no plain name of a folder is refused. */
#include <stdio.h>
#include <string.h>

#include "core/base/alloc.h"
#include "core/base/cancel.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/fit/component_parts.h"
#include "core/model/json_scan.h"

enum { PIPELINE_PATH = 4096, PIPELINE_INDEX = 65536 };

static const char pipeline_op[] = "gm_estimate_pipeline";

typedef struct pipeline_name {
  char name[GM_COMPONENT_NAME_SIZE];
  gm_component_kind kind;
} pipeline_name;

typedef struct pipeline {
  const char *path;
  gm__json_scan scan;
  pipeline_name names[GM_COMPONENTS_MAX];
  uint32_t count;
} pipeline;

static bool pipeline_begins(const char *text, const char *start) { return strncmp(text, start, strlen(start)) == 0; }

static gm_component_kind pipeline_kind(const char *name) {
  static const struct {
    const char *start;
    gm_component_kind kind;
  } kinds[] = {{"transformer", GM_COMPONENT_DENOISER}, {"unet", GM_COMPONENT_DENOISER},
               {"prior", GM_COMPONENT_DENOISER},       {"text_encoder", GM_COMPONENT_TEXT_ENCODER},
               {"vae", GM_COMPONENT_IMAGE_DECODER},    {"vqvae", GM_COMPONENT_IMAGE_DECODER},
               {"vqgan", GM_COMPONENT_IMAGE_DECODER},  {"movq", GM_COMPONENT_IMAGE_DECODER}};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (pipeline_begins(name, kinds[i].start)) return kinds[i].kind;
  }
  return GM_COMPONENT_OTHER;
}

/* Classes whose objects have no weights. */
static bool pipeline_has_weights(const char *class) {
  static const char *const without[] = {"Scheduler", "Tokenizer", "Processor", "FeatureExtractor", "Guider"};
  for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
    if (strstr(class, without[i])) return false;
  }
  return true;
}

/* ---- the index ---- */

static bool pipeline_add(pipeline *self, const gm__json_text *key) {
  for (uint32_t i = 0; i < self->count; i++) {
    if (strcmp(self->names[i].name, key->text) == 0) {
      return gm__json_problem(&self->scan, key->at, "a component is there twice");
    }
  }
  if (key->length >= GM_COMPONENT_NAME_SIZE || strchr(key->text, '/') || key->text[0] == '.' || !key->text[0]) {
    return gm__json_problem(&self->scan, key->at, "this is no name of a component's folder");
  }
  if (self->count == GM_COMPONENTS_MAX) return gm__json_problem(&self->scan, key->at, "more than 32 components");
  pipeline_name *next = &self->names[self->count++];
  snprintf(next->name, sizeof next->name, "%s", key->text);
  next->kind = pipeline_kind(next->name);
  return true;
}

/* ["library", "Class"]; [null, null] where the pipeline goes without it. */
static bool pipeline_component(pipeline *self, const gm__json_text *key) {
  gm__json_scan *scan = &self->scan;
  gm__json_text class = {.text = ""};
  gm__json_array_begin(scan);
  for (int i = 0; gm__json_array_next(scan); i++) {
    const bool is_text = scan->text[gm__json_next_at(scan)] == '"';
    if (!(i == 1 && is_text ? gm__json_string(scan, &class) : gm__json_skip(scan))) return false;
  }
  if (scan->problem) return false;
  return !class.length || !pipeline_has_weights(class.text) || pipeline_add(self, key);
}

/* Keys with an underscore are the pipeline's own; so are those whose values are no pairs. */
static bool pipeline_parse(pipeline *self) {
  gm__json_text key;
  gm__json_scan *scan = &self->scan;
  if (!gm__json_object_begin(scan)) return false;
  while (gm__json_object_next(scan, &key)) {
    const bool is_pair = scan->text[gm__json_next_at(scan)] == '[';
    if (!(is_pair && key.text[0] != '_' ? pipeline_component(self, &key) : gm__json_skip(scan))) return false;
  }
  if (!gm__json_end(scan)) return false;
  return self->count || gm__json_problem(scan, 0, "it names no component with weights");
}

static gm_status pipeline_read(pipeline *self, char *text, gm_error *err) {
  char path[PIPELINE_PATH];
  if ((size_t)snprintf(path, sizeof path, "%s/model_index.json", self->path) >= sizeof path) {
    return gm__bad_argument(err, pipeline_op, "`path` has more than %d bytes", PIPELINE_PATH);
  }
  switch (gm__file_text(NULL, path, text, PIPELINE_INDEX)) {
    case GM__FILE_OK: break;
    case GM__FILE_ABSENT: return gm__fail(err, GM_ERR_NOT_FOUND, pipeline_op, "%.300s: there is no such file", path);
    case GM__FILE_TOO_LARGE:
      return gm__fail(err, GM_ERR_FORMAT, pipeline_op, "%.300s: more than the %d bytes of any index", path,
                      (int)PIPELINE_INDEX);
    case GM__FILE_UNREADABLE:
      return gm__fail(err, GM_ERR_IO, pipeline_op, "%.300s cannot be read, or is no text", path);
  }
  gm__json_scan_init(&self->scan, text, strlen(text));
  self->scan.python_numbers = true;
  if (pipeline_parse(self)) return GM_OK;
  return gm__fail(err, GM_ERR_FORMAT, pipeline_op, "%.200s: byte %llu: %s", path,
                  (unsigned long long)self->scan.problem_at, self->scan.problem);
}

/* ---- its components ---- */

static gm_status pipeline_estimate_one(const gm_services *services, const pipeline *self, const pipeline_name *name,
                                       const gm_component_settings *run, gm_component *out, gm_error *err) {
  char path[PIPELINE_PATH];
  gm_model *model = NULL;
  gm_error why = {.status = GM_OK};
  if ((size_t)snprintf(path, sizeof path, "%s/%s", self->path, name->name) >= sizeof path) {
    return gm__bad_argument(err, pipeline_op, "`path` has more than %d bytes", PIPELINE_PATH);
  }
  const gm_status status = gm_model_open_header(services, path, &model, &why);
  if (status != GM_OK) {
    return gm__fail_native(err, status, why.native_code, pipeline_op, "component %s: %.300s", name->name, why.message);
  }
  *out = (gm_component){.kind = name->kind};
  snprintf(out->name, sizeof out->name, "%s", name->name);
  gm__component_whole(model, run, out);
  gm_model_close(model);
  return GM_OK;
}

static gm_status pipeline_estimate(const gm_services *services, pipeline *self, const gm_component_settings *run,
                                   gm_component *out, uint32_t capacity, gm_error *err) {
  if (self->count > capacity) {
    return gm__bad_argument(err, pipeline_op, "`capacity` is %u, for %u components", capacity, self->count);
  }
  gm_status status = GM_OK;
  for (uint32_t i = 0; i < self->count && status == GM_OK; i++) {
    status = pipeline_estimate_one(services, self, &self->names[i], run, &out[i], err);
  }
  return status;
}

gm_status gm_estimate_pipeline(const gm_services *services, const char *path, const gm_component_settings *settings,
                               gm_component *out, uint32_t capacity, uint32_t *out_count, gm_error *err) {
  GM__UNCANCELLED();
  gm_component_settings run;
  pipeline self = {.path = path};
  if (!path || !path[0]) return gm__bad_argument(err, pipeline_op, "`path` is %s", path ? "empty" : "NULL");
  if (!out || !out_count) return gm__bad_argument(err, pipeline_op, "`%s` is NULL", out ? "out_count" : "out");
  gm_status status = gm__services_check(services, err);
  if (status == GM_OK) status = gm__component_run(pipeline_op, settings, &run, err);
  if (status != GM_OK) return status;
  char *text = gm__alloc_array(services, PIPELINE_INDEX, 1);
  if (!text) return gm__fail(err, GM_ERR_OUT_OF_HOST_MEMORY, pipeline_op, "no host memory for an index");
  status = pipeline_read(&self, text, err);
  if (status == GM_OK) status = pipeline_estimate(services, &self, &run, out, capacity, err);
  if (status == GM_OK) *out_count = self.count;
  gm__release(services, text, PIPELINE_INDEX);
  return status;
}
