#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# `rdmabox page`: a device is attached and is swap, is listed, has its link in /dev,
# counts and can be traced, refuses to go while it is in use and says by whom, and
# goes. Two volumes share the device below, which does nothing while they do nothing.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"

page="$rdmabox page"

# refused PATTERN STATUS COMMAND... - of page: one line, and nothing is left
refused()
{
	local pattern=$1 wanted=$2

	shift 2
	run page "$@"
	[ "$status" = "$wanted" ] || { show; fault "page $*: exit code $status, not $wanted"; }
	[ "$(wc -l <"$scratch/err")" = 1 ] || { show; fault "page $*: not one line"; }
	grep -qE -- "$pattern" "$scratch/err" || { show; fault "page $*: does not say $pattern"; }
}

tracing=/sys/kernel/tracing

# start_udev - with our rule
start_udev()
{
	mkdir -p /etc/udev/rules.d
	cp /host/cli/page/60-rdmabox.rules /etc/udev/rules.d/
	/lib/systemd/systemd-udevd --daemon --resolve-names=never || fault "no udev"
	server_pids+=("$(pgrep -x systemd-udevd)")
}

# of_device FILE - what sysfs says of the requests of $device
of_device()
{
	cat "/sys/block/${device#/dev/}/rdmabox/$1"
}

# numbers_of_pollers VOLUME
numbers_of_pollers()
{
	(cd "/sys/kernel/config/rdmabox/$1" && cat polls wakeups arms | xargs)
}

refused 'modprobe rdmabox_block' 2 list
load_module rdmabox
load_module rdmabox_block

echo "a secret that is long enough to be one" >"$scratch/secret"
echo "another one that is long enough to be one" >"$scratch/other"
chmod 600 "$scratch/secret" "$scratch/other"
start_verbs_server --memory 16M --secret-file "$scratch/secret"

refused 'no answer|does not answer' 2 attach --pool 10.9.0.1:9 --size 8M --insecure
refused 'give a --secret-file' 2 attach --pool "$address" --size 8M
refused 'refuses the secret' 2 attach --pool "$address" --size 8M --insecure
refused 'refuses the secret' 2 attach --pool "$address" --size 8M --secret-file "$scratch/other"
refused 'do not lend that much' 2 attach --pool "$address" --size 1G --secret-file "$scratch/secret"
refused 'dmesg' 2 attach --pool "$address" --size 8M --replicas 2 --secret-file "$scratch/secret"
refused "'here' is not an address: write host:port" 2 attach --pool here --size 8M --secret-file "$scratch/secret"
[ -z "$($page list)" ] || fault "a failure leaves a volume: $($page list)"
# What fails late is undone, though somebody still has a look at the device.
mkdir "$scratch/bin"
printf '#!/bin/sh\nexec 3<"$1"\nsleep 0.3 &\nexit 1\n' >"$scratch/bin/mkswap"
chmod +x "$scratch/bin/mkswap"
PATH=$scratch/bin:$PATH refused 'mkswap .* failed' 2 attach --pool "$address" --size 8M \
	--secret-file "$scratch/secret" --swap
[ -z "$($page list)" ] || fault "swap that fails leaves a volume: $($page list)"
pass "what cannot be attached is refused in a line, and leaves nothing"

# priority_of DEVICE - as swap
priority_of()
{
	awk -v device="$1" '$1 == device { print $5 }' /proc/swaps
}

modprobe zram && echo 16M >/sys/block/zram0/disksize && mkswap /dev/zram0 >/dev/null &&
	swapon -p 100 /dev/zram0 || fault "no other swap"
device=$($page attach --pool "$address" --size 8M --secret-file "$scratch/secret" --swap \
	--priority 7) || fault "cannot attach with a priority"
[ "$(priority_of "$device")" = 7 ] || fault "the priority is $(priority_of "$device"), not 7"
$page detach --swap || fault "cannot detach"
device=$($page attach --pool "$address" --size 8M --secret-file "$scratch/secret" --swap) ||
	fault "cannot attach"
[ "$(priority_of "$device")" -gt "$(priority_of /dev/zram0)" ] ||
	{ cat /proc/swaps >&2; fault "$device is no swap, or comes after another one"; }
swapoff /dev/zram0 || fault "swapoff"
[ "$($page list)" = "page ${device#/dev/} 8388608 1 8 0 8" ] || fault "the list says $($page list)"
$page status --json >"$scratch/out"
[ "$(key slabs_whole) $(key slabs_blank)" = "8 0" ] && [ "$(key work_requests)" -gt 0 ] || { show; fault "the status is wrong"; }
refused 'there is a volume page already' 2 attach --pool "$address" --size 8M --insecure
refused "$device is in use: swap.*--swap" 1 detach
exec 9<"$device"
refused "in use: process $$ " 1 detach --swap
exec 9<&-
$page detach --swap || fault "cannot detach"
[ ! -e "$device" ] || fault "$device is still there"
[ -z "$($page list)" ] || fault "the volume is still there"
refused 'there is no volume page' 2 detach
refused 'there is no volume other' 2 status --name other
pass "a device is attached, used, listed, and goes when nobody uses it"

# ---- what it counts and tells ---------------------------------------------------
echo 1 >"$tracing/events/rdmabox/enable" || fault "there are no tracepoints"
device=$($page attach --pool "$address" --size 4M --secret-file "$scratch/secret" \
	--queue-depth 64) || fault "cannot attach"
