#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Buffers over real verbs: registered for each request, registered once and kept, copied, or
# whichever is cheaper, with every byte compared; too little locked memory; rdmabox tune.

. "$(dirname "$(readlink -f "$0")")/verbs.sh"

start_verbs_server --memory 16M --insecure
bench=(bench --pool "$address" --fabric verbs --insecure --volume 4M --runtime 0.3
	--warmup 0 --json -)

# bench NAME OPTION...
bench()
{
	local name=$1

	shift
	expect_success "${bench[@]}" --verify "$@"
	expect_sound "$name"
}

bench direct --buffers direct --op mix:50 --pattern rand
[ "$(key staged_bytes)" = 0 ] || fault "direct: something is copied"
[ "$(key registrations)" -ge "$(key requests)" ] || fault "direct: not all are registered"
bench "direct and long" --buffers direct --op mix:50 --block 512K --depth 4
[ "$(key staged_bytes)" = 0 ] || fault "direct: something long is copied"
bench "direct, merged, on two queue pairs" --buffers direct --op write --pattern seq --qps 2
[ "$(key merged_requests)" -gt 0 ] || fault "direct: nothing is merged"
pass "each buffer is registered for its request, and none is copied"

bench cached --buffers cached --op mix:50 --pattern rand --block 16K
[ "$(key region_hits)" -gt "$(key region_misses)" ] || fault "cached: registered again and again"
[ "$(key staged_bytes)" = 0 ] || fault "cached: something is copied"
bench "cached and long" --buffers cached --op mix:50 --block 512K --depth 4
[ "$(key region_hits)" -gt "$(key region_misses)" ] || fault "cached: long buffers are not kept"
pass "what was registered once stays registered"

# A tuning file makes the break-even what the test wants.
printf '{"version": 1, "devices": {"verbs rxe0:1": {"break_even_bytes": 65536}}}\n' \
	>"$scratch/tune.json"
mkdir -p "$scratch/rdmabox"
cp "$scratch/tune.json" "$scratch/rdmabox/"
export XDG_CONFIG_HOME=$scratch
bench "auto, short" --buffers auto --op mix:50
[ "$(key registrations)" = 0 ] || fault "auto: short buffers are registered"
[ "$(key staged_bytes)" -gt 0 ] || fault "auto: short buffers are not copied"
bench "auto, long" --buffers auto --op mix:50 --block 128K --depth 4
[ "$(key staged_bytes)" = 0 ] || fault "auto: long buffers are copied"
pass "auto copies below the break-even of the tuning file and registers from it"

# 19 MiB: enough for staging memory and message buffers, and not for 8 buffers of 512 KiB
# beside them.
chmod -R go+rX "$scratch"
as_nobody()
{
	status=0
	(ulimit -l 19456 && timeout "$limit_s" setpriv --reuid 65534 --regid 65534 \
		--clear-groups "$rdmabox" "${bench[@]}" "$@") \
		>"$scratch/out" 2>"$scratch/err" || status=$?
}
as_nobody --buffers direct --block 512K --depth 8 --op write
[ "$status" = 1 ] || { show; fault "direct with little locked memory: exit code $status"; }
grep -q 'RLIMIT_MEMLOCK is 19 MiB.*ulimit -l' "$scratch/err" ||
	{ show; fault "direct with little locked memory: not the cause and the fix"; }
as_nobody --buffers auto --block 512K --depth 8 --op write
[ "$status" = 0 ] || { show; fault "auto with little locked memory: exit code $status"; }
[ "$(key registration_failures)" -gt 0 ] || fault "auto: nothing was refused"
[ "$(key staged_bytes)" -gt 0 ] || fault "auto: what was refused is not copied"
as_nobody --buffers cached --block 512K --depth 8 --op write
[ "$status" = 0 ] || { show; fault "cached with little locked memory: exit code $status"; }
[ "$(key registration_failures)" -gt 0 ] || fault "cached: nothing was refused"
pass "what cannot be pinned fails with direct, and is copied with auto and cached"

expect_success tune --fabric verbs --rounds 3 --out "$scratch/tuned" --json -
[ "$(key fabric) $(key device)" = 'verbs rxe0:1' ] || fault "tune: of $(key fabric) $(key device)"
grep -q '"verbs rxe0:1"' "$scratch/tuned" || fault "tune remembers nothing"
pass "tune measures the device and remembers it"
