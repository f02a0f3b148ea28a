#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# keep-tree: a directory comes back, also where a server is killed meanwhile and
# a spare takes its place; without a replica that is a failure and not junk.

. "$(dirname "$0")/rdmabox.sh"

tree=$scratch/tree
mkdir -p "$tree/deep/er"
for size in 0 1 4095 4096 4097 65536 65537 300000; do
	head -c "$size" /dev/urandom >"$tree/deep/$size"
done
head -c 24000000 /dev/urandom >"$tree/deep/er/large"
ln -s large "$tree/deep/er/link"

# keep OPTION... - kills $victim, if set, when the second pass begins
keep()
{
	timeout "$limit_s" "$build/examples/keep-tree" "$@" "$tree" 2>"$scratch/err" |
		while IFS= read -r line; do
			echo "$line"
			[ "$line" != "phase pass 2" ] || [ -z "$victim" ] ||
				kill -KILL "$victim"
		done >"$scratch/out"
	status=$?
}

start_server --memory 64M --slab 4M
one=$address
victim=
keep --servers "$one" --passes 2
[ "$status" = 0 ] || { show; fault "exit code $status"; }
grep -q '^stored 9 files, ' "$scratch/out" || { show; fault "not nine files"; }

start_server --memory 64M --slab 4M
victim=$pid
two=$address
start_server --memory 64M --slab 4M
keep --servers "$one,$two" --spare "$address" --replicas 2 --checksums --passes 4
[ "$status" = 0 ] || { show; fault "with a spare: exit code $status"; }
grep -q "^event server-down $two " "$scratch/out" || { show; fault "no server went down"; }
grep -qE '^rebuilt [1-9][0-9]* bytes' "$scratch/out" || { show; fault "nothing was rebuilt"; }
grep -qx 'phase done' "$scratch/out" || { show; fault "not done"; }

start_server --memory 64M --slab 4M
victim=$pid
keep --servers "$address" --passes 4
[ "$status" = 1 ] || { show; fault "without replica: exit code $status, not 1"; }
