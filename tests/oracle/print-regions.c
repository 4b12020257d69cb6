/* SPDX-License-Identifier: MIT */
/* print-regions COMMAND [--range] SPEC…: prints the regions that the specifications
 * select, their places and notes, one per line. COMMAND may be a number: a running
 * process. */
#include "pm/count.h"

#include <string.h>

static const char *const kinds[] = { "entry", "exit", "in", "out" };

static void print(const struct pm_regions *regions)
{
	for (size_t i = 0; i < regions->list.len; i++) {
		const struct pm_region *region = &regions->list.data[i];

		printf("region %zu %d %s %s %s:%u-%u sum %d places %u\n", i, region->kind,
		       region->name, region->module, region->file ? region->file : "?",
		       region->line, region->line_end, region->sum, region->places_total);
		for (size_t n = 0; n < region->pieces.len; n++)
			printf("piece %#llx %#llx\n",
			       (unsigned long long)region->pieces.data[n].low,
			       (unsigned long long)region->pieces.data[n].high);
		for (size_t n = 0; n < regions->places.len; n++) {
			const struct pm_place *place = &regions->places.data[n];

			if (place->region == i)
				printf("%s %#llx offset %#llx len %u sp %d%s%s%s if %u\n",
				       kinds[place->kind],
				       (unsigned long long)place->address,
				       (unsigned long long)place->offset, place->len,
				       place->sp_known ? (int)place->sp_offset : -1,
				       place->cheap ? " cheap" : "",
				       place->again ? " again" : "",
				       place->condition ? " jump" : "", place->condition);
		}
	}
	for (size_t i = 0; i < regions->notes.len; i++)
		printf("note %s\n", regions->notes.data[i]);
}

int main(int argc, char **argv)
{
	struct pm_region_spec specs[64];
	struct pm_probe_context context = { 0 };
	struct pm_regions regions = { 0 };
	struct pm_error err = { 0 };
	size_t len = 0;
	uint64_t number;
	pid_t pid;
	bool range = false;

	if (argc < 3)
		return 2;
	if (pm_parse_u64(argv[1], &number)) {
		pid = (pid_t)number;
		context.pids = &pid;
		context.pids_len = 1;
	} else {
		context.command = argv[1];
	}
	for (int i = 2; i < argc && len < PM_ARRAY_LEN(specs); i++) {
		if (strcmp(argv[i], "--range") == 0) {
			range = true;
			continue;
		}
		specs[len++] = (struct pm_region_spec){ range, argv[i] };
		range = false;
	}
	if (pm_regions_find(&regions, specs, len, &context, &err) < 0) {
		pm_error_print(&err, "print-regions", stderr);
		return 1;
	}
	print(&regions);
	pm_regions_release(&regions);
	return 0;
}
