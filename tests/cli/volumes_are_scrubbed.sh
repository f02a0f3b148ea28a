#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdmabox volume scrub: pages that were damaged in the memory of one server are found and repaired
# from the other; a page that is damaged at both is told, and is an error until it is written.

. "$(dirname "$0")/rdmabox.sh"

memory=$(mktemp -d /dev/shm/rdmabox-cli.XXXXXX) || exit 1
leftovers+=("$memory")
cd "$scratch" || exit 1

# start NUMBER - a server with a memory file
start()
{
	start_server --memory 16M --slab 4M --memory-file "$memory/$1"
}

# page_of NUMBER PAGE - where the undamaged page is in the memory of a server
page_of()
{
	python3 - "$memory/$1" data "$2" <<-'END'
		import sys
		memory, data, page = sys.argv[1], sys.argv[2], int(sys.argv[3])
		with open(data, "rb") as file:
		    file.seek(4096 * page)
		    wanted = file.read(4096)
		with open(memory, "rb") as file:
		    at = file.read().find(wanted)
		if at < 0:
		    sys.exit(1)
		print(at)
	END
}

# damage NUMBER PAGE - in the memory of a server
damage()
{
	local at

	at=$(page_of "$1" "$2") || fault "page $2 of server $1 is not there"
	printf damaged | dd of="$memory/$1" bs=1 seek=$((at + 100)) conv=notrunc status=none
}

# scrubs STATUS PATTERN OPTION... - what it says
scrubs()
{
	local expected=$1 pattern=$2

	shift 2
	run volume scrub db --pool "$servers" "$@"
	[ "$status" = "$expected" ] || { show; fault "scrub $*: exit code $status"; }
	grep -qE "$pattern" out || { show; fault "scrub $* does not say $pattern"; }
}

start 0
servers=$address
start 1
servers+=,$address
expect_success volume create db --size 8M --replicas 2 --checksums --pool "$servers"
head -c 8M /dev/urandom >data
expect_success volume import db data --pool "$servers"
scrubs 0 '^8388608 bytes: 0 damaged pages were repaired$'

# Different pages of one request at different servers.
damage 0 3
damage 1 4
damage 1 1500
scrubs 0 '^4194304 bytes: 1 damaged pages were repaired$' --from 4M
scrubs 0 '^8388608 bytes: 2 damaged pages were repaired$'
scrubs 0 '^8388608 bytes: 0 damaged pages were repaired$' --rate 64M
expect_success volume export db copy --pool "$servers"
cmp data copy || fault "other contents after a scrub"

# One that is interrupted says where to go on.
damage 0 0
damage 0 2047
"$rdmabox" volume scrub db --rate 64K --pool "$servers" >out 2>err &
scrubber=$!
until page_of 0 0 >page; do
	kill -0 $scrubber || { show; fault "the first page was not repaired"; }
	sleep 0.05
done
kill -INT $scrubber
wait $scrubber
status=$?
[ "$status" = 130 ] || { show; fault "scrub that is interrupted: exit code $status"; }
from=$(sed -n 's/.*: interrupted; go on with --from \([0-9]*\)$/\1/p' err)
[ "${from:-0}" -gt 0 ] && [ "$from" -lt 8388608 ] || { show; fault "does not say where to go on"; }
scrubs 0 "^$((8388608 - from)) bytes: 1 damaged pages were repaired\$" --from "$from"

damage 0 7
damage 1 7
scrubs 1 '^damaged at all servers: bytes 28672 to 32767$'
run volume export db copy --pool "$servers"
[ "$status" != 0 ] || fault "a damaged page was exported"
expect_success volume import db data --pool "$servers"
scrubs 0 ' 0 damaged pages '

expect_refusal 'no multiple of 4096' volume scrub db --pool "$servers" --from 100
expect_success volume create plain --size 4M --replicas 2 --pool "$servers"
run volume scrub plain --pool "$servers"
[ "$status" = 2 ] || { show; fault "scrub of a volume without checksums: exit code $status"; }
grep -q checksums err || { show; fault "does not say that it has no checksums"; }
