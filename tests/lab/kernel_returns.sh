#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# While a device is attached: servers that were lost and serve again come back by themselves, its
# state is told, and its peer timeout, servers and secret are changed.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"

# The states that uevents have told, a line for each.
cat >"$scratch/states.py" <<'EOT'
import socket

events = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15)  # NETLINK_KOBJECT_UEVENT
events.bind((0, 1))
print("ready", flush=True)
while True:
    parts = events.recv(8192).split(b"\0")
    if b"ACTION=change" in parts and parts[0].endswith(b"/" + NAME):
        for part in parts:
            if part.startswith(b"RDMABOX_STATE="):
                print(part.decode()[14:], flush=True)
EOT

# watch_states - of $device, into $scratch/states
watch_states()
{
	sed "s/NAME/b\"${device##*/}\"/" "$scratch/states.py" >"$scratch/watch.py"
	: >"$scratch/states"
	python3 "$scratch/watch.py" >"$scratch/states" &
	server_pids+=("$!")
	eventually grep -q ready "$scratch/states" || fault "uevents cannot be heard"
}

# state - of the device
state()
{
	echo "$(<"/sys/block/${device##*/}/rdmabox/state")"
}

# is_in STATE
is_in()
{
	[ "$(state)" = "$1" ]
}

# server_is ADDRESS STATE
server_is()
{
	grep -q "^$1 $2 " "/sys/block/${device##*/}/rdmabox/servers"
}

# told STATE - as the last of all
told()
{
	[ "$(tail -n 1 "$scratch/states")" = "$1" ]
}

# While a server is connected this waits, until it is interrupted.
set_is_interrupted()
{
	! timeout --signal INT 2 "$rdmabox" page set --name test --peer-timeout 600000 \
		>/dev/null 2>&1
}

# is_idle THREAD - of the module: one that waits in another way counts as one that hangs
is_idle()
{
	local file

	file=$(grep -lx "rdmabox/$1" /proc/[0-9]*/comm) && grep -q '^State:.*idle' "${file%comm}status"
}

secret()
{
	printf 'a secret of a server, the %s one\n' "$2" >"$1"
	chmod 600 "$1"
}

load_block_modules
secret "$scratch/old" old
secret "$scratch/new" new
# So short that a silent server is given up soon: half of it.
lease=(--lease $((4000 * slowness)))
start_verbs_server --memory 8M --secret-file "$scratch/old" "${lease[@]}"
one=$address
start_verbs_server --memory 8M --secret-file "$scratch/old" "${lease[@]}"
two=$address
second=$pid

# ---- without a name ------------------------------------------------------------------------
mkdir "$volume"
cat "$scratch/old" >"$volume/secret"
attach "$one,$two" 4 replicas=2 peer_timeout_ms=600000
keep 4
watch_states
is_in whole || fault "it is $(state) from the beginning"
server_is "$two" up || fault "its servers are $(cat /sys/block/*/rdmabox/servers)"
# A machine that is still waits for ten minutes, unless that is changed.
expect_success page set --name test --peer-timeout $((1000 * slowness))
[ "$(number peer_timeout_ms)" = $((1000 * slowness)) ] || fault "the peer timeout is another one"
kill -STOP "$second"
eventually is_in degraded || fault "a silent server is not noticed: $(state)"
eventually server_is "$two" away || fault "its servers are $(cat /sys/block/*/rdmabox/servers)"
is_kept || fault "it is lost with one server of two"
# With a long timeout it is waited for long, when it is tried again.
expect_success page set --name test --peer-timeout 600000
eventually set_is_interrupted || fault "it is not tried again"
attempts=20 eventually is_idle joins || fault "a thread hangs that waits for a silent server"
kill -CONT "$second"
eventually is_in whole || fault "it does not come back: $(state)"
server_is "$two" up || fault "its servers are $(cat /sys/block/*/rdmabox/servers)"
logged "server $two is there again" || fault "nobody is told"
eventually told whole || fault "what was told: $(<"$scratch/states")"
grep -q degraded "$scratch/states" || fault "what was told: $(<"$scratch/states")"
[ -z "$(uniq -d "$scratch/states")" ] || fault "it was told twice: $(<"$scratch/states")"
is_kept || fault "it is something else"
start_verbs_server --memory 8M --secret-file "$scratch/old"
kill -STOP "$pid"
"$rdmabox" page add-server --name test "$address" >"$scratch/added" 2>&1 &
adding=$!
sleep 3 # servers are tried again each two seconds
kill -0 "$adding" || fault "a silent server is added: $(<"$scratch/added")"
attempts=20 eventually is_idle joins || fault "a thread hangs while a server is added"
kill -KILL "$pid"
! wait "$adding" || fault "a server was added that was killed"
expect_success page set --name test --peer-timeout $((1000 * slowness))
pass "a silent server is given up, by a timeout that was changed, and comes back by itself"

kill -KILL "$second"
eventually is_in degraded || fault "a server that was killed is not missed"
start_verbs_server --listen "$two" --memory 8M --secret-file "$scratch/old"
eventually is_in whole || fault "it does not come back: $(state)"
kill -KILL "${server_pids[0]}"
eventually is_in degraded || fault "a server that was killed is not missed"
is_kept || fault "it is lost with one server of two"
pass "a server that was started anew has copies of all"

# ---- servers and secret -----------------------------------------------------------------
start_verbs_server --memory 8M --secret-file "$scratch/new"
expect_refusal 'another secret' page set --name test --pool "$one,$two,$address"
[ "$(number servers)" = "$one,$two" ] || fault "servers are $(number servers)"
expect_refusal 'open to everybody' page set --name test --secret-file /dev/null
expect_success page set --name test --pool "$address,$two" --secret-file "$scratch/new"
[ "$(number servers)" = "$one,$two,$address" ] || fault "servers are $(number servers)"
eventually is_in whole || fault "it is $(state)"
is_kept || fault "it is something else"
detach
pass "servers and secret are changed while it is attached"

# ---- silent for a short time ----------------------------------------------------------------
start_verbs_server --memory 8M --insecure
one=$address
start_verbs_server --memory 8M --insecure
two=$address
second=$pid
attach "$one,$two" 4 replicas=2 peer_timeout_ms=$((1000 * slowness))
keep 4
kill -STOP "$second"
eventually is_in degraded || fault "a silent server is not noticed: $(state)"
server_is "$two" silent || fault "its servers are $(cat /sys/block/*/rdmabox/servers)"
keep 1
kill -CONT "$second"
eventually is_in whole || fault "it does not come back: $(state)"
[ "$(number rebuilt_bytes)" -le $((2 << 20)) ] || fault "$(number rebuilt_bytes) bytes were copied for 1 MiB that was missed"
kill -KILL "${server_pids[-2]}"
eventually is_in degraded || fault "a server that was killed is not missed"
is_kept || fault "what was missed is not there"
detach
pass "a server that was silent for a short time gets what it has missed"

# ---- with a name -----------------------------------------------------------------------
file=/dev/shm/memory
start_verbs_server --memory 8M --insecure
servers=$address
start_verbs_server --memory 8M --insecure
servers+=,$address
start_verbs_server --memory 8M --insecure --memory-file "$file"
servers+=,$address
back=$address
expect_success volume create db --size 4M --replicas 2 --fabric verbs --pool "$servers" \
	--insecure
expect_success page attach "${patience[@]}" --name test --volume db --pool "$servers" --insecure
device=$(<"$scratch/out")
keep 4
dmesg -C
kill -KILL "$pid"
wait "$pid" 2>/dev/null
eventually server_is "$back" away || fault "a server that was killed is not missed"
start_verbs_server --listen "$back" --memory 8M --insecure --memory-file "$file"
eventually server_is "$back" up || fault "it does not come back"
eventually is_in whole || fault "it is $(state)"
logged "server $back is there again" || fault "nobody is told"
is_kept || fault "it is something else"
expect_success page detach --name test
pass "a server of a named volume comes back with its memory"

kill -KILL "${server_pids[@]}" 2>/dev/null
wait 2>/dev/null
rmmod rdmabox_block rdmabox || fault "the modules cannot be unloaded"
