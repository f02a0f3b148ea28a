/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* on_fibers.h - chooses the NICs of a simulation on fibers (rbx_sim_fabric_nic). */
#ifndef RBX_SIM_NIC_ON_FIBERS_H
#define RBX_SIM_NIC_ON_FIBERS_H

#include "sim/nic/params.h"

/* Before a run. Borrows it until the end. */
void rbx_sim_nic_choose(const struct rbx_nic_params *params);

#endif
