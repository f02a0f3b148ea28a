#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdmabox serve --config: what a file may say and what goes before it; SIGHUP takes over
# memory, quota and secret, for clients that are there as for those that come, and changes
# nothing if anything in the file is wrong.

. "$(dirname "$0")/rdmabox.sh"

memory=$(mktemp -d /dev/shm/rdmabox-cli.XXXXXX) || exit 1
leftovers+=("$memory")
conf=$scratch/server.conf
example=$here/../../cli/serve/server.conf

# lines TEXT... - are the file
lines()
{
	printf '%s\n' "$@" >"$conf"
}

# refuse PATTERN LINE... - the file is refused, with the number of the line
refuse()
{
	local pattern=$1

	shift
	lines "$@"
	expect_refusal "$conf:$pattern" serve --config "$conf"
}

# tells PATTERN COUNT - waits for so many lines of the server's log
tells()
{
	local attempt

	for ((attempt = 0; attempt < 600; attempt++)); do
		[ "$(grep -cE "$1" "$log")" -ge "$2" ] && return
		sleep 0.05
	done
	cat "$log" >&2
	fault "the server does not tell: $1"
}

# start OPTION... - a server; sets its log as well
start()
{
	out=$scratch/server.${#server_pids[@]}
	log=$out.err
	start_server "$@"
}

# reload COUNT [not] - for the COUNTth time (of those that were refused)
reload()
{
	kill -HUP "$pid"
	tells "rdmabox serve: ${2:+not }reloaded: " "$1"
}

# lends COUNT - waits until the server lends so many slabs
lends()
{
	local attempt

	for ((attempt = 0; attempt < 600; attempt++)); do
		run stat --server "$address" --json --secret-file "${2:-$scratch/new}"
		[ "$status" = 0 ] || run stat --server "$address" --json
		[ "$status" = 0 ] && [ "$(key slabs_lent)" = "$1" ] && return
		sleep 0.05
	done
	show
	fault "the server does not lend $1 slabs"
}

# number NAME VALUE - of the server
number()
{
	run stat --server "$address" --json --secret-file "$scratch/new"
	[ "$status" = 0 ] || run stat --server "$address" --json
	[ "$status" = 0 ] || { show; fault "stat: exit code $status"; }
	[ "$(key "$1")" = "$2" ] || { show; fault "$1 is not $2"; }
}

# ---- What a file may say ---------------------------------------------------

lines 'listen = 127.0.0.1:0'
refuse '3: .*no such option; did you mean memory' 'listen = 127.0.0.1:0' '' 'memry = 64M'
refuse '1: .*no such option' 'nonsense = 1'
refuse '2: memory: .64X. is not accepted' '# a comment' 'memory = 64X'
refuse '2: memory: it was given above' 'memory = 64M' 'memory = 32M'
refuse '1: there are no sections' '[server]' 'memory = 64M'
refuse '1: there are no sections' $'\xef\xbb\xbf[server]' 'memory = 64M'
refuse '2: memory: .64X' $'\xef\xbb\xbflisten = 127.0.0.1:0' 'memory = 64X'
refuse '1: memory: .* a comment needs a line of its own' 'memory = 64M # all'
refuse '1: write name = value' 'memory 64M'
refuse '1: write name = value' 'listen 127.0.0.1:0' # not a name that ends at the colon
refuse '1: write name = value' 'memory 64M' 'slab = 1M' 'quota = 1M'
refuse '2: quota: .64X' 'memory 64M' 'quota = 64X' # one line, not one for each
refuse '1: overcommit: .maybe. is not accepted; give yes or no' 'overcommit = maybe'
refuse '4: memory: .64X' 'overcommit = true' 'small-pages = false' '' 'memory = 64X'
refuse '1: config: there is no such option' "config = $conf"
refuse '1: help: there is no such option' 'help = yes'
refuse '1: listen: ' 'listen ='
refuse '2: label: .rack. is not accepted; give NAME=VALUE' 'label = row=1' 'label = rack'
refuse '3: label: .row=2. is not accepted' 'label = row=1' 'label = rack=7' 'label = row=2'
refuse '2: listen: leave the quotes out' 'memory = 64M' 'listen = "127.0.0.1:0"'
refuse '2: the line is longer than 19. characters' 'memory = 64M' \
	"secret-file = /$(printf '%0300d' 7)"
refuse '1: memory: .64X' "$(printf '%-198s' 'memory = 64X')" # as long as a line may be
refuse '1: the line is longer than 198 characters' "$(printf '%-199s' 'memory = 64X')"
refuse '3: memory: .64X. is not accepted' "# $(printf '%0300d' 7)" '' '  memory = 64X'
expect_refusal "cannot open $scratch/none: No such file" serve --config "$scratch/none"
expect_refusal "cannot read $scratch: it is no regular file" serve --config "$scratch"
expect_refusal 'cannot read /dev/zero: it is no regular file' serve --config /dev/zero
mkfifo "$scratch/fifo"
expect_refusal 'it is no regular file' serve --config "$scratch/fifo"
printf 'memory = 64M\0 garbage\n' >"$conf"
expect_refusal 'it has a byte of zero' serve --config "$conf"
head -c 65537 /dev/zero | tr '\0' '\n' >"$conf"
expect_refusal 'it is longer than 64 KiB' serve --config "$conf"
head -c 65536 /dev/zero | tr '\0' '\n' >"$conf"
expect_refusal "no address; add listen = ADDR:PORT to $conf" serve --config "$conf"
# A secret that was taken for a configuration does not get into a log.
echo 'c2VjcmV0IHNlY3JldCBzZWNyZXQ=' >"$conf"
expect_refusal "$conf:1: there is no such option" serve --config "$conf"
! grep -q c2Vj "$scratch/err" || { show; fault "the secret is in the message"; }
echo 'sesameopenthedoorbecauseiamthesecretyouknow=' >"$conf"
expect_refusal "$conf:1: there is no such option" serve --config "$conf"
! grep -q sesame "$scratch/err" || { show; fault "the secret of letters is in the message"; }
lines 'memory = 64M'
expect_refusal "no address; add listen = ADDR:PORT to $conf" serve --config "$conf"
lines 'listen = 127.0.0.1:0'
expect_refusal "no memory; add memory = SIZE to $conf" serve --config "$conf"
expect_refusal 'no address; add --listen ADDR:PORT, or name a file' serve
lines 'listen = 127.0.0.1:0' 'memory = 64M' 'slab = 3M'
expect_refusal 'slab.* is not a power of two' serve --config "$conf"
lines 'listen = 127.0.0.1:0' 'memory = 1M' 'slab = 2M'
expect_refusal 'a slab of 2 MiB does not fit into 1 MiB of memory' serve --config "$conf"

# Each line of the example is right, also those that are commented out. Its memory file is of
# this test alone: what another run left there must not matter.
sed "s/^#\([a-z]\)/\1/; s/^listen.*/listen = 127.0.0.1:0/; s/^metrics.*/metrics = 127.0.0.1:0/
	s:^memory-file.*:memory-file = $memory/file:
	/^secret/d" "$example" >"$conf"
grep -q '^quota' "$conf" || fault "the example was not read"
start --config "$conf"
grep -q 'lending 1 GiB in slabs of 64 MiB.*metrics at' "$out" ||
	{ cat "$out"; fault "the example was not taken over"; }
kill -TERM "$pid"
wait "$pid"

# ---- What goes before it, and SIGHUP ----------------------------------------

(umask 077; head -c 32 /dev/urandom | base64 >"$scratch/old")
(umask 077; head -c 32 /dev/urandom | base64 >"$scratch/new")
cp -p "$scratch/old" "$scratch/secret"
lines "secret-file = $scratch/secret" 'memory = 1G' 'slab = 1M' 'small-pages = no' \
	'lease = 50000 ; in ms' 'quota = 4M' 'insecure = no'
start --config "$conf" --memory 8M
grep -q 'lending 8 MiB in slabs of 1 MiB' "$out" || {
	cat "$out"
	fault "the command line did not go before the file"
}

# A client that stays, with replaced secrets and limits; its data are verified.
"$rdmabox" bench --pool "$address" --secret-file "$scratch/old" --volume 4M --verify \
	--runtime 600 >"$scratch/bench" 2>&1 &
client=$!
server_pids+=("$client")
lends 4 "$scratch/old"

# The secret, in the same file.
cp -p "$scratch/new" "$scratch/secret"
reload 1
tells 'reloaded: lending 8 MiB, to one credential at most 4 MiB; the secret was read$' 1
expect_refusal 'secret' stat --server "$address" --secret-file "$scratch/old"
number slabs_lent 4
number memory_bytes $((8 << 20))

# The command line has the last word over the memory; the quota is the file's.
sed -i 's/^quota.*/quota = 2M/; s/^memory.*/memory = 64M/' "$conf"
reload 2
number memory_bytes $((8 << 20))
number slabs_lent 4
run bench --pool "$address" --secret-file "$scratch/new" --volume 4M --runtime 0.2
[ "$status" = 2 ] || { show; fault "the new quota does not hold"; }
grep -q 'quota' "$scratch/err" || { show; fault "the quota is not named"; }

# Whatever is wrong changes nothing.
cp "$conf" "$conf.good"
refused=0
for wrong in 'slab = 2M' 'lease = 800' 'insecure = yes' "secret-file = $scratch/none" \
	'memory = 1K' 'nonsense = 1' 'metrics = 127.0.0.1:0'; do
	{
		sed 's/^quota.*/quota = 8M/' "$conf.good" | grep -v "^${wrong%% *} "
		echo "$wrong"
	} >"$conf"
	refused=$((refused + 1))
	reload "$refused" not
	grep -B 1 'not reloaded: ' "$log" | tail -n 2 | grep -q -- "^rdmabox serve: .*${wrong%%[- ]*}" ||
		{ cat "$log" >&2; fault "with $wrong the log does not say why"; }
	run bench --pool "$address" --secret-file "$scratch/new" --volume 4M --runtime 0.2
	[ "$status" = 2 ] || { show; fault "with $wrong the quota was changed"; }
done
[ -z "$(find "/proc/$pid/fd" -lname "$conf*")" ] || fault "the file stays open after a reload"
cp "$conf.good" "$conf"
sed -i 's/^quota.*/quota = 8M/' "$conf"
reload 3
expect_success bench --pool "$address" --secret-file "$scratch/new" --volume 4M --runtime 0.2 \
	--verify
kill -INT "$client" # it ends as if its time were over
wait "$client"
status=$?
[ "$status" = 0 ] || { cat "$scratch/bench" >&2; fault "the client that stayed: exit code $status"; }

kill -TERM "$pid"
wait "$pid"
status=$?
[ "$status" = 0 ] || fault "exit code $status after SIGTERM"

# Less memory: what is too much is moved to another server by the client itself.
lines 'memory = 8M' 'slab = 1M' "secret-file = $scratch/new"
start_server --memory 8M --slab 1M --secret-file "$scratch/new"
second=$address
start --config "$conf"
first=$address
"$rdmabox" bench --pool "$first,$second" --secret-file "$scratch/new" --volume 8M --verify \
	--runtime 600 >"$scratch/bench" 2>&1 &
client=$!
server_pids+=("$client")
# The volume chooses how many of its 8 slabs each server lends.
lent=0
for ((attempt = 0; attempt < 600; attempt++)); do
	expect_success stat --server "$second" --json --secret-file "$scratch/new"
	lent=$(key slabs_lent)
	expect_success stat --server "$first" --json --secret-file "$scratch/new"
	[ $((lent + $(key slabs_lent))) = 8 ] && break
	sleep 0.05
done
lent=$(key slabs_lent)
[ "$lent" -ge 2 ] || { show; fault "the volume is not on both servers"; }
sed -i 's/^memory.*/memory = 1M/' "$conf"
reload 1
tells "more is lent than the new limit allows: asked for $((lent - 1)) slab" 1
lends 1
number slabs_revoked 0
kill -INT "$client"
wait "$client"
status=$?
[ "$status" = 0 ] || { cat "$scratch/bench" >&2; fault "the client was not moved: exit code $status"; }

# A client that cannot move its data loses nothing, however long it takes.
lines 'memory = 8M' 'slab = 1M'
start --config "$conf"
"$rdmabox" bench --pool "$address" --volume 8M --verify --runtime 600 >"$scratch/bench" 2>&1 &
client=$!
server_pids+=("$client")
lends 8
sed -i 's/^memory.*/memory = 1M/' "$conf"
reload 1
tells 'asked for 7 slabs' 1
sleep 11 # longer than a client has if the server's machine is short of memory
number slabs_lent 8
sed -i 's/^memory.*/memory = 8M/' "$conf"
reload 2
number memory_bytes $((8 << 20))
kill -INT "$client"
wait "$client"
status=$?
[ "$status" = 0 ] || { cat "$scratch/bench" >&2; fault "a limit cost data: exit code $status"; }

# A server whose log nobody reads does not hang in a reload that it has to refuse.
start_quiet()
{
	python3 - "$rdmabox" "$conf" <<'END'
import os, signal, subprocess, sys, time

reader, writer = os.pipe()
os.set_blocking(writer, False)
server = subprocess.Popen([sys.argv[1], "serve", "--config", sys.argv[2]],
                          stdout=subprocess.PIPE, stderr=writer)
assert server.stdout.readline().startswith(b"ready"), "not ready"
try:
    while True:
        os.write(writer, b"x" * 512)
except BlockingIOError:
    pass
os.set_blocking(writer, True)
open(sys.argv[2], "w").write("nonsense = 1\n")
server.send_signal(signal.SIGHUP)
time.sleep(0.5)
server.send_signal(signal.SIGTERM)
assert server.wait(60) == 0, server.returncode
END
}
lines 'listen = 127.0.0.1:0' 'memory = 8M' 'slab = 1M'
start_quiet || fault "a reload waits for a reader of the log"

# systemd is told when there is a server, and when it is about to end; before that it sends
# no SIGHUP.
lines 'listen = 127.0.0.1:0' 'memory = 8M' 'slab = 1M'
for notify in "$scratch/notify" "@rdmabox-$$"; do
	python3 - "$rdmabox" "$conf" "$notify" <<'END' || fault "systemd is not told"
import os, signal, socket, subprocess, sys

told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
told.bind(sys.argv[3].replace("@", "\0"))
told.settimeout(60)

server = subprocess.Popen([sys.argv[1], "serve", "--config", sys.argv[2]],
                          stdout=subprocess.PIPE,
                          env={**os.environ, "NOTIFY_SOCKET": sys.argv[3]})
assert server.stdout.readline().startswith(b"ready"), server.wait()
assert told.recv(100) == b"READY=1"
server.send_signal(signal.SIGTERM)
assert told.recv(100) == b"STOPPING=1"
assert server.wait(60) == 0, server.returncode
END
done

# Secrets are read again without a configuration as well.
for option in --secrets --secret-file; do
	file=$scratch/of$option
	(umask 077 && echo 'database:the secret of the database' >"$file")
	start --memory 8M --slab 1M "$option" "$file"
	kill -HUP "$pid"
	tells 'rdmabox serve: reloaded: .*; the secrets? (was|were) read$' 1
done

# Without a file SIGHUP ends it, as a closed terminal does; unless it is ignored, which
# we would hand down.
[ -z "$(trap -p HUP)" ] || exit 0
start_server --memory 8M --slab 1M
kill -HUP "$pid"
wait "$pid"
status=$?
[ "$status" = 129 ] || fault "exit code $status after SIGHUP without a file"
