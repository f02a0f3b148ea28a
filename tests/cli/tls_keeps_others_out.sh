#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Data under TLS is what was written, and nobody else sees it. A side without TLS, or with
# another secret, is told so at once; so is the log of the server. A new secret keeps out
# nobody who is there.

. "$(dirname "$0")/rdmabox.sh"

echo "a secret that is long enough to be one" >"$scratch/secret"
echo "another secret, just as long as that one" >"$scratch/other"
chmod 600 "$scratch"/{secret,other}
bench=(bench --fabric soft:tcp --volume 16M --runtime 0.3 --warmup 0)
mine=(--secret-file "$scratch/secret")

# logged PATTERN - the server has said so.
logged()
{
	local i

	for ((i = 0; i < 100; i++)); do
		grep -q "$1" "$scratch"/server.* && return
		sleep 0.1
	done
	fault "the server did not say: $1"
}

expect_refusal 'integrity=tls needs a secret' serve --listen 127.0.0.1:0 --memory 16M \
	--slab 4M --integrity tls
expect_refusal 'integrity=tls needs a secret' stat 127.0.0.1:1 --integrity tls
expect_refusal "'yes' is not accepted; give one of off|mac|tls" stat 127.0.0.1:1 --integrity yes

# Off is for one machine.
expect_refusal 'integrity=off is for one machine: use integrity=mac or tls' serve \
	--listen 0.0.0.0:0 --memory 16M --slab 4M "${mine[@]}" --integrity off
expect_refusal 'is another machine, and integrity=off is for one machine' stat 192.0.2.1:1 \
	"${mine[@]}" --integrity off

# Both sides under TLS: all that comes back is checked.
start_server --fabric soft:tcp --memory 64M --slab 4M "${mine[@]}" --integrity tls
expect_success "${bench[@]}" --pool "$address" "${mine[@]}" --integrity tls --verify
expect_success stat "$address" --fabric soft:tcp "${mine[@]}" --integrity tls

# One side only, and another secret.
expect_refusal 'it wants TLS: use integrity=tls' "${bench[@]}" --pool "$address" "${mine[@]}"
expect_refusal 'it wants TLS: use integrity=tls' stat "$address" --fabric soft:tcp \
	"${mine[@]}" --integrity mac
logged 'does not use TLS: it needs integrity=tls'
expect_refusal 'does not have the secret' stat "$address" --fabric soft:tcp --integrity tls \
	--secret-file "$scratch/other"
logged 'does not have our secret'
start_server --fabric soft:tcp --memory 64M --slab 4M "${mine[@]}"
expect_refusal 'does not use TLS' stat "$address" --fabric soft:tcp "${mine[@]}" --integrity tls
logged 'it uses TLS, and this side does not'
expect_success "${bench[@]}" --pool "$address" "${mine[@]}" --verify
for word in off mac; do
	expect_success "${bench[@]}" --pool "$address" "${mine[@]}" --integrity "$word"
done

# On one host, by a local socket: no network, and so no TLS.
start_server --fabric soft --memory 64M --slab 4M "${mine[@]}" --integrity tls
expect_success bench --fabric soft --volume 16M --runtime 0.3 --warmup 0 --pool "$address" \
	"${mine[@]}" --integrity tls --verify

# A new secret is for those that come: the server then wants it from them.
cp -p "$scratch/secret" "$scratch/shared"
printf '%s\n' "secret-file = $scratch/shared" 'integrity = tls' 'memory = 64M' 'slab = 4M' \
	'fabric = soft:tcp' >"$scratch/conf"
start_server --config "$scratch/conf"
"$rdmabox" "${bench[@]}" --runtime 3 --pool "$address" "${mine[@]}" --integrity tls --verify \
	>/dev/null 2>"$scratch/bench.err" &
stays=$!
sleep 1
cp -p "$scratch/other" "$scratch/shared"
kill -HUP "$pid"
logged 'reloaded: .*the secret was read'
expect_success stat "$address" --fabric soft:tcp --integrity tls --secret-file "$scratch/other"
expect_refusal 'secret' stat "$address" --fabric soft:tcp --integrity tls "${mine[@]}"
wait "$stays" || { cat "$scratch/bench.err"; fault "a client that was there has failed"; }
sed -i 's/integrity = tls/integrity = mac/' "$scratch/conf"
kill -HUP "$pid"
logged 'integrity (--integrity) cannot change while the server runs'

# Each client with a secret of its own.
(umask 077; printf 'one:%s\ntwo:%s\n' "$(cat "$scratch/secret")" "$(cat "$scratch/other")" \
	>"$scratch/secrets")
start_server --fabric soft:tcp --memory 64M --slab 4M --secrets "$scratch/secrets" --integrity tls
expect_success stat "$address" --fabric soft:tcp --integrity tls "${mine[@]}" --credential one
expect_success stat "$address" --fabric soft:tcp --integrity tls --credential two \
	--secret-file "$scratch/other"
expect_refusal 'secret' stat "$address" --fabric soft:tcp --integrity tls --credential two \
	"${mine[@]}"
