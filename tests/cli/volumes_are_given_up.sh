#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Two of five servers of a volume with two replicas are gone while no program has it open: it cannot be
# opened before an operator says that these will not come back, and only these: not one that does not
# answer for a moment, or that the list leaves out. Then all is read that has a copy; the rest
# is an I/O error, never zeros and never old, also when they are back with their memory, until it is
# made zeros. One of two servers is gone: the other one goes on, if it is forced to.

. "$(dirname "$0")/rdmabox.sh"

slab=$((1 << 20))
cd "$scratch" || exit 1

# start NAME [LISTEN] - a server with a memory file
start()
{
	start_server ${2:+--listen "$2"} --memory 64M --slab 1M --memory-file "$1"
}

addresses=()
for i in 0 1 2 3 4; do
	start m$i
	addresses+=("$address")
done
servers=$(IFS=,; echo "${addresses[*]}")

# lost_ranges - as the last command has told them
lost_ranges()
{
	awk '/^slabs that no server has/ { on = 1; next } /^[^ ]/ { on = 0 } on { print $1, $2 }' out
}

# gone_ids - as the last command has told them, for --gone
gone_ids()
{
	awk '$1 == "gone" { print $2 }' out | paste -sd,
}

# ---- 2 of 5 ------------------------------------------------------------------------------------

head -c 60M /dev/urandom >data
expect_success volume create db --size 64M --replicas 2 --pool "$servers"
expect_success volume import db data --pool "$servers"
kill -KILL "${server_pids[3]}" "${server_pids[4]}"
wait "${server_pids[3]}" "${server_pids[4]}" 2>/dev/null
left=${addresses[0]},${addresses[1]},${addresses[2]}

expect_refusal 'lacks 2 of its servers \(.{16}, .{16}\).*give-up' \
	volume export db copy --pool "$servers"
expect_success volume give-up db --pool "$servers"
gone=$(gone_ids)
[ "$(grep -c ' gone ' out)" = 2 ] || { show; fault "does not tell who is gone"; }
grep -q 'nothing was changed' out || { show; fault "does not say that nothing was changed"; }
command=$(grep '^  rdmabox volume give-up' out)
lost_ranges >lost
[ -s lost ] || { show; fault "does not tell what is lost"; }
expect_refusal 'lacks 2 of its servers' volume export db copy --pool "$servers"

# Others are missing than the operator has seen, or the list leaves them out, or one is there.
away=${servers/${addresses[2]}/127.0.0.1:1}
expect_refusal 'is not there either' volume give-up db --gone "$gone" --pool "$away"
expect_refusal 'is not there either' volume give-up db --gone "${gone%,*}" --pool "$servers"
expect_refusal '2 of them are not among those given' volume give-up db --gone "$gone" --pool "$left"
expect_success volume give-up db --pool "$left"
grep -q '^2 of them are not among those of --pool' out || { show; fault "does not tell who was not named"; }
grep -q 'rdmabox volume give-up' out && { show; fault "tells a command that will be refused"; }
expect_success volume give-up db --pool "$away"
there=$(comm -23 <(gone_ids | tr , '\n' | sort) <(tr , '\n' <<<"$gone" | sort) | head -n 1)
expect_refusal "server $there is there" volume give-up db --gone "$gone,$there" --pool "$servers"
expect_refusal '16 digits' volume give-up db --gone "${gone%?}" --pool "$servers"
expect_refusal '0123456789abcdef is none of its servers' \
	volume give-up db --gone "$gone,0123456789abcdef" --pool "$servers"
[ "$(shown servers "$left")" = 5 ] || { show; fault "a refusal has changed the volume"; }

PATH=$build/cli:$PATH timeout "$limit_s" bash -c "$command" >out 2>err || { show; fault "$command"; }
grep -q 'goes on without 2 servers' out || { show; fault "does not say what it has done"; }
expect_success volume give-up db --gone "$gone" --pool "$servers"
grep -q 'none of those was given up now' out || { show; fault "it does not say that nothing was to be done"; }
[ "$(shown servers "$left")" = 3 ] && [ "$(shown is_lost "$left")" = True ] ||
	{ show; fault "not given up"; }
expect_refusal 'clear-lost' volume grow db --size 68M --pool "$left"
expect_success volume list --pool "$left"
grep -qE '^db .* 3/3 +lost ' out || { show; fault "the list does not say that slabs are lost"; }
expect_success pool status "$left"
grep -qx 'db has lost slabs: see rdmabox volume clear-lost' out ||
	{ show; fault "the pool does not say that slabs are lost"; }

