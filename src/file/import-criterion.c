/* SPDX-License-Identifier: MIT */
/*
 * Reads criterion's files below target/criterion: each benchmark has a folder `new` with
 * sample.json (iterations and nanoseconds of each sample), estimates.json and
 * benchmark.json (its name). A sample is a run; its value is the time of one iteration.
 */
#include "import-internal.h"

#include <dirent.h>
#include <sys/stat.h>

static const char sample_name[] = "sample.json", estimates_name[] = "estimates.json",
		  benchmark_name[] = "benchmark.json", newest[] = "new";

/* ---- one benchmark --------------------------------------------------------------------- */

static const struct pm_import_event wall_time = {
	.name = "wall-time",
	.unit = "ns",
	.source = "tool",
	.scale = PM_IMPORT_FINE,
	.class = PM_STAT_NOISY,
	.better = -1,
};

static int add_time(struct pm_importing *to, struct pm_stat *stat, double ns, bool *out)
{
	struct pm_stat_run *run;
	int ret = pm_import_add_run(to, stat, &run);

	if (ret == 0)
		*out = pm_import_set_value(&run->values[0], ns, PM_IMPORT_FINE);
	return ret;
}

static int add_samples(struct pm_importing *to, struct pm_stat *stat, const json_t *root)
{
	struct fields fields = { .object = root, .err = to->err, .name = "sample" };
	const json_t *iterations = get_array(&fields, "iters"),
		     *times = get_array(&fields, "times");
	int ret;

	if (fields.failed == 0 && json_array_size(iterations) != json_array_size(times))
		fail(&fields, "iters", "expected as many values as \"times\" has");
	if (fields.failed == 0 && json_array_size(times) == 0)
		fail(&fields, "times", "there are no times in it");
	for (size_t i = 0; fields.failed == 0 && i < json_array_size(times); i++) {
		const json_t *count = json_array_get(iterations, i);
		const json_t *time = json_array_get(times, i);
		bool set = false;

		if (!json_is_number(count) || !(json_number_value(count) > 0)) {
			fail(&fields, "iters", "value %zu: expected a number above 0", i);
			break;
		}
		if (!json_is_number(time)) {
			fail(&fields, "times", "value %zu: expected nanoseconds", i);
			break;
		}
		ret = add_time(to, stat,
			       json_number_value(time) / json_number_value(count), &set);
		if (ret < 0)
			return ret;
		if (!set)
			fail(&fields, "times",
			     "value %zu: expected nanoseconds, at least 0", i);
	}
	return fields.failed;
}

/* Adds the estimate as the only value: the slope over the iterations, or else the
 * mean. */
static int add_estimate(struct pm_importing *to, struct pm_stat *stat, const json_t *root)
{
	struct fields fields = { .object = root, .err = to->err, .name = "estimates" };
	bool slope = json_is_object(json_object_get(root, "slope"));
	struct fields estimate = get_object(&fields, slope ? "slope" : "mean");
	double ns = pm_import_get_number(&estimate, "point_estimate");
	bool set = false;
	int ret = estimate.failed;

	if (ret == 0)
		ret = add_time(to, stat, ns, &set);
	if (ret == 0 && !set) {
		fail(&estimate, "point_estimate", "expected nanoseconds");
		ret = estimate.failed;
	}
	if (ret < 0)
		return ret;
	return pm_import_add_warning(
		to, stat,
		"The file has an estimate alone: how far samples differ is "
		"in sample.json beside it.");
}

static int criterion_add_benchmark(struct pm_importing *to, const char *name,
				   const json_t *root)
{
	struct pm_stat *stat;
	int ret = pm_import_add_case(to, name, "criterion", "the benchmark", &stat);

	if (ret == 0 && name)
		ret = pm_import_set_command(to, stat, name);
	if (ret == 0)
		ret = pm_import_add_event(to, stat, &wall_time);
	if (ret < 0)
		return ret;
	if (json_object_get(root, "iters") || json_object_get(root, "times"))
		return add_samples(to, stat, root);
	return add_estimate(to, stat, root);
}

/* ---- its name -------------------------------------------------------------------------- */

/* Parses a file in @folder. Sets @out to NULL if it does not exist. */
static int parse_beside(struct pm_importing *to, const char *folder, const char *name,
			json_t **out)
{
	PM_CLEANUP(pm_str_release) struct pm_str text = { 0 };
	PM_AUTO_FREE char *path = NULL;
	int ret;

	*out = NULL;
	if (asprintf(&path, "%s/%s", folder, name) < 0) {
		path = NULL;
		return pm_import_no_memory(to);
	}
	ret = pm_import_read_bytes(path, &text, to->err);
	if (ret == -ENOENT)
		return 0;
	if (ret == 0)
		ret = pm_import_parse(to, &text, out);
	if (ret < 0) {
		char why[sizeof(to->err->text)];

		snprintf(why, sizeof(why), "%s", to->err->text);
		pm_error_set(to->err, ret, "%s: %s", path, why);
	}
	return ret;
}

/* Takes the name from benchmark.json, or else from the folders, which criterion names
 * after the benchmark. */
