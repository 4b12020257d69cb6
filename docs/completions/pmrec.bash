# SPDX-License-Identifier: MIT
# Completion of pmrec for bash. Needs nothing but bash.

_pmrec_long='--event --freq --count --filter --off-cpu --branch-any --branch-filter
	--pid --tid --uid --all-cpus --cpu --cgroup --no-inherit --only-pid --per-task --user --delay
	--duration --max-size --max-samples --control --overwrite --call-graph --stack-bytes
	--no-stitch --output --raw --force --no-symbols --quiet --verbose --list --doctor --json
	--engine --verify --stacks --unwinder --mmap-pages --realtime --help --version'
_pmrec_short='-e -F -c -b -j -p -t -u -a -C -G -i -D -g -o -q -v -m -r -h'

# Events that can be recorded here.
_pmrec_events() {
	{
		"$1" --list
		"$1" --list tracepoint
	} 2>/dev/null | sed -n '/:[A-Z]/!s/^  [+u] \([^ ]*\).*/\1/p'
	printf '%s\n' uprobe: uretprobe: kprobe: usdt: mem:
}

# Fills COMPREPLY from the words of $1 that continue $2, behind its last comma. What readline
# takes for words of their own, up to a colon or an equals sign, must not come again.
_pmrec_reply() {
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
	# `uprobe:` goes on.
	case ${COMPREPLY[0]-} in
	*:) compopt -o nospace 2>/dev/null ;;
	esac
	return 0
}

_pmrec_pids() {
	local dir
	for dir in /proc/[0-9]*; do
		echo "${dir#/proc/}"
	done
}

_pmrec_files() {
	COMPREPLY=()
	compopt -o filenames 2>/dev/null
	while IFS= read -r match; do
		COMPREPLY+=("$match")
	done < <(compgen -f -- "$1")
}

# What comes behind option $1; fails when it takes nothing.
_pmrec_value() {
	local cur=$2 program=$3
	case $1 in
	-e | --event) _pmrec_reply "$(_pmrec_events "$program")" "$cur" ;;
	-F | --freq) _pmrec_reply '99 999 4999 max' "$cur" ;;
	-j | --branch-filter)
		_pmrec_reply 'any any_call any_ret ind_call cond call u k' "$cur"
		;;
	-p | --pid | -t | --tid) _pmrec_reply "$(_pmrec_pids)" "$cur" ;;
	-u | --uid | --user) _pmrec_reply "$(compgen -u)" "$cur" ;;
	--call-graph) _pmrec_reply 'dwarf fp lbr none' "$cur" ;;
	--engine) _pmrec_reply 'perf ptrace auto' "$cur" ;;
	--unwinder) _pmrec_reply 'own libunwind' "$cur" ;;
	--control) _pmrec_reply 'fifo: fd:' "$cur" ;;
	--list) _pmrec_reply 'hardware software cache pmu tracepoint probe' "$cur" ;;
	-o | --output | --raw | -G | --cgroup) _pmrec_files "$cur" ;;
	-c | --count | --filter | -C | --cpu | -D | --delay | --duration | --max-size | \
		--max-samples | --stack-bytes | -m | --mmap-pages | -r | --realtime) ;;
	*) return 1 ;;
	esac
}

_pmrec() {
	local line=${COMP_LINE:0:COMP_POINT} program=$1
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
		case ${words[i]} in
		--)
			command=$((i + 1))
			break
			;;
		--list | --*=*) ;;
		-*) ! _pmrec_value "${words[i]}" '' "$program" >/dev/null 2>&1 || i=$((i + 1)) ;;
		*)
			command=$i
			break
			;;
		esac
	done
	COMPREPLY=()
	if [ "$command" -ge 0 ] && [ "${words[command]-}" ]; then
		case " ${words[*]} " in
		*' --list '*) return ;;
		esac
		_pmrec_files "$cur"
		return
	fi
	case $cur in
	--*=*)
		_pmrec_value "${cur%%=*}" "${cur#*=}" "$program"
		return
		;;
	esac
	if [ "$previous" != -- ] && _pmrec_value "$previous" "$cur" "$program"; then
		[ "$previous" != --list ] || [ "${#COMPREPLY[@]}" -gt 0 ] || _pmrec_reply "$_pmrec_long" "$cur"
		return
	fi
	case $cur in
	-*) _pmrec_reply "$_pmrec_short $_pmrec_long" "$cur" ;;
	*/*) _pmrec_files "$cur" ;;
	*) _pmrec_reply "$(compgen -c -- "$cur")" "$cur" ;;
	esac
}

complete -F _pmrec pmrec
