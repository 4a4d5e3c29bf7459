/* Keys of model files that gm does not read. */
#ifndef GM_CORE_MODEL_CONFIG_KEY_H
#define GM_CORE_MODEL_CONFIG_KEY_H

#include <stdbool.h>

/* True when a key that gm does not read may say how much memory a model takes. `rest` is what comes behind the
 * architecture, or a name of a config.json. `is_list`: it has a number for each layer. */
bool gm__config_key_matters(const char *rest, bool is_list);

#endif
