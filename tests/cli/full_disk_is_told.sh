#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What cannot be written to stdout is told, in one line, and is exit code 1.

. "$(dirname "$0")/rdmabox.sh"

expect_told()
{
	timeout "$limit_s" "$rdmabox" "$@" >/dev/full 2>"$scratch/err"
	status=$?
	[ "$status" = 1 ] || fault "rdmabox $*: exit code $status, not 1"
	[ "$(grep -c 'cannot write.*No space left' "$scratch/err")" = 1 ] ||
		{ cat "$scratch/err" >&2; fault "rdmabox $*: does not say why"; }
}

start_server --memory 16M --slab 1M
expect_told --version
expect_told --help
expect_told serve --help
expect_told help
expect_told help bench
expect_told help --json
expect_told doctor --json
expect_told tune --rounds 1 --out none
expect_told stat --server "$address"
expect_told stat "$address" --json
expect_told top --once --servers "$address" --interval 0.2
expect_told bench --pool "$address" --volume 1M --runtime 0.1 --warmup 0
# There is no simulator in a build with the thread sanitizer.
if [[ $("$rdmabox" sim --events 1 2>&1) != *"not with the thread sanitizer"* ]]; then
	expect_told sim --events 100
	expect_told sim --events 100 --trace
	expect_told sim --events 100 --json -
	expect_told sim --scenario fig1 --nic connectx3
	expect_told sim --events 100 --hunt 60 --seeds 1
fi
expect_told serve --listen 127.0.0.1:0 --memory 16M --slab 1M

# A file that may not become so large is an error like others, and nothing is left of it.
"$rdmabox" volume create db --size 4M --pool "$address" || fault "no volume"
(ulimit -f 1024 && exec timeout "$limit_s" "$rdmabox" volume export db "$scratch/copy" --pool "$address") \
	>"$scratch/out" 2>"$scratch/err"
status=$?
[ "$status" = 1 ] || { show; fault "an export into a file that is limited: exit code $status, not 1"; }
grep -q 'cannot write.*File too large; no file was written' "$scratch/err" ||
	{ show; fault "it does not say why"; }
[ -z "$(find "$scratch" -name 'copy*')" ] || fault "a part of an export is left"
