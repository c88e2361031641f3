#compdef burst
#: note template.h and completion.c explain the "#:" lines and @names@.
#: offer files _files
#: offer endings _files -g "*.(@patterns@)(-.)"
#: note Without (-.), plain files, zsh would take a single ending for qualifiers of the pattern.
#: offer folders _files -/
#: offer list _burst_list @words@
#: offer choices (@words@)
# completion of burst for zsh: burst completion zsh > a folder of $fpath, as _burst
_burst_list() {
	local -a found
	found=(${(f)"$(burst words $argv[-1] 2>/dev/null)"})
#: note _arguments puts words of its own in front of ours.
	compadd "${(@)argv[1,-2]}" -a found
}
_burst() {
	local context state line
	local -a commands
	commands=(
#: each command
		'@command@:@summary@'
#: end command
	)
	_arguments -C -A '-*' '--version[show the version]'@common@ \
		'1:command:->command' '*::argument:->argument' && return
	case $state in
	command) _describe command commands ;;
	argument)
		case $words[1] in
#: each command
		@command@)
			_arguments -s@specs@
			;;
#: end command
		esac
		;;
	esac
}
if [ "$funcstack[1]" = _burst ]; then
	_burst "$@"
else
	compdef _burst burst
fi
