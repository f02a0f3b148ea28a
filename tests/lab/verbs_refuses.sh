#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What cannot work over verbs is refused in one line that names the cause and the
# fix, with exit code 2: untrusted clients, servers that are full or gone, addresses that
# no RDMA device has, devices that do not exist, and too little locked memory.

. "$(dirname "$(readlink -f "$0")")/verbs.sh"

echo "a secret that is long enough to be one" >"$scratch/secret"
echo "another secret, just as long as that one" >"$scratch/other"
chmod 600 "$scratch"/{secret,other}
bench=(bench --fabric verbs --volume 4M --runtime 0.2 --warmup 0)
serve=(serve --fabric verbs --memory 4M --slab 1M --insecure)

start_verbs_server --memory 8M --secret-file "$scratch/secret"
expect_refusal "$address.*secret" "${bench[@]}" --pool "$address" --insecure
expect_refusal "$address.*secret" "${bench[@]}" --pool "$address" --secret-file "$scratch/other"
expect_refusal 'secret file .--secret-file., or insecure' "${bench[@]}" --pool "$address"
pass "a client without the secret is refused"

expect_refusal "$address.*(memory|space|full|room)" "${bench[@]}" --volume 64M \
	--pool "$address" --secret-file "$scratch/secret"
expect_success stat --server "$address" --fabric verbs --secret-file "$scratch/secret" --json
[ "$(key lent_bytes)" = 0 ] || fault "a refused volume stays lent"
expect_success "${bench[@]}" --pool "$address" --secret-file "$scratch/secret" --verify
pass "a volume that is larger than the server is refused, and nothing stays lent"

expect_refusal "$address.*port is taken" "${serve[@]}" --listen "$address"
kill -KILL "$pid"
wait "$pid" 2>/dev/null
expect_refusal "nothing listens at $address" "${bench[@]}" --insecure --pool "$address"
expect_refusal "10.9.0.77:7471" "${bench[@]}" --insecure --pool 10.9.0.77:7471
expect_refusal "127.0.0.1:7471.*RDMA device" "${bench[@]}" --insecure --pool 127.0.0.1:7471
pass "a server that is not there, cannot be reached, or is on no RDMA device"

expect_refusal "127.0.0.1.*not an address of an RDMA device" "${serve[@]}" --listen 127.0.0.1:0
expect_refusal "192.0.2.1" "${serve[@]}" --listen 192.0.2.1:0
expect_refusal "mlx9_7.*rdma link" "${serve[@]}" --listen "$device_address:0" --device mlx9_7
expect_refusal "mlx9_7.*rdma link" "${bench[@]}" --insecure --device mlx9_7 \
	--pool "$device_address:1"
pass "a server on an address without RDMA device"

# Locked memory binds those without the capability to exceed it.
chmod 755 "$scratch"
as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
expect_short_memory()
{
	status=0
	(ulimit -l 64 && timeout "$limit_s" "${as_nobody[@]}" "$rdmabox" "$@") \
		>"$scratch/out" 2>"$scratch/err" || status=$?
	[ "$status" = 2 ] || { show; fault "rdmabox $1 with 64 KiB: exit code $status, not 2"; }
	[ "$(wc -l <"$scratch/err")" = 1 ] || { show; fault "rdmabox $1 with 64 KiB: not one line"; }
	grep -q 'RLIMIT_MEMLOCK is 64 KiB.*ulimit -l' "$scratch/err" ||
		{ show; fault "rdmabox $1 with 64 KiB: not the cause and the fix"; }
}

start_verbs_server --memory 8M --insecure
expect_short_memory "${bench[@]}" --insecure --pool "$address"
expect_short_memory "${serve[@]}" --listen "$device_address:0"
pass "too little locked memory"

# Its group has less memory than the machine.
status=0
in_memory few max 64 "$rdmabox" "${serve[@]}" --memory 256M --listen "$device_address:0" \
	>"$scratch/out" 2>"$scratch/err" || status=$?
[ "$status" = 2 ] || { show; fault "a server of 256 MiB in a group of 64: exit code $status, not 2"; }
grep -q 'cannot lend 256 MiB: .*few.* 64 MiB in all' "$scratch/err" ||
	{ show; fault "a server of 256 MiB in a group of 64: not the group"; }
pass "more memory than the group has"
