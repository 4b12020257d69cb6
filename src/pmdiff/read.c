/* SPDX-License-Identifier: MIT */
#include "read.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "pm/suite.h"

enum {
	FD_PATH_BYTES = 32,
};

/* An open input file and its kind. */
struct input {
	const char *name; /* for people */
	const char *path; /* a path that can be opened again */
	char fd_path[FD_PATH_BYTES];
	int fd;
	enum pm_file_kind kind;
	bool cases; /* the counts read from it have cases */
};

static void close_input(struct input *input)
{
	pm_cleanup_close(&input->fd);
}

static int set_unreadable_error(struct pm_error *err, const char *name, int code)
{
	pm_error_set(err, code, "cannot be read: %s", strerror(-code));
	pm_error_where(err, name, -1);
	return code;
}

/* ---- opening ----------------------------------------------------------------------------- */

static ssize_t read_full_head(int fd, char *buffer, size_t cap)
{
	size_t len = 0;

	while (len < cap) {
		ssize_t n = read(fd, buffer + len, cap - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

static int write_full_copy(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Copies the input to memory, where readers can start over: a pipe can only be read once,
 * and its kind is known only after its head was read. */
static int copy_pipe_to_memory(struct input *input, char *buffer, size_t cap, size_t len)
{
	PM_AUTO_CLOSE int memory = memfd_create("pmdiff", MFD_CLOEXEC);
	ssize_t n = (ssize_t)len;
	int ret = 0;

	if (memory < 0)
		ret = -errno;
	while (ret == 0 && n > 0) {
		ret = write_full_copy(memory, buffer, (size_t)n);
		if (ret == 0)
			n = read_full_head(input->fd, buffer, cap);
	}
	if (ret == 0 && n < 0)
		ret = (int)n;
	if (ret < 0)
		return ret;
	close(input->fd);
	input->fd = pm_take_fd(&memory);
	snprintf(input->fd_path, sizeof(input->fd_path), "/proc/self/fd/%d", input->fd);
	input->path = input->fd_path;
	return 0;
}

static int find_kind_of_input(struct input *input, const struct stat *st,
			      struct pm_error *err)
{
	PM_AUTO_FREE char *head = malloc(PM_FILE_HEAD_BYTES);
	ssize_t n;
	int ret = 0;

	if (!head)
		return set_unreadable_error(err, input->name, -ENOMEM);
	n = read_full_head(input->fd, head, PM_FILE_HEAD_BYTES);
	if (n < 0)
		return set_unreadable_error(err, input->name, (int)n);
	input->kind = pm_file_kind(head, (size_t)n);
	if (input->kind == PM_FILE_FOREIGN) {
		pm_error_set(err, -EBADMSG, "%s",
			     n == 0 ? "is empty"
				    : "is neither a document of pmstat nor a recording "
				      "of pmrec");
		pm_error_where(err, input->name, -1);
		pm_error_fix(err, "pmstat --json -o FILE -- COMMAND");
		return -EBADMSG;
	}
	if (!S_ISREG(st->st_mode))
		ret = copy_pipe_to_memory(input, head, PM_FILE_HEAD_BYTES, (size_t)n);
	if (ret == 0 && lseek(input->fd, 0, SEEK_SET) < 0)
		ret = -errno;
	if (ret < 0)
		return set_unreadable_error(err, input->name, ret);
	return 0;
}

static int open_input(struct input *input, const char *path, struct pm_error *err)
{
	bool standard = strcmp(path, "-") == 0;
	struct stat st;
	int ret;

	*input = (struct input){ .name = standard ? "standard input" : path,
				 .path = path };
	if (standard)
		input->fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	else
		input->fd = open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	if (input->fd >= 0 && fstat(input->fd, &st) == 0) {
		/* A shell may already have read from it; treat it as a pipe. */
		if (standard && S_ISREG(st.st_mode))
			st.st_mode = S_IFIFO;
		if (S_ISDIR(st.st_mode))
			return set_unreadable_error(err, input->name, -EISDIR);
		return find_kind_of_input(input, &st, err);
	}
	ret = -errno;
	set_unreadable_error(err, input->name, ret);
	if (ret == -ENOENT)
		pm_error_fix(err, "pmstat --json -o %s -- COMMAND, which writes it",
			     path);
	return ret;
}

/* ---- reading ----------------------------------------------------------------------------- */

/* Moves the document of a case into the side. */
static int side_take_case(struct pmdiff_side *side, struct pm_suite_case *from)
{
	struct pmdiff_side_case *to;
	int ret;

	if (!from->name) {
		ret = pm_vec_push(&side->stats, from->stat);
	} else {
		to = pmdiff_side_add_case(side, from->name, NULL);
		if (to)
			ret = pm_vec_push(&to->stats, from->stat);
		else
			ret = -ENOMEM;
	}
	if (ret == 0)
		from->stat = (struct pm_stat){ 0 };
	return ret;
}

static int set_mixed_cases_error(const struct input *input, struct pm_error *err)
{
	pm_error_set(err, -EXDEV, "has %s cases, and what came before it has %s",
		     input->cases ? "several" : "no", input->cases ? "none" : "some");
	pm_error_where(err, input->name, -1);
	return -EXDEV;
}

static int side_read_counts(struct pmdiff_side *side, struct input *input,
			    struct pm_error *err)
{
	PM_CLEANUP(pm_suite_release) struct pm_suite suite = { 0 };
	int ret = pm_suite_read(&suite, input->fd, input->name, err);

	if (ret < 0)
		return ret;
	input->cases = suite.cases.data[0].name != NULL;
	for (size_t i = 0; i < suite.cases.len; i++)
		if (side_take_case(side, &suite.cases.data[i]) < 0)
			return set_unreadable_error(err, input->name, -ENOMEM);
	return 0;
}

static void free_recording_reader(struct pm_file_reader **reader)
{
	pm_file_reader_free(*reader);
}

static int read_recording(struct pm_profile **out, const struct pmdiff_options *options,
			  const struct input *input, struct pm_error *err)
{
	struct pm_profile_options how = {
		.no_starts = true, /* the other side is usually another build, with other
		                    * addresses */
		.keep_samples = options->outputs[PMDIFF_HTML].wanted,
	};
	PM_CLEANUP(free_recording_reader) struct pm_file_reader *reader = NULL;
	int ret = pm_file_reader_open(&reader, input->path, err);

	if (ret == 0)
		ret = pm_profile_load(out, reader, &how, err);
	if (ret < 0 && err)
		pm_error_where(err, input->name, err->offset);
	return ret;
}

/* Sets the name of the side. */
static int side_set_name(struct pmdiff_side *side, const struct pmdiff_options *options,
			 size_t of, struct pm_error *err)
{
	const struct pmdiff_texts *files = &options->files[of];
	const char *first = files->list.data[0];
	int len;

	if (options->ab)
		len = asprintf(&side->name, "%s of %s", of == 0 ? "A" : "B", first);
	else if (files->list.len > 1)
		len = asprintf(&side->name, "%s and %zu more", first,
			       files->list.len - 1);
	else
		len = asprintf(&side->name, "%s", first);

	if (len >= 0)
		return 0;
	side->name = NULL;
	return pm_error_no_memory(err);
}

static int set_other_kind_error(struct pm_error *err, const struct pmdiff_inputs *inputs,
				const char *name)
{
	static const char *const kinds[] = { "a document of pmstat",
					     "a recording of pmrec" };

	pm_error_set(err, -EXDEV, "is %s, and what came before %s: they do not compare",
		     kinds[!inputs->recordings], kinds[inputs->recordings]);
	pm_error_where(err, name, -1);
	return -EXDEV;
}

static int read_one_input(struct pmdiff_inputs *inputs,
			  const struct pmdiff_options *options, size_t side, size_t index,
			  struct pm_error *err)
{
	PM_CLEANUP(close_input) struct input input = { .fd = -1 };
	bool first = side == 0 && index == 0;
	int ret = open_input(&input, options->files[side].list.data[index], err);

	if (ret < 0)
		return ret;
	if (first)
		inputs->recordings = input.kind == PM_FILE_RECORDING;
	else if (inputs->recordings != (input.kind == PM_FILE_RECORDING))
		return set_other_kind_error(err, inputs, input.name);
	if (!inputs->recordings) {
		ret = side_read_counts(&inputs->sides[side], &input, err);
		if (ret == 0 && !first && inputs->cases != input.cases)
			return set_mixed_cases_error(&input, err);
		inputs->cases = input.cases;
		return ret;
	}
	if (options->files[side].list.len == 1 && !options->ab)
		return read_recording(&inputs->profiles[side], options, &input, err);
	pm_error_set(err, -EXDEV, "%s",
		     options->ab ? "is one recording: a second one is missing"
				 : "is a recording: one for each side, please");
	pm_error_where(err, input.name, -1);
	pm_error_fix(err, "pmdiff BASE.json NEW.json");
	return -EXDEV;
}

/* ---- unsuitable combinations ------------------------------------------------------------- */

/* A side contains one variant; `ab` contains two. */
static int check_variants_of_stat(const struct pmdiff_options *options, const char *name,
				  const struct pm_stat *stat, struct pm_error *err)
{
	size_t wanted = options->ab ? 2 : 1;
	size_t len = stat->subjects.len;

	if (len == wanted)
		return 0;
	if (options->ab && len < wanted) {
		pm_error_set(err, -EXDEV, "is one side alone: what is it compared with?");
		pm_error_fix(err, "pmdiff BASE.json NEW.json");
	} else if (options->ab) {
		pm_error_set(err, -EXDEV, "has %zu commands: two are compared", len);
	} else {
		pm_error_set(err, -EXDEV, "is of `pmstat ab`: it has both sides in it");
		pm_error_fix(err, "pmdiff %s", name);
	}
	pm_error_where(err, name, -1);
	return -EXDEV;
}

static int check_runs_of_stat(const struct pm_stat *stat, const char *name,
			      struct pm_error *err)
{
	if (stat->runs.len > 0)
		return 0;
	pm_error_set(err, -EXDEV, "has no runs in it: nothing was counted");
	pm_error_where(err, name, -1);
	return -EXDEV;
}

static int check_documents_of_case(const struct pmdiff_side_case *of, const char *name,
				   struct pm_error *err)
{
	int ret = 0;

	for (size_t i = 0; i < of->stats.len && ret == 0; i++) {
		if (of->stats.data[i].subjects.len > 1) {
			ret = pm_error_set(
				err, -EXDEV,
				"the case \"%.200s\" is of `pmstat ab`: it has both "
				"sides in it",
				of->name);
			pm_error_where(err, name, -1);
		} else {
			ret = check_runs_of_stat(&of->stats.data[i], name, err);
		}
	}
	return ret;
}

/* A suite contains one side. */
static int check_cases_of_sides(const struct pmdiff_options *options,
				const struct pmdiff_inputs *inputs, struct pm_error *err)
{
	int ret = 0;

	if (options->ab) {
		pm_error_set(err, -EXDEV, "is one side alone: what is it compared with?");
		pm_error_where(err, options->files[0].list.data[0], -1);
		pm_error_fix(err, "pmdiff BASE.json NEW.json");
		return -EXDEV;
	}
	for (size_t side = 0; side < 2; side++) {
		const struct pmdiff_side *of = &inputs->sides[side];

		for (size_t i = 0; i < of->cases.len && ret == 0; i++)
			ret = check_documents_of_case(&of->cases.data[i],
						      options->files[side].list.data[0],
						      err);
	}
	return ret;
}

static int check_counts_of_sides(const struct pmdiff_options *options,
				 const struct pmdiff_inputs *inputs, struct pm_error *err)
{
	int ret = 0;

	if (inputs->cases)
		return check_cases_of_sides(options, inputs, err);
	if (options->case_pattern)
		return pm_error_set(err, -EINVAL, "--case %.200s: there are no cases",
				    options->case_pattern);

	for (size_t side = 0; side < 2 && ret == 0; side++) {
		const struct pmdiff_side *of = &inputs->sides[side];

		for (size_t i = 0; i < of->stats.len && ret == 0; i++) {
			const char *name = options->files[side].list.data[i];

			ret = check_variants_of_stat(options, name, &of->stats.data[i],
						     err);
			if (ret == 0)
				ret = check_runs_of_stat(&of->stats.data[i], name, err);
		}
	}
	return ret;
}

static int check_recordings_of_sides(const struct pmdiff_options *options,
				     const struct pmdiff_inputs *inputs,
				     struct pm_error *err)
{
	for (size_t side = 0; side < 2; side++) {
		const struct pm_profile_info *info = &inputs->profiles[side]->info;
		const char *name = options->files[side].list.data[0];

		if (info->read_samples == 0) {
			pm_error_set(err, -EXDEV, "has no samples in it");
			pm_error_where(err, name, -1);
			return -EXDEV;
		}
	}
	return 0;
}

int pmdiff_read(struct pmdiff_inputs *out, const struct pmdiff_options *options,
		struct pm_error *err)
{
	/* The only document of `ab` is read once, and belongs to the base. */
	size_t sides = options->ab ? 1 : 2;
	int ret = 0;

	*out = (struct pmdiff_inputs){ 0 };
	for (size_t side = 0; side < 2 && ret == 0; side++)
		ret = side_set_name(&out->sides[side], options, side, err);
	for (size_t side = 0; side < sides; side++)
		for (size_t i = 0; i < options->files[side].list.len && ret == 0; i++)
			ret = read_one_input(out, options, side, i, err);
	if (ret < 0)
		return ret;
	if (out->recordings)
		return check_recordings_of_sides(options, out, err);
	return check_counts_of_sides(options, out, err);
}

void pmdiff_inputs_release(struct pmdiff_inputs *inputs)
{
	for (size_t side = 0; side < 2; side++) {
		pmdiff_side_release(&inputs->sides[side]);
		pm_profile_free(inputs->profiles[side]);
	}
	*inputs = (struct pmdiff_inputs){ 0 };
}
