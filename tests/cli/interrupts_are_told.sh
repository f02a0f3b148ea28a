#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# SIGINT and SIGTERM end tune and a hunt early: what was borrowed is given back, what
# is known is printed, and the exit code is 128 and the signal's number.

. "$(dirname "$0")/rdmabox.sh"

# begin PATTERN ARGUMENT... - sets command_pid, of one whose stderr has the pattern
begin()
{
	local pattern=$1 attempt

	shift
	: >"$scratch/err"
	"$rdmabox" "$@" >"$scratch/out" 2>"$scratch/err" &
	command_pid=$!
	server_pids+=("$command_pid")
	for ((attempt = 0; attempt < 20 * limit_s; attempt++)); do
		! grep -q "$pattern" "$scratch/err" || return 0
		kill -0 "$command_pid" 2>/dev/null || break
		sleep 0.05
	done
	show
	fault "rdmabox $*: never says $pattern"
}

# end SIGNAL EXIT-CODE
end()
{
	kill -"$1" "$command_pid"
	wait "$command_pid"
	status=$?
	[ "$status" = "$2" ] || { show; fault "SIG$1: exit code $status, not $2"; }
}

start_server --memory 64M --slab 8M
begin 'queue pairs, turn 1' tune --fabric soft:tcp --server "$address" --rounds 1 \
	--runtime "$limit_s" --out "$scratch/tuned" --progress
for ((attempt = 0; attempt < 600; attempt++)); do
	"$rdmabox" stat "$address" --json >"$scratch/stat" && grep -q '"slabs_lent": 1,' "$scratch/stat" && break
	sleep 0.05
done
grep -q '"slabs_lent": 1,' "$scratch/stat" || fault "tune borrows nothing"
end INT 130
grep -q 'interrupted; nothing was written' "$scratch/err" || { show; fault "tune does not say so"; }
[ ! -e "$scratch/tuned" ] || fault "half a measurement was written"
expect_success stat "$address" --json
[ "$(key lent_bytes)" = 0 ] || fault "a slab stays lent"

# lose_writer LEASE - of the volume db, with one of its servers; sets servers. Who opens it then waits
# until that server may have nothing any more to say, which are two leases.
lose_writer()
{
	local writer

	servers=
	for _ in 1 2 3; do
		start_server --memory 32M --slab 4M --lease "$1"
		servers+=${servers:+,}$address
	done
	expect_success volume create db --size 8M --replicas 2 --pool "$servers"
	"$rdmabox" bench --pool "$servers" --volume-name db --op write --runtime 1200 \
		>"$scratch/bench.out" 2>&1 &
	writer=$!
	for ((attempt = 0; attempt < 20 * limit_s; attempt++)); do
		"$rdmabox" volume show db --json --pool "$servers" >"$scratch/shown" &&
			grep -q '"copies": 2,' "$scratch/shown" &&
			grep -q '"is_open": true' "$scratch/shown" && break
		sleep 0.05
	done
	kill -KILL $writer "$pid"
}

# A command that is opening a volume is not ended by one signal: it closes the volume when it is open.
for command in "volume export db $scratch/copy" 'bench --volume-name db --op read'; do
	lose_writer 2500
	# shellcheck disable=SC2086 # words
	begin 'opening.*servers are missing' $command --take-over --pool "$servers"
	end INT 130
	grep -q 'interrupted: waiting until the volume is open' "$scratch/err" ||
		{ show; fault "rdmabox $command: does not say what it waits for"; }
	grep -q 'interrupted before' "$scratch/err" ||
		{ show; fault "rdmabox $command: does not say how it ended"; }
	[ "$(shown is_open "$servers")" = False ] || fault "rdmabox $command: leaves the volume open"
done
[ -z "$(find "$scratch" -name 'copy*')" ] || fault "an export that was interrupted leaves a file"

# end_by_second SIGNAL EXIT-CODE - signals until it has ended
end_by_second()
{
	while kill -"$1" "$command_pid" 2>/dev/null; do
		sleep 0.1
	done
	wait "$command_pid"
	status=$?
	[ "$status" = "$2" ] || { show; fault "SIG$1 again: exit code $status, not $2"; }
}

# An open that waits for long is given up by the second signal, and leaves no file.
lose_writer 1200000
for command in "export db $scratch/copy" 'scrub db'; do
	# shellcheck disable=SC2086 # words
	begin 'opening: 0 slabs, servers are missing' volume $command --take-over --pool "$servers"
	end_by_second INT 130
	grep -q 'ended while a volume was being opened: servers may keep it' "$scratch/err" ||
		{ show; fault "rdmabox volume $command: does not say what its end leaves"; }
done
[ -z "$(find "$scratch" -name 'copy*')" ] || fault "an export that was given up leaves a file"

# There is no simulator in a build with the thread sanitizer.
[[ $("$rdmabox" sim --events 1 2>&1) != *"not with the thread sanitizer"* ]] || exit 0

begin 'seeds, 0 failed.*seeds/s.*s left' sim --hunt "$limit_s" --progress
end TERM 143
grep -qE '^proof [a-z-]+ +[0-9]+ +[1-9]' "$scratch/out" || { show; fault "no summary"; }
grep -qE '^[1-9][0-9]* seeds from 0, 0 failed; interrupted$' "$scratch/out" || { show; fault "no count"; }
[ "$(grep -c FAIL "$scratch/out")" = 0 ] || { show; fault "a run that was given up is a failure"; }

# Whoever starts it may have ignored the ends of children: it counts them all the same.
(trap '' CHLD; exec timeout "$limit_s" "$rdmabox" sim --hunt "$limit_s" --seeds 2) >"$scratch/out" 2>"$scratch/err" ||
	{ show; fault "a hunt without SIGCHLD: exit code $?"; }
grep -qE '^2 seeds from 0, 0 failed' "$scratch/out" || { show; fault "a hunt without SIGCHLD does not end"; }

# On a terminal one line is written over.
python3 - "$rdmabox" <<'END' || fault "no progress on a terminal"
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], [sys.argv[1], "sim", "--hunt", "60", "--seeds", "12"])
said = b""
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:
        break
    if not piece:
        break
    said += piece
assert os.waitpid(pid, 0)[1] == 0, said
assert b"\r\x1b[Khunt  " in said and b"seeds/s" in said, said
assert b"12 seeds from 0, 0 failed" in said, said
END
