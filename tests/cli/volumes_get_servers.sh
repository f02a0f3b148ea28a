#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdmabox volume add-server: a volume gets more servers, all of them or none, also if the command
# is killed at any moment. A server that was started anew is added like any other.

. "$(dirname "$0")/rdmabox.sh"

cd "$scratch" || exit 1
addresses=()
for _ in 1 2 3 4; do
	start_server --memory 64M --slab 1M --lease 2000
	addresses+=("$address")
done
servers=${addresses[0]},${addresses[1]}
third=${addresses[2]}
fourth=${addresses[3]}

volume()
{
	expect_success volume "$@" --pool "$servers"
}

# refused PATTERN COMMAND...
refused()
{
	expect_refusal "$1" volume "${@:2}" --pool "$servers"
}

# lent ADDRESS - slabs
lent()
{
	expect_success stat "$1" --json
	key slabs_lent
}

head -c 8M /dev/urandom >data
volume create db --size 32M --replicas 2
volume import db data

# ---- what is refused ----------------------------------------------------------------------

refused 'no new servers; add' add-server db
refused 'no name; add' add-server
refused 'there is no volume none' add-server none "$third"
refused 'is one of the servers of volume db already' add-server db "${addresses[1]}"
refused '127.0.0.1:1' add-server db "$third,127.0.0.1:1"
refused 'must be a list' add-server db file:/dev/null
expect_refusal 'too few of its servers' volume add-server db "$third" --pool "${addresses[0]}"
"$rdmabox" bench --pool "$servers" --volume-name db --op read --runtime 60 >bench.out 2>&1 &
writer=$!
until [ "$(shown is_open)" = True ]; do
	kill -0 $writer || { cat bench.out; fault "the bench has ended"; }
done
refused 'is open by .*, process [0-9]+; close it there' add-server db "$third"
kill -INT $writer
wait $writer
[ "$(shown servers)" = 2 ] || fault "a refused command changes something"
[ "$(lent "$third")" = 0 ] || fault "a refused command leaves memory lent"

# ---- done ---------------------------------------------------------------------------------

volume add-server db "$third,$fourth"
expect_refusal 'needs all|name all|are not among those given' volume export db copy --pool "$servers"
servers+=,$third,$fourth
[ "$(shown servers)" = 4 ] && [ "$(shown servers_there)" = 4 ] || fault "it has not 4 servers"
volume export db copy
cmp -s -n 8M data copy || fault "it has other contents"
head -c 32M /dev/urandom >data
volume import db data
[ "$(lent "$third")" -gt 0 ] && [ "$(lent "$fourth")" -gt 0 ] || fault "the new servers lend nothing"
volume remove db
[ "$(lent "$third")" = 0 ] || fault "the new servers keep what was removed"

# ---- the list names a new one in place of one that is well ----------------------------------

servers=${addresses[0]},${addresses[1]},$third
volume create db --size 8M --replicas 2
head -c 8M data | expect_success volume import db - --pool "$servers"
volume show db
left=$(awk -v address="${addresses[1]}" '$1 == "member" && $4 == address { print $2 }' out)
expect_success volume add-server db "$fourth" --pool "${addresses[0]},$third,$fourth"
grep -q "server $left is at none of the addresses that were given, and is taken from the volume" err ||
	{ show; fault "does not say who was left out"; }
servers=${addresses[0]},$third,$fourth
volume add-server db "${addresses[1]}"
[ -s err ] && { show; fault "says something of a server that is new"; }
servers+=,${addresses[1]}
[ "$(shown servers)" = 4 ] && [ "$(shown servers_there)" = 4 ] || fault "the one left out is not back"
volume export db copy
cmp -s -n 8M data copy || fault "it has other contents after one was left out"
volume remove db
servers=${addresses[0]},${addresses[1]},$third,$fourth

# ---- killed -------------------------------------------------------------------------------

two=${addresses[0]},${addresses[1]}
all=$servers
happened=0
for ((round = 0; round < 12; round++)); do
	servers=$two
	volume create db --size 8M --replicas 2
	head -c 8M data | expect_success volume import db - --pool "$two"
	"$rdmabox" volume add-server db "$third,$fourth" --pool "$two" >killed.out 2>&1 &
	killed=$!
	sleep "$(printf 0.0%02d $((RANDOM % 40)))" # another moment each time
	kill -KILL "$killed" 2>/dev/null
	wait "$killed" 2>/dev/null
	servers=$all
	# For its servers the command may only be slow: a server may forget what it left a moment after
	# it was asked.
	for ((attempt = 0; attempt < 20; attempt++)); do
		run volume export db copy --take-over --pool "$servers"
		grep -q 'it has no volume of this name' err || break
	done
	[ "$status" = 0 ] || { show; fault "exit code $status after a command that was killed"; }
	cmp -s -n 8M data copy || fault "it has other contents after a command that was killed"
	had=$(shown servers)
	for ((attempt = 0; attempt < 20 * limit_s; attempt++)); do
		run volume add-server db "$third,$fourth" --pool "$all"
		grep -q 'is being given to volume db by .*: try again' err || break
		sleep 0.05
	done
	case $had:$status in
	2:0) ;;
	4:2) happened=$((happened + 1)) ;;
	*) show; fault "it had $had servers, and then add-server ends with $status" ;;
	esac
	[ "$(shown servers)" = 4 ] && [ "$(shown servers_there)" = 4 ] || fault "it has not 4 servers"
	volume export db copy
	cmp -s -n 8M data copy || fault "it has other contents after the command was repeated"
	volume remove db
done
echo "$happened of 12 additions that were killed had happened"
