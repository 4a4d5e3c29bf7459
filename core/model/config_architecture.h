/* What gm knows of architectures beyond what their files state: one row each. */
#ifndef GM_CORE_MODEL_CONFIG_ARCHITECTURE_H
#define GM_CORE_MODEL_CONFIG_ARCHITECTURE_H

#include "core/model/dimensions.h"

typedef struct gm__architecture {
  const char *name;       /* GGUF's */
  uint32_t window_period; /* where no key says it; 0: engines give its layers no window even if one is stated */
  bool full_first;        /* the first layer of a period attends to everything, the others have the window */
  bool encoder_only, encoder_decoder, recurrent;
  bool tied;               /* where a config.json does not say it */
  bool head_twice;         /* tied, and files store the head all the same */
  uint32_t intermediate_x; /* width of the feed-forward layer in widths of the model, where it is not stated */
} gm__architecture;

/* Never NULL: an unknown name has a row in which nothing is said. */
const gm__architecture *gm__architecture_find(const char *name);

/* GGUF's name for the model_type of a config.json; `type` itself where it has another or none. */
const char *gm__architecture_of_type(const char *type);

/* State what the class of the model takes for fields that its config.json leaves out. */
void gm__architecture_defaults(gm__dimensions *config);

#endif
