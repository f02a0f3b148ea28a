#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdmabox serve --secrets: each client has a name, a secret and limits of its own. SIGHUP
# takes a credential away, and a broken file changes nothing.

. "$(dirname "$0")/rdmabox.sh"

secrets=$scratch/secrets

# lines TEXT... - are the file of secrets
lines()
{
	rm -f "$secrets"
	(umask 077; printf '%s\n' "$@" >"$secrets")
}

# secret NAME TEXT - is the file with a client's secret
secret()
{
	(umask 077; printf '%s\n' "$2" >"$scratch/$1")
}

# knows NAME SECRET-OF / knows_not NAME SECRET-OF - whether the server lets this client in
knows()
{
	run stat --server "$address" --secret-file "$scratch/$2" --credential "$1"
	[ "$status" = 0 ] || { show; fault "$1 is not known with the secret of $2"; }
}

knows_not()
{
	expect_refusal "the secret of credential $1 is wrong.*--secrets" \
		stat --server "$address" --secret-file "$scratch/$2" --credential "$1"
}

# reload PATTERN - until the log has such a line
reload()
{
	local attempt

	kill -HUP "$pid"
	for ((attempt = 0; attempt < 600; attempt++)); do
		! grep -qE "$1" "$log" || return 0
		sleep 0.05
	done
	cat "$log" >&2
	fault "the server does not tell: $1"
}

secret backup 'the secret of the backup'
secret database 'the secret of the database'
secret newer 'the new secret of the database'

# ---- What is refused ---------------------------------------------------------

serve=(serve --listen 127.0.0.1:0 --memory 64M --slab 1M --secrets "$secrets")
expect_refusal "cannot open secret file $secrets" "${serve[@]}"
lines '# nobody'
expect_refusal "$secrets has no secret" "${serve[@]}"
lines 'backup:the secret of the backup' 'the secret of the database'
expect_refusal "$secrets:2: there is no colon; write NAME:SECRET" "${serve[@]}"
lines 'backup,quota=512K:the secret of the backup'
expect_refusal "$secrets:1: the quota is less than one slab" "${serve[@]}"
lines 'backup,volumes=all:the secret of the backup'
expect_refusal "$secrets:1: the number of volumes is no number" "${serve[@]}"
expect_refusal "--volumes '0'" "${serve[@]}" --volumes 0
! grep -q 'the secret of' "$scratch/err" || { show; fault "a secret is in the message"; }
chmod o+r "$secrets"
expect_refusal "open to everybody" "${serve[@]}"
expect_refusal 'exclude each other' "${serve[@]}" --insecure
expect_refusal 'credential=backup: there is no secret of that name' \
	stat --server 127.0.0.1:1 --credential backup
expect_refusal 'credential=back up: a name has only' \
	stat --server 127.0.0.1:1 --secret-file "$scratch/backup" --credential 'back up'
expect_refusal 'give a text of 1 to 31 bytes' \
	stat --server 127.0.0.1:1 --credential "$(printf '%032d' 0)"
expect_refusal 'add its --secret-file' \
	page attach --pool 10.0.0.1:7471 --size 1G --credential backup

# ---- Who gets in, and how much ------------------------------------------------

