# SPDX-License-Identifier: MIT
# Completion of pmstat for fish.

# Events that can be counted here; lists go on behind a comma.
function __pmstat_events
    set -l before (string match -r '^.*,' -- (commandline -ct | string replace -r '^--event=' ''))
    begin
        pmrec --list
        pmrec --list tracepoint
    end 2>/dev/null | string match -rv ':[A-Z]' | string replace -rf '^  [+uc] (\S+).*' "$before"'$1'
    printf "$before%s\n" sim.Ir sim.Dr sim.Dw sim.I1mr sim.D1mr sim.D1mw sim.ILmr \
        sim.DLmr sim.DLmw sim.Bc sim.Bcm sim.Bi sim.Bim sim.L1hits \
        sim.LLhits sim.RAMhits sim.cycles sim.costs
end

complete -c pmstat -f
complete -c pmstat -a '(__fish_complete_subcommand)'
complete -c pmstat -n __fish_is_first_token -a ab
complete -c pmstat -s e -l event -x -a '(__pmstat_events)' -d 'events to count'
complete -c pmstat -l fn -x -d 'count in this function'
complete -c pmstat -l range -x -d 'count in this range of code'
complete -c pmstat -l engine -x -a 'auto uprobe ptrace callgrind' -d 'what sees functions'
complete -c pmstat -l calls-from -d 'by where functions are called from'
complete -c pmstat -l marked -d 'only the part that the command marks'
complete -c pmstat -l stacks -r -d 'what each stack has cost, by callgrind'
complete -c pmstat -l live -d 'print each call when it returns'
complete -c pmstat -l per -x -a 'thread cpu' -d 'also a row for each'
complete -c pmstat -s p -l pid -x -a '(__fish_complete_pids)' -d 'running processes'
complete -c pmstat -s t -l tid -x -d 'running threads'
complete -c pmstat -s u -l uid -x -a '(__fish_complete_users)' -d 'all processes of a user'
complete -c pmstat -s a -l all-cpus -d 'everything on all CPUs'
complete -c pmstat -s C -l cpu -x -d 'everything on these CPUs'
complete -c pmstat -s G -l cgroup -r -F -d 'everything in a control group'
complete -c pmstat -s i -l no-inherit -d 'leave out what starts later'
complete -c pmstat -l user -x -a '(__fish_complete_users)' -d 'run the command as this user'
complete -c pmstat -s r -l repeat -x -d 'run it so many times'
complete -c pmstat -l time -x -d 'run it again until so long'
complete -c pmstat -s w -l warmup -x -d 'uncounted runs before'
complete -c pmstat -l keep-going -d 'run on after a run that failed'
complete -c pmstat -s I -l interval-print -x -d 'print every so many milliseconds'
complete -c pmstat -s D -l delay -x -d 'begin so many milliseconds later'
complete -c pmstat -l timeout -x -d 'end after this time'
complete -c pmstat -s o -l output -r -F -d 'file to write'
complete -c pmstat -s x -l field-separator -x -d 'fields separated by this'
complete -c pmstat -l json -d 'everything, as JSON'
complete -c pmstat -l color -x -a 'auto always never' -d 'colours'
complete -c pmstat -s q -l quiet -d 'the result only'
complete -c pmstat -s v -l verbose -d 'tell of each run'
complete -c pmstat -s h -l help -d 'print the help'
complete -c pmstat -l version -d 'print the version'
