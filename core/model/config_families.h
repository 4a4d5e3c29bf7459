/* How many parameters a model has, as the class of its family makes them: rules over the keys of a config.json. */
#ifndef GM_CORE_MODEL_CONFIG_FAMILIES_H
#define GM_CORE_MODEL_CONFIG_FAMILIES_H

/* The rules of a family, by its model_type; NULL: gm does not know it. See config_formula.h for what they may say. */
const char *gm__family_rules(const char *type);

/* Rules of what a model has around its language model, such as a tower for images, by the model_type of the whole.
 * NULL: gm does not know it. */
const char *gm__family_around(const char *type);

/* Rules that hold where a family has none of the name. Those that are asked for:
 *
 *   L       layers
 *   layer   parameters of layer i beside its experts
 *   experts parameters of the experts of layer i
 *   embed   tables that are looked up
 *   head    what comes behind the layers: norm, and the output matrix unless it is the embedding
 *   other   all else: encoders, towers of images and sound, layers that are shared */
const char *gm__family_general(void);

#endif
