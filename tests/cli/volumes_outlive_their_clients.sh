#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# rdmabox volume: what is written to a named volume is there for the next program, also if the
# one before was killed or only slept; who was shut out changes nothing; and each mistake is one
# line.

. "$(dirname "$0")/rdmabox.sh"

servers=
for _ in 1 2 3; do
	start_server --memory 64M --slab 4M
	servers+=${servers:+,}$address
done
cd "$scratch" || exit 1

# volume COMMAND ARGUMENT... - has to go well
volume()
{
	expect_success volume "$@" --pool "$servers"
}

# refused PATTERN COMMAND ARGUMENT...
refused()
{
	expect_refusal "$1" volume "${@:2}" --pool "$servers"
}

# failed CODE PATTERN ARGUMENT... - it ran, and failed in one line
failed()
{
	run "${@:3}"
	[ "$status" = "$1" ] || { show; fault "rdmabox ${*:3}: exit code $status, not $1"; }
	[ "$(wc -l <err)" = 1 ] || { show; fault "rdmabox ${*:3}: not one line"; }
	grep -qE -- "$2" err || { show; fault "rdmabox ${*:3}: does not say $2"; }
}

lent_slabs()
{
	local each count=0

	for each in ${servers//,/ }; do
		expect_success stat "$each" --json
		count=$((count + $(key slabs_lent)))
	done
	echo "$count"
}

# expect_sum FILE - the last command printed the SHA-256 of it, as sha256sum does
expect_sum()
{
	sha256sum --check --status out || { show; fault "not the SHA-256 of the file"; }
	[ "$(wc -l <out)" = 1 ] || { show; fault "more than the sum"; }
}

# ---- made, listed, shown ------------------------------------------------------------------

volume list --json
[ "$(key volumes)" = '[]' ] && [ "$(key servers_away)" = '[]' ] ||
	{ show; fault "volumes before there are any"; }
volume create db --size 48M
[ ! -s out ] && [ ! -s err ] || { show; fault "create is not silent"; }
volume create --name other --size 8M --keep 36h
volume show db --json
[ "$(key name)" = db ] && [ "$(key volume_bytes)" = 50331648 ] && [ "$(key slab_bytes)" = 4194304 ] &&
	[ "$(key keep_s)" = None ] && [ "$(key is_open)" = False ] && [ "$(key servers)" = 3 ] &&
	[ "$(key servers_there)" = 3 ] || { show; fault "show --json"; }
volume list
grep -qE '^NAME +SIZE +KEEP +SERVERS +STATE +OPEN BY$' out &&
	grep -qE '^db +48 MiB +ever +3/3 +all +-$' out &&
	grep -qE '^other +8 MiB +36h +3/3 +all +-$' out || { show; fault "list"; }
volume list --json
python3 -c 'import json; assert [v["keep_s"] for v in json.load(open("out"))["volumes"]] == [None, 129600]' ||
	{ show; fault "list --json"; }
volume grow other --size 12M
[ ! -s out ] && [ ! -s err ] || { show; fault "grow is not silent"; }
volume grow other --size 12M
volume show other --json
[ "$(key volume_bytes)" = 12582912 ] && [ "$(key keep_s)" = 129600 ] || { show; fault "grow"; }
volume remove other
volume show db
grep -qE '^ +keep +ever$' out || { show; fault "show"; }

# ---- there and back -----------------------------------------------------------------------

[ "$(lent_slabs)" = 0 ] || fault "a volume that is blank takes memory"
head -c 48M /dev/urandom >data
volume import db data
expect_sum
volume export db copy
expect_sum
cmp -s data copy || fault "export is not what was imported"
[ ! -e copy.part ] || fault "a part is left"
[ "$(lent_slabs)" = 12 ] || fault "not 12 slabs"
"$rdmabox" volume export db - --pool "$servers" 2>err | cmp -s - data || fault "export to stdout"
grep -qE '^[0-9a-f]{64}  -$' err || { show; fault "no sum on stderr"; }

# Of odd lengths, from a pipe, in small pieces; the rest of the volume stays.
(for _ in 1 2 3; do head -c 100001 data; sleep 0.1; done) >pieces
(for _ in 1 2 3; do head -c 100001 data; sleep 0.1; done) |
	"$rdmabox" volume import db - --pool "$servers" >out 2>err || { show; fault "import of a pipe"; }
[ "$(cut -d ' ' -f 1 out)" = "$(sha256sum <pieces | cut -d ' ' -f 1)" ] || { show; fault "sum of a pipe"; }
{ cat pieces; tail -c +300004 data; } >expected
volume export db copy
cmp -s expected copy || fault "a short import changes the rest, or is not there"

# Zeros take no memory, and are written where something else stands.
volume create sparse --size 48M
head -c 1 data | dd of=holes bs=1M seek=40 conv=notrunc status=none
truncate -s 48M holes
volume import sparse holes
[ "$(lent_slabs)" = 13 ] || fault "zeros take memory: $(lent_slabs) slabs"
volume import db holes
volume export db copy
cmp -s holes copy || fault "zeros are not written over data"
volume remove sparse
: >empty
volume import db empty
expect_sum

# A link is followed, and a file keeps its rights.
chmod 640 copy
ln -s copy link
volume export db link
[ -L link ] && [ "$(stat -c %a copy)" = 640 ] || fault "export replaces a link, or the rights"

# On a terminal it shows how far it is.
python3 - "$rdmabox" "$servers" <<'END' || fault "no progress on a terminal"
import os, pty, re, subprocess, sys
mine, theirs = pty.openpty()
source = subprocess.Popen(["sh", "-c", "for i in 1 2 3 4 5; do head -c 1000000 data; sleep 0.3; done"],
                          stdout=subprocess.PIPE)
done = subprocess.run([sys.argv[1], "volume", "import", "db", "-", "--pool", sys.argv[2]],
                      stdin=source.stdout, stdout=subprocess.PIPE, stderr=theirs, check=False)
said = os.read(mine, 65536)
assert done.returncode == 0, said
assert re.search(rb"\r\x1b\[Kimport  [\d.]+ MB  [\d.]+ MB/s", said), said
assert re.search(rb"\r\x1b\[Kimport: 5\.0 MB in [\d.]+ s, [\d.]+ MB/s\r\n$", said), said
END

# ---- a writer that is killed, or sleeps ----------------------------------------------------

# begin_writer - a bench that writes, once it is measuring; sets writer_pid
begin_writer()
{
	: >writer.err
	"$rdmabox" bench --pool "$servers" --volume-name db --op write --runtime "$limit_s" \
		--progress >writer.out 2>writer.err &
	writer_pid=$!
	server_pids+=("$writer_pid")
	for ((attempt = 0; attempt < 20 * limit_s; attempt++)); do
		! grep -q '^measure' writer.err || return 0
		kill -0 "$writer_pid" 2>/dev/null || break
		sleep 0.05
	done
	cat writer.err >&2
	fault "the writer does not write"
}

begin_writer
volume show db --json
[ "$(key is_open)" = True ] && [[ $(key writer) == *"process $writer_pid" ]] || { show; fault "show does not name the writer"; }
for command in 'export db none' 'import db data'; do
	# shellcheck disable=SC2086 # words
	refused "open by .*process $writer_pid.*--take-over" $command
done
refused "open by .*process $writer_pid.*--force" remove db
[ ! -e none ] && [ ! -e none.part ] || fault "a refused export leaves a file"
kill -KILL "$writer_pid"
wait "$writer_pid" 2>/dev/null
refused "open by .*process $writer_pid" export db none
volume export db copy --take-over
expect_sum
volume import db data
expect_sum

begin_writer
kill -STOP "$writer_pid"
volume export db before --take-over
kill -CONT "$writer_pid"
wait "$writer_pid"
status=$?
[ "$status" = 1 ] || { cat writer.err >&2; fault "who was shut out ends with $status, not 1"; }
grep -q 'requests failed' writer.err || { cat writer.err >&2; fault "who was shut out does not say so"; }
volume export db after
cmp -s before after || fault "who was shut out has changed something"

# It wakes up while another one has it open.
begin_writer
kill -STOP "$writer_pid"
volume import db data --take-over
volume export db before
kill -CONT "$writer_pid"
wait "$writer_pid"
volume export db after
cmp -s data after || fault "who was shut out has changed something"

# An import that is taken from says how far it came.
(while cat data 2>/dev/null; do :; done) | "$rdmabox" volume import db - --pool "$servers" >out.fast 2>err.fast
grep -q 'standard input is longer than the volume; the first 50331648 bytes were written' err.fast ||
	{ cat err.fast >&2; fault "too long a stream is not told"; }
mkfifo pipe
"$rdmabox" volume import db pipe --pool "$servers" >out.slow 2>err.slow &
writer_pid=$!
server_pids+=("$writer_pid")
exec 3>pipe
head -c 1000000 data >&3
for ((attempt = 0; attempt < 20 * limit_s; attempt++)); do
	volume show db --json
	[ "$(key is_open)" = False ] || break
	sleep 0.05
done
volume export db before --take-over
head -c 20000000 data >&3 2>/dev/null
exec 3>&-
wait "$writer_pid"
status=$?
[ "$status" = 1 ] || { cat err.slow >&2; fault "an import that was shut out: exit code $status"; }
grep -qE 'another program took the volume over.*the first [0-9]+ bytes were written' err.slow ||
	{ cat err.slow >&2; fault "an import that was shut out does not say so"; }
volume export db after
cmp -s before after || fault "an import that was shut out has changed something"

# bench: reading leaves the contents alone, writing checks them.
expect_success bench --pool "$servers" --volume-name db --runtime 0.2 --warmup 0 --json -
[ "$(key volume_name)" = db ] && [ "$(key volume_bytes)" = 50331648 ] || { show; fault "bench names no volume"; }
volume export db after
cmp -s before after || fault "a bench that reads has changed something"
expect_success bench --pool "$servers" --volume-name db --op mix:50 --verify --runtime 0.2 --warmup 0
volume export db after
! cmp -s before after || fault "a bench that writes has changed nothing"

# ---- signals -----------------------------------------------------------------------------

"$rdmabox" volume import db pipe --pool "$servers" >out 2>err &
writer_pid=$!
server_pids+=("$writer_pid")
exec 3>pipe
head -c 1000000 data >&3
kill -INT "$writer_pid"
wait "$writer_pid"
status=$?
exec 3>&-
[ "$status" = 130 ] || { show; fault "an import and SIGINT: exit code $status, not 130"; }
grep -qE 'interrupted; the first [0-9]+ bytes were written$' err || { show; fault "it does not say how far it came"; }
volume show db --json
[ "$(key is_open)" = False ] || fault "an import that was interrupted leaves the volume open"
# A reader that takes its time: the export is in the middle.
"$rdmabox" volume export db pipe --pool "$servers" >out 2>err &
writer_pid=$!
server_pids+=("$writer_pid")
exec 3<pipe
head -c 1000000 <&3 >/dev/null
kill -TERM "$writer_pid"
(cat <&3 >/dev/null &)
wait "$writer_pid"
status=$?
exec 3<&-
[ "$status" = 143 ] || { show; fault "an export and SIGTERM: exit code $status, not 143"; }
grep -qE 'interrupted; the first [0-9]+ bytes were written$' err || { show; fault "it does not say how far it came"; }

# ---- mistakes ----------------------------------------------------------------------------

refused 'there is a volume of this name' create db --size 48M
refused 'cannot have the name' create a/b --size 48M
refused '1 to 63 bytes' create "$(printf 'x%.0s' {1..64})" --size 48M
refused 'add the NAME' create --size 48M
refused 'add --size' create new
refused 'multiple of 4096' create new --size 5000
refused "--size '0'" create new --size 0
refused 'cannot become smaller' grow db --size 44M
refused 'multiple of 4096' grow db --size 50331649
refused 'add --size' grow db
refused 'there is no volume nosuch' grow nosuch --size 48M
expect_refusal 'too few are left to change it' volume grow db --size 64M --pool "$address"
for keep in '' 0 7 0s 5x 1.5h h 36501d 99999999999999999999 never 5dd; do
	refused "--keep '$keep'.*from 1s to 36500d" create new --size 4M --keep "$keep"
done
refused 'exclude each other' list --secret-file x --insecure
expect_refusal 'add --pool' volume list
expect_refusal 'give create, list' volume
expect_refusal "unknown command 'ls'" volume ls
expect_refusal 'cannot connect to 127.0.0.1:1' volume create new --size 4M --pool "$servers,127.0.0.1:1"
expect_refusal 'not among those given' volume export db none --pool "${servers%,*}"
expect_refusal 'named twice' volume create new --size 4M --pool "$address,$address"
refused 'there is no such volume' show nosuch
for command in 'export nosuch none' 'import nosuch data' 'remove nosuch'; do
	# shellcheck disable=SC2086 # words
	refused 'there is no volume nosuch' $command
done
[ ! -e none ] && [ ! -e none.part ] || fault "a refused export leaves a file"
refused 'add FILE' import db
refused 'No such file' import db none
refused 'directory' import db .
if [ "$(id -u)" != 0 ]; then
	: >secret
	chmod 0 secret
	refused 'Permission denied' import db secret
fi
truncate -s 48M long
printf x >>long
volume export db before
refused '50331649 bytes, and volume db only 50331648; nothing was written' import db long
volume export db after
cmp -s before after || fault "too long a file changes something"
refused 'Is a directory' export db .
refused 'No such file' export db none/file
: >busy.part
refused 'busy.part is there' export db busy
[ -e busy.part ] || fault "the part of another export is removed"
failed 1 'cannot write /dev/full: No space left' volume export db /dev/full --pool "$servers"
cp before kept
(ulimit -f 1000; trap '' XFSZ; "$rdmabox" volume export db kept --pool "$servers" >out 2>err)
status=$?
[ "$status" = 1 ] && grep -q 'cannot write kept: File too large; no file was written' err ||
	{ show; fault "a file that cannot be written whole: exit code $status"; }
cmp -s before kept || fault "the old file is lost"
[ ! -e kept.part ] || fault "a part is left"
"$rdmabox" volume export db - --pool "$servers" 2>err | head -c 10 >/dev/null
grep -q 'cannot write standard output: Broken pipe; the first' err || { show; fault "a reader that goes is not told"; }
volume create big --size 1G --overcommit
failed 1 'no server will lend memory, or the quota is reached; the first [0-9]+ bytes were written' volume import big /dev/urandom --pool "$servers"
volume remove big

# ---- removed: the memory is back ----------------------------------------------------------

volume remove db
for ((attempt = 0; attempt < 600; attempt++)); do
	[ "$(lent_slabs)" != 0 ] || break
	sleep 0.05
done
[ "$(lent_slabs)" = 0 ] || fault "$(lent_slabs) slabs stay lent"
volume list
[ ! -s out ] || { show; fault "a volume that was removed is listed"; }

# ---- a server dies when its part was written ------------------------------------------------

volume create db --size 48M
"$rdmabox" volume import db pipe --pool "$servers" >out 2>err &
writer_pid=$!
server_pids+=("$writer_pid")
exec 3>pipe
cat data >&3
kill -KILL "${server_pids[0]}"
exec 3>&-
wait "$writer_pid"
status=$?
[ "$status" = 1 ] && [ "$(wc -l <err)" = 1 ] || { show; fault "an import whose server died: exit code $status"; }
[ ! -s out ] || fault "a sum of what is lost"
refused 'lacks 1 of its servers' export db none
expect_success volume remove db --pool "${servers#*,}"
for each in $(tr , ' ' <<<"${servers#*,}"); do
	expect_success stat "$each" --json
	[ "$(key slabs_lent)" = 0 ] || fault "$each keeps slabs of a volume that was removed"
done