lines 'backup,quota=2M,volumes=1:the secret of the backup' 'database:the secret of the database'
echo "secrets = $secrets" >"$scratch/server.conf"
log=$scratch/server.${#server_pids[@]}.err
start_server --memory 64M --slab 1M --quota 4M --config "$scratch/server.conf"
knows backup backup
knows database database
knows_not backup database
knows_not nobody backup
expect_refusal 'the secret is wrong' stat --server "$address" --secret-file "$scratch/backup"
grep -q '(backup) admitted' "$log" || { cat "$log"; fault "the log does not name the client"; }

bench=(bench --pool "$address" --runtime 0.2)
expect_success "${bench[@]}" --volume 2M --secret-file "$scratch/backup" --credential backup
run "${bench[@]}" --volume 4M --secret-file "$scratch/backup" --credential backup
[ "$status" = 2 ] || { show; fault "the quota of the credential does not hold"; }
grep -q 'quota' "$scratch/err" || { show; fault "the quota is not named"; }
expect_success "${bench[@]}" --volume 4M --secret-file "$scratch/database" --credential database

# ---- Volumes of one name --------------------------------------------------------

# as NAME COMMAND... - rdmabox volume as this client
as()
{
	"$rdmabox" volume "${@:2}" --secret-file "$scratch/$1" --credential "$1" \
		>"$scratch/out" 2>"$scratch/err"
}

one=$address
one_pid=$pid
start_server --memory 64M --slab 1M --secrets "$secrets"
other=$address
address=$one
pid=$one_pid
as backup create data --size 4M --pool "$other" || { show; fault "create of backup"; }
! as backup create more --size 4M --pool "$other" || { show; fault "one more than it may have"; }
grep -q 'as many named volumes.*limit (volumes)' "$scratch/err" || { show; fault "the limit is not named"; }
as database create data --size 2M --pool "$one" || { show; fault "create of database"; }
head -c 2M /dev/urandom >"$scratch/data"
as database import data "$scratch/data" --pool "$one,$other" ||
	{ show; fault "another client's volume is in the way"; }
as database grow data --size 3M --pool "$one,$other" || { show; fault "of a grow, too"; }
! as database show data --pool "$other" || { show; fault "another client's volume is shown"; }
! as database remove data --pool "$other" || { show; fault "another client's volume is removed"; }
grep -q 'volume data belongs to another credential' "$scratch/err" || { show; fault "the cause is not told"; }
as database remove data --pool "$one,$other" || { show; fault "of a remove, too"; }
as backup show data --pool "$other" || { show; fault "it was removed, too"; }
as backup remove data --pool "$other" || { show; fault "it cannot be removed"; }

# ---- Volumes of a client that is gone: an admin ------------------------------------

as backup create left --size 2M --pool "$one" || { show; fault "create of backup"; }
as database create data --size 2M --pool "$one" || { show; fault "create of database"; }

# ---- SIGHUP ---------------------------------------------------------------------

secret ops 'the secret of the operators'
lines 'database:the secret of the database' 'database:the new secret of the database' \
	'ops,admin:the secret of the operators'
reload 'reloaded: .*; the secrets were read$'
knows_not backup backup
knows database database
knows database newer
as ops list --pool "$one" || { show; fault "an admin cannot list"; }
grep -q '^OWNER *NAME' "$scratch/out" || { show; fault "the list has no owners"; }
grep -q '^backup *left .* 1/1' "$scratch/out" && grep -q '^database *data' "$scratch/out" ||
	{ show; fault "an admin does not see the volumes of all"; }
expect_success pool status "$one" --credential ops --secret-file "$scratch/ops"
grep -q '^OWNER *VOLUME' "$scratch/out" && grep -q '^backup *left ' "$scratch/out" ||
	{ show; fault "the pool does not show the owners"; }
as ops show left --json --pool "$one"
[ "$(key owner)" = backup ] || { show; fault "an admin is not told the owner"; }
for command in "import left $scratch/data" "export left $scratch/none" 'grow left --size 4M'; do
	# shellcheck disable=SC2086 # words
	! as ops $command --pool "$one" || { show; fault "an admin may $command"; }
	grep -q 'the volume belongs to another credential' "$scratch/err" || { show; fault "the cause is not told"; }
done
[ ! -e "$scratch/none" ] || fault "a refused export leaves a file"
as database list --pool "$one"
! grep -q 'OWNER\|left' "$scratch/out" || { show; fault "others see volumes that are not theirs"; }
! as database remove left --pool "$one" || { show; fault "others may remove it"; }
as ops remove left --pool "$one" || { show; fault "an admin cannot remove a volume"; }
as ops list --pool "$one"
! grep -q left "$scratch/out" || { show; fault "a volume that was removed is listed"; }
grep -q 'volume left of backup: admin .*(ops) removes it' "$log" || { cat "$log"; fault "the log does not say who removed it"; }
lines 'database:the new secret of the database' 'broken'
reload "not reloaded: "
grep -q "$secrets:2: there is no colon" "$log" || { cat "$log"; fault "the line is not told"; }
knows database database
