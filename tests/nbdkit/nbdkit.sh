# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the tests of the nbdkit plugin share, besides servers (../cli/rdmabox.sh): nbdkit
# with the plugin that was built, on a socket of its own.

. "$(dirname "${BASH_SOURCE[0]}")/../cli/rdmabox.sh"

plugin=$build/nbdkit/nbdkit-rdmabox-plugin.so

# need PROGRAM...
need()
{
	local program

	for program in "$@"; do
		command -v "$program" >/dev/null || { echo "SKIP: $program is not installed"; exit 77; }
	done
}

need nbdkit
[ -e "$plugin" ] || { echo "SKIP: no plugin in this build; see nbdkit/README.md"; exit 77; }

# start_nbdkit PARAMETER... - sets nbdkit_pid, socket and uri
start_nbdkit()
{
	local attempt

	socket=$scratch/socket.${#server_pids[@]}
	uri="nbd+unix:///?socket=$socket"
	nbdkit_log=$socket.log
	"${preload[@]}" nbdkit --foreground --unix "$socket" --pidfile "$socket.pid" "$plugin" "$@" \
		>"$nbdkit_log" 2>&1 &
	nbdkit_pid=$!
	server_pids+=("$nbdkit_pid")
	for ((attempt = 0; attempt < 600; attempt++)); do
		[ ! -s "$socket.pid" ] || return 0
		kill -0 "$nbdkit_pid" 2>/dev/null || break
		sleep 0.05
	done
	cat "$nbdkit_log" >&2
	fault "nbdkit does not get ready"
}

# stop_nbdkit - asks it to end; sets status. SIGKILL would be no end.
stop_nbdkit()
{
	kill -TERM "$nbdkit_pid"
	expect_end
}

expect_end()
{
	local attempt

	for ((attempt = 0; attempt < 600; attempt++)); do
		kill -0 "$nbdkit_pid" 2>/dev/null || break
		sleep 0.05
	done
	[ "$attempt" != 600 ] || { cat "$nbdkit_log" >&2; fault "nbdkit does not end"; }
	wait "$nbdkit_pid"
	status=$?
}

# lent ADDRESS - bytes that a server has lent
lent()
{
	"$rdmabox" stat --server "$1" | awk '$1 == "lent_bytes" { print $2 }'
}

# good COMMAND... - it must succeed
good()
{
	timeout "$limit_s" "$@" >"$scratch/out" 2>"$scratch/err" ||
		{ status=$?; show; cat "$nbdkit_log" >&2; fault "$*: exit code $status"; }
}

# fio_nbd ARGUMENT... - a load that is verified, by fio's own NBD engine
fio_nbd()
{
	(cd "$scratch" && exec timeout "$limit_s" fio --ioengine=nbd --uri="$uri" --name=load \
		--verify=crc32c --verify_fatal=1 "$@" >"$scratch/out" 2>"$scratch/err")
}

# needs_fio_nbd - skips without it
needs_fio_nbd()
{
	need fio
	fio --enghelp | grep -qw nbd || { echo "SKIP: this fio has no nbd engine"; exit 77; }
}
