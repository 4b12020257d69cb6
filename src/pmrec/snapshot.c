/* SPDX-License-Identifier: MIT */
#include "snapshot.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "drain.h"
#include "fields.h"
#include "follow.h"
#include "output.h"
#include "pm/chain-jit.h"
#include "titles.h"

enum {
	SAME_NAME_MAX = 1000, /* snapshots within one millisecond */
};

int pm_rec_snapshot_name(const char *path, const struct timespec *time,
			 unsigned int again, char *out, size_t size)
{
	const char *base = strrchr(path, '/');
	const char *suffix = strstr(base ? base : path, ".json");
	char stamp[32], number[16] = "";
	struct tm utc;
	int len;

	if (!suffix)
		suffix = strstr(base ? base : path, ".zst");
	if (!suffix)
		suffix = path + strlen(path);
	if (strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%S",
		     gmtime_r(&time->tv_sec, &utc)) == 0)
		return -EINVAL;
	if (again > 0)
		snprintf(number, sizeof(number), "-%u", again);
	len = snprintf(out, size, "%.*s-%s.%03d%s%s", (int)(suffix - path), path, stamp,
		       (int)(time->tv_nsec / 1000000 % 1000), number, suffix);
	if (len < 0 || (size_t)len >= size)
		return -ENAMETOOLONG;
	return 0;
}

/* Renames the file to its final name. Never replaces an existing file. */
static int give_name(const char *place, const char *path, char *name, size_t size,
		     struct pm_error *err)
{
	struct timespec now;
	int ret;

	clock_gettime(CLOCK_REALTIME, &now);
	for (unsigned int again = 0; again < SAME_NAME_MAX; again++) {
		ret = pm_rec_snapshot_name(path, &now, again, name, size);
		if (ret < 0)
			break;
		/* A file system without RENAME_NOREPLACE may support links. */
		if (renameat2(AT_FDCWD, place, AT_FDCWD, name, RENAME_NOREPLACE) == 0)
			return 0;
		ret = -errno;
		if (ret == -EINVAL && link(place, name) == 0) {
			if (unlink(place) == 0)
				return 0;
			return -errno;
		}
		if (ret == -EINVAL)
			ret = -errno;
		if (ret != -EEXIST)
			break;
	}
	pm_error_set(err, ret, "the snapshot cannot be named: %s", strerror(-ret));
	pm_error_where(err, path, -1);
	return ret;
}

/* Resets everything that was specific to the completed file. */
static void forget_file(struct pm_rec_session *session)
{
	struct pm_rec_event_counts *events = session->counts.events;
	size_t len = session->counts.events_len;
	uint64_t max_hz = session->counts.max_sample_hz;

	pm_chains_free(PM_TAKE_PTR(session->chains));
	pm_chain_jit_free(PM_TAKE_PTR(session->jit));
	/* The user data of processes refer to the objects freed above. */
	pm_procs_release_users(session->procs);
	pm_rec_titles_free(PM_TAKE_PTR(session->titles));
	pm_rec_fields_free(PM_TAKE_PTR(session->fields));
	pm_chain_threads_release(&session->threads);
	session->threads = (struct pm_chain_threads){ 0 };
	pm_chain_modules_new_file(&session->modules);
	if (events)
		memset(events, 0, len * sizeof(*events));
	session->counts = (struct pm_rec_counts){ .events = events,
						  .events_len = len,
						  .max_sample_hz = max_hz };
}

int pm_rec_snapshot(struct pm_rec_session *session, struct pm_error *err)
{
	const char *path = session->options->output;
	char name[PATH_MAX];
	uint64_t samples;
	int ret = pm_perf_snapshot(session->perf, true);

	if (ret < 0)
		return pm_error_set(err, ret, "the buffers cannot be stopped: %s",
				    strerror(-ret));
	session->end_ns = pm_now_ns();
	/* The path of -o belongs to another recording until this one ends. */
	pm_file_writer_stay_beside(session->writer);
	ret = pm_rec_drain(session, false, err);
	samples = session->counts.samples;
	if (ret == 0)
		ret = pm_rec_output_finish(session, err);
	ret = pm_rec_output_close(session, ret, err);
	if (ret == 0 && !session->place)
		ret = pm_error_set(err, -ENOMEM, "out of memory");
	if (ret == 0)
		ret = give_name(session->place, path, name, sizeof(name), err);
	if (ret < 0)
		return ret;
	if (!session->options->quiet)
		fprintf(stderr, "pmrec: snapshot: %llu samples in %s\n",
			(unsigned long long)samples, name);
	forget_file(session);
	session->begin_ns = session->end_ns;
	session->told = true;
	ret = pm_rec_output_open(session, err);
	session->told = false;
	if (ret == 0)
		ret = pm_perf_snapshot(session->perf, false);
	/* The names of tasks have to be written again, to the new file. */
	if (ret != 0)
		return ret;
	return pm_rec_follow_again(session);
}
