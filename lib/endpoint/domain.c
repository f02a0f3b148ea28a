/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* domain.c - protection domains of a program, see domain.h. */
#include "lib/endpoint/domain.h"

#include <stdlib.h>

#include "include/rdmabox/endpoint.h"
#include "lib/context.h"

struct rbx_protection_domain {
	struct rbx_context *ctx;
	struct rbx_domain *domain;
	uint32_t users_count; /* atomic */
};

int rbx_protection_domain_create(struct rbx_context *ctx,
				 struct rbx_protection_domain **out)
{
	char error[RBX_ERROR_TEXT_MAX] = "";
	struct rbx_protection_domain *domain;
	int err;

	if (!ctx || !out)
		return rbx_error(-EINVAL, "rbx_protection_domain_create: a context must be given");
	err = rbx_guard_use(ctx, "rbx_protection_domain_create");
	if (err)
		return err;
	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return rbx_error(-ENOMEM, "cannot allocate a domain");
	domain->ctx = ctx;
	err = ctx->device->ops->create_domain(ctx->device, &domain->domain, error);
	if (err) {
		free(domain);
		return rbx_error(err, "%s", error);
	}
	RBX_FETCH_ADD(&ctx->domains_count, 1);
	*out = domain;
	return 0;
}

int rbx_protection_domain_destroy(struct rbx_protection_domain *domain)
{
	uint32_t count;
	int err;

	if (!domain)
		return 0;
	err = rbx_guard_use(domain->ctx, "rbx_protection_domain_destroy");
	if (err)
		return err;
	count = RBX_LOAD_ACQUIRE(&domain->users_count);
	if (count)
		return rbx_error(-EBUSY, "rbx_protection_domain_destroy: %u regions and endpoints are in it: rbx_region_release(), rbx_endpoint_close() first",
				 count);
	domain->ctx->device->ops->destroy_domain(domain->domain);
	RBX_FETCH_ADD(&domain->ctx->domains_count, (uint32_t)-1);
	free(domain);
	return 0;
}

int rbx_domain_use(struct rbx_protection_domain *domain,
		   const struct rbx_context *ctx, struct rbx_domain **of_fabric)
{
	*of_fabric = NULL;
	if (!domain)
		return 0;
	if (domain->ctx != ctx)
		return rbx_error(-EINVAL, "the protection domain belongs to another context");
	RBX_FETCH_ADD(&domain->users_count, 1);
	*of_fabric = domain->domain;
	return 0;
}

void rbx_domain_leave(struct rbx_protection_domain *domain)
{
	if (domain)
		RBX_FETCH_ADD(&domain->users_count, (uint32_t)-1);
}
