#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Servers that cannot be reached, do not trust us or have nothing left, and
# addresses that cannot be served: one line, exit code 2, nothing half-made.

. "$(dirname "$0")/rdmabox.sh"

host=127.0.0.1 # which has another name

echo "a secret that is long enough to be one" >"$scratch/secret"
echo "another secret, just as long as that one" >"$scratch/other"
: >"$scratch/empty"
chmod 600 "$scratch"/{secret,other,empty}
bench=(bench --volume 16M --runtime 0.2 --warmup 0)

# Nobody listens on a port that a server has just given up.
start_server --memory 64M --slab 4M
free=$address
kill -KILL "$pid"
wait "$pid" 2>/dev/null
expect_refusal "$free" "${bench[@]}" --pool "$free"
expect_refusal "$free" stat --server "$free"
expect_refusal . "${bench[@]}" --pool 127.0.0.1
expect_refusal . "${bench[@]}" --pool 127.0.0.1:port
expect_refusal . "${bench[@]}" --pool "$free" --fabric verbs --device none

# Both sides must know the secret.
start_server --memory 64M --slab 4M --secret-file "$scratch/secret"
expect_refusal 'secret' "${bench[@]}" --pool "$address"
expect_refusal 'secret' "${bench[@]}" --pool "$address" --secret-file "$scratch/other"
expect_refusal 'secret' stat --server "$address" --secret-file "$scratch/other"
expect_refusal "$scratch/none" "${bench[@]}" --pool "$address" --secret-file "$scratch/none"
expect_refusal "$scratch/empty" "${bench[@]}" --pool "$address" \
	--secret-file "$scratch/empty"
expect_success "${bench[@]}" --pool "$address" --secret-file "$scratch/secret" --verify
start_server --memory 64M --slab 4M
expect_refusal 'no secret to prove itself; start it with the secret file, or use none here' \
	"${bench[@]}" --pool "$address" --secret-file "$scratch/secret"
expect_success stat "$address"
grep -q "^server $address\$" "$scratch/out" || fault "stat ADDR asks another server"

# A server that is full, a quota, and too few servers; nothing stays lent.
start_server --memory 16M --slab 4M --quota 12M
expect_refusal "asked for: 64 MiB, 1 copy, in slabs of 4 MiB; $address has 16 MiB free" \
	"${bench[@]}" --pool "$address" --volume 64M
expect_refusal 'quota.*ask for less, or raise.*asked for: 16 MiB' \
	"${bench[@]}" --pool "$address" --volume 16M
expect_refusal . "${bench[@]}" --pool "$address" --replicas 2
expect_success stat --server "$address" --json
[ "$(key lent_bytes)" = 0 ] || fault "a refused volume stays lent"
[ "$(key slab_bytes)" = 4194304 ] || fault "stat tells another slab size"
# One server is one, whatever it is called.
expect_refusal 'is the same one' "${bench[@]}" --pool "$address,localhost:${address##*:}" \
	--volume 4M --replicas 2
expect_success "${bench[@]}" --pool "$address" --volume 12M

# There is no simulator in a build with the thread sanitizer.
[[ $("$rdmabox" sim --events 1 2>&1) != *"not with the thread sanitizer"* ]] && has_sim=yes || has_sim=

# A result that cannot be written is said before the run begins, and before any connection.
for path in "$scratch/none/json" "$scratch"; do
	expect_refusal "cannot write --json $path: .*nothing was run" "${bench[@]}" --pool "$free" \
		--json "$path"
	[ -z "$has_sim" ] || expect_refusal "cannot write --json $path: .*nothing was run" sim --json "$path"
done
echo kept >"$scratch/old"
expect_refusal "$free" "${bench[@]}" --pool "$free" --json "$scratch/old"
grep -qx kept "$scratch/old" || fault "a file is lost before there is a result"
expect_refusal "$free" "${bench[@]}" --pool "$free" --json "$scratch/new"
[ ! -e "$scratch/new" ] || fault "a file is left though there is no result"
[ -z "$(find "$scratch" -name 'new.*' -o -name 'old.*')" ] || fault "a trial file is left"
mkfifo "$scratch/pipe"
expect_refusal "$free" "${bench[@]}" --pool "$free" --json "$scratch/pipe"

# Addresses.
expect_refusal '--secret-file.*--insecure' serve --listen 0.0.0.0:0 --memory 16M --slab 4M
expect_refusal . serve --listen "$address" --memory 16M --slab 4M
expect_refusal . serve --listen 127.0.0.1 --memory 16M --slab 4M
expect_refusal "$scratch/none" serve --listen 127.0.0.1:0 --memory 16M --slab 4M \
	--secret-file "$scratch/none"
for at in 127.0.0.1 nosuch.invalid:1; do
	expect_refusal 'metrics.*no address' serve --listen 127.0.0.1:0 --memory 16M --slab 4M \
		--metrics "$at"
done
