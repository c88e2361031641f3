# completion of burst for fish: burst completion fish | source
function __burst_words
	set -l line (commandline -opc) (commandline -ct | string collect --allow-empty)
	set -l lines (burst words $line[2..] 2>/dev/null)
	switch "$lines[1]"
		case files
			__fish_complete_path (commandline -ct)
		case folders
			__fish_complete_directories (commandline -ct)
		case 'endings *'
			for ending in (string split ' ' $lines[1])[2..]
				__fish_complete_suffix .$ending
			end
		case '*'
			string join -- \n $lines[2..]
	end
end
complete -c burst -f -k -a '(__burst_words)'