# expect_lost POOL - a part cannot be read, and the same
expect_lost()
{
	run volume export db copy --pool "$1"
	[ "$status" = 1 ] || { show; fault "exit code $status: what is lost was read"; }
	grep -qE "failed at byte $(head -n 1 lost | cut -d ' ' -f 1): .*clear-lost tells which" err ||
		{ show; fault "the export does not say what it could not read"; }
	expect_success volume clear-lost db --pool "$1"
	lost_ranges | cmp - lost || { show; fault "other slabs are lost"; }
}

expect_lost "$left"
for i in 3 4; do
	start m$i "${addresses[i]}"
done
expect_lost "$servers"
[ "$(shown servers "$left")" = 3 ] || { show; fault "those given up are servers again"; }

expect_success volume clear-lost db --yes --pool "$left"
[ "$(shown is_lost "$left")" = False ] || { show; fault "not cleared"; }

# What was lost is zeros, and all else as it was.
cp data wanted
truncate -s 64M wanted
while read -r from behind; do
	dd if=/dev/zero of=wanted bs=$slab seek=$((from / slab)) count=$(((behind - from) / slab)) \
		conv=notrunc status=none
done <lost
cmp -s -n $((60 << 20)) data wanted && fault "nothing was lost: this test shows nothing"
expect_success volume export db copy --pool "$servers"
cmp wanted copy || fault "other contents"

expect_success volume add-server db "${addresses[3]},${addresses[4]}" --pool "$servers"
expect_success volume import db data --pool "$servers"
truncate -s 64M data
expect_success volume export db copy --pool "$servers"
cmp data copy || fault "other contents with servers that have come back"
[ "$(shown servers "$left")" = 5 ] || { show; fault "they were not taken in"; }

# ---- a rack ------------------------------------------------------------------------------------

# All that is in it is elsewhere, too. So nothing is lost, but a volume that is not full cannot know.
racks=()
for rack in 1 2 1 0 0; do
	start_server --memory 16M --slab 1M --label rack=$rack
	racks+=("$address")
done
rack_pids=("${server_pids[@]: -2}")
servers=$(IFS=,; echo "${racks[*]}")
expect_success volume create racks --size 8M --replicas 2 --pool "$servers"
head -c 8M data | expect_success volume import racks - --pool "$servers"
kill -KILL "${rack_pids[@]}"
expect_success volume give-up racks --pool "$servers"
expect_success volume give-up racks --gone "$(gone_ids)" --pool "$servers"
left=${racks[0]},${racks[1]},${racks[2]}
head -c 8M data >wanted
expect_success volume export racks copy --pool "$left"
cmp wanted copy || fault "a rack is lost, and with it what was there"
expect_success volume clear-lost racks --pool "$left"
grep -q 'each slab was found, so no byte is lost' out || { show; fault "something is said to be lost"; }
expect_success volume clear-lost racks --yes --pool "$left"
expect_success volume show racks --json --pool "$left"
[ "$(key is_lost)" = False ] || { show; fault "it is still said to be lost in part"; }

# ---- 1 of 2 ------------------------------------------------------------------------------------

start m5
two=$address
start m6
left=$address
expect_success volume create two --size 16M --replicas 2 --pool "$two,$left"
head -c 16M data | expect_success volume import two - --pool "$two,$left"
kill -KILL "${server_pids[-2]}"
expect_refusal 'too few of its servers.*give-up' volume export two copy --pool "$two,$left"
# opened - how often the server that is left was opened: each time uses an epoch up
opened()
{
	cat "$scratch/server.$((${#server_pids[@]} - 1))"* | grep -c 'volume two: opened by'
}

before=$(opened)
[ "$before" -gt 0 ] || fault "the server does not log who opens a volume: this test shows nothing"
expect_success volume give-up two --pool "$two,$left"
gone=$(gone_ids)
grep -q -e '--force' out || { show; fault "does not say that it needs --force"; }
expect_refusal 'may be old' volume give-up two --gone "$gone" --pool "$two,$left"
[ "$(opened)" = "$before" ] || fault "what tells or refuses has opened the volume"
expect_success volume give-up two --gone "$gone" --force --pool "$two,$left"
expect_success volume export two copy --pool "$left"
cmp -n $((16 << 20)) data copy || fault "other contents of the volume with one server left"
