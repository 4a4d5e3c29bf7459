/* Models of several components on one device: diffusion models, and Whisper. */
#ifndef GM_TOOLS_GMEM_FIT_FIT_COMPONENTS_H
#define GM_TOOLS_GMEM_FIT_FIT_COMPONENTS_H

#include "gm/components.h"
#include "tools/gmem/output/json.h"

struct fit_question;

typedef struct fit_components {
  /* asked */
  bool asks_image; /* --image was given */
  uint32_t width, height;
  /* found; a count of 0: the model is of another kind */
  uint32_t count;
  gm_component items[GM_COMPONENTS_MAX];
  uint32_t tiled_count; /* the same where the image is decoded in tiles */
  gm_component tiled[GM_COMPONENTS_MAX];
} fit_components;

/* Reads the components of self->model, or of the folder at self->path where there is none. NOT_SUPPORTED: an option
 * does not go with them; INVALID_ARGUMENT likewise, where --image was given and there are none. */
gm_status fit_components_read(struct fit_question *self, gm_error *err);

/* True where the path is a folder with a model_index.json. */
bool fit_components_is_pipeline(const char *path);

void fit_components_print(FILE *file, const struct fit_question *self);
void fit_components_json(json_writer *out, const struct fit_question *self);

#endif
