/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sites.c - see sites.h. */
#include "sim/sites.h"

#include <string.h>

#include "sim/random.h"
#include "sim/trace.h"

#define ON_OF_A_MILLION (RBX_SIM_MILLION / 4)
#define NAME_BYTES 24

struct site {
	char name[NAME_BYTES];
	const char *purpose;
	uint32_t usual_chance;
	uint32_t usual_budget;

	uint32_t chance; /* in millionths; 0: off */
	uint64_t budget; /* left */
	uint64_t fired;
	bool is_allowed;
	bool is_sure;
	bool is_forced;
	struct rbx_random random;
};

static struct site sites[] = {
#define X(name, chance, budget, what) { #name, what, chance, budget, 0, 0, 0, \
					false, false, false, { 0 } },
	RBX_SIM_SITES(X)
#undef X
};

static bool is_healed;

/* A C name has underscores where the command line has dashes. */
static bool names_equal(const char *a, const char *b)
{
	for (; *a != '\0' && (*a == '-' ? '_' : *a) == (*b == '-' ? '_' : *b);
	     a++, b++)
		;
	return *a == *b;
}

const char *rbx_sim_site_name(enum rbx_sim_site site)
{
	char *c;

	while ((c = strchr(sites[site].name, '_')))
		*c = '-';
	return sites[site].name;
}

const char *rbx_sim_site_purpose(enum rbx_sim_site site)
{
	return sites[site].purpose;
}

bool rbx_sim_site_find(const char *name, enum rbx_sim_site *site)
{
	for (uint32_t i = 0; i < RBX_SIM_SITES_COUNT; i++) {
		if (names_equal(sites[i].name, name)) {
			*site = (enum rbx_sim_site)i;
			return true;
		}
	}
	return false;
}

void rbx_sim_sites_reset(uint64_t seed)
{
	is_healed = false;
	for (uint32_t i = 0; i < RBX_SIM_SITES_COUNT; i++) {
		struct site *site = &sites[i];

		site->chance = 0;
		site->fired = 0;
		site->budget = site->usual_budget ? site->usual_budget :
						    UINT64_MAX;
		site->is_allowed = false;
		site->is_forced = false;
		rbx_sim_random_split(&site->random, seed,
				     rbx_sim_site_name((enum rbx_sim_site)i),
				     0);
	}
}

void rbx_sim_site_allow(enum rbx_sim_site site, bool for_sure)
{
	sites[site].is_allowed = true;
	sites[site].is_sure = for_sure;
}

void rbx_sim_site_force(enum rbx_sim_site site, uint32_t of_a_million)
{
	sites[site].is_forced = true;
	sites[site].chance = of_a_million;
}

void rbx_sim_sites_draw(void)
{
	for (uint32_t i = 0; i < RBX_SIM_SITES_COUNT; i++) {
		struct site *site = &sites[i];
		/* Drawn even if not needed, so that forcing or allowing other sites does not
		 * change what this site does. */
		bool is_drawn = rbx_sim_chance(&site->random, ON_OF_A_MILLION);

		if ((is_drawn || site->is_sure) && site->is_allowed &&
		    !site->is_forced)
			site->chance = site->usual_chance;
	}
}

void rbx_sim_sites_heal(void)
{
	is_healed = true;
}

bool rbx_sim_site_is_on(enum rbx_sim_site site)
{
	return sites[site].chance != 0 && !is_healed;
}

uint32_t rbx_sim_site_chance(enum rbx_sim_site site)
{
	return sites[site].chance;
}

uint64_t rbx_sim_site_fired(enum rbx_sim_site site)
{
	return sites[site].fired;
}

bool rbx_sim_site(enum rbx_sim_site number)
{
	struct site *site = &sites[number];

	if (site->chance == 0 || is_healed || site->budget == 0 ||
	    !rbx_sim_chance(&site->random, site->chance))
		return false;
	site->budget--;
	site->fired++;
	RBX_SIM_TRACE(0, "fault", "site", number, "fired", site->fired);
	return true;
}

void rbx_sim_site_struck(enum rbx_sim_site site)
{
	sites[site].fired++;
}

uint64_t rbx_sim_site_draw(enum rbx_sim_site site, uint64_t low, uint64_t high)
{
	return rbx_sim_between(&sites[site].random, low, high);
}

static const struct rbx_sim_judge *judge;

void rbx_sim_judge_by(const struct rbx_sim_judge *by)
{
	judge = by;
}

bool rbx_sim_site_harms(enum rbx_sim_site site, uint32_t node, uint64_t felt_ns)
{
	if (!rbx_sim_site_is_on(site) || (judge && !judge->may_harm(node)) ||
	    !rbx_sim_site(site))
		return false;
	if (judge)
		judge->harmed(node, felt_ns);
	return true;
}
