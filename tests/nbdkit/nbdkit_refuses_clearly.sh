#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A wrong parameter, a server that is absent, a secret that is wrong: nbdkit says so before
# it goes into the background, in one line, and its exit code is 1.

. "$(dirname "$0")/nbdkit.sh"
need nbdinfo

# expect_nbdkit_refusal PATTERN PARAMETER...
expect_nbdkit_refusal()
{
	local pattern=$1

	shift
	timeout "$limit_s" "${preload[@]}" nbdkit --unix "$scratch/none.socket" --pidfile "$scratch/none.pid" \
		"$plugin" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
	status=$?
	[ ! -s "$scratch/none.pid" ] || server_pids+=("$(cat "$scratch/none.pid")")
	[ "$status" = 1 ] || { show; fault "nbdkit $*: exit code $status, not 1"; }
	grep -qE -- "nbdkit: .*($pattern)" "$scratch/err" ||
		{ show; fault "nbdkit $*: does not say $pattern"; }
	rm -f "$scratch/none.socket"
}

start_server --memory 64M --slab 4M
good=(servers="$address" size=16M)

expect_nbdkit_refusal 'give servers=' size=16M
expect_nbdkit_refusal 'Give size=' "$address"
expect_nbdkit_refusal 'cannot connect to 127.0.0.1:1: ' 127.0.0.1:1 size=16M
expect_nbdkit_refusal 'cannot connect to 127.0.0.1:1: ' "$address,127.0.0.1:1" size=16M
expect_nbdkit_refusal 'could not parse size' "$address" size=x
expect_nbdkit_refusal 'size=5000: must be a multiple of 4096' "$address" size=5000
expect_nbdkit_refusal 'size=0: must be a multiple' "$address" size=0
expect_nbdkit_refusal '67108864 bytes free, and the volume needs 1073741824' "$address" size=1G
expect_nbdkit_refusal 'slabs' "$address" size=7E
one=$address
start_server --memory 64M --slab 4M
expect_nbdkit_refusal '134217728 bytes free, and the volume needs 167772160' "$one,$address" \
	size=80M replicas=2
address=$one
expect_nbdkit_refusal 'secret_file: longer than 255' "${good[@]}" \
	secret-file="/$(printf '%0600d' 0)"
expect_nbdkit_refusal 'replicas' "${good[@]}" replicas=2
expect_nbdkit_refusal 'replicas=4: must be 1 to 3' "${good[@]}" replicas=4
expect_nbdkit_refusal 'mode=both: must be one of single' "${good[@]}" mode=both
expect_nbdkit_refusal 'window=5x: must be off, aimd' "${good[@]}" window=5x
expect_nbdkit_refusal 'fragment_bytes=.*power of two' "${good[@]}" fragment=12K
expect_nbdkit_refusal 'buffers=none: must be one of' "${good[@]}" buffers=none
expect_nbdkit_refusal 'polling=sometimes: must be' "${good[@]}" polling=sometimes
expect_nbdkit_refusal 'pollers=0: must be 1 to 16' "${good[@]}" pollers=0
expect_nbdkit_refusal 'poll_cpu_percent=0: must be' "${good[@]}" poll-cpu=0
expect_nbdkit_refusal 'queue_pairs=17: must be' "${good[@]}" qps=17
expect_nbdkit_refusal 'peer_timeout_ms=1: must be' "${good[@]}" peer-timeout=1
expect_nbdkit_refusal 'fabric=ether: must be one of' "${good[@]}" fabric=ether
expect_nbdkit_refusal 'could not decipher boolean|bool' "${good[@]}" checksums=perhaps
expect_nbdkit_refusal "unknown parameter 'sise'" "${good[@]}" sise=1

umask 077
echo the-secret-of-one-server >"$scratch/secret"
echo the-secret-of-another >"$scratch/wrong"
start_server --memory 64M --slab 4M --secret-file "$scratch/secret"
expect_nbdkit_refusal 'secret' "$address" size=16M
expect_nbdkit_refusal 'secret' "$address" size=16M secret-file="$scratch/wrong"
expect_nbdkit_refusal 'secret' "$address" size=16M secret-file="$scratch/none"
expect_nbdkit_refusal 'exclude each other' "$address" size=16M insecure=true \
	secret-file="$scratch/secret"
cd "$scratch" || exit 1
start_nbdkit "$address" size=16M secret-file=secret
good nbdinfo --size "$uri"
[ "$(cat "$scratch/out")" = 16777216 ] || { show; fault "with the secret: another size"; }

# What --help and --dump-plugin tell.
"${preload[@]}" nbdkit "$plugin" --help >"$scratch/out" || fault "--help: exit code $?"
for name in servers size name take-over replicas secret-file insecure on-demand checksums; do
	grep -q "^$name=" "$scratch/out" || { show; fault "--help leaves out $name"; }
	grep -q "^\.It Cm $name Ns =" "$here/../../man/nbdkit-rdmabox-plugin.1" ||
		fault "the manual page leaves out $name"
done
"${preload[@]}" nbdkit "$plugin" --dump-plugin >"$scratch/out" || fault "--dump-plugin: exit code $?"
for line in 'name=rdmabox' 'max_thread_model=parallel' 'magic_config_key=servers' \
	'rdmabox_version=[0-9]'; do
	grep -q "^$line" "$scratch/out" || { show; fault "--dump-plugin leaves out $line"; }
done
