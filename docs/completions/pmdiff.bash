# SPDX-License-Identifier: MIT
# Completion of pmdiff for bash. Needs nothing but bash.

_pmdiff_long='--base --head --good --bad --row --build --case --repeat --warmup --event --fn --range
	--engine --timeout --gate --force --strict --config --history --trend
	--history-gate --acks --format --output --commit --reason --remove --json --markdown
	--junit --sarif --html --all --color --quiet --help --version'
_pmdiff_short='-r -w -e -o -q -h'

# Branches and tags.
_pmdiff_revisions() {
	echo HEAD
	git for-each-ref --format='%(refname:short)' refs/heads refs/tags refs/remotes 2>/dev/null
}

# Fills COMPREPLY from the words of $1 that begin with $2.
_pmdiff_reply() {
	COMPREPLY=()
	while IFS= read -r match; do
		COMPREPLY+=("$match")
	done < <(compgen -W "$1" -- "$2")
	return 0
}

_pmdiff_files() {
	COMPREPLY=()
	compopt -o filenames 2>/dev/null
	while IFS= read -r match; do
		COMPREPLY+=("$match")
	done < <(compgen -f -- "$1")
}

# What comes behind option $1; fails when it takes nothing.
_pmdiff_value() {
	local cur=$2
	case $1 in
	--base | --head | --good | --bad | --commit) _pmdiff_reply "$(_pmdiff_revisions)" "$cur" ;;
	--engine) _pmdiff_reply 'auto count uprobe ptrace callgrind' "$cur" ;;
	--color) _pmdiff_reply 'auto always never' "$cur" ;;
	--config | --acks | -o | --output) _pmdiff_files "$cur" ;;
	--format)
		_pmdiff_reply 'auto google-benchmark criterion hyperfine pytest-benchmark perf-stat
			iai-callgrind' "$cur"
		;;
	--history)
		_pmdiff_files "$cur"
		case git-notes in
		"$cur"*) COMPREPLY+=(git-notes) ;;
		esac
		;;
	--row | --build | --case | -r | --repeat | -w | --warmup | -e | --event | --fn | --range | \
		--timeout | --gate | --history-gate | --reason) ;;
	*) return 1 ;;
	esac
}

_pmdiff() {
	local line=${COMP_LINE:0:COMP_POINT}
	# Whole words, whatever COMP_WORDBREAKS says.
	local -a words
	read -r -a words <<<"$line"
	local cur='' previous='' command=-1 i
	case $line in
	*[[:space:]]) ;;
	*)
		cur=${words[${#words[@]} - 1]}
		unset 'words[${#words[@]}-1]'
		;;
	esac
	[ "${#words[@]}" -eq 0 ] || previous=${words[${#words[@]} - 1]}
	# The command of run and bisect begins with the first word that no option takes.
	case ${words[1]-} in
	run | bisect)
		for ((i = 2; i < ${#words[@]}; i++)); do
			case ${words[i]} in
			--)
				command=$((i + 1))
				break
				;;
			--*=*) ;;
			-*) ! _pmdiff_value "${words[i]}" '' >/dev/null 2>&1 || i=$((i + 1)) ;;
			*)
				command=$i
				break
				;;
			esac
		done
		;;
	esac
	COMPREPLY=()
	if [ "$command" -ge 0 ]; then
		_pmdiff_files "$cur"
		return
	fi
	case $cur in
	--json=* | --markdown=* | --junit=* | --sarif=* | --html=*)
		_pmdiff_files "${cur#*=}"
		return
		;;
	--*=*)
		_pmdiff_value "${cur%%=*}" "${cur#*=}"
		return
		;;
	esac
	if _pmdiff_value "$previous" "$cur"; then
		return
	fi
	case $cur in
	-*) _pmdiff_reply "$_pmdiff_short $_pmdiff_long" "$cur" ;;
	*)
		_pmdiff_files "$cur"
		[ "${#words[@]}" -ne 1 ] || while IFS= read -r match; do
			COMPREPLY+=("$match")
		done < <(compgen -W 'run bisect' -- "$cur")
		;;
	esac
}

complete -F _pmdiff pmdiff
