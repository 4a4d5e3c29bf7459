# Completion of gmem in bash: commands, and each command's options, as the program says them; words of some options.
_gmem() {
  local tool=$1 word=$2 before=$3 command=${COMP_WORDS[1]} words
  case $before in
    --backend | --prefer) words='cpu cuda hip null opencl vulkan' ;;
    --format) [[ $command == report ]] && words=html || words="" ;;
    --strategy) words='auto best_fit bucket' ;;
    --level) words='passive active isolated' ;;
    --color) words='auto always never' ;;
    --path) words='auto mmap read direct gds in-place' ;;
    --kv-type | --dtype) words='f32 f16 bf16 q8_0 q5_1 q5_0 q4_1 q4_0' ;;
    *)
      if ((COMP_CWORD == 1)) || { ((COMP_CWORD == 2)) && [[ $command == help ]]; }; then
        words=$("$tool" help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
      elif ((COMP_CWORD == 2)) && [[ $command == store && $word != -* ]]; then
        words='ls stat check'
      elif [[ $command == bench && $word != -* ]]; then
        words=$("$tool" bench - 2>&1 | sed -n 's/.*none of: //p' | tr -d ,)
      elif [[ $word == -* ]]; then
        words=$("$tool" help "$command" 2>/dev/null | grep -E -- '^ +-' | grep -oE -- '--[a-z-]+')
      else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        return
      fi
      ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
}
complete -o filenames -F _gmem gmem
