#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# A named volume: what a fio wrote that was killed, another one verifies, and so does the
# command; it is as long as it was made, and what cannot be done is refused with cause and fix.

. "$(dirname "$0")/fio.sh"

start_server --memory 64M --slab 4M
one=$address
start_server --memory 64M --slab 4M
servers=$one,$address
expect_success volume create scratch --size 16M --pool "$servers"
job=(--name=job --servers="$servers" --bs=4k)
named=("${job[@]}" --volume_name=scratch)

# Its length is known without size=.
expect_good "${named[@]}" --rw=write --verify=crc32c --output-format=json
[ "$(python3 -c 'import json; print(json.load(open("'"$scratch/out"'"))["jobs"][0]["write"]["io_bytes"])')" \
	= 16777216 ] || { show; fault "not all of the volume is written"; }

# Two jobs that share it: one fills it, and then the other reads until it is killed.
(cd "$scratch" && exec "${preload[@]}" fio --ioengine="external:$engine" "${named[@]}" --thread=1 \
	--rw=randwrite --iodepth=16 --verify=crc32c --do_verify=0 \
	--name=busy --ioengine="external:$engine" --servers="$servers" --volume_name=scratch \
	--thread=1 --stonewall --exec_prerun="touch $scratch/filled" --rw=randread --time_based \
	--runtime=300 >out 2>err) &
killed=$!
server_pids+=("$killed")
for ((attempt = 0; attempt < 1200; attempt++)); do
	[ ! -e "$scratch/filled" ] || break
	kill -0 "$killed" 2>/dev/null || break
	sleep 0.05
done
[ -e "$scratch/filled" ] || { show; fault "the volume is not filled"; }
expect_bad "volume scratch is open by .*, or give take_over=1" "${named[@]}" --rw=read
kill -KILL "$killed"
wait "$killed"

check=("${named[@]}" --rw=randwrite --verify=crc32c --verify_only=1)
expect_good "${check[@]}" --take_over=1
grep -qE 'issued rwts: total=4096,' "$scratch/out" || { show; fault "not all is verified"; }
expect_good "${check[@]}" # it was closed
expect_success volume export scratch "$scratch/copy" --pool "$servers"
(cd "$scratch" && fio --name=job --filename=copy --size=16M --bs=4k --rw=randwrite --verify=crc32c \
	--verify_only=1 >out 2>err) || { show; fault "the command reads something else"; }

# What fio reads is what the command has written.
expect_success volume create pattern --size 4M --pool "$servers"
for ((i = 0; i < 1024; i++)); do printf '%4096s' x; done | tr ' x' '\253\253' >"$scratch/data"
expect_success volume import pattern "$scratch/data" --pool "$servers"
expect_good "${job[@]}" --volume_name=pattern --rw=write --verify=pattern --verify_pattern=0xab \
	--verify_only=1
printf 'x' | dd of="$scratch/data" bs=1 seek=1000000 conv=notrunc 2>/dev/null
expect_success volume import pattern "$scratch/data" --pool "$servers"
expect_bad 'verify' "${job[@]}" --volume_name=pattern --rw=write --verify=pattern \
	--verify_pattern=0xab --verify_only=1

# A part of it, and jobs one after another.
expect_good "${named[@]}" --rw=write --offset=4M --size=4M --verify=crc32c
expect_good "${named[@]}" --rw=write --size=1M --verify=crc32c --name=next --rw=read \
	--ioengine="external:$engine" --servers="$servers" --volume_name=scratch --stonewall

# Mistakes.
expect_bad 'there is no volume none on these servers; rdmabox volume list shows' "${job[@]}" \
	--volume_name=none --rw=read
expect_bad 'no server that answers has volume scratch: .*127.0.0.1:1' --name=job \
	--servers=127.0.0.1:1 --volume_name=scratch --rw=read
expect_bad 'the job ends at 17825792, beyond the 16777216 bytes of volume scratch' "${named[@]}" \
	--rw=read --size=17M
expect_bad 'volume_name and volume exclude each other' "${named[@]}" --rw=read --volume=16M
for option in replicas=2 checksums=1 on_demand=1; do
	expect_bad 'volume_name goes with neither replicas nor checksums nor on_demand' \
		"${named[@]}" --rw=read --"$option"
done
expect_bad 'thread=1 makes the jobs threads of one' "${named[@]}" --rw=read --numjobs=2
expect_good "${named[@]}" --rw=read --numjobs=2 --thread=1
expect_bad 'take_over=1 needs volume_name=NAME' "${job[@]}" --rw=read --size=4M --take_over=1

# With replicas it is found and read without a server that is dead.
start_server --memory 64M --slab 4M
victim=$pid
safe=$one,$address
expect_success volume create safe --size 8M --replicas 2 --pool "$safe"
expect_good --name=job --servers="$safe" --volume_name=safe --bs=4k --rw=write --verify=crc32c
start_server --memory 64M --slab 4M
expect_success volume add-server safe "$address" --pool "$safe"
safe+=,$address
kill -KILL "$victim"
fio_run --name=job --servers="$safe" --volume_name=safe --bs=4k --rw=write --verify=crc32c \
	--verify_only=1
[ "$status" = 0 ] || { show; fault "it is not read without the dead server"; }
