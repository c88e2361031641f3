#: note template.h and completion.c explain the "#:" lines and @names@.
#: offer nothing :
#: offer files COMPREPLY=($(compgen -f -- "$cur"))
#: offer endings _burst_files "$cur" @words@
#: offer folders COMPREPLY=($(compgen -d -- "$cur"))
#: offer list _burst_list "$cur" @words@
#: offer choices COMPREPLY=($(compgen -W '@words@' -- "$cur"))
# completion of burst for bash: source <(burst completion bash)
_burst_list() {
	local IFS=$'\n' word
	COMPREPLY=()
	while read -r word; do
		[[ $word == "$1"* ]] && COMPREPLY+=("$(printf '%q' "$word")")
	done < <(burst words "$2" 2>/dev/null)
}
_burst_files() { # folders, and files with these endings
	local IFS=$'\n' ending
	COMPREPLY=($(compgen -d -- "$1"))
	for ending in "${@:2}"; do
		COMPREPLY+=($(compgen -f -X "!*.$ending" -- "$1"))
	done
}
_burst_count() { # arguments before this one; $1: flags that take a value
	n=-1
	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} == -* || $1 == *" ${COMP_WORDS[i-1]} "* ]] || n=$((n + 1))
	done
}
_burst() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd= i n
	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		[[ ${COMP_WORDS[i]} != -* ]] && { cmd=${COMP_WORDS[i]}; break; }
	done
	case $cmd in
#: each command
	@command@)
#: if own
		case $prev in
#: each valued flag
		@pattern@) @value@; return ;;
#: end valued flag
		esac
#: end own
		if [[ $cur == -* ]]; then
			COMPREPLY=($(compgen -W '@flags@' -- "$cur"))
		else
			_burst_count "@valued@"
			case $n in
			0) @first@ ;;
			*) @rest@ ;;
			esac
		fi
		;;
#: end command
	'')
		COMPREPLY=($(compgen -W '--version@commands@' -- "$cur"))
		;;
	esac
}
complete -o filenames -F _burst burst
