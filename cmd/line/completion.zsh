#compdef burst
# completion of burst for zsh: burst completion zsh > a folder of $fpath, as _burst
_burst() {
	local -a lines found shown
	local line
	lines=("${(@f)$(burst words "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	case $lines[1] in
	files) _files ;;
	folders) _files -/ ;;
	# without (-.), plain files, zsh would take a single ending for qualifiers of the pattern
	endings*) _files -g "*.(${(j:|:)${(s: :)lines[1]#endings }})(-.)" ;;
	*)
		for line in "${(@)lines[2,-1]}"; do
			found+=("${line%%$'\t'*}")
			shown+=("${line/$'\t'/  -- }")
		done
		compadd -l -d shown -a found
		;;
	esac
}
if [ "$funcstack[1]" = _burst ]; then
	_burst "$@"
else
	compdef _burst burst
fi
