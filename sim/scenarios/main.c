/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * main.c - rdmabox-sim-figures NAME|all [NIC-FILE]: runs a scenario that measures,
 * or all of them as a page, which is FIGURES.md.
 */
#include <stdlib.h>

#include "sim/scenarios/figure.h"

static int usage(void)
{
	fprintf(stderr, "usage: rdmabox-sim-figures NAME|all [NIC-FILE]\n");
	for (uint32_t i = 0; i < rbx_figures_count; i++)
		fprintf(stderr, "  %-12s %s\n", rbx_figures[i].name,
			rbx_figures[i].purpose);
	return 2;
}

static const struct rbx_figure *find(const char *name)
{
	for (uint32_t i = 0; i < rbx_figures_count; i++) {
		if (!strcmp(rbx_figures[i].name, name))
			return &rbx_figures[i];
	}
	return NULL;
}

/* nic: NULL is the figure's own. */
static int run(const struct rbx_figure *figure, const char *nic)
{
	char path[512], error[RBX_NIC_ERROR_MAX];
	struct rbx_nic_params params;

	snprintf(path, sizeof(path), RBX_NIC_GENERATIONS "/%s.conf",
		 figure->generation);
	if (rbx_nic_params_read(nic ? nic : path, &params, error)) {
		fprintf(stderr, "rdmabox-sim-figures: %s\n", error);
		return 2;
	}
	printf("## %s: %s (%s)\n\n", figure->name, figure->purpose,
	       params.name);
	return figure->run(&params, stdout);
}

int main(int argc, char **argv)
{
	const char *nic = argc == 3 ? argv[2] : NULL;
	const struct rbx_figure *figure;
	int err = 0;

	if (argc < 2 || argc > 3)
		return usage();
	if (!strcmp(argv[1], "all")) {
		printf("# The papers' figures on modelled NICs\n\n"
		       "Made by `rdmabox-sim-figures all`; the same on every "
		       "machine. What they show\nand do not show stands in "
		       "[README.md](README.md).\n\n");
		for (uint32_t i = 0; i < rbx_figures_count && !err; i++) {
			err = run(&rbx_figures[i], nic);
			printf("\n");
		}
		return err;
	}
	figure = find(argv[1]);
	return figure ? run(figure, nic) : usage();
}
