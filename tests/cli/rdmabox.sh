# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the tests of this folder share: servers that end with the test, and
# expectations that end it. A test is called with the build directory.

set -uo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
build=$(readlink -f "${1:?usage: $0 BUILD-DIRECTORY}")
rdmabox=$build/cli/rdmabox
scratch=$(mktemp -d "${TMPDIR:-/tmp}/rdmabox-cli.XXXXXX") || exit 1
server_pids=()
leftovers=("$scratch") # what goes with the test

# What stands before a program that loads what was built here: in a build with ASan it loads
# ASan's run time first, and what it leaks itself at its end is its own business.
preload=()
[ -z "${RDMABOX_PRELOAD:-}" ] ||
	preload=(env LD_PRELOAD="$RDMABOX_PRELOAD" ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0")

# Against hangs only: what is expected takes a fraction of it.
limit_s=100

finish()
{
	local status=$?

	[ ${#server_pids[@]} = 0 ] || kill -KILL "${server_pids[@]}" 2>/dev/null
	rm -rf "${leftovers[@]}"
	exit "$status"
}
trap finish EXIT

fault()
{
	printf 'FAULT: %s\n' "$*" >&2
	exit 1
}

# run ARGUMENT... - of rdmabox; sets status, and leaves $scratch/out and err
run()
{
	timeout "$limit_s" "$rdmabox" "$@" >"$scratch/out" 2>"$scratch/err"
	status=$?
}

show()
{
	head -n 20 "$scratch/out" "$scratch/err" >&2
	tail -n 5 "$scratch"/server.*.err >&2 2>/dev/null
}

# expect_refusal PATTERN ARGUMENT... - one line on stderr, exit code 2
expect_refusal()
{
	local pattern=$1

	shift
	run "$@"
	[ "$status" = 2 ] || { show; fault "rdmabox $*: exit code $status, not 2"; }
	[ "$(wc -l <"$scratch/err")" = 1 ] || { show; fault "rdmabox $*: not one line"; }
	[ ! -s "$scratch/out" ] || { show; fault "rdmabox $*: wrote to stdout"; }
	grep -qE -- "$pattern" "$scratch/err" || { show; fault "rdmabox $*: does not say $pattern"; }
}

# expect_success ARGUMENT...
expect_success()
{
	run "$@"
	[ "$status" = 0 ] || { show; fault "rdmabox $*: exit code $status"; }
}

# key NAME - a value of the JSON in $scratch/out; NAME.NAME of what is in it. Of one output
# many are asked for: python, whose start takes most of the time, reads it once.
key()
{
	local name value

	cmp -s "$scratch/out" "$scratch/keys.of" || list_keys || return
	while IFS=$'\t' read -r name value; do
		[ "$name" != "$1" ] || { printf '%s\n' "$value"; return; }
	done <"$scratch/keys"
	echo "no key $1" >&2
	return 1
}

# shown KEY [POOL] - of the volume db, as these servers say; else those of $servers
shown()
{
	expect_success volume show db --json --pool "${2:-$servers}"
	key "$1"
}

# Leaves $scratch/keys, a line for each value in $scratch/out.
list_keys()
{
	python3 -c '
import json, sys
def tell(values, above):
    for name, value in values.items():
        print(above + name, str(value).replace("\n", " "), sep="\t")
        if isinstance(value, dict):
            tell(value, above + name + ".")
tell(json.load(open(sys.argv[1])), "")' "$scratch/out" >"$scratch/keys" &&
		cp "$scratch/out" "$scratch/keys.of"
}

# Loopback too, and of this test alone: the port of a server that was killed here never becomes that
# of a server of another test, which the commands of this one would find.
host=127.$((1 + ($$ >> 16))).$(($$ >> 8 & 255)).$(($$ & 255))

# start_server OPTION... - sets address and pid
start_server()
{
	local out=$scratch/server.${#server_pids[@]} attempt

	: >"$out"
	"$rdmabox" serve --listen $host:0 "$@" >"$out" 2>"$out.err" &
	pid=$!
	server_pids+=("$pid")
	for ((attempt = 0; attempt < 600; attempt++)); do
		address=$(awk '/^ready/ { print $2; exit }' "$out")
		[ -z "$address" ] || return 0
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.05
	done
	cat "$out" "$out.err" >&2
	fault "the server does not get ready"
}
