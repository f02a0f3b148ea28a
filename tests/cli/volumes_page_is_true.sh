#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The commands of docs/volumes.md do what the page says, as they stand there. Only the ports of
# its servers are others.

. "$(dirname "$0")/rdmabox.sh"

page=$(readlink -f "$(dirname "$0")/../../docs/volumes.md")
cd "$scratch" || exit 1

ports=$(python3 -c 'import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(5)]
print(*(s.getsockname()[1] for s in sockets))')
read -r first second third fourth fifth <<<"$ports"
# The reader waits for the servers of a block.
awk '/^```sh$/ { on = 1; next }
	on && /^```$/ { on = 0; if (count != waited) print "servers_wait", waited = count }
	on && /^rdmabox serve / { count++ }
	on' "$page" |
	sed "s/:7471/:$first/g; s/:7472/:$second/g; s/:7473/:$third/g; s/:7474/:$fourth/g; s/:7475/:$fifth/g" >commands
[ "$(grep -c '^rdmabox volume' commands)" -ge 8 ] || fault "the commands are not found"

# What fails is noted with its exit code. All that was started ends with the script.
cat - commands >script <<-END
	set -m
	trap 'kill -KILL \$(jobs -p) 2>/dev/null' EXIT
	trap 'echo "\$? \$BASH_COMMAND" >>failed' ERR
	servers_wait()
	{
		until [ "\$(grep -c '^ready ' out)" = "\$1" ]; do sleep 0.05; done
	}
END
PATH=$build/cli:$PATH timeout --kill-after 5 "$limit_s" bash script >out 2>err </dev/null
status=$?
[ "$status" = 0 ] || { show; fault "exit code $status"; }

# says TEXT FILE
says()
{
	grep -qE "$1" "$2" || { show; fault "nothing says: $1"; }
}

[ "$(wc -l <failed)" = 1 ] || { cat failed; show; fault "not one command fails"; }
# shellcheck disable=SC2016 # as it stands
says '^2 rdmabox volume export scratch copy --pool \$servers$' failed
says '^scratch +256 MiB +ever +3/3 +all +-$' out
says '^scratch +512 MiB +ever +4/4 +all +-$' out
says '^rdmabox volume export: volume scratch is open by .*, process [0-9]+; .*--take-over' err
says '^volume results$' out
says '^ +lent_bytes +0 ' out
says '^  servers_out +1$' out
says '^killed$' out
cmp copy <(head -c 64M data) || fault "the server that was killed has other contents"
