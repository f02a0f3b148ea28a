#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A pool with a server away: volumes are listed and shown, grow and get another name, and the server
# learns of it when it is back. A name is never that of two volumes without being told. What the
# servers could never hold is refused.

. "$(dirname "$0")/rdmabox.sh"

memory=$(mktemp -d /dev/shm/rdmabox-cli.XXXXXX) || exit 1
leftovers+=("$memory")
cd "$scratch" || exit 1
addresses=()
pids=()

# start NUMBER - a server that remembers, at the address that it had
start()
{
	start_server --listen "${addresses[$1]:-$host:0}" --memory 64M --slab 1M --lease 5000 \
		--memory-file "$memory/$1"
	addresses[$1]=$address
	pids[$1]=$pid
}

end()
{
	kill -KILL "${pids[$1]}"
	wait "${pids[$1]}" 2>/dev/null
}

# volume COMMAND... - must succeed
volume()
{
	expect_success volume "$@" --pool "$servers"
}

# refused PATTERN COMMAND... - servers that are away are told of, too
refused()
{
	run volume "${@:2}" --pool "$servers"
	[ "$status" = 2 ] && grep -qE -- "$1" err || { show; fault "volume ${*:2}: does not say $1"; }
}

# told - the last command has said that the third server is away
told()
{
	grep -qE "^rdmabox volume [a-z]+: ${addresses[2]} is away.*: .*onnect" err &&
		[ "$(wc -l <err)" = 1 ] || { show; fault "does not say which server is away"; }
}

# there NAME
there()
{
	volume export "$1" copy
	cmp data copy || fault "volume $1 has other contents"
}

for number in 0 1 2; do
	start "$number"
done
servers=$(IFS=,; echo "${addresses[*]}")
first_two=${addresses[0]},${addresses[1]}
head -c 3M /dev/urandom >data
volume create one --size 3M --replicas 2
volume import one data
volume create whole --size 2M --replicas 2 --reserve
expect_success volume create alone --size 1M --pool "${addresses[1]},${addresses[2]}"
volume list
[ ! -s err ] || { show; fault "all servers are there"; }
[ "$(grep -c ' 3/3  all \| 2/2  all ' out)" = 3 ] || { show; fault "not three volumes with all servers"; }

# ---- away: what there is is shown ---------------------------------------------------------------

end 2
volume list
told
grep -qE '^one .* 2/3  lacking  -$' out && grep -qE '^alone .* 1/2  too-few  -$' out ||
	{ show; fault "list"; }
volume list --json
told
python3 -c '
import json, sys
found = json.load(open("out"))
away, = found["servers_away"]
assert away["address"] == sys.argv[1] and "onnect" in away["error"], away
assert {v["name"]: v["too_few"] for v in found["volumes"]} == \
    {"alone": True, "one": False, "whole": False}, found' "${addresses[2]}" || fault "list --json"
volume show one
told
grep -q '^  servers_there *2$' out && grep -q '^  too_few *no$' out &&
	[ "$(grep -c '^  member .* missing  *-$' out)" = 1 ] || { show; fault "show"; }
volume show alone --json
told
[ "$(key too_few)" = True ] || { show; fault "show --json"; }
python3 -c 'import json; assert len(json.load(open("out"))["servers_away"]) == 1' || fault "show --json"

# ---- grow ---------------------------------------------------------------------------------------

volume grow one --size 4M
told
truncate -s 4M data
refused 'may have left some' grow whole --size 4M
refused 'too few are left to change it' grow alone --size 2M
start 2
volume list
[ ! -s err ] && [ "$(grep -c '  4 MiB .* 3/3  all ' out)" = 1 ] ||
	{ show; fault "the size is not what was chosen"; }
there one
volume grow whole --size 4M

# ---- rename: the server that was away has the former name ------------------------------------------

end 2
volume rename one two
told
volume show two
start 2
volume list
grep -qE '^two .* 3/3  all ' out && ! grep -q '^one ' out || { show; fault "two names"; }
refused 'there is no volume one' remove one
refused 'there is no volume one' export one copy
refused 'there is no volume one' rename one three
# Who gives the same command again finishes it.
volume rename one two
there two
volume create one --size 1M
volume remove one

# Another volume gets the former name, when nobody needs it any more.
end 2
volume rename two three
there three
expect_success volume create two --size 1M --replicas 2 --pool "$first_two"
head -c 1M /dev/urandom >other
expect_success volume import two other --pool "$first_two"
start 2
volume export two copy
cmp other copy || fault "the volume that has the name now is not found"
there three
volume remove two

# Another volume gets the new name, at the server that is away.
end 2
volume rename three four
start 2
expect_success volume create four --size 1M --pool "${addresses[2]}"
refused 'there are two volumes four' export four copy
refused 'there are two volumes four' remove four
expect_success volume rename four five --pool "${addresses[2]}"
there four
volume remove five

# A server that is none of the volume's may have a volume of any name.
start 3
end 3
run volume rename four five --pool "$servers,${addresses[3]}"
[ "$status" = 2 ] && grep -q "${addresses[3]} is away .* may be none of the servers of volume four" err ||
	{ show; fault "renamed without a server that may have the name"; }
volume list
grep -q '^four ' out || { show; fault "a refused rename changes something"; }

# ---- removal: the server that was away gives its memory back when it is asked --------------------

volume create gone --size 2M --replicas 2
volume import gone other
end 2
refused "${addresses[2]}: .*(to make the volume without it, name the others)" create four --size 1M
volume remove gone
told
refused 'there is no volume gone on the servers that answer; it may be on those that do not' remove gone
start 2
volume list
grep -q '^gone ' out && { show; fault "a removed volume is listed"; }
refused 'there is no volume gone on these servers' export gone copy
refused 'there is no such volume' show gone
there four

# ---- too few ------------------------------------------------------------------------------------------

end 1
end 2
volume list
grep -qE '^four .* 1/3  too-few ' out || { show; fault "one of three is too few"; }
refused 'too few are left to change it' grow four --size 8M
refused 'too few are left to change it' rename four five
refused 'too few are left to remove it' remove four
end 0
refused 'onnect' list
refused 'onnect' show four
start 0
start 1
start 2
there four

# ---- larger than the pool -----------------------------------------------------------------------------

expect_refusal 'its 3 servers that are there have 192 MiB in all.*--overcommit' volume create vast \
	--size 193M --pool "$servers"
expect_refusal '97 MiB with 2 copies can never be written in full' volume create vast --size 97M \
	--replicas 2 --pool "$servers"
volume create vast --size 96M --replicas 2
refused '--overcommit' grow vast --size 97M
volume grow vast --size 1G --overcommit
volume grow vast --size 1G
refused '--overcommit' grow vast --size 1025M
volume show vast
grep -q '^  volume_bytes *1073741824$' out || { show; fault "a refused grow changes something"; }
volume remove vast
volume create vast --size 1T --overcommit
there four
