#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Seeds that once failed do not fail again. A seed means another run once the code
# has changed, so each defect has a scripted test besides, which is named here; but for those
# of the simulator, which asked for what cannot be. The last column is a fault that is more
# frequent than it is drawn.
#
# Usage: tests/sim/past_failures.sh RDMABOX

set -uo pipefail
failed=0

while read -r scenario seed defect fault; do
	said=$("$1" sim --scenario "$scenario" --seed "$seed" ${fault:+--fault "$fault"} | tail -n 1)
	[ "$said" = "result ok" ] || { echo "$scenario $seed ($defect): $said"; failed=1; }
done <<'SEEDS'
volume 41 slab_whose_loan_was_not_heard_goes_back_at_the_resume
volume 75 poll_makes_way_for_a_lock_waiter
volume 140 peer_send_chain_posted_in_part_is_sent_again
reclaim 9 server_revokes_memory_of_idle_volume_copies_are_rebuilt
reclaim 71 server_revokes_memory_of_idle_volume_copies_are_rebuilt
reclaim 218 server_revokes_memory_of_idle_volume_copies_are_rebuilt
volume 224 volume_is_closed_while_a_recovery_asks_about_the_others
partition 52 only_server_is_kept_without_copies
volume 906 peer_is_asked_before_it_is_given_up_however_late
volume 101422 flow_new_page_is_the_truth_if_nobody_has_the_old_one
volume 600904 lease_that_is_short_leaves_time_for_tries
volume 720465 doubt_first_attempt_is_read_if_it_was_carried_out
outage 47 server_that_has_failed_and_is_up_is_given_up
outage 114 newcomer_named_when_the_volume_was_lost_is_put_out
outage 151 former_place_fails_until_the_server_has_come
outage 190 read_that_failed_is_sent_to_a_server_that_has_come_again
outage 279 servers_that_are_too_many_to_be_put_out_may_come_again
outage 559 server_with_the_last_copy_comes_again_with_it
beside 563 drain_waits_for_a_volume_that_was_not_closed partition=1
outage 1399 volume_is_half_made_whoever_was_granted_it_in_vain
outage 1259 the_simulator
beside 363 the_simulator partition=1
beside 1062 the_simulator partition=1
given-up 33 the_simulator
named 409 the_simulator
announced 1251 the_simulator
silence 600926 only_server_that_is_left_is_spared_while_a_slab_is_blank
SEEDS
exit "$failed"
