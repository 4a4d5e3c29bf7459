/* Parameters of the model that a config.json describes, counted as the class of its family makes them. */
#ifndef GM_CORE_MODEL_CONFIG_PARAMETERS_H
#define GM_CORE_MODEL_CONFIG_PARAMETERS_H

#include "gm/model_config.h"

/* Count them from the text of a config.json, which is written to, into *out, whose other members are there. Where gm
 * cannot, *out says why, and the call is GM_OK all the same. OUT_OF_HOST_MEMORY. */
gm_status gm__config_parameters(const gm_services *services, char *text, uint64_t length, gm_model_config *out,
                                gm_error *err);

#endif
