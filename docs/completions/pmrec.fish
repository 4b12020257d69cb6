# SPDX-License-Identifier: MIT
# Completion of pmrec for fish.

# Events that can be recorded here, and the beginnings of probes; lists go on behind a comma.
function __pmrec_events
    set -l before (string match -r '^.*,' -- (commandline -ct | string replace -r '^--event=' ''))
    begin
        pmrec --list
        pmrec --list tracepoint
    end 2>/dev/null | string match -rv ':[A-Z]' | string replace -rf '^  [+u] (\S+).*' "$before"'$1'
    printf "$before%s\n" uprobe: uretprobe: kprobe: usdt: mem:
end

function __pmrec_listing
    contains -- --list (commandline -opc)
end

complete -c pmrec -f
complete -c pmrec -n 'not __pmrec_listing' -a '(__fish_complete_subcommand)'
complete -c pmrec -n __pmrec_listing -a 'hardware software cache pmu tracepoint probe'
complete -c pmrec -s e -l event -x -a '(__pmrec_events)' -d 'event to sample on'
complete -c pmrec -s F -l freq -x -a '99 999 4999 max' -d 'samples a second and CPU'
complete -c pmrec -s c -l count -x -d 'one sample every N events'
complete -c pmrec -l filter -x -d 'only hits of the tracepoints before it'
complete -c pmrec -l off-cpu -d 'also the time in which threads are blocked'
complete -c pmrec -s b -l branch-any -d 'record the branches before each sample'
complete -c pmrec -s j -l branch-filter -x -a 'any any_call any_ret ind_call cond call u k' -d 'branches of these kinds'
complete -c pmrec -s p -l pid -x -a '(__fish_complete_pids)' -d 'running processes'
complete -c pmrec -s t -l tid -x -d 'running threads'
complete -c pmrec -s u -l uid -x -a '(__fish_complete_users)' -d 'all processes of a user'
complete -c pmrec -s a -l all-cpus -d 'everything on all CPUs'
complete -c pmrec -s C -l cpu -x -d 'everything on these CPUs'
complete -c pmrec -s G -l cgroup -r -F -d 'everything in a control group'
complete -c pmrec -s i -l no-inherit -d 'leave out what starts later'
complete -c pmrec -l only-pid -d 'with -p: without processes already started'
complete -c pmrec -l per-task -d 'never sample CPUs where tasks are the target'
complete -c pmrec -l user -x -a '(__fish_complete_users)' -d 'run the command as this user'
complete -c pmrec -s D -l delay -x -d 'begin so many milliseconds later'
complete -c pmrec -l duration -x -d 'end after this time'
complete -c pmrec -l max-size -x -d 'end when the file has this size'
complete -c pmrec -l max-samples -x -d 'end after so many samples'
complete -c pmrec -l control -x -a 'fifo: fd:' -d 'obey commands of a FIFO'
complete -c pmrec -l overwrite -d 'keep only the newest samples'
complete -c pmrec -s g -d 'record call stacks (the default)'
complete -c pmrec -l call-graph -x -a 'dwarf fp lbr none' -d 'how to find call stacks'
complete -c pmrec -l stack-bytes -x -d 'bytes of stack to look at'
complete -c pmrec -l no-stitch -d 'leave deeper stacks without their callers'
complete -c pmrec -s o -l output -r -F -d 'file to write'
complete -c pmrec -l raw -r -F -d 'also keep registers and copied stacks'
complete -c pmrec -l force -d 'also replace a file that is no recording'
complete -c pmrec -l no-symbols -d 'leave addresses as they are'
complete -c pmrec -s q -l quiet -d 'print errors only'
complete -c pmrec -s v -l verbose -d 'print what was opened and how it goes'
complete -c pmrec -l list -d 'list the events of this machine'
complete -c pmrec -l doctor -d 'tell what this user may record here'
complete -c pmrec -l json -d '--list or --doctor as JSON'
complete -c pmrec -l engine -x -a 'perf ptrace auto' -d 'what takes the samples'
complete -c pmrec -l verify -d 'ask libunwind, too'
complete -c pmrec -l stacks -d 'print the stacks of a running process'
complete -c pmrec -l unwinder -x -a 'own libunwind' -d 'of --stacks'
complete -c pmrec -s m -l mmap-pages -x -d 'size of each buffer'
complete -c pmrec -s r -l realtime -x -d 'real-time priority'
complete -c pmrec -s h -l help -d 'print the help'
complete -c pmrec -l version -d 'print the version'
