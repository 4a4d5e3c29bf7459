/* Writes gm's PTX for an assembler: cuda_ptx NAME. */
#include <stdio.h>
#include <string.h>

#include "backends/cuda/cuda_program_copy_many.h"
#include "backends/cuda/cuda_program_expand.h"

int main(int count, char **words) {
  const char *name = count == 2 ? words[1] : "";
  if (strcmp(name, "copy_many") == 0) return fputs(cuda_program_copy_many, stdout) < 0;
  if (strcmp(name, "expand") == 0) return fputs(cuda_program_expand, stdout) < 0;
  fprintf(stderr, "usage: cuda_ptx copy_many|expand\n");
  return 2;
}
