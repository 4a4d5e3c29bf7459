/* gm's own programs for a device of CUDA or HIP; program_*.def has their text. */
#ifndef GM_BACKENDS_SHARED_RUNTIME_RUNTIME_PROGRAM_ID_H
#define GM_BACKENDS_SHARED_RUNTIME_RUNTIME_PROGRAM_ID_H

typedef enum gm__runtime_program_id {
  GM__RUNTIME_FILL,
  GM__RUNTIME_COPY_MANY,
  GM__RUNTIME_EXPAND,
  GM__RUNTIME_PROGRAMS
} gm__runtime_program_id;

#endif
