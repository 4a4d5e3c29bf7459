#!/bin/sh
# usage: pkg_config.sh PREFIX SOURCE PROGRAM gm|gm-core|gm-static     compiles and runs a consumer with the flags of a .pc file alone
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
needed=$(objdump -p "$program" | sed -n "s/^ *NEEDED *\(libgm.*\.so\.$named\)\$/\1/p" | sort | paste -s -d ' ' -)
case $module in
  gm | gm-core) wanted=libgm.so.$named ;; # of `gm` a linker may leave out what the program does not call
  *) wanted= ;;
esac
[ "$module" = gm ] && needed=$(echo "$needed" | sed "s/ libgm_[a-z]*\.so\.$named//g")
[ "$needed" = "$wanted" ] || { echo "$program needs '$needed' of gm, not '$wanted'" >&2; exit 1; }
if [ "$wanted" ]; then
  eval "LD_LIBRARY_PATH=$(pkg-config --variable=libdir gm)"
  LD_LIBRARY_PATH=$LD_LIBRARY_PATH "$program"
else
  "$program"
fi
