#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What cannot be done is refused before anything is written: the error says what is wrong,
# and fio's exit code is not 0.

. "$(dirname "$0")/fio.sh"

start_server --memory 64M --slab 4M
job=(--name=job --servers="$address" --rw=randwrite --bs=4k)
good=("${job[@]}" --size=8M)

expect_good "${good[@]}"
expect_bad 'rdmabox: no memory servers; give servers=' --name=job --size=8M --rw=write
expect_bad 'rdmabox: cannot connect to 127.0.0.1:1:' --name=job --servers=127.0.0.1:1 --size=8M
expect_bad 'Give volume=, or size= in bytes' "${job[@]}"
expect_bad 'Give volume=, or size= in bytes' "${job[@]}" --size=50%
expect_good "${job[@]}" --size=50% --volume=8M
expect_good "${job[@]}" --size=4M --offset=4M
expect_good "${job[@]}" --size=8389120 --bs=512 # the volume ends with a page
expect_bad 'ends at 8388608, beyond volume=4194304' "${good[@]}" --volume=4M
expect_bad 'ends at 12582912, beyond volume=8388608' "${good[@]}" --volume=8M --offset=4M
expect_bad 'multiple of' "${good[@]}" --volume=9000000
expect_bad 'add up to more than there can be' "${good[@]}" --numjobs=2 \
	--offset=9223372036854771712 --offset_increment=9223372036854771712
expect_bad 'secret_file: longer than 255' "${good[@]}" --secret_file="/$(printf '%0600d' 0)"
expect_bad 'rdmabox: .*refused: no memory left to lend' "${good[@]}" --volume=1G

expect_bad 'replicas.*(max value|out of range)|max value out of range' "${good[@]}" --replicas=4
expect_bad 'rdmabox: .*replicas' "${good[@]}" --replicas=2
expect_bad 'mode=both: must be one of single' "${good[@]}" --mode=both
expect_bad 'window=5x: must be off, aimd' "${good[@]}" --window=5x
expect_bad 'fragment_bytes=12K: must be a power of two|fragment_bytes=.*power of two' \
	"${good[@]}" --fragment=12K
expect_bad 'buffers=none: must be one of' "${good[@]}" --buffers=none
expect_bad 'polling' "${good[@]}" --polling=sometimes
expect_bad 'pollers=0: must be 1 to 16' "${good[@]}" --pollers=0
expect_bad 'pollers=17: must be' "${good[@]}" --pollers=17
expect_bad 'queue_pairs=17: must be' "${good[@]}" --qps=17
expect_bad 'poll_cpu_percent=0: must be' "${good[@]}" --poll_cpu=0
expect_bad 'peer_timeout_ms=1: must be' "${good[@]}" --peer_timeout=1
expect_bad 'fabric=ether: must be one of' "${good[@]}" --fabric=ether
expect_bad 'overload=many: must be off' "${good[@]}" --overload=many
expect_bad 'unrecognized option|Bad option|bad option' "${good[@]}" --foo=1

expect_bad 'trim needs on_demand=1' "${good[@]}" --rw=randtrim
expect_bad 'trim_verify_zero=1: a trim leaves' "${good[@]}" --verify=crc32c --on_demand=1 \
	--trim_percentage=10 --trim_backlog=8
expect_bad 'checksums=1 wants block sizes' "${good[@]}" --bs=512 --checksums=1
expect_bad 'checksums=1 wants block sizes and offsets' "${good[@]}" --offset=512 --checksums=1
expect_bad 'nrfiles=2: a volume is one file' "${good[@]}" --nrfiles=2
expect_bad 'block size 402653184: at most' "${job[@]}" --size=1G --bs=384M
expect_bad "can't be used with offloaded submit" "${good[@]}" --io_submit_mode=offload

# Of a batch only the request fails that the library refuses.
printf '%s\n' 'fio version 2 iolog' 'rdmabox add' 'rdmabox open' 'rdmabox write 0 4096' \
	'rdmabox write 4608 4096' 'rdmabox write 8192 4096' 'rdmabox write 12288 4096' \
	'rdmabox close' >"$scratch/iolog"
expect_bad 'error=Invalid argument' --name=job --servers="$address" --volume=8M --checksums=1 \
	--iodepth=4 --iodepth_batch=4 --read_iolog="$scratch/iolog"
[ "$(grep 'are not whole pages' "$scratch/err")" = "rdmabox: 4096 bytes at 4608 are not whole \
pages of 4096 bytes, which checksums need" ] || { show; fault "not one request is refused"; }

# Threads whose volumes differ do not share one.
second=(--name=second --thread=1 --rw=write --ioengine="external:$engine")
expect_bad 'cannot connect to 127.0.0.1:1:' "${good[@]}" --thread=1 \
	"${second[@]}" --servers=127.0.0.1:1 --size=8M
expect_bad '2 replicas need as many servers' "${good[@]}" --thread=1 \
	"${second[@]}" --servers="$address" --size=8M --replicas=2
# Those that share one get the largest that they need, if it is not open yet.
expect_good "${good[@]}" --thread=1 "${second[@]}" --servers="$address" --size=16M
expect_bad 'other jobs have opened the volume with 8388608 bytes, and this one needs 16777216' \
	"${good[@]}" --thread=1 --time_based --runtime=6 \
	"${second[@]}" --servers="$address" --size=16M --startdelay=3 --create_serialize=0
# All of them fail if it cannot be opened.
expect_bad 'no memory left to lend' "${job[@]}" --size=1G --thread=1 --numjobs=2
[ "$(grep -c '^rdmabox: .*no memory left to lend' "$scratch/err")" = 2 ] ||
	{ show; fault "not both threads say that there is no volume"; }

# Secrets.
umask 077
echo the-secret-of-one-server >"$scratch/secret"
echo the-secret-of-another >"$scratch/wrong"
start_server --memory 64M --slab 4M --secret-file "$scratch/secret"
secret=(--name=job --servers="$address" --rw=randwrite --bs=4k --size=8M --verify=crc32c)
expect_good "${secret[@]}" --secret_file="$scratch/secret"
expect_bad 'rdmabox: .*secret' "${secret[@]}" --secret_file="$scratch/wrong"
expect_bad 'rdmabox: .*secret' "${secret[@]}" --secret_file="$scratch/none"
beyond=("${good[@]}" --servers=192.0.2.1:7471 --fabric=soft:tcp --peer_timeout=100)
expect_bad '192.0.2.1:7471 is another machine and there is no secret' "${beyond[@]}"
expect_bad 'rdmabox: .*192.0.2.1:7471' "${beyond[@]}" --insecure=1
! grep -q 'no secret' "$scratch/err" || { show; fault "insecure=1 changes nothing"; }
expect_bad 'exclude each other' "${secret[@]}" --secret_file="$scratch/secret" --insecure=1

# A file of the name that fio gives to the job's one stays.
: >"$scratch/job.0.0"
expect_good "${good[@]}" --unlink=1
[ -e "$scratch/job.0.0" ] || fault "a file of the user is gone"

# An engine of another version of fio.
version=$(fio --version)
sed "s/$version/fio-9.99/g" "$engine" >"$scratch/other.so"
cmp -s "$engine" "$scratch/other.so" && fault "the engine does not name its version"
LD_LIBRARY_PATH=$build/lib engine=$scratch/other.so
export LD_LIBRARY_PATH
if [ ${#version} = 8 ]; then # the text was replaced by one as long
	expect_bad "built for fio-9.99, and this is $version" "${good[@]}"
fi
