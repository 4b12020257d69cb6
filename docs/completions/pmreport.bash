# SPDX-License-Identifier: MIT
# Completion of pmreport for bash. Needs nothing but bash.

_pmreport_words() {
	COMPREPLY=()
	while IFS= read -r match; do
		COMPREPLY+=("$match")
	done < <(compgen -W "$1" -- "$2")
}

_pmreport_files() {
	COMPREPLY=()
	compopt -o filenames 2>/dev/null
	while IFS= read -r match; do
		COMPREPLY+=("$match")
	done < <(compgen -f -- "$1")
}

_pmreport() {
	local cur=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
	local long='--by --tree --bottom-up --callers --callees --annotate --source --asm --source-dir --source-root --latency --threads --fields --percentile --branches --children --limit --no-inline
		--symfs --debug-dir --debuginfod --no-resymbolize --follow --interval
		--event --comm --pid --tid --module --symbol --time --tui --json --field-separator
		--folded --html --flamegraph --diff --format --output --color --width --quiet --input --help --version'
	local short='-s -c -d -S -x -o -q -i -h'

	if [ "$previous" = = ]; then
		previous=${COMP_WORDS[COMP_CWORD - 2]}
	elif [ "$cur" = = ]; then
		cur=
	fi
	case $previous in
	-s | --by) _pmreport_words 'function module thread process line address comm cpu parallelism' "$cur" ;;
	--color) _pmreport_words 'auto always never' "$cur" ;;
	--format)
		_pmreport_words 'text csv json folded html flamegraph pprof firefox speedscope
			callgrind perf-script' "$cur"
		;;
	--folded) _pmreport_words 'samples period' "$cur" ;;
	-i | --input | -o | --output | --html | --flamegraph | --diff | --source-dir | --source-root | --symfs | --debug-dir) _pmreport_files "$cur" ;;
	--callers | --callees | --percentile | --annotate | --limit | --interval | --event | -c | --comm | --pid | --tid | -d | \
		--module | -S | --symbol | --time | -x | --field-separator | --width)
		COMPREPLY=()
		;;
	*)
		case $cur in
		-*) _pmreport_words "$short $long" "$cur" ;;
		*) _pmreport_files "$cur" ;;
		esac
		;;
	esac
}

complete -F _pmreport pmreport
