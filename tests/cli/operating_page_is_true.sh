#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The commands of docs/operating-a-pool.md do what the page says, as they stand there. Only the
# ports of its servers are others.

. "$(dirname "$0")/rdmabox.sh"

# Its commands wait for what they did, with many processes at once: on a machine with a load of 20
# that takes two minutes.
limit_s=240
page=$(readlink -f "$(dirname "$0")/../../docs/operating-a-pool.md")
cd "$scratch" || exit 1

# Of the same remainder, for the racks.
ports=$(python3 -c 'import socket
sockets, ports = [], {}
while len(ports) < 5:
    sockets.append(socket.create_server(("127.0.0.1", 0)))
    port = sockets[-1].getsockname()[1]
    for one in range(7471, 7476):
        if one not in ports and one % 3 == port % 3:
            ports[one] = port
            break
print(*(ports[one] for one in sorted(ports)))')
read -r -a ports <<<"$ports"
awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$page" |
	sed "s/7471/${ports[0]}/g; s/7472/${ports[1]}/g; s/7473/${ports[2]}/g; s/7474/${ports[3]}/g
		s/7475/${ports[4]}/g; s/sleep 1;/sleep 0.1;/" >commands
[ "$(grep -c '^rdmabox volume' commands)" -ge 10 ] || fault "the commands are not found"

# What fails is noted with its exit code. All that was started ends with the script.
cat - commands >script <<-'END'
	set -m
	trap 'kill -KILL $(jobs -p) 2>/dev/null' EXIT
	trap 'echo "$? $BASH_COMMAND" >>failed' ERR
END
PATH=$build/cli:$PATH timeout --kill-after 5 "$limit_s" bash script >out 2>err </dev/null
status=$?
[ "$status" = 0 ] || { show; tail -n 3 out err failed >&2; cat bench.log; fault "exit code $status"; }

# says COUNT TEXT - so many lines of the output do
says()
{
	[ "$(grep -cE "$2" out)" = "$1" ] || { cat out err failed >&2; fault "not $1 lines: $2"; }
}

# The last status finds a server away, and the second bench was shut out. The first one was ended
# by us, and has found no error.
cat - >expected <<-'END'
	1 rdmabox pool status file:servers
	1 wait $(cat bench.pid)
END
cmp -s failed expected || { cat failed err >&2; fault "other commands fail"; }
# Two servers of a rack were given up, and no slab was lost with them.
says 2 '^  gone +[0-9a-f]{16}$'
# Nothing of the page writes to the volume after the import.
for copy in moved backup kept; do
	cmp -s "$copy" data || fault "$copy is not what was imported"
done
# After the upgrade; with one more and one out; without that one.
says 2 '^  servers +4$'
says 1 '^  servers +5$'
says 3 '^  servers_out +0$'
says 1 '^  servers_out +1$'
says 1 "^  member +[0-9a-f]{16}  out      -$"
