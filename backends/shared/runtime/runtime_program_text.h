/* gm's programs as text for a compiler of C++ (hiprtc). They are in the words that C has, too: the simulated drivers
 * compile them, so that the tests run what a card would. CUDA has PTX that make_ptx.sh makes of them. */
#ifndef GM_BACKENDS_SHARED_RUNTIME_RUNTIME_PROGRAM_TEXT_H
#define GM_BACKENDS_SHARED_RUNTIME_RUNTIME_PROGRAM_TEXT_H

#include "backends/shared/runtime/runtime_program_id.h"

#define GM__PROGRAM_TYPE(...) #__VA_ARGS__ "\n"
#define GM__PROGRAM(...) "extern \"C\" __global__ " #__VA_ARGS__
static const char *const gm__runtime_program_texts[GM__RUNTIME_PROGRAMS] = {[GM__RUNTIME_FILL] =
#include "backends/shared/runtime/program_fill.def"
                                                                                ,
                                                                            [GM__RUNTIME_COPY_MANY] =
#include "backends/shared/runtime/program_copy_many.def"
                                                                                , [GM__RUNTIME_EXPAND] =
#include "backends/shared/runtime/program_expand.def"
};
#undef GM__PROGRAM_TYPE
#undef GM__PROGRAM

#endif
