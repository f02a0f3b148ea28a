# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154 # what rdmabox.sh sets, and what the scripts use
#
# What the scripts need that have a real etcd, beside rdmabox.sh. Not executable: it is no test.

command -v etcd >/dev/null || { echo "etcd is not installed (package etcd-server): skipped"; exit 77; }
[ -e "$build/lib/librdmabox-etcd.so" ] || { echo "this build has no pools of etcd: skipped"; exit 77; }

# Two ports that nobody listens at, of the address that is this test's.
read -r port peer_port < <(python3 -c '
import socket, sys
both = [socket.socket() for _ in range(2)]
for one in both:
    one.bind((sys.argv[1], 0))
print(*(one.getsockname()[1] for one in both))' "$host")
endpoint=$host:$port

# start_etcd http|https OPTION... - with the data that it had; sets etcd_pid
start_etcd()
{
	ETCD_UNSUPPORTED_ARCH=$(uname -m | sed 's/aarch64/arm64/') \
		etcd --name one --data-dir "$scratch/etcd" --listen-client-urls "$1://$endpoint" \
		--advertise-client-urls "$1://$endpoint" \
		--listen-peer-urls "http://$host:$peer_port" \
		--initial-advertise-peer-urls "http://$host:$peer_port" \
		--initial-cluster "one=http://$host:$peer_port" "${@:2}" >>"$scratch/etcd.log" 2>&1 &
	etcd_pid=$!
	server_pids+=("$etcd_pid")
}

# until_true COMMAND... - waits for it
until_true()
{
	local attempt

	for ((attempt = 0; attempt < 900; attempt++)); do
		"$@" && return
		sleep 0.1
	done
	show
	tail -n 5 "$scratch"/*.err "$scratch/etcd.log" >&2
	fault "it never comes true: $*"
}

# answers - etcd, to who has all that it wants; and all members of the pool are up, if there are any
answers()
{
	run pool status "$pool"
	[ "$status" = 0 ] || { [ "$status" = 1 ] && grep -q 'the pool has no servers' "$scratch/err"; }
}
