/* Components of a model: where their tensors are, which family they are of, and what they compute with. */
#ifndef GM_CORE_FIT_COMPONENT_PARTS_H
#define GM_CORE_FIT_COMPONENT_PARTS_H

#include "gm/components.h"

/* Tensors of one component: those whose names begin with a prefix. */
typedef struct gm__component_view {
  const gm_model *model;
  const char *prefix; /* with its last dot; "": all tensors */
} gm__component_view;

/* Write the shape of the tensor `rest` behind the prefix. False: there is none, or it has another rank than `rank`. */
bool gm__component_shape(const gm__component_view *view, const char *rest, uint32_t rank, uint64_t *out);

/* True where the tensor `rest` is there. */
bool gm__component_has(const gm__component_view *view, const char *rest);

/* A number of bytes from `low` to `high`; expected is the one between them. gm__component_unknown: none is known. */
gm_estimate_part gm__component_range(uint64_t low, uint64_t high, const char *why);
gm_estimate_part gm__component_unknown(const char *why);

/* A family that shapes of tensors tell. */
typedef struct gm__component_family {
  const char *name;
  gm_component_kind kind;
  /* Fill in cache and compute. False: the component is of another family. The settings have no zeros but `beams`. */
  bool (*estimate)(const gm__component_view *view, const gm_component_settings *run, gm_component *out);
} gm__component_family;

/* Fill in family, kind, cache and compute. NULL: gm does not know the family. Its kind stays then. */
const gm__component_family *gm__component_recognise(const gm__component_view *view, const gm_component_settings *run,
                                                    gm_component *out);

/* All tensors of a model as one component: fill in all but the name. An unknown family keeps its kind. */
void gm__component_whole(const gm_model *model, const gm_component_settings *run, gm_component *out);

/* Check the caller's settings for the call `op`, and copy them with defaults in place of zeros. */
gm_status gm__component_run(const char *op, const gm_component_settings *settings, gm_component_settings *out,
                            gm_error *err);

/* ---- families (rule 7) ---- */

bool gm__component_flux(const gm__component_view *view, const gm_component_settings *run, gm_component *out);
bool gm__component_chroma(const gm__component_view *view, const gm_component_settings *run, gm_component *out);
bool gm__component_flux2(const gm__component_view *view, const gm_component_settings *run, gm_component *out);
bool gm__component_qwen_image(const gm__component_view *view, const gm_component_settings *run, gm_component *out);
bool gm__component_sd3(const gm__component_view *view, const gm_component_settings *run, gm_component *out);
bool gm__component_unet(const gm__component_view *view, const gm_component_settings *run, gm_component *out);
bool gm__component_vae(const gm__component_view *view, const gm_component_settings *run, gm_component *out);
bool gm__component_clip(const gm__component_view *view, const gm_component_settings *run, gm_component *out);
bool gm__component_t5(const gm__component_view *view, const gm_component_settings *run, gm_component *out);
bool gm__component_whisper(const gm__component_view *view, const gm_component_settings *run, gm_component *out);

#endif
