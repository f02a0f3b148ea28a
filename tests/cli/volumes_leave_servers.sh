#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdmabox volume remove-server of a server that is in use: its slabs move to the others, and it is
# forgotten. It is refused if the others cannot take them. A command that was killed at any moment
# leaves the volume as it was, and can be repeated.

. "$(dirname "$0")/rdmabox.sh"

cd "$scratch" || exit 1
addresses=()
for _ in 1 2 3 4; do
	start_server --memory 16M --slab 256K --lease 2000
	addresses+=("$address")
done
start_server --memory 1M --slab 256K --lease 2000
small=$address
all=$(IFS=, && echo "${addresses[*]}")
three=${addresses[0]},${addresses[1]},${addresses[2]}
two=${addresses[0]},${addresses[1]}
third=${addresses[2]}
fourth=${addresses[3]}

# lent ADDRESS - slabs
lent()
{
	expect_success stat "$1" --json
	key slabs_lent
}

# holds SERVERS - the volume is at these servers, and has what was written
holds()
{
	expect_success volume export db copy --pool "$1"
	cmp -s -n 4M data copy || fault "it has other contents"
	[ "$(shown copies "$all")" = 2 ] || fault "its slabs do not have two copies: $(cat out)"
}

head -c 4M /dev/urandom >data

# ---- what is refused ----------------------------------------------------------------------

expect_success volume create db --size 8M --replicas 2 --pool "$two"
expect_success volume import db data --pool "$two"
expect_refusal '1 server for 2 replicas: add one first' \
	volume remove-server db "${addresses[1]}" --pool "$two"
expect_success volume add-server db "$small" --pool "$two"
expect_refusal 'the others have room for|no other server of volume db takes' \
	volume remove-server db "${addresses[1]}" --pool "$two,$small"
expect_refusal 'is none of volume db' volume remove-server db "$fourth" --pool "$two,$small,$fourth"
holds "$two,$small"
expect_success volume remove db --pool "$two,$small"

expect_success volume create db --size 8M --pool "$two"
expect_success volume import db data --pool "$two"
expect_refusal 'one replica of each slab, which cannot be moved' \
	volume remove-server db "${addresses[1]}" --pool "$two"
expect_success volume remove db --pool "$two"

# ---- done ---------------------------------------------------------------------------------

expect_success volume create db --size 8M --replicas 2 --pool "$three"
expect_success volume import db data --pool "$three"
[ "$(lent "$third")" -gt 0 ] || fault "the third server has nothing to move"
expect_success volume remove-server db "$third" --pool "$three"
[ "$(lent "$third")" = 0 ] || fault "it keeps what was moved"
[ "$(shown servers "$all")" = 2 ] || fault "it has not 2 servers"
holds "$two"

# A server that has nothing goes at once.
expect_success volume add-server db "$third" --pool "$two"
expect_success volume remove-server db "$third" --pool "$three"
[ "$(shown servers "$all")" = 2 ] || fault "it has not 2 servers"
expect_success volume remove db --pool "$two"

# ---- killed -------------------------------------------------------------------------------

for ((round = 0; round < 6; round++)); do
	expect_success volume create db --size 8M --replicas 2 --pool "$three"
	expect_success volume import db data --pool "$three"
	"$rdmabox" volume remove-server db "$third" --pool "$three" >killed.out 2>&1 &
	killed=$!
	sleep "$(printf 0.%03d $((RANDOM % 400)))" # another moment each time
	kill -KILL "$killed" 2>/dev/null
	wait "$killed" 2>/dev/null
	expect_success volume export db copy --take-over --pool "$three"
	cmp -s -n 4M data copy || fault "it has other contents after a command that was killed"
	if [ "$(shown servers "$all")" = 3 ]; then
		for ((attempt = 0; attempt < 20 * limit_s; attempt++)); do
			run volume remove-server db "$third" --pool "$three"
			grep -q 'is open by' err || break
			sleep 0.05
		done
		[ "$status" = 0 ] || { show; fault "exit code $status of the command that was repeated"; }
	fi
	[ "$(shown servers "$all")" = 2 ] || fault "it has not 2 servers after the command was repeated"
	holds "$two"
	[ "$(lent "$third")" = 0 ] || fault "it keeps what was moved"
	expect_success volume remove db --pool "$two"
done

# ---- interrupted --------------------------------------------------------------------------

addresses=()
for _ in 1 2 3; do
	start_server --memory 64M --slab 1M
	addresses+=("$address")
done
three=$(IFS=, && echo "${addresses[*]}")
all=$three
log=$(echo "$scratch"/server.$((${#server_pids[@]} - 1))*.err)
head -c 48M /dev/urandom >data
expect_success volume create db --size 56M --replicas 2 --pool "$three"
expect_success volume import db data --pool "$three"

# A signal ends it in order. It opens the volume once to ask whether the server has anything, and once
# to move that. One that was done before the signal came is tried once more.
status=0
for ((round = 0; round < 20 && status == 0; round++)); do
	"$rdmabox" volume remove-server db "$address" --pool "$three" >out 2>err &
	command_pid=$!
	while [ "$(grep -c "volume db: opened by .*process $command_pid\$" "$log")" -lt 2 ] &&
		kill -0 "$command_pid" 2>/dev/null; do
		:
	done
	kill -TERM "$command_pid" 2>/dev/null
	wait "$command_pid"
	status=$?
	[ "$status" != 0 ] || expect_success volume add-server db "$address" --pool "$three"
	[ "$status" != 0 ] || expect_success volume import db data --pool "$three"
done
[ "$status" = 143 ] || { show; fault "a removal and SIGTERM: exit code $status"; }
grep -q 'remove-server: interrupted' err || { show; fault "it does not say that it was interrupted"; }
expect_success volume export db copy --pool "$three"
cmp -s -n 48M data copy || fault "a removal that was interrupted leaves other contents"
