# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# shellcheck shell=bash
#
# What the scripts share that lay a wire whose cable can be pulled: rxe2 at $network.1 and
# rxe3 at $network.2. After kernel.sh. Not executable, so that lab/guest/run-tests leaves
# it alone.

# shellcheck source=../../lab/guest/wire
. /host/lab/guest/wire

network=10.9.1

lay_cable()
{
	local end

	modprobe sch_netem || fault "no netem"
	lay_wire 2 "$network"
	for end in veth2 veth3; do
		tc qdisc add dev $end root netem loss 0% || fault "no netem on $end"
	done
}

# cable PERCENT - how much of what is sent is lost, as beyond a switch. While an interface
# is down, or its queueing discipline is exchanged, Soft-RoCE fails to send; its
# connection manager never works again on that device then.
cable()
{
	local end

	for end in veth2 veth3; do
		tc qdisc change dev $end root netem loss "$1%" || fault "no netem on $end"
	done
}
