# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# A memory server for a test, on a free port of loopback. Sets address, server (its pid)
# and scratch; the server ends with the test.

set -euo pipefail

scratch=${AUTOPKGTEST_TMP:-$(mktemp -d)}
server=

die()
{
	echo "$*" >&2
	cat "$scratch/server.log" >&2 2>/dev/null || true
	exit 1
}

# start_server OPTION...
start_server()
{
	local attempt

	# It is read below, maybe before the server opens it.
	: >"$scratch/server.log"
	rdmabox serve --listen 127.0.0.1:0 --drain-timeout 1 "$@" \
		>"$scratch/server.log" 2>&1 &
	server=$!
	trap 'kill "$server" 2>/dev/null || true' EXIT
	for ((attempt = 0; attempt < 200; attempt++)); do
		address=$(awk '/^ready/ { print $2; exit }' "$scratch/server.log")
		[ -z "$address" ] || return 0
		kill -0 "$server" 2>/dev/null || break
		sleep 0.05
	done
	die "the server does not serve"
}

# stop_server - it ends by itself when it is told to, and with success
stop_server()
{
	kill -TERM "$server"
	wait "$server" || die "the server ended with $?"
}
