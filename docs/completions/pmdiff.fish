# SPDX-License-Identifier: MIT
# Completion of pmdiff for fish.

# Branches and tags.
function __pmdiff_revisions
    echo HEAD
    git for-each-ref --format='%(refname:short)' refs/heads refs/tags refs/remotes 2>/dev/null
end

complete -c pmdiff -n __fish_is_first_token -a 'run bisect import ack'
complete -c pmdiff -l base -x -a '(__pmdiff_revisions)' -d 'commit to compare with'
complete -c pmdiff -l head -x -a '(__pmdiff_revisions)' -d 'commit that is judged'
complete -c pmdiff -l good -x -a '(__pmdiff_revisions)' -d 'commit that was fine'
complete -c pmdiff -l bad -x -a '(__pmdiff_revisions)' -d 'commit that is not'
complete -c pmdiff -l row -x -d 'the number that moved'
complete -c pmdiff -l case -x -d 'of the cases in pmdiff.json only these'
complete -c pmdiff -l build -x -d 'builds a commit'
complete -c pmdiff -s r -l repeat -x -d 'runs of each side'
complete -c pmdiff -s w -l warmup -x -d 'uncounted runs before'
complete -c pmdiff -s e -l event -x -d 'events to count'
complete -c pmdiff -l fn -x -d 'count in this function'
complete -c pmdiff -l range -x -d 'count in this range of code'
complete -c pmdiff -l engine -x -a 'auto count uprobe ptrace callgrind' -d 'what counts'
complete -c pmdiff -l timeout -x -d 'of one run'
complete -c pmdiff -l gate -x -d 'how far a row may get worse'
complete -c pmdiff -l force -d 'compare what does not compare'
complete -c pmdiff -l strict -d 'exit with 4 where more runs are needed'
complete -c pmdiff -l config -r -F -d 'settings'
complete -c pmdiff -l history -r -F -a git-notes -d 'what earlier commits counted'
complete -c pmdiff -l trend -d 'the steps in the history'
complete -c pmdiff -l history-gate -x -d 'how far above the history a row may be'
complete -c pmdiff -l acks -r -F -d 'accepted regressions'
complete -c pmdiff -l format -x -a 'auto google-benchmark criterion hyperfine pytest-benchmark perf-stat iai-callgrind' -d 'the tool that wrote it'
complete -c pmdiff -s o -l output -r -F -d 'where import writes'
complete -c pmdiff -l commit -x -a '(__pmdiff_revisions)' -d 'the commit that it is of'
complete -c pmdiff -l reason -x -d 'why it is accepted'
complete -c pmdiff -l remove -d 'do not accept it any more'
complete -c pmdiff -l json -d 'everything, as JSON'
complete -c pmdiff -l markdown -d 'for comments and summaries'
complete -c pmdiff -l junit -d 'a test case for each gate'
complete -c pmdiff -l sarif -d 'findings with file and line'
complete -c pmdiff -l html -d 'one page with plots'
complete -c pmdiff -l all -d 'rows that have not changed, too'
complete -c pmdiff -l color -x -a 'auto always never' -d 'colours'
complete -c pmdiff -s q -l quiet -d 'the result only'
complete -c pmdiff -s h -l help -d 'print the help'
complete -c pmdiff -l version -d 'print the version'
