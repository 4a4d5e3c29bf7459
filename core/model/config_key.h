/* Keys of model files that gm does not read. */
#ifndef GM_CORE_MODEL_CONFIG_KEY_H
#define GM_CORE_MODEL_CONFIG_KEY_H

#include "core/model/config_values.h"
#include "gm/model_config.h"

/* True when a key that gm does not read may say how much memory a model takes. `rest` is what comes behind the
 * architecture, or a name of a config.json. `is_list`: it has a number for each layer. */
bool gm__config_key_matters(const char *rest, bool is_list);

/* Note the first key of a config.json that gm does not read and that may matter, where `out` is sure so far. Keys whose
 * value is null, false or 0 say that they do not apply. The layers of *out are there. */
void gm__config_doubts(const gm__config_values *values, gm_model_config *out);

#endif
