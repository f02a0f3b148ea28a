/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* news.c - logs what the upkeep of a volume finds. */
#include "client/named.h"
#include "client/opening.h"
#include "kernel/lib/volume/volume.h"

/* Nothing to keep: the error number is enough. */
void rbx_volume_refused(struct rbx_upkeep *upkeep)
{
}

void rbx_volume_tell(struct rbx_upkeep *upkeep, enum rbx_news news,
		     uint32_t count, uint32_t server, int err)
{
	struct rbx_volume_control *control =
		rbx_volume_control_of_upkeep(upkeep);
	struct rbx_census census;

	rbx_upkeep_census(upkeep, &census);
	rbx_volume_state_news(rbx_volume_of_control(control));
	switch (news) {
	case RBX_NEWS_SERVER_DOWN:
		pr_warn("rdmabox: server %s is gone, and with it replicas of %u slabs\n",
			rbx_peer_name(control->servers[server].peer),
			count);
		break;
	case RBX_NEWS_REBUILD_STARTED:
		pr_info("rdmabox: %u slabs lack replicas, which are made anew; %u are one death from loss\n",
			count, census.last);
		break;
	case RBX_NEWS_REBUILD_DONE:
		pr_info("rdmabox: %u replicas were made anew, all are live\n",
			count);
		break;
	case RBX_NEWS_REBUILD_STUCK:
		pr_warn("rdmabox: no server takes the missing replicas of %u slabs (%d); %u are one death from loss\n",
			count, err, census.last);
		break;
	case RBX_NEWS_DATA_LOST:
		pr_err("rdmabox: the last replica of %u slabs is gone, what was on them cannot be read\n",
		       count);
		break;
	}
}

void rbx_volume_opening_tell(struct rbx_volume_control *control, const char *what,
			     uint32_t slabs_count)
{
	pr_info("rdmabox: volume %s is being opened: %u slabs, %s\n",
		control->named->record.name, slabs_count, what);
}

void rbx_volume_stopped(struct rbx_volume_control *control, const char *server, const char *why)
{
	pr_err("rdmabox: volume %s is read and written no more: %s%s%s\n",
	       control->named->record.name, why, *server ? ", server " : "", server);
}

void rbx_volume_goes_on(struct rbx_volume_control *control)
{
	pr_info("rdmabox: volume %s goes on\n", control->named->record.name);
}
