#: note template.h and completion.c explain the "#:" lines and @names@.
#: offer files -F
#: offer endings -k -a '(__fish_complete_suffix .cfg)'
#: offer folders -a '(__fish_complete_directories)'
#: offer list -a '(burst words @words@ 2>/dev/null)'
#: offer choices -a '@words@'
# completion of burst for fish: burst completion fish | source
complete -c burst -f
#: each command
complete -c burst -n __fish_use_subcommand -a @command@ -d '@summary@'
#: if argument
complete -c burst -n '__fish_seen_subcommand_from @command@' @first@
#: end argument
#: if choices
complete -c burst -n '__fish_seen_subcommand_from @command@; and not __fish_seen_subcommand_from @choices@' @first@
complete -c burst -n '__fish_seen_subcommand_from @command@; and __fish_seen_subcommand_from @choices@' @rest@
#: end choices
#: each flag
complete -c burst -n '__fish_seen_subcommand_from @command@' @long@ @short@ @required@ @value@ -d '@help@'
#: end flag
#: end command
#: each common flag
complete -c burst @unless@ @long@ @short@ -d '@help@'
#: end common flag
