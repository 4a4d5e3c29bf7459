#!/bin/sh
# usage: pkg_config.sh PREFIX SOURCE PROGRAM gm|gm-static     compiles and runs a consumer with the flags of a .pc file alone
set -eu
prefix=$1 source=$2 program=$3 module=$4
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name gm.pc)")
export PKG_CONFIG_PATH
mkdir -p "$(dirname "$program")"
# The flags are words as a shell reads them: pkg-config puts a backslash before a space in a path.
eval "set -- $(pkg-config --cflags --libs "$module")"
"${CC:-cc}" "$source" -o "$program" "$@"
# Before 1.0 the library is named by its minor version, too: each may break.
named=$(pkg-config --modversion "$module" | sed 's/^\(0\.[0-9]*\).*/\1/; t; s/\..*//')
needs_shared=$(objdump -p "$program" | grep -c "NEEDED *libgm\.so\.$named\$" || true)
if [ "$module" = gm ]; then
  [ "$needs_shared" = 1 ] || { echo "$program does not use libgm.so.$named" >&2; exit 1; }
  eval "LD_LIBRARY_PATH=$(pkg-config --variable=libdir gm)"
  LD_LIBRARY_PATH=$LD_LIBRARY_PATH "$program"
else
  [ "$needs_shared" = 0 ] || { echo "$program uses libgm.so: it was to be static" >&2; exit 1; }
  "$program"
fi
