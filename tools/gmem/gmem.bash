# Completion of gmem in bash: commands, and each command's options, as the program says them.
_gmem() {
  local tool=$1 word=$2 command=${COMP_WORDS[1]} words
  if ((COMP_CWORD == 1)) || { ((COMP_CWORD == 2)) && [[ $command == help ]]; }; then
    words=$("$tool" help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
  elif ((COMP_CWORD == 2)) && [[ $command == store && $word != -* ]]; then
    words='ls stat check'
  elif [[ $word == -* ]]; then
    words=$("$tool" help "$command" 2>/dev/null | grep -oE -- '^ +(-[a-zA-Z?], )?--[a-z-]+' | grep -oE -- '--[a-z-]+')
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$word")
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o filenames -F _gmem gmem
