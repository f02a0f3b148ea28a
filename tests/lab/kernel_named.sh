#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A volume that its servers keep is a device: what was written there is read by a program, and by
# the next device. One client has it open at a time, and the one before is shut out. It outlives a
# client that dies, and a server that dies while it is attached.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"

load_block_modules
servers=
for _ in 1 2 3; do
	start_verbs_server --memory 12M --insecure
	servers+=${servers:+,}$address
done
reach=(--pool "$servers" --insecure)

# attach_named NAME OPTION... - volume db, as the device of this name
attach_named()
{
	expect_success page attach "${patience[@]}" --name "$1" --volume db "${reach[@]}" "${@:2}"
	device=$(<"$scratch/out")
	volume=$volumes/$1
}

# of_device - the hash of all that is on it
of_device()
{
	dd if="$device" bs=128k iflag=direct status=none | sha256sum | cut -d ' ' -f 1
}

# A program reads what the device had, whose hash is given.
program_reads()
{
	expect_success volume export db "$scratch/copy" --fabric verbs "${reach[@]}"
	[ "$(cut -d ' ' -f 1 "$scratch/out")" = "$1" ] || fault "a program reads something else"
}

cannot_write()
{
	! dd if=/dev/zero of="$1" bs=4k count=1 oflag=direct status=none 2>/dev/null
}

cannot_read()
{
	! dd if="$1" of=/dev/null bs=4k count=1 skip=9 iflag=direct status=none 2>/dev/null
}

expect_success volume create db --size 8M --replicas 2 --fabric verbs "${reach[@]}"
expect_refusal 'have no volume of that name' page attach --volume other "${reach[@]}"
expect_refusal 'as it was made' page attach --volume db --size 8M "${reach[@]}"
[ -z "$(ls $volumes)" ] || fault "a failure leaves a volume"

# ---- what is written is kept -----------------------------------------------------------------
attach_named page
[ "$(number size) $(number replicas)" = "$((8 << 20)) 2" ] || fault "it is not as it was made"
make_file_system
files_are_kept
! blkdiscard "$device" 2>/dev/null || fault "what is kept was discarded"
hash=$(of_device)
expect_success page detach
program_reads "$hash"
attach_named page
[ "$(of_device)" = "$hash" ] || fault "the next device has something else"
pass "what is on a device that has a name is kept, for programs and for the next one"

# ---- one at a time ---------------------------------------------------------------------------
expect_refusal "volume db is open by $(uname -n), kernel" page attach --name next --volume db \
	"${reach[@]}"
former=$device
dd if=/dev/zero of="$former" bs=4k count=1 oflag=direct status=none || fault "it is disturbed"
attach_named next --take-over
keep 1
cannot_write "$former" || fault "who was shut out still writes"
cannot_read "$former" || fault "who was shut out still reads"
eventually logged 'read and written no more' || fault "nobody is told"
is_kept || fault "something else is read than was written"
expect_success page detach --name page
is_kept || fault "it is lost with the device that was shut out"
expect_success page detach --name next
pass "one device has it at a time; who takes it over shuts the other one out"

# ---- who has it dies -------------------------------------------------------------------------
mkfifo "$scratch/fifo"
"$rdmabox" volume import db "$scratch/fifo" --fabric verbs "${reach[@]}" >"$scratch/import" 2>&1 &
program=$!
server_pids+=("$program")
exec 8>"$scratch/fifo"
head -c 2M /dev/urandom >&8
kill -KILL "$program"
wait "$program" 2>/dev/null
exec 8>&-
# A server that cannot be asked may serve it still, so this is waited for, and may be given up.
kill -STOP "${server_pids[0]}"
"$rdmabox" page attach "${patience[@]}" --name page --volume db "${reach[@]}" --take-over \
	>"$scratch/out" 2>"$scratch/err" &
attaching=$!
eventually grep -q 'volume db is being opened: .* servers are missing' "$scratch/err" ||
	fault "nobody says what it waits for"
kill -INT "$attaching"
wait "$attaching"
status=$?
[ "$status" = 130 ] || fault "an attach that is interrupted ends with $status"
grep -q 'interrupted; nothing is attached' "$scratch/err" || fault "nobody says that it was interrupted"
[ -z "$(ls $volumes)" ] || fault "an attach that is interrupted leaves a volume"
kill -CONT "${server_pids[0]}"
pass "an attach says what it waits for, and can be interrupted"

attach_named page --take-over
hash=$(of_device)
expect_success page detach
program_reads "$hash"
pass "it is attached after the program that had it was killed, and its replicas are equal"

# ---- one that is reserved --------------------------------------------------------------------
# Nobody can take its memory, even if servers have no more.
expect_success volume create kept --size 4M --replicas 2 --reserve --fabric verbs "${reach[@]}"
expect_success page attach "${patience[@]}" --name kept --volume kept "${reach[@]}"
device=$(<"$scratch/out")
volume=$volumes/kept
[ "$(number slabs_blank) $(number slabs_whole)" = "0 4" ] || fault "it has no memory yet"
keep 4
is_kept || fault "something else is read than was written"
expect_success page detach --name kept
expect_success page attach "${patience[@]}" --name kept --volume kept "${reach[@]}"
is_kept || fault "the next device has something else"
expect_success page detach --name kept
expect_success volume remove kept --fabric verbs "${reach[@]}"
pass "one that is reserved has all its memory when it is attached"

# ---- a server dies ---------------------------------------------------------------------------
attach_named page
keep 1
start_load dies --rw=randrw --bs=4k --offset=3M --size=1M --iodepth=4 --time_based \
	--runtime=$((170 * slowness))
eventually reaches completions 1000 || fault "the load does not begin"
kill -KILL "${server_pids[0]}"
eventually logged 'is gone, and with it' || fault "the server is not missed"
eventually is_whole || fault "the replicas are not made anew"
stop_load dies
is_kept || fault "it is lost with one server of three"
pass "a server dies while it is attached, and nothing is lost"

# ---- another one comes -----------------------------------------------------------------------
expect_refusal 'one of the servers already' page add-server "${servers##*,}"
expect_refusal 'does not answer' page add-server "$device_address:9"
start_verbs_server --memory 12M --insecure
expect_success page add-server "$address"
[ "$(number servers)" = "$servers,$address" ] || fault "the next attach does not need it"
servers+=,$address
reach=(--pool "$servers" --insecure)
dmesg -C
kill -KILL "${server_pids[1]}"
eventually logged 'is gone, and with it' || fault "the second server is not missed"
eventually is_whole || fault "the replicas are not made anew at the new server"
is_kept || fault "it is lost with two servers of four"
hash=$(of_device)
expect_success page detach
program_reads "$hash"
attach_named page
[ "$(of_device)" = "$hash" ] || fault "the next device has something else"
expect_success page detach
pass "another server comes while it is attached, and has all that a second one had"

volume=$volumes/test
attach "${servers##*,}" 4
expect_success page add-server --name test "$(cut -d , -f 3 <<<"$servers")"
reaches servers_up 2 || fault "a volume without a name has not got it"
detach
pass "so it does to a volume without a name"

rmmod rdmabox_block rdmabox || fault "the modules cannot be unloaded"
