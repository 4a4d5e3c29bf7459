#!/bin/sh
# usage: pkg_config.sh PREFIX SOURCE PROGRAM shared|static     compiles and runs a consumer with nothing but gm.pc
set -eu
prefix=$1 source=$2 program=$3 kind=$4
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name gm.pc)")
export PKG_CONFIG_PATH
libdir=$(pkg-config --variable=libdir gm)
mkdir -p "$(dirname "$program")"
# The flags are words, on purpose.
# shellcheck disable=SC2046
if [ "$kind" = shared ]; then
  "${CC:-cc}" "$source" -o "$program" $(pkg-config --cflags --libs gm) -Wl,-rpath,"$libdir"
else
  others=$(pkg-config --static --libs gm | sed 's/-lgm / /')
  # shellcheck disable=SC2086
  "${CC:-cc}" "$source" -o "$program" $(pkg-config --cflags gm) "$libdir/libgm.a" $others
fi
"$program"
