#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# What the RDMA stack or memory refuses to a block device, where no hardware would do so
# when it is told to: a queue pair that is not flushed, posts and mappings that fail. No
# write is acknowledged that did not happen, none fails for what is short for a moment,
# and nothing hangs.

. "$(dirname "$(readlink -f "$0")")/kernel.sh"
# shellcheck source=cable.sh
. "$(dirname "$(readlink -f "$0")")/cable.sh"
# shellcheck source=faults.sh
. "$(dirname "$(readlink -f "$0")")/faults.sh"

load_block_modules
load_faults

# ---- the combiner ----------------------------------------------------------------------
start_verbs_server --memory 24M --insecure
near=$address
attach "$near" 8
inject watch rxe_post_send '[rdmabox]'
keep 2
is_kept || fault "something else is read than was written"
[ "$(injected rxe_post_send calls)" -gt 16 ] || fault "nobody was watched: $(<"$faults")"
[ "$(injected rxe_post_send)" = 0 ] ||
	fault "who posts for all may be preempted: $(<"$faults")"
inject clear
detach
pass "who posts for all others is not preempted"

# ---- shortages -------------------------------------------------------------------------
modprobe brd rd_nr=1 rd_size=16384 || fault "no disk"
# short NAME BY VALUE OPTION... - a load that does not fail, while mappings fail, and what
# BY submits to the volume
short()
{
	attach "$near" 8 "${@:4}"
	inject fail ib_dma_virt_map_sg '[rdmabox]' 0 30 10
	inject fail rbx_volume_submit "$2" "$3" 30
	start_load "$1" --rw=randwrite --bsrange=4k-64k --blockalign=4k --size=4M
	end_load "$1"
	[ "$status" = 0 ] || { cat "$scratch/fio.$1.err" >&2; fault "$1: a shortage is an error"; }
	is_injected rbx_volume_submit 30 && is_injected ib_dma_virt_map_sg 30 ||
		fault "$1: nothing was short: $(<"$faults")"
	inject clear
	detach
}
short plain '*' -11
short checked '*' -11 checksums=1
# What had to wait for memory of the backup, its thread submits.
short backed rbx_backup -12 backup=/dev/ram0 backup_buffer=$((256 << 10))
rmmod brd || fault "the disk is still in use"
pass "what is short for a moment is no I/O error"

# ---- a device that does not give back ------------------------------------------------------
lay_cable
device_address=$network.2 start_verbs_server --device rxe3 --memory 24M --insecure
far=$address

# patient_attach SERVERS MIB [OPTION=VALUE]... - with queue pairs that do not end by
# themselves for seven seconds: with the route's timeout, and not ours
patient_attach()
{
	inject fail rdma_set_ack_timeout '[rdmabox]' 0
	attach "$@"
	is_injected rdma_set_ack_timeout 2 || fault "timeouts are ours: $(<"$faults")"
	inject clear
}

# A write is on its way when the cable is pulled; then nobody knows whether it happened.
# unknown NAME [FUNCTION] - where FUNCTION, if any, fails whoever repairs the connection
unknown()
{
	local writing

	patient_attach "$far" 8 peer_timeout_ms=4000
	keep 1
	[ -z "${2:-}" ] || inject fail "$2" rdmabox/repair -12
	dmesg -C
	head -c 4096 /dev/urandom >"$scratch/new"
	cable 100
	dd if="$scratch/new" of="$device" bs=4k oflag=direct status=none &
	writing=$!
	server_pids+=("$writing")
	inject fail rxe_modify_qp '*' -5
	eventually logged 'does not give back what was posted' ||
		{ dmesg; fault "$1: the drain ends: $(<"$faults")"; }
	sleep 0.3
	kill -0 "$writing" 2>/dev/null ||
		fault "$1: a write is acknowledged, and nobody knows whether it happened"
	[ -z "${2:-}" ] || is_injected "$2" 1 || fault "$1: nothing fails: $(<"$faults")"
	inject clear
	cable 0
	wait "$writing" || { dmesg; fault "$1: a write fails"; }
	dd if="$device" bs=4k count=1 iflag=direct status=none | cmp - "$scratch/new" ||
		fault "$1: a write was acknowledged that never happened"
	detach
}

unknown "the drain does not end"
# What is to come back last cannot be posted.
unknown "the drain fails" rxe_post_send
pass "a drain that does not end, or fails, acknowledges nothing"

# ---- and is not waited for -----------------------------------------------------------------
# With 16 queue pairs, each of which would be waited for alone, and a copy elsewhere.
device_address=$network.1 start_verbs_server --device rxe2 --memory 24M --insecure
patient_attach "$far,$address" 8 replicas=2 queue_pairs=16 peer_timeout_ms=4000
keep 1
dmesg -C
inject fail rxe_modify_qp '*' -5
cable 100
begin=$SECONDS
keep 1
took=$((SECONDS - begin))
# Three times the peer timeout: for a machine that is slow.
[ "$took" -lt $((12 * slowness)) ] ||
	{ dmesg; fault "a write waits $took s for a server, with a peer timeout of 4 s"; }
logged 'does not give back what was posted' || { dmesg; fault "the drain ends"; }
is_kept || fault "something else is read than was written"
inject clear
cable 0
detach
pass "16 queue pairs that do not come back: a write waits $took s with a peer timeout of 4 s"

kill -KILL "${server_pids[@]}" 2>/dev/null
wait 2>/dev/null
remove_wire 2
rmmod rdmabox_faults rdmabox_block rdmabox || fault "the modules cannot be unloaded"
