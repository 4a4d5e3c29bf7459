#!/bin/sh
# Makes the PTX of gm's programs anew from their text in backends/shared/runtime. Needs clang 14 or newer, no toolkit. It is
# for CUDA 9.0 and compute capability 5.0, so that every driver of today can compile it.
set -eu
cd "$(dirname "$0")/../.."
source=$(mktemp --suffix=.cu)
trap 'rm -f "$source"' EXIT
for name in copy_many expand; do
  cat >"$source" <<END
#define __global__ __attribute__((global))
#define alignas(n) __attribute__((aligned(n)))
struct gm_index { unsigned x; };
#define threadIdx (gm_index{(unsigned)__nvvm_read_ptx_sreg_tid_x()})
#define blockIdx (gm_index{(unsigned)__nvvm_read_ptx_sreg_ctaid_x()})
#define blockDim (gm_index{(unsigned)__nvvm_read_ptx_sreg_ntid_x()})
#define gridDim (gm_index{(unsigned)__nvvm_read_ptx_sreg_nctaid_x()})
#define GM__PROGRAM_TYPE(...) __VA_ARGS__
#define GM__PROGRAM(...) extern "C" __global__ __VA_ARGS__
#include "backends/shared/runtime/program_$name.def"
END
  {
    echo "/* program_$name.def as PTX, made by make_ptx.sh. */"
    echo "static const char cuda_program_$name[] ="
    clang -x cuda -nocudainc -nocudalib --cuda-path=/nonexistent --cuda-device-only --cuda-gpu-arch=sm_50 \
      -Xclang -target-feature -Xclang +ptx60 -O2 -fno-unroll-loops -S -I. -o - "$source" 2>/dev/null |
      sed '/^\/\//d; /^\t\/\//d; /^$/d; /nounroll/d; s/\t/ /g; s/  */ /g; s/ $//; s/.*/    "&\\n"/'
    echo "    ;"
  } >"backends/cuda/cuda_program_$name.h"
  clang-format -i "backends/cuda/cuda_program_$name.h"
done
