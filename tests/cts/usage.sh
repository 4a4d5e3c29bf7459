#!/bin/sh
# usage.sh GM_CTS: names that are none are refused, and a run that tests nothing is no success.
gm_cts=$1
failed=0

# want STATUS WORDS OPTION...: the exit status, and words that are printed
want() {
  status=$1 words=$2
  shift 2
  said=$("$gm_cts" "$@" 2>&1)
  got=$?
  if [ "$got" != "$status" ] || ! printf '%s\n' "$said" | grep -qF -e "$words"; then
    printf 'FAIL gm_cts %s: exit status %s, not %s, or no "%s" in:\n%s\n' "$*" "$got" "$status" "$words" "$said"
    failed=1
  fi
}

want 2 'no case `nosuch`' --case nosuch
want 2 'no case `nosuch`' --backend null --case nosuch
want 2 'no case `point`' --case point
want 2 'no backend `cudda`' --backend cudda
want 2 'no mode `open`' --backend null --mode open
want 2 'usage: gm_cts' --frobnicate
want 2 'usage: gm_cts' --case
want 0 'Exit status: 0 all passed' --help
want 0 '  point.done_means_done' --list
want 0 '1 passed, 0 failed' --backend null --mode opened --case info.table
want 77 '0 passed, 0 failed' --backend null --mode opened --case copy.large
exit $failed
