#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `rdmabox page attach` to what is no memory server, or does not lend: one line says
# why, and nothing is left of it, here or there.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"

# refuse PATTERN SERVERS OPTION...
refuse()
{
	expect_refusal "$1" page attach --pool "$2" --size 8M "${@:3}"
	[ -z "$(ls "$volumes")" ] || fault "$2 leaves a volume"
}

load_block_modules
echo "a secret that is long enough to be one" >"$scratch/secret"
echo "another one that is long enough to be one" >"$scratch/other"
chmod 600 "$scratch/secret" "$scratch/other"
start_verbs_server --memory 8M --secret-file "$scratch/secret"
server=$address
server_pid=$pid
mine=(--secret-file "$scratch/secret")

refuse 'does not answer' 10.9.0.1:9 --insecure
refuse 'does not answer' 10.9.0.77:7471 --insecure --peer-timeout 1000
refuse 'through an RDMA device' 127.0.0.1:7471 --insecure
pass "where nobody serves"

busybox nc -l -p 7998 >/dev/null &
server_pids+=("$!")
refuse 'does not answer' 10.9.0.1:7998 --insecure
rping -s -a 10.9.0.1 -p 7999 >/dev/null 2>&1 &
server_pids+=("$!")
sleep 1
refuse 'does not answer' 10.9.0.1:7999 --insecure
pass "where something else serves"

kill -STOP "$server_pid"
refuse 'does not answer' "$server" --peer-timeout 1000 "${mine[@]}"
kill -CONT "$server_pid"
pass "where a server stands still"

refuse 'refuses the secret' "$server" --insecure
refuse 'refuses the secret' "$server" --secret-file "$scratch/other"
pass "where the secret is another one"

start_verbs_server --memory 8M --slab 2M --secret-file "$scratch/secret"
refuse 'slabs of different sizes' "$server,$address" "${mine[@]}"
refuse 'named twice' "$server,$server" "${mine[@]}"
pass "servers that do not go together"

# One server, by each of the two addresses that its device has.
ip addr add 10.9.0.11/24 dev veth0
start_verbs_server --memory 8M --secret-file "$scratch/secret" --listen 0.0.0.0:7472
refuse 'two of the addresses' 10.9.0.1:7472,10.9.0.11:7472 "${mine[@]}"
ip addr del 10.9.0.11/24 dev veth0
pass "a server under two addresses"

# All that it has is lent, in the end after all of the above; on demand no more than it
# has free.
refuse 'do not lend that much' "$server" --size 9M "${mine[@]}"
volume=$volumes/all
device=$("$rdmabox" page attach --name all --pool "$server" --size 8M --reserve "${mine[@]}") ||
	fault "a failed attach has left something lent"
expect_refusal 'do not lend that much' page attach --pool "$server" --size 1M "${mine[@]}"
expect_refusal 'do not lend that much' page attach --pool "$server" --size 1M --reserve \
	"${mine[@]}"
keep 8
is_kept || fault "something else is read than was written"
"$rdmabox" page detach --name all || fault "cannot detach"
pass "where all is lent"

rmmod rdmabox_block rdmabox || fault "the modules cannot be unloaded"
