/* Models that are no decoder of text alone: diffusion models with their text encoders and the decoder of their images,
 * and Whisper. docs/fit.md has the rules and their origin: "rule 7" is its section of that number. Every function is
 * thread-safe. */
#ifndef GM_COMPONENTS_H
#define GM_COMPONENTS_H

#include <stdbool.h>

#include "gm/estimate.h"

GM_BEGIN_DECLS

enum {
  GM_COMPONENTS_MAX = 32,
  GM_COMPONENT_NAME_SIZE = 64,
  GM_COMPONENT_FAMILY_SIZE = 16,
  GM_IMAGE_SIDE_MAX = 65536 /* pixels; no engine makes larger images */
};

/* The work of a component. */
typedef enum gm_component_kind {
  GM_COMPONENT_DENOISER = 0,      /* makes a latent image out of noise, step by step */
  GM_COMPONENT_TEXT_ENCODER = 1,  /* reads the prompt */
  GM_COMPONENT_IMAGE_DECODER = 2, /* makes an image out of a latent one; a VAE may have an encoder, too */
  GM_COMPONENT_SPEECH = 3,        /* makes text out of sound */
  GM_COMPONENT_OTHER = 4          /* anything else in the same file or folder */
} gm_component_kind;

/* A component. Never grows. */
typedef struct gm_component {
  gm_component_kind kind;
  char name[GM_COMPONENT_NAME_SIZE];     /* of its folder, "text_encoder_2", or the prefix of its tensors,
                                            "first_stage_model"; "": the file has nothing else */
  char family[GM_COMPONENT_FAMILY_SIZE]; /* "flux", "chroma", "flux2", "qwen_image", "sd3", "unet", "vae", "clip", "t5",
                                            "whisper";
                                            "": gm does not know it */
  uint64_t parameters;                   /* elements of its tensors */
  uint64_t weight_bytes;                 /* bytes of its tensors, as the file stores them: exact */
  gm_estimate_part cache;                /* of speech: keys and values of both attentions; else exact, 0 bytes */
  gm_estimate_part compute;              /* its compute buffer, an interval or unknown */
} gm_component;

/* How an engine will run. Zero-initialised with struct_size set, it makes one image of 1024 by 1024 pixels. */
typedef struct gm_component_settings {
  uint32_t struct_size;
  bool plain_attention;   /* no flash attention */
  uint32_t width, height; /* pixels of an image; 0: 1024. At most GM_IMAGE_SIDE_MAX */
  uint32_t images;        /* images at once; 0: 1. Engines make them one after the other, or together */
  uint32_t beams;         /* of speech: beams or tries at once; 0: 1 to 5, as whisper.cpp chooses */
} gm_component_settings;

/* Estimates the components of an open model, which tensors' names tell apart (rule 7). Components compute one after the
 * other: they need the largest of their compute buffers, beside the weights of all that stay loaded.
 *
 * The call fills `out`, which has room for `capacity` components, and sets *out_count to their number. A *out_count of
 * 0 means that the model is of another kind: gm_model_read_config and gm_estimate_memory are for that. `settings` may
 * be NULL.
 *
 * Errors: INVALID_ARGUMENT: a pointer is NULL, gm does not know settings->struct_size, a setting is out of range, or
 * `capacity` is too small. GM_COMPONENTS_MAX is always enough. */
GM_API gm_status gm_estimate_components(const gm_model *model, const gm_component_settings *settings, gm_component *out,
                                        uint32_t capacity, uint32_t *out_count, gm_error *err);

/* Estimates the components of a diffusers pipeline: a folder with a model_index.json, and a folder for each component.
 * Every component counts that model_index.json names, except schedulers, tokenizers and processors, which have no
 * weights. `services` may be NULL. The other arguments are those of gm_estimate_components.
 *
 * Errors: those of gm_estimate_components and of gm_model_open_header; the message names the component. NOT_FOUND:
 * there is no model_index.json, or a component that it names has no weights. FORMAT: model_index.json is no such index,
 * names a component twice, or names no component. */
GM_API gm_status gm_estimate_pipeline(const gm_services *services, const char *path,
                                      const gm_component_settings *settings, gm_component *out, uint32_t capacity,
                                      uint32_t *out_count, gm_error *err);

GM_END_DECLS

#endif
