/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_join.c - servers that come into the pool become servers of a named volume that is open
 * (client/joining.h, client/keeper_newcomer.c).
 *
 * If the servers are a list, those come that are OUT or have FAILED, and can be reached again.
 */
#include "client/joining.h"
#include "client/keeper.h"
#include "lib/volume/named.h"

int rbx_volume_named_watch(struct rbx_volume *volume, const char *servers)
{
	if (!volume->control.keeper)
		return 0;
	volume->joins.only_returns = !rbx_pool_text_may_change(servers);
	return rbx_pool_open(&volume->joins.pool, servers);
}

bool rbx_volume_named_may_return(struct rbx_volume *volume)
{
	bool may;

	pthread_mutex_lock(&volume->add_lock);
	may = rbx_joining_may_return(&volume->control);
	pthread_mutex_unlock(&volume->add_lock);
	return may;
}

void rbx_volume_named_join_no_more(struct rbx_volume *volume)
{
	if (volume->control.keeper)
		rbx_keeper_take_no_more(volume->control.keeper);
}
