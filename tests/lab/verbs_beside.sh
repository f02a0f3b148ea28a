#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Plain verbs beside RDMAbox: a program moves bytes by requests and by work
# requests of its own, over a queue pair of its own, on the same remote memory.

. "$(dirname "$(readlink -f "$0")")/verbs.sh"

echo "a secret that is long enough to be one" >"$scratch/secret"
echo "another secret, just as long as that one" >"$scratch/other"
chmod 600 "$scratch"/{secret,other}
start_verbs_server --memory 4M --secret-file "$scratch/secret"

# beside ARGUMENT... - sets status, and leaves $scratch/out and err
beside()
{
	timeout "$limit_s" "$build/examples/verbs-beside" "$@" >"$scratch/out" 2>"$scratch/err"
	status=$?
}

beside "$address" "$scratch/secret"
[ "$status" = 0 ] || { show; fault "exit code $status"; }
grep -q '^written by RDMAbox, read by plain verbs: 65536 bytes' "$scratch/out" ||
	{ show; fault "plain verbs read nothing"; }
grep -q '^written by plain verbs, read by RDMAbox: 65536 bytes' "$scratch/out" ||
	{ show; fault "plain verbs wrote nothing"; }
pass "a program writes by one and reads by the other"

beside "$address" "$scratch/other"
[ "$status" = 2 ] || { show; fault "with another secret: exit code $status, not 2"; }
export RBX_TEST_FABRIC=verbs RBX_TEST_LISTEN=$device_address:0
"$build/tests/lib_peer_verbs_device_test" || fault "lib_peer_verbs_device_test"
pass "queue pairs of the program's own: rights, bounds, the end of the server"

expect_success stat --server "$address" --fabric verbs --secret-file "$scratch/secret" --json
[ "$(key lent_bytes)" = 0 ] || fault "$(key lent_bytes) bytes stay lent"
"$build/tests/server_user_messages_test" || fault "server_user_messages_test"
"$build/tests/lib_peer_message_test" || fault "lib_peer_message_test"
pass "messages over verbs"
