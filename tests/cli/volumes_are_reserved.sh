#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdmabox volume create --reserve: the volume has the memory of all its slabs or is not made, a
# grow reserves as well, writes find their memory when there is none left, and a command that is
# killed in the middle leaves nothing.

. "$(dirname "$0")/rdmabox.sh"

servers=
for rack in a b b; do
	start_server --memory 64M --slab 4M --label "rack=$rack"
	servers+=${servers:+,}$address
done
cd "$scratch" || exit 1

# volume COMMAND ARGUMENT...
volume()
{
	expect_success volume "$@" --pool "$servers"
}

# refused PATTERN COMMAND ARGUMENT...
refused()
{
	expect_refusal "$1" volume "${@:2}" --pool "$servers"
}

lent_of()
{
	"$rdmabox" stat "$1" | awk '$1 == "slabs_lent" { print $2 }'
}

lent()
{
	local each count=0

	for each in ${servers//,/ }; do
		count=$((count + $(lent_of "$each")))
	done
	echo "$count"
}

# expect_lent COUNT WHEN - soon: memory that goes back is emptied first
expect_lent()
{
	local attempt

	for ((attempt = 0; attempt < 300; attempt++)); do
		[ "$(lent)" != "$1" ] || return 0
		sleep 0.1
	done
	fault "$2: $(lent) slabs are lent, not $1"
}

# reserved NAME BYTES
reserved()
{
	volume show "$1" --json
	[ "$(key reserved_bytes)" = "$2" ] || { show; fault "volume $1 has not $2 bytes reserved"; }
}

# ---- all of it, or nothing -----------------------------------------------------------------

volume create safe --size 30M --replicas 2 --reserve
[ ! -s out ] && [ ! -s err ] || { show; fault "create --reserve is not silent"; }
expect_lent 16 'eight slabs with two replicas'
[ "$(lent_of "${servers%%,*}")" = 8 ] || fault "not each slab has a replica in rack a"
reserved safe 67108864
volume show safe
grep -qE '^ +reserved_bytes +67108864$' out || { show; fault "show does not say what is reserved"; }
volume create plain --size 30M
reserved plain 0
expect_lent 16 'a volume that is not reserved'
refused 'volume more: its servers have not enough memory free; .*to be reserved: 132 MiB, 1 copy, in slabs of 4 MiB; .* has 32 MiB free; .* has 48 MiB free; ' \
	create more --size 132M --reserve
refused 'no such volume' show more
refused 'not enough memory' create more --size 64M --replicas 3 --reserve
expect_lent 16 'after refusals'

# A grow as well. One that is refused changes nothing.
volume grow safe --size 31M
expect_lent 16 'a grow within the last slab'
volume grow safe --size 40M
expect_lent 20 'a grow by two slabs'
reserved safe 83886080
refused 'volume safe: its servers have not enough memory free; .*to be reserved: 60 MiB, 2 copies' \
	grow safe --size 100M
expect_lent 20 'after a grow that was refused'
reserved safe 83886080

# ---- writes find their memory ---------------------------------------------------------------

volume create rest --size 112M --reserve
expect_lent 48 'all that there is'
head -c 40M /dev/urandom >data
volume import safe data
volume import rest data
run volume import plain data --pool "$servers"
[ "$status" != 0 ] || fault "a volume without memory takes data"
volume export safe copy
cmp data copy || fault "the reserved volume reads something else"
volume export rest copy
cmp -n 41943040 data copy || fault "the other one reads something else"
cmp -n 75497472 <(tail -c +41943041 copy) /dev/zero || fault "what was not written is not zeros"
volume remove rest
volume remove plain
expect_lent 20 'when they are removed'

# A client that dies while it writes.
"$rdmabox" bench --pool "$servers" --volume-name safe --op write --runtime 100 >bench 2>&1 &
writer=$!
server_pids+=("$writer")
for ((attempt = 0; attempt < 300; attempt++)); do
	volume show safe --json
	[ "$(key is_open)" != True ] || break
	sleep 0.1
done
kill -KILL "$writer"
wait "$writer"
volume export safe copy --take-over
expect_lent 20 'after a crash'
volume remove safe
expect_lent 0 'when all is removed'

# ---- killed in the middle --------------------------------------------------------------------

servers=
for _ in 1 2; do
	start_server --memory 512M --slab 64K
	servers+=${servers:+,}$address
done

# killed COMMAND ARGUMENT... - once it has borrowed more than $1 slabs
killed()
{
	local attempt pid former=$1

	shift
	"$rdmabox" volume "$@" --pool "$servers" >out.killed 2>&1 &
	pid=$!
	server_pids+=("$pid")
	for ((attempt = 0; attempt < 3000; attempt++)); do
		[ "$(lent)" -le "$former" ] || break
		kill -0 "$pid" 2>/dev/null || fault "volume $*: is over before it is killed"
	done
	kill -KILL "$pid" || fault "volume $*: is over before it is killed"
	wait "$pid"
}

killed 0 create db --size 1000M --reserve
refused 'there is no volume db' remove db
volume create db --size 1M --reserve # the next one has the name at once
expect_lent 16 'after a create that was killed'
reserved db 1048576

killed 16 grow db --size 1000M
volume show db --json
[ "$(key volume_bytes)" = 1048576 ] || { show; fault "it has grown"; }
head -c 1M data >small
volume import db small --take-over
expect_lent 16 'after a grow that was killed'
volume grow db --size 2M
expect_lent 32 'the next grow'
volume export db copy
cmp -n 1048576 small copy || fault "after grows it reads something else"

# ---- a server with a memory file -----------------------------------------------------------

start_server --memory 64M --slab 4M --memory-file "$scratch/memory"
servers=$address
volume create kept --size 16M --reserve
kill -KILL "$pid"
wait "$pid"
start_server --memory 64M --slab 4M --memory-file "$scratch/memory"
servers=$address
[ "$(lent)" = 4 ] || fault "the server that was killed has forgotten what is reserved"
volume export kept copy
cmp -n 16777216 copy /dev/zero || fault "what was reserved is not zeros"
