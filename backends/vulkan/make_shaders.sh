#!/bin/sh
# Makes the SPIR-V words of gm's shaders anew from their GLSL. Needs glslangValidator (Debian: glslang-tools).
set -eu
cd "$(dirname "$0")"
for name in scatter expand; do
  words=$(mktemp)
  glslangValidator -V -x --vn "gm__vulkan_${name}_words" -o "$words" "$name.comp" >/dev/null
  {
    echo "/* $name.comp as SPIR-V, made by make_shaders.sh. */"
    echo "static const uint32_t ${name}_words[] = {"
    grep '0x' "$words"
    echo "};"
  } >"${name}_spv.h"
  rm -f "$words"
  clang-format -i "${name}_spv.h"
done
