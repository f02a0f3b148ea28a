#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The commands of the README do what it says, as they stand there, in one shell. Only the ports of
# its servers are others, and what makes a build or installs it is left out: demo_shows_what_it_says.sh
# and tests/tidy/install have that.

. "$(dirname "$0")/rdmabox.sh"

page=$(readlink -f "$(dirname "$0")/../../README.md")
cd "$scratch" || exit 1

ports=$(python3 -c 'import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(5)]
print(*(s.getsockname()[1] for s in sockets))')
read -r first second third fourth fifth <<<"$ports"
awk '/^## A program/ { section = 1 }
	section && /^```sh$/ { on = 1; next }
	/^```$/ { on = 0 }
	on' "$page" | sed "s/7471/$first/g; s/7472/$second/g; s/7473/$third/g; s/7474/$fourth/g
		s/7475/$fifth/g; s|&& ./hello\$|& 127.0.0.1:$first|" >commands
[ "$(grep -c '^```sh$' "$page")" = 4 ] || fault "there are other parts: run them here, too"
grep -q '^rdmabox serve ' commands || fault "the first server is not found"
[ "$(grep -c '^rdmabox volume' commands)" = 4 ] || fault "the commands are not found"

# What was started ends with the script. The programs are there: tests/tidy/install compiles as the
# page says.
cat - commands >script <<-END
	cc() { ln -s "$build/examples/\$3" .; }
	pkg-config() { :; }
	trap 'kill -KILL \$(jobs -p) 2>/dev/null' EXIT
END
PATH=$build/cli:$PATH timeout --kill-after 5 "$limit_s" bash script >out 2>err </dev/null
status=$?
[ "$status" = 0 ] || { show; fault "exit code $status"; }
[ "$(stat -c %s copy)" = 67108864 ] || fault "nothing was exported"
[ -n "$(tr -d '\0' <copy | head -c 1)" ] || fault "what the program wrote is not there"
grep -q '^hello, remote memory$' out || { show; fault "the first program does not say hello"; }
grep -q '^run 2$' out || { show; fault "the program does not find its count again"; }
for line in 'servers  *4' 'servers_there  *4' 'servers_out  *0'; do
	grep -qE "^ +$line\$" out || { show; fault "nothing says: $line"; }
done
