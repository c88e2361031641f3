# completion of burst for bash: source <(burst completion bash)
_burst() {
	local IFS=$'\n' cur=${COMP_WORDS[COMP_CWORD]} kind word ending
	COMPREPLY=()
	{
		read -r kind
		while IFS=$'\t' read -r word _; do
			COMPREPLY+=("$(printf '%q' "$word")")
		done
	} < <(burst words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
	case $kind in
	files) COMPREPLY=($(compgen -f -- "$cur")) ;;
	folders) COMPREPLY=($(compgen -d -- "$cur")) ;;
	endings*)
		COMPREPLY=($(compgen -d -- "$cur"))
		IFS=' '
		for ending in ${kind#endings }; do
			IFS=$'\n' COMPREPLY+=($(compgen -f -X "!*.$ending" -- "$cur"))
		done
		;;
	esac
}
complete -o filenames -F _burst burst
