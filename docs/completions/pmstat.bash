# SPDX-License-Identifier: MIT
# Completion of pmstat for bash. Needs nothing but bash.

_pmstat_long='--event --fn --range --engine --calls-from --live --marked --stacks --per --pid --tid --uid
	--all-cpus --cpu --cgroup --no-inherit --user --repeat --time --warmup --keep-going
	--interval-print --delay --timeout --output --field-separator --json --color --quiet
	--verbose --help --version'
_pmstat_short='-e -p -t -u -a -C -G -i -r -w -I -D -o -x -q -v -h'

# Events that can be counted here.
_pmstat_events() {
	{
		pmrec --list
		pmrec --list tracepoint
	} 2>/dev/null | sed -n '/:[A-Z]/!s/^  [+uc] \([^ ]*\).*/\1/p'
	printf '%s\n' sim.Ir sim.Dr sim.Dw sim.I1mr sim.D1mr sim.D1mw sim.ILmr \
		sim.DLmr sim.DLmw sim.Bc sim.Bcm sim.Bi sim.Bim sim.L1hits \
		sim.LLhits sim.RAMhits sim.cycles sim.costs
}

# Fills COMPREPLY from the words of $1 that continue $2, behind its last comma. What readline
# takes for words of their own, up to a colon or an equals sign, must not come again.
_pmstat_reply() {
	local before='' word=$2 cut=$2
	case $word in
	*,*)
		before=${word%,*},
		word=${word##*,}
		;;
	esac
	COMPREPLY=()
	while IFS= read -r match; do
		COMPREPLY+=("$before$match")
	done < <(compgen -W "$1" -- "$word")
	case $COMP_WORDBREAKS in
	*:*)
		case $cut in
		*:*)
			cut=${cut%"${cut##*:}"}
			COMPREPLY=("${COMPREPLY[@]#"$cut"}")
			;;
		esac
		;;
	esac
	return 0
}

_pmstat_pids() {
	local dir
	for dir in /proc/[0-9]*; do
		echo "${dir#/proc/}"
	done
}

_pmstat_files() {
	COMPREPLY=()
	compopt -o filenames 2>/dev/null
	while IFS= read -r match; do
		COMPREPLY+=("$match")
	done < <(compgen -f -- "$1")
}

# What comes behind option $1; fails when it takes nothing.
_pmstat_value() {
	local cur=$2
	case $1 in
	-e | --event) _pmstat_reply "$(_pmstat_events)" "$cur" ;;
	-p | --pid | -t | --tid) _pmstat_reply "$(_pmstat_pids)" "$cur" ;;
	-u | --uid | --user) _pmstat_reply "$(compgen -u)" "$cur" ;;
	--engine) _pmstat_reply 'auto uprobe ptrace callgrind' "$cur" ;;
	--per) _pmstat_reply 'thread cpu' "$cur" ;;
	--color) _pmstat_reply 'auto always never' "$cur" ;;
	-o | --output | -G | --cgroup) _pmstat_files "$cur" ;;
	--fn | --range | -C | --cpu | -r | --repeat | --time | -w | --warmup | -I | \
		--interval-print | -D | --delay | --timeout | -x | --field-separator) ;;
	*) return 1 ;;
	esac
}

_pmstat() {
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
	# The command begins with the first word that no option takes.
	for ((i = 1; i < ${#words[@]}; i++)); do
		[ "$i ${words[i]}" != '1 ab' ] || continue
		case ${words[i]} in
		--)
			command=$((i + 1))
			break
			;;
		--*=*) ;;
		-*) ! _pmstat_value "${words[i]}" '' >/dev/null 2>&1 || i=$((i + 1)) ;;
		*)
			command=$i
			break
			;;
		esac
	done
	COMPREPLY=()
	if [ "$command" -ge 0 ] && [ "${words[command]-}" ]; then
		_pmstat_files "$cur"
		return
	fi
	case $cur in
	--*=*)
		_pmstat_value "${cur%%=*}" "${cur#*=}"
		return
		;;
	esac
	if [ "$previous" != -- ] && _pmstat_value "$previous" "$cur"; then
		return
	fi
	case $cur in
	-*) _pmstat_reply "$_pmstat_short $_pmstat_long" "$cur" ;;
	*/*) _pmstat_files "$cur" ;;
	*) _pmstat_reply "$(compgen -c -- "$cur")" "$cur" ;;
	esac
}

complete -F _pmstat pmstat
