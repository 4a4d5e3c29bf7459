/* Files that people put beside a model: a projector, a draft model, adapters, other models on the same card. */
#ifndef GM_TOOLS_GMEM_FIT_FIT_BESIDE_H
#define GM_TOOLS_GMEM_FIT_FIT_BESIDE_H

#include "gm/estimate.h"

enum { FIT_BESIDE = 16, FIT_BESIDE_WHY = 128 };

typedef enum fit_beside_kind {
  FIT_PROJECTOR, /* weights and compute buffer on the first device */
  FIT_DRAFT,     /* a model of its own, over the devices as the model is */
  FIT_ADAPTER,   /* beside the tensors that it changes */
  FIT_OTHER      /* a model of another process, on the first device */
} fit_beside_kind;

typedef struct fit_beside {
  fit_beside_kind kind;
  const char *path;
  gm_model *model;
  gm_model_config config;               /* of a draft and another model */
  gm_memory_range compute;              /* of a projector */
  char why[FIT_BESIDE_WHY];             /* why its bytes are unknown; "": they are not */
  uint64_t by_layer[GM_FIT_LAYERS_MAX]; /* of an adapter */
  /* In the last figures: */
  uint64_t device_bytes, host_bytes;
  uint64_t less_bytes, spare_bytes; /* by which a device may have less, or more */
} fit_beside;

struct fit_question;

const char *fit_beside_word(fit_beside_kind kind);

/* Reads the headers of all that is beside. */
gm_status fit_beside_open(struct fit_question *self, gm_error *err);
void fit_beside_close(struct fit_question *self);

/* Adds them to the figures for a run: to layers, to what is taken of each device, to what is fixed on the host. */
gm_status fit_beside_figures(struct fit_question *self, const gm_estimate_settings *settings, gm_fit_request *out,
                             gm_error *err);

/* Shares a draft over the devices as the layers are. True: each device had room for its share already. `widens`: no
 * device gives room back. */
bool fit_beside_share(struct fit_question *self, bool widens);

#endif
