#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Stands in for gh and for curl, as FORGE/calls keeps what each call asked of the service: method,
# address, and the body, which has to be JSON. Comments of one request live in FORGE/comments.json
# and are answered with; FORGE/refuse names methods that the service refuses.
set -euo pipefail

method=GET
body=
address=
query=.
api=gh
[ "$(basename "$0")" = gh ] || api=curl
[ "$api" = curl ] || { [ "$1" = api ] && shift; }
if [ "$api" = gh ] && [ -z "${GH_TOKEN-}" ]; then
	echo "gh: to use GitHub CLI in a workflow, set GH_TOKEN" >&2
	exit 4
fi
if [ "$api" = curl ]; then
	if [[ "$*" == *secret* ]] || [ "$(cat)" != 'header = "PRIVATE-TOKEN: secret"' ]; then
		echo "curl: the token has to be read from standard input, and only there" >&2
		exit 22
	fi
fi
while [ $# -gt 0 ]; do
	case $1 in
	-X) method=$2 && shift ;;
	-H | --jq | --input | --data)
		case $1 in
		--jq) query=$2 ;;
		--input) body=$2 ;;
		--data) body=${2#@} ;;
		esac
		shift
		;;
	-*) ;;
	*) address=$1 ;;
	esac
	shift
done
if [ -n "$body" ]; then
	jq -c --arg method "$method" --arg address "$address" \
		'{method: $method, address: $address, body: .}' "$body" >>"$FORGE/calls"
else
	jq -cn --arg method "$method" --arg address "$address" \
		'{method: $method, address: $address}' >>"$FORGE/calls"
fi
if grep -qsx "$method" "$FORGE/refuse"; then
	echo "HTTP 403: Resource not accessible by integration" >&2
	exit 1
fi
[ -e "$FORGE/comments.json" ] || echo '[]' >"$FORGE/comments.json"
case $method/$address in
GET/user)
	# As GitHub answers the token of a job.
	echo '{"message":"Resource not accessible by integration","status":"403"}'
	exit 1
	;;
GET/*/user) echo '{"id":42}' ;;
GET/*page=1 | GET/*per_page=100) jq -r "$query" "$FORGE/comments.json" ;;
GET/*) echo '[]' ;;
POST/*/comments | POST/*/notes)
	jq --slurpfile body "$body" '. + [{id: (1000 + length), body: $body[0].body,
		user: {type: "Bot", login: "bot"}, author: {id: 42}}]' \
		"$FORGE/comments.json" >"$FORGE/comments.new"
	mv "$FORGE/comments.new" "$FORGE/comments.json"
	;;
PATCH/* | PUT/*)
	jq --slurpfile body "$body" --argjson id "${address##*/}" \
		'map(if .id == $id then .body = $body[0].body else . end)' \
		"$FORGE/comments.json" >"$FORGE/comments.new"
	mv "$FORGE/comments.new" "$FORGE/comments.json"
	;;
esac
