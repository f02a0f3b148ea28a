#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A module keeps pages in remote memory, through the kernel API, on servers that
# know of no kernel: `rdmabox serve --fabric verbs`, as programs use them. Another one
# talks to a program, and uses plain verbs.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"

secret="a secret that is long enough to be one"
echo "$secret" >"$scratch/secret"
chmod 600 "$scratch/secret"

# refuse PATTERN PARAMETER... - the example is not loaded, and says why
refuse()
{
	local pattern=$1

	shift
	dmesg -C
	! insmod "$modules/rdmabox_example.ko" "$@" 2>"$scratch/err" ||
		fault "rdmabox_example $*: was loaded"
	{ cat "$scratch/err"; dmesg; } >"$scratch/out"
	grep -qE "$pattern" "$scratch/out" || { show; fault "rdmabox_example $*: no word of $pattern"; }
}

# keep PARAMETER... - the example finds all that it has kept
keep()
{
	dmesg -C
	load_module rdmabox_example "$@"
	dmesg | grep 'bytes written and read, 0 words wrong, status 0' ||
		fault "rdmabox_example $*: lost something"
	rmmod rdmabox_example || fault "rdmabox_example.ko cannot be unloaded"
}

load_module rdmabox
start_verbs_server --memory 8M --secret-file "$scratch/secret"
one=$address
start_verbs_server --memory 8M --secret-file "$scratch/secret"
two=$address

# insmod takes quotes for a parameter with spaces.
keep "servers=$one,$two" size_mb=4 replicas=2 queue_pairs=4 "secret=\"$secret\""
pass "pages on two servers, by four queue pairs, with the secret proved"

# What was borrowed went back, or the third of these would not fit.
keep "servers=$one" size_mb=8 "secret=\"$secret\""
keep "servers=$one" size_mb=8 "secret=\"$secret\""
keep "servers=$one" size_mb=8 queue_pairs=2 "secret=\"$secret\""
pass "a volume as large as its server, three times"

refuse 'the secret is wrong' "servers=$one" 'secret="another one, and as long"'
refuse 'the server requires a secret' "servers=$one"
refuse 'no connection' servers=10.9.0.1:9 "secret=\"$secret\""
refuse 'no connection|not reached' servers=10.9.0.77:7471 "secret=\"$secret\""
refuse 'lend no more' "servers=$one" size_mb=64 "secret=\"$secret\""
refuse 'no volume of' "servers=$one" replicas=2 "secret=\"$secret\""
refuse 'named twice' "servers=$one,$one" replicas=2 "secret=\"$secret\""
refuse 'not of the form' servers=here "secret=\"$secret\""
refuse 'out of bounds' "servers=$one" replicas=4 "secret=\"$secret\""
keep "servers=$one" size_mb=8 "secret=\"$secret\""
pass "what cannot be opened is refused, with the reason, and leaves nothing behind"

# ---- without a volume ----------------------------------------------------------
"$build/examples/messages" serve "$device_address:0" "$scratch/secret" >"$scratch/messages" 2>&1 &
server_pids+=($!)
for ((attempt = 0; attempt < 600; attempt++)); do
	talker=$(awk '/^ready/ { print $2 }' "$scratch/messages")
	[ -z "$talker" ] || break
	sleep 0.05
done
[ -n "$talker" ] || { cat "$scratch/messages"; fault "nobody to talk to"; }
dmesg -C
load_module rdmabox_talk "server=$talker" "secret=\"$secret\"" throws=200
dmesg | grep 'rdmabox_talk: 200 throws, status 0' || { dmesg; fault "a message was lost"; }
dmesg | grep 'a page by plain verbs, status 0' || { dmesg; fault "no plain verbs"; }
rmmod rdmabox_talk || fault "rdmabox_talk.ko cannot be unloaded"
dmesg -C
# A handler that waited for itself would never end, and nothing could end it.
insmod "$modules/rdmabox_talk.ko" "server=$talker" "secret=\"$secret\"" throws=20 rude=1 &
for ((attempt = 0; attempt < 300; attempt++)); do
	! dmesg | grep -q 'rdmabox_talk: 20 throws, status 0' || break
	sleep 0.1
done
[ "$attempt" -lt 300 ] || { dmesg; fault "a handler that waits is not refused"; }
wait $! || fault "rdmabox_talk.ko was not loaded"
rmmod rdmabox_talk || fault "rdmabox_talk.ko cannot be unloaded"
dmesg -C
! insmod "$modules/rdmabox_talk.ko" "server=$one" "secret=\"$secret\"" 2>/dev/null ||
	fault "a server without a handler plays ball"
dmesg | grep -q 'rdmabox_talk: 0 throws, status -95' || { dmesg; fault "not EOPNOTSUPP"; }
pass "messages to a program and back, and a page by plain verbs beside"

rmmod rdmabox || fault "rdmabox.ko cannot be unloaded"
