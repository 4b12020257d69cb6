# SPDX-License-Identifier: MIT
# A terminal that tests look at: tmux. To be loaded; setup calls open_terminal, teardown
# close_terminal.

open_terminal() {
	command -v tmux >/dev/null || skip 'tmux is not installed'
	export LC_ALL=C.UTF-8
	unset NO_COLOR TMUX COLUMNS
}

close_terminal() {
	[ -z "${SOCKET-}" ] || tmux -S "$SOCKET" kill-server 2>/dev/null || true
	rm -f "${SOCKET-}"
}

t() {
	tmux -u -f /dev/null -S "$SOCKET" "$@"
}

# run_in_terminal COLUMNSxROWS COMMAND: a shell command, and then its status as a line. The
# terminal stays, until the next one.
run_in_terminal() {
	local size=$1
	# A server that is still ending takes no new session. The path of a socket may have 107
	# bytes.
	close_terminal
	SOCKET=$(mktemp -u "${TMPDIR:-/tmp}/pm-tui-XXXXXX")
	t start-server \; set -g default-terminal screen \; set -g remain-on-exit on \; \
		new-session -d -x "${size%x*}" -y "${size#*x}" \
		"stty -a >before; $2; s=\$?; stty -a >after; echo status=\$s; exec sleep 600"
}

screen() {
	t capture-pane -p
}

# shows EXPRESSION: waits until a line of the screen matches.
shows() {
	for _ in $(seq 2400); do
		screen >seen 2>/dev/null || true
		if grep -qE -- "$1" seen; then return 0; fi
		sleep 0.05
	done
	echo "not on the screen: $1" >&2
	cat seen >&2
	return 1
}

# press KEY... as tmux calls them.
press() {
	t send-keys "$@"
}
