#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# ./demo --quick, with the programs of this build: its three acts end well.

. "$(dirname "$0")/rdmabox.sh"

demo=$(readlink -f "$(dirname "$0")/../../demo")
mkdir "$scratch/files"
for size in 0 1 4096 70000 20000000; do
	head -c "$size" /dev/urandom >"$scratch/files/$size"
done
timeout "$limit_s" "$demo" --quick --built "$build" "$scratch/files" >"$scratch/out" 2>"$scratch/err"
status=$?
[ "$status" = 0 ] || { show; fault "exit code $status"; }
for line in '^verified 5 files' '^kill -9 server a$' '^rebuilt ' 'All bytes verified, after'; do
	grep -q "$line" "$scratch/out" || { show; fault "it does not say: $line"; }
done
