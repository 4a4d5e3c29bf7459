/* Facts about architectures beyond what their files state: one row each. */
#ifndef GM_CORE_MODEL_CONFIG_ARCHITECTURE_H
#define GM_CORE_MODEL_CONFIG_ARCHITECTURE_H

#include "core/model/dimensions.h"

/* Which layers of a model are recurrent. */
typedef enum gm__recurrence {
  GM__RECURRENT_LISTED,   /* as a list of the file says; without one none */
  GM__RECURRENT_NO_HEADS, /* those without heads of keys and values */
  GM__RECURRENT_NEITHER,  /* those without such heads and without a feed-forward part */
  GM__RECURRENT_INTERVAL, /* all but each so-many-th, which attends */
  GM__RECURRENT_BOTH      /* every layer is recurrent, and attends */
} gm__recurrence;

/* The state that recurrent layers keep. */
typedef enum gm__state {
  GM__STATE_SPACE, /* Mamba, and a short convolution where the file states one */
  GM__STATE_WKV,   /* RWKV: shifted rows, and a matrix for each head */
  GM__STATE_KDA,   /* gated delta attention: three convolutions, and a matrix for each head */
  GM__STATE_LINEAR /* linear attention: a matrix for each head */
} gm__state;

/* Which layers have an indexer, where the file states its size. */
typedef enum gm__indexer {
  GM__INDEXER_ALL,
  GM__INDEXER_SPARSE, /* those behind the leading dense ones */
  GM__INDEXER_LISTED  /* those that a list of the file says; without one all */
} gm__indexer;

typedef struct gm__architecture {
  const char *name;            /* GGUF's */
  const char *unsure;          /* why gm cannot count its memory; NULL: it can */
  uint32_t window_period;      /* where no key says it; 0: engines give its layers no window even if one is stated */
  bool full_first;             /* the first layer of a period attends to everything, the others have the window */
  uint32_t window;             /* where no key says it; 0: none */
  uint32_t window_fixed;       /* whatever a key says, where one does; 0: as it says */
  uint32_t window_layers;      /* only models with so many layers have windows; 0: all */
  bool all_windows;            /* every layer that attends has the window */
  gm__recurrence mixes;        /* which layers are recurrent beside those that attend */
  uint32_t recurrent_interval; /* each so-many-th layer attends, where no key says it; 0: 4 */
  gm__state state;
  gm__indexer indexer;
  uint32_t cached_layers; /* so many layers keep keys and values, and the others share them; 0: all that attend */
  bool never_compressed;  /* engines keep full heads whatever ranks are stated */
  bool encoder_only, encoder_decoder, recurrent;
  bool streams;            /* hyper-connections mix several streams of its residual */
  bool router;             /* one more layer has the keys and values of a single head, and nothing else */
  bool cached;             /* an encoder for which engines keep a cache all the same */
  bool uncached;           /* a decoder for which engines keep none */
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
