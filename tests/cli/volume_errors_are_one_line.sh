#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What cannot be done with a named volume is said in one line, with cause and fix, and nothing has
# changed.

. "$(dirname "$0")/rdmabox.sh"

cd "$scratch" || exit 1
start_server --memory 16M --slab 4M
one=$address
start_server --memory 16M --slab 4M
servers=$one,$address

# refused PATTERN COMMAND...
refused()
{
	expect_refusal "$1" volume "${@:2}" --pool "$servers"
}

expect_success volume create db --size 8M --replicas 2 --pool "$servers"
expect_success volume create single --size 4M --pool "$servers"
expect_success volume list --pool "$servers"
cp out before

# ---- Names and sizes ----------------------------------------------------------------------

refused 'there is a volume of this name; choose another one, or remove it' create db --size 8M
refused 'no name; add the NAME' create --size 8M
for name in 'a b' .x a/b ä "$(printf 'x%.0s' {1..64})"; do
	refused 'cannot have the name .*must be 1 to 63|text of 1 to 63 bytes' create "$name" --size 8M
done
for command in 'grow none --size 16M' 'remove none' 'rename none some' 'export none copy' \
	"add-server none $one" "remove-server none $one" 'scrub none'; do
	# shellcheck disable=SC2086 # words
	refused 'there is no volume none on these servers' $command
done
refused 'there is no such volume.*see rdmabox volume list' show none
refused 'size is no multiple of 4096' create x --size 8000
refused 'cannot become smaller' grow db --size 4M

expect_refusal '--read-only needs --volume-name NAME and --op read' bench --op write --read-only \
	--volume-name db --pool "$servers"
refused 'read_only leaves it to the program that has it open' export db copy --read-only --take-over

# ---- Servers ------------------------------------------------------------------------------

refused '3 replicas need as many servers, but 2 are given' create x --size 8M --replicas 3
refused 'its servers have not enough memory free; add servers, or take less' \
	create x --size 100M --reserve
expect_success volume create kept --size 4M --reserve --pool "$servers"
refused 'its servers have not enough memory free; add servers' grow kept --size 1G
expect_success volume remove kept --pool "$servers"
refused 'has 1 server for 2 replicas: add one first' remove-server db "$one"
refused 'is none of volume db: rdmabox volume show lists' remove-server db 0123456789abcdef
refused 'is one of the servers of volume db already' add-server db "$one"
head -c 4M /dev/urandom | expect_success volume import single - --pool "$servers"
expect_success volume show single --json --pool "$servers"
expect_success stat "$one" --json
[ "$(key slabs_lent)" = 1 ] && has=$one || has=$address
refused 'has slabs of it: they have to be moved before, and one replica cannot be moved|has one replica' \
	remove-server single "$has"
refused 'has no checksums' scrub db

expect_success volume list --pool "$servers"
cmp -s out before || { show; fault "something has changed"; }

# ---- Volumes of others --------------------------------------------------------------------

printf '%s\n' 'alice,volumes=1:a secret that is long enough' \
	'bob,quota=4M:another secret that is long too' >secrets
echo 'a secret that is long enough' >alice
echo 'another secret that is long too' >bob
chmod 600 secrets alice bob
start_server --memory 16M --slab 4M --secrets secrets
alice=(--pool "$address" --credential alice --secret-file alice)
bob=(--pool "$address" --credential bob --secret-file bob)
expect_success volume create mine --size 8M "${alice[@]}"
expect_refusal 'has as many named volumes there as it may have; remove some, or raise' \
	volume create more --size 8M "${alice[@]}"
for command in 'export mine copy' 'grow mine --size 16M' 'rename mine his' 'remove mine' \
	'remove mine --force'; do
	# shellcheck disable=SC2086 # words
	expect_refusal 'volume mine belongs to another credential; use that one' volume $command "${bob[@]}"
done
expect_refusal 'there is a volume of this name' volume create mine --size 8M "${bob[@]}"
expect_refusal 'the quota is reached.*ask for less, or raise the quota' \
	volume create big --size 8M --reserve "${bob[@]}"
expect_success volume list "${bob[@]}"
[ ! -s out ] || { show; fault "what was refused was made, or volumes of others are listed"; }

# ---- A server that has no room is no volume that is open -----------------------------------------

start_server --memory 16M --slab 4M --clients 1
expect_success volume create full --size 4M --pool "$address"
"$rdmabox" bench --pool "$address" --volume-name full --runtime 60 --warmup 0 --progress >held 2>held.err &
server_pids+=("$!")
until grep -q measure held.err; do
	kill -0 "${server_pids[-1]}" || { cat held.err >&2; fault "nobody holds the server"; }
	sleep 0.1
done
for command in 'export full copy' 'remove full'; do
	# shellcheck disable=SC2086 # words
	expect_refusal 'too many clients' volume $command --pool "$address"
	! grep -qE 'take-over|force' err || { show; fault "$command: what is told helps nobody"; }
done
