#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A server is killed while requests are on their way to it over real verbs. With
# a second replica nothing fails and nothing is lost, and a spare takes the lost
# copies; without one the run ends with errors, and never with junk.

. "$(dirname "$(readlink -f "$0")")/verbs.sh"

# kill_under OPTION... - kills one of two servers under a running bench; sets
# status
kill_under()
{
	local one victim attempt bench

	start_verbs_server --memory 16M --insecure
	one=$address
	victim=$pid
	start_verbs_server --memory 16M --insecure
	rm -f "$scratch"/{err,json}
	timeout "$limit_s" "$rdmabox" bench --pool "$one,$address" --fabric verbs \
		--insecure --volume 8M --op mix:50 --pattern rand --runtime 4 \
		--warmup 0 --verify --progress --json "$scratch/json" "$@" \
		>"$scratch/out" 2>"$scratch/err" &
	bench=$!
	server_pids+=("$bench")
	for ((attempt = 0; attempt < 600; attempt++)); do
		grep -qs measure "$scratch/err" && break
		sleep 0.1
	done
	kill -KILL "$victim"
	wait "$bench"
	status=$?
	kill -KILL "$pid"
	[ "$status" != 124 ] || { show; fault "bench $*: hangs"; }
	cp "$scratch/json" "$scratch/out" || { show; fault "bench $*: no result"; }
	grep -q 'server down' "$scratch/err" || { show; fault "bench $*: nobody tells of the server"; }
}

kill_under --replicas 2
[ "$status" = 0 ] || { show; fault "with two replicas: exit code $status"; }
expect_sound "with two replicas"
pass "bench with two replicas does not notice that a server dies"

kill_under --replicas 1
[ "$status" = 1 ] || { show; fault "without replica: exit code $status"; }
[ "$(key errors)" -gt 0 ] || fault "without replica: no errors"
[ "$(key verify_errors)" = 0 ] || fault "without replica: junk in place of errors"
pass "bench without replica ends with errors, and with no junk"

# keep-tree tells of each pass; the server dies when the second begins, and the
# spare joins.
mkdir "$scratch/tree"
for size in 0 1 4095 4097 65537 3000000; do
	head -c "$size" /dev/urandom >"$scratch/tree/$size"
done
echo "a secret that is long enough to be one" >"$scratch/secret"
chmod 600 "$scratch/secret"
start_verbs_server --memory 8M --secret-file "$scratch/secret"
one=$address
start_verbs_server --memory 8M --secret-file "$scratch/secret"
two=$address
victim=$pid
start_verbs_server --memory 8M --secret-file "$scratch/secret"
timeout "$limit_s" "$build/examples/keep-tree" --fabric verbs \
	--secret-file "$scratch/secret" --servers "$one,$two" --spare "$address" \
	--replicas 2 --checksums --passes 3 "$scratch/tree" 2>"$scratch/err" |
	while IFS= read -r line; do
		echo "$line"
		[ "$line" != "phase pass 2" ] || kill -KILL "$victim"
	done >"$scratch/out"
status=$?
[ "$status" = 0 ] || { show; fault "keep-tree: exit code $status"; }
grep -q "^event server-down $two " "$scratch/out" || { show; fault "no server went down"; }
grep -qE '^rebuilt [1-9][0-9]* bytes' "$scratch/out" || { show; fault "nothing was rebuilt"; }
grep -qx 'phase done' "$scratch/out" || { show; fault "keep-tree is not done"; }
pass "keep-tree gets every byte back, and the spare has the lost copies"
