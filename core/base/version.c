#include "gm/version.h"

#define VERSION_TEXT_(number) #number
#define VERSION_TEXT(number) VERSION_TEXT_(number)

uint32_t gm_version(void) { return GM_VERSION_NUMBER; }

const char *gm_version_string(void) {
  return VERSION_TEXT(GM_VERSION_MAJOR) "." VERSION_TEXT(GM_VERSION_MINOR) "." VERSION_TEXT(GM_VERSION_PATCH);
}
