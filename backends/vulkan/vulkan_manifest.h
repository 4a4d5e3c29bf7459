/* Driver manifests: the files by which the Vulkan loader finds drivers. Nothing of a vendor runs here. */
#ifndef GM_BACKENDS_VULKAN_MANIFEST_H
#define GM_BACKENDS_VULKAN_MANIFEST_H

#include <stdbool.h>

/* Is any driver installed, as far as files and the loader's environment variables tell? */
bool gm__vulkan_manifest_any(void);

#endif
