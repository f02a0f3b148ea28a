/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cabled_site.h - a server, a cable, and a tenant at the end of it. */
#ifndef RBX_TESTS_CABLED_SITE_H
#define RBX_TESTS_CABLED_SITE_H

#include "tests/lib/cable.h"
#include "tests/lib/tenant.h"

struct site {
	struct rbx_server *server;
	struct cable *cable;
	struct tenant tenant;
};

static void site_open(struct site *site, const char *settings)
{
	site->server = tenant_server();
	site->cable = cable_lay(rbx_server_address(site->server));
	tenant_open_at(&site->tenant, cable_address(site->cable), settings);
}

static void site_close(struct site *site)
{
	tenant_close(&site->tenant);
	cable_remove(site->cable);
	rbx_server_stop(site->server);
}

#endif