dd if=/dev/urandom of="$device" bs=64k count=16 oflag=direct status=none || fault "cannot write"
dd if="$device" of=/dev/null bs=4k count=32 iflag=direct status=none || fault "cannot read"
echo 0 >"$tracing/events/rdmabox/enable"
[ "$(of_device write_bytes)" = $((1 << 20)) ] || fault "$(of_device write_bytes) bytes written"
[ "$(of_device read_requests)" = 32 ] && [ "$(of_device read_bytes)" = $((32 * 4096)) ] ||
	fault "$(of_device read_requests) reads of $(of_device read_bytes) bytes"
[ "$(of_device read_errors)$(of_device write_errors)" = 00 ] || fault "it counts errors"
[ "$(of_device read_latency | awk '{ n += $2 } END { print n }')" = 32 ] ||
	fault "the histogram has not all reads"
p50=$(of_device read_latency_p50_ns)
[ "$p50" -gt 0 ] && [ "$p50" -le "$(of_device read_latency_p99_ns)" ] &&
	[ "$(of_device read_latency_p99_ns)" -le "$(of_device read_latency_max_ns)" ] ||
	fault "p50 $p50, p99 $(of_device read_latency_p99_ns), max $(of_device read_latency_max_ns)"
$page status --json >"$scratch/out"
[ "$(key read_requests)" = 32 ] && [ "$(key read_latency_p50_ns)" = "$p50" ] &&
	[ "$(key queue_depth)" = 64 ] || { show; fault "the status says something else"; }
$page list --json >"$scratch/out"
grep -q '"page": {' "$scratch/out" && [ "$(key read_requests)" = 32 ] ||
	{ show; fault "the list says something else"; }
pass "requests are counted, and how long they took"

cp "$tracing/trace" "$scratch/out"
[ "$(grep -c 'rdmabox_submit: .*op=read .*length_bytes=4096 pieces=1$' "$scratch/out")" = 32 ] ||
	{ show; fault "not all reads are in the trace"; }
[ "$(grep -c 'rdmabox_submit: .*op=write .*length_bytes=65536 ' "$scratch/out")" = 16 ] ||
	{ show; fault "not all writes are in the trace"; }
posted=$(sed -n 's/.*rdmabox_post: .* length_bytes=//p' "$scratch/out" | awk '{ n += $1 } END { print n }')
[ "$posted" = $(((1 << 20) + 32 * 4096)) ] || fault "$posted bytes are in the trace of posts"
grep -q "rdmabox_complete: server=$address queue_pair=0 number=[0-9]* status=0" "$scratch/out" ||
	{ show; fault "no completion is in the trace"; }
grep -q "rdmabox_peer_state: server=$address phase=up" "$scratch/out" ||
	{ show; fault "the connection is not in the trace"; }
pass "a request can be traced from its submit to its completion"
$page detach || fault "cannot detach"

# ---- two volumes on one device -----------------------------------------------------
start_udev
for name in page other; do
	$page attach --pool "$address" --size 4M --secret-file "$scratch/secret" \
		--name "$name" >/dev/null || fault "cannot attach $name"
done
udevadm settle
device=$(readlink -f /dev/rdmabox/page)
[ "${device#/dev/}" = "$(cat /sys/kernel/config/rdmabox/page/device)" ] ||
	fault "/dev/rdmabox/page is $device"
[ -b /dev/rdmabox/other ] || fault "there is no /dev/rdmabox/other"
grep -qF '[none]' "/sys/block/${device#/dev/}/queue/scheduler" || fault "it has a scheduler"
pass "a device has its name in /dev, and no scheduler"

# Soft-RoCE has a completion vector for each processor.
[ "$(pgrep -c '^rdmabox/rxe0')" = "$(nproc)" ] ||
	fault "$(pgrep -c '^rdmabox/rxe0') pollers on $(nproc) processors"
before=$(numbers_of_pollers other)
# udev may still look at the devices; then once more.
for ((attempt = 0; attempt < 30; attempt++)); do
	sleep 1
	now=$(numbers_of_pollers other)
	[ "$now" != "$before" ] || break
	before=$now
done
[ "$now" = "$before" ] || fault "a device that nobody uses is polled"
dd if=/dev/rdmabox/other of=/dev/null bs=4k count=1 iflag=direct status=none || fault "cannot read"
now=$(numbers_of_pollers other)
[ "$now" != "$before" ] || fault "a read moves no counter: they do not show that nothing moves"
[ "$now" = "$(numbers_of_pollers page)" ] || fault "two volumes on a device have each their pollers"
pass "two volumes share the pollers, which do nothing while they do nothing"

mkfs.ext4 -q "$device" && mount "$device" /mnt || fault "no file system on it"
refused "in use: mounted on /mnt" 1 detach
umount /mnt
$page detach || fault "cannot detach"
dd if=/dev/rdmabox/other of=/dev/null bs=4k count=1 iflag=direct status=none ||
	fault "the other one went with it"
$page detach --name other || fault "cannot detach the other one"
udevadm settle
[ ! -e /dev/rdmabox/page ] && [ ! -e /dev/rdmabox/other ] || fault "a link stays behind"
[ "$(pgrep -c '^rdmabox/rxe0')" = 0 ] || fault "pollers stay behind"
pass "each goes by itself, and the last with all that they shared"

rmmod rdmabox_block rdmabox || fault "the modules cannot be unloaded"