static int name_benchmark(struct pm_importing *to, const char *folder,
			  const char *relative, char **out)
{
	json_t *file;
	const char *name;
	int ret = parse_beside(to, folder, benchmark_name, &file);

	if (ret < 0)
		return ret;
	name = json_string_value(json_object_get(json_array_get(file, 0), "full_id"));
	if (!name)
		name = relative;
	if (pm_stat_text(out, name) < 0)
		ret = pm_import_no_memory(to);
	else
		ret = 0;
	json_decref(file);
	return ret;
}

/* ---- folders --------------------------------------------------------------------------- */

static int add_folder(struct pm_importing *to, const char *folder, const char *relative)
{
	static const char *const files[] = { sample_name, estimates_name };
	PM_AUTO_FREE char *name = NULL;
	json_t *root = NULL;
	int ret = 0;

	for (size_t i = 0; i < PM_ARRAY_LEN(files) && ret == 0 && !root; i++)
		ret = parse_beside(to, folder, files[i], &root);
	if (ret < 0 || !root)
		return ret;
	ret = name_benchmark(to, folder, relative, &name);
	if (ret == 0)
		ret = criterion_add_benchmark(to, name, json_array_get(root, 0));
	if (ret == -EBADMSG) {
		char why[sizeof(to->err->text)];

		snprintf(why, sizeof(why), "%s", to->err->text);
		pm_error_set(to->err, ret, "%s: %s", relative, why);
	}
	json_decref(root);
	return ret;
}

struct walk {
	struct pm_importing *to;
	size_t seen; /* number of folder entries that were read */
};

/* Whether @path is a folder, and not a symbolic link to one: links may form cycles. */
static bool criterion_is_folder(const char *path)
{
	struct stat found;

	return lstat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

/* `base` and `change` belong to earlier runs, `report` is for people. */
static bool criterion_is_wanted_folder(const char *name)
{
	return name[0] != '.' && strcmp(name, "report") != 0 &&
	       strcmp(name, "base") != 0 && strcmp(name, "change") != 0;
}

static int walk_folder(struct walk *walk, const char *folder, const char *relative,
		       size_t depth);

static int walk_entry(struct walk *walk, const char *folder, const char *relative,
		      const char *name, size_t depth)
{
	PM_AUTO_FREE char *path = NULL, *inner = NULL;

	if (++walk->seen > PM_IMPORT_FILES_MAX)
		return pm_error_set(walk->to->err, -EFBIG, "has more than %d files below",
				    PM_IMPORT_FILES_MAX);
	if (!criterion_is_wanted_folder(name))
		return 0;
	if (asprintf(&path, "%s/%s", folder, name) < 0 ||
	    asprintf(&inner, "%s%s%s", relative, relative[0] ? "/" : "", name) < 0)
		return pm_import_no_memory(walk->to);
	if (!criterion_is_folder(path))
		return 0;
	if (strcmp(name, newest) == 0)
		return add_folder(walk->to, path, relative[0] ? relative : name);
	return walk_folder(walk, path, inner, depth + 1);
}

static int walk_folder(struct walk *walk, const char *folder, const char *relative,
		       size_t depth)
{
	struct dirent **entries;
	int len, ret = 0;

	if (depth > PM_IMPORT_DEPTH_MAX)
		return pm_error_set(walk->to->err, -EFBIG,
				    "%s: folders are more than %d deep", relative,
				    PM_IMPORT_DEPTH_MAX);
	len = scandir(folder, &entries, NULL, alphasort);
	if (len < 0)
		return pm_error_set(walk->to->err, -errno, "%s: cannot be read: %s",
				    relative, strerror(errno));
	for (int i = 0; i < len; i++) {
		if (ret == 0)
			ret = walk_entry(walk, folder, relative, entries[i]->d_name,
					 depth);
		free(entries[i]);
	}
	free(entries);
	return ret;
}

int pm_import_criterion_folder(struct pm_importing *to)
{
	struct walk walk = { .to = to };
	int ret;

	/* The path may be target/criterion/NAME/new itself. */
	ret = add_folder(to, to->path, to->path);
	if (ret == 0 && to->suite.cases.len == 0)
		ret = walk_folder(&walk, to->path, "", 0);
	if (ret == 0 && to->suite.cases.len == 0)
		ret = pm_error_set(to->err, -EBADMSG,
				   "has no new/sample.json of criterion below it");
	return ret;
}

int pm_import_criterion_file(struct pm_importing *to, const json_t *root)
{
	const char *slash = strrchr(to->path, '/');
	PM_AUTO_FREE char *folder =
		slash ? strndup(to->path, (size_t)(slash - to->path)) : strdup(".");
	PM_AUTO_FREE char *name = NULL;
	json_t *sample = NULL;
	int ret = 0;

	if (!folder)
		return pm_import_no_memory(to);
	/* Samples are preferred to an estimate. */
	if (strcmp(to->path, "-") != 0) {
		ret = name_benchmark(to, folder[0] ? folder : "/", NULL, &name);
		if (ret == 0 && !json_object_get(json_array_get(root, 0), "iters"))
			ret = parse_beside(to, folder[0] ? folder : "/", sample_name,
					   &sample);
	}
	if (ret == 0)
		ret = criterion_add_benchmark(to, name,
					      json_array_get(sample ? sample : root, 0));
	json_decref(sample);
	return ret;
}
