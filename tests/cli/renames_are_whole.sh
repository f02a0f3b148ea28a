#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdmabox volume rename: a volume has its new name or its old one at all servers, also if the
# command is killed at any moment, and it is never taken for two.

. "$(dirname "$0")/rdmabox.sh"

cd "$scratch" || exit 1
servers=
for _ in 1 2 3; do
	start_server --memory 64M --slab 1M --lease 5000
	servers+=${servers:+,}$address
done

# volume COMMAND... - must succeed
volume()
{
	expect_success volume "$@" --pool "$servers"
}

# refused PATTERN COMMAND...
refused()
{
	expect_refusal "$1" volume "${@:2}" --pool "$servers"
}

head -c 3M /dev/urandom >data
volume create one --size 3M
volume import one data
volume rename one two
volume export two copy
cmp -s data copy || fault "a volume has other contents under its new name"
refused 'there is no volume one' export one none
volume create one --size 1M

# ---- what is refused ----------------------------------------------------------------------

refused 'there is a volume of this name' rename two one
refused 'no new name' rename two
refused 'no name' rename
refused 'the new name is the one' rename two two
refused 'cannot have the name "a/b"' rename two a/b
refused 'there is no volume three' rename three four
expect_refusal 'too few are left to change it' volume rename two three --pool "$address"
volume remove one
volume list
[ "$(wc -l <out)" = 2 ] && grep -q '^two .* 3/3 ' out || { show; fault "a refused rename changes something"; }

# ---- killed -------------------------------------------------------------------------------

# listed - the name of the only volume, which all servers have
listed()
{
	volume list --json
	python3 -c '
import json, sys
volume, = json.load(open("out"))["volumes"]
assert volume["servers_there"] == 3, volume
print(volume["name"])'
}

has=two
wanted=three
happened=0
for ((round = 0; round < 30; round++)); do
	"$rdmabox" volume rename "$has" "$wanted" --pool "$servers" >killed.out 2>&1 &
	killed=$!
	sleep "$(printf 0.0%02d $((RANDOM % 40)))" # another moment each time
	kill -KILL "$killed" 2>/dev/null
	wait "$killed" 2>/dev/null
	name=$(listed) || { show; fault "not one volume on all servers"; }
	[ "$name" = "$has" ] || [ "$name" = "$wanted" ] || fault "it has the name $name"
	[ "$name" = "$has" ] || happened=$((happened + 1))
	# For its servers the command may only be slow.
	volume export "$name" copy --take-over
	cmp -s data copy || fault "it has other contents after a rename that was killed"
	[ "$(listed)" = "$name" ] || fault "its name has changed since it was opened"
	for each in ${servers//,/ }; do
		expect_success volume show "$name" --pool "$each"
	done
	[ "$name" = two ] && other=three || other=two
	volume create "$other" --size 1M
	volume remove "$other"
	has=$name
	wanted=$other
done
echo "$happened of 30 renames that were killed had happened"

# Without taking it over: when the lease of a command that was killed is over.
"$rdmabox" volume rename "$has" "$wanted" --pool "$servers" >killed.out 2>&1 &
killed=$!
sleep 0.02
kill -KILL "$killed" 2>/dev/null
wait "$killed" 2>/dev/null
name=$(listed)
for ((attempt = 0; attempt < 20 * limit_s; attempt++)); do
	run volume rename "$name" last --pool "$servers"
	[ "$status" = 2 ] && grep -q 'is open by' err || break
	sleep 0.05
done
[ "$status" = 0 ] || { show; fault "exit code $status"; }
[ "$(listed)" = last ] || fault "a rename after one that was killed has not happened"
