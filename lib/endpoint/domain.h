/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * domain.h - protection domains of a program, with a count of their users.
 */
#ifndef RBX_LIB_ENDPOINT_DOMAIN_H
#define RBX_LIB_ENDPOINT_DOMAIN_H

#include "fabric/fabric.h"

struct rbx_context;
struct rbx_protection_domain;

/* Adds a user to a domain until it leaves. *of_fabric: the domain of the fabric; NULL for
 * NULL, which means that of the context. 0; -EINVAL: the domain is another context's. */
int rbx_domain_use(struct rbx_protection_domain *domain,
		   const struct rbx_context *ctx,
		   struct rbx_domain **of_fabric);
void rbx_domain_leave(struct rbx_protection_domain *domain);

#endif
