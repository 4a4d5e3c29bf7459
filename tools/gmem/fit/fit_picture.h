/* Where the bytes go, as bars: a row for each device and the host, then a row for each kind of layer. */
#ifndef GM_TOOLS_GMEM_FIT_FIT_PICTURE_H
#define GM_TOOLS_GMEM_FIT_FIT_PICTURE_H

#include "tools/gmem/fit/fit.h"

/* It is as wide as the terminal; 40 signs a bar where there is none. The signs are blocks on a terminal that has UTF-8.
 */
void fit_picture(FILE *file, const fit_question *self);

#endif
