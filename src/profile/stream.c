/* SPDX-License-Identifier: MIT */
/* A profile that can be viewed while it grows. */
#include "profile-internal.h"

struct pm_profile_stream {
	struct pm_loader loader;
	bool looked; /* pm_load_finish() was called and has not been undone */
	size_t stacks, frames; /* their numbers before that call */
	struct pm_profile_info info; /* copy from before that call */
};

int pm_profile_stream_new(struct pm_profile_stream **out,
			  const struct pm_profile_options *options, struct pm_error *err)
{
	struct pm_profile_stream *stream;

	if (options && (options->time_set || options->keep_samples))
		return pm_error_set(err, -ENOTSUP,
				    "samples of a growing recording are not kept");
	stream = calloc(1, sizeof(*stream));
	if (!stream || pm_loader_init(&stream->loader, options) < 0) {
		free(stream);
		return pm_error_set(err, -ENOMEM, "out of memory");
	}
	*out = stream;
	return 0;
}

void pm_profile_stream_free(struct pm_profile_stream *stream)
{
	if (!stream)
		return;
	pm_loader_release(&stream->loader);
	free(stream);
}

/*
 * Undoes pm_load_finish() where it has used ids of the file: for the stack of samples
 * that have none. Everything else is recomputed, or replaced by later records.
 */
static void stream_undo_finish(struct pm_profile_stream *stream)
{
	struct pm_profile *profile = stream->loader.profile;
	size_t found = profile->info.found;

	if (!stream->looked)
		return;
	stream->looked = false;
	for (size_t i = 0; i < profile->cells.len; i++)
		if (profile->cells.data[i].stack >= stream->stacks)
			profile->cells.data[i].stack = PM_FILE_NONE;
	profile->stacks.len = stream->stacks;
	profile->frames.len = stream->frames;
	profile->info = stream->info;
	profile->info.found = found;
}

int pm_profile_stream_add(struct pm_profile_stream *stream,
			  const struct pm_file_record *record, struct pm_error *err)
{
	int ret;

	stream_undo_finish(stream);
	ret = pm_load_record(&stream->loader, record);
	if (ret < 0)
		return pm_load_failed(ret, err);
	return 0;
}

int pm_profile_stream_look(struct pm_profile_stream *stream, enum pm_profile_end end,
			   const struct pm_profile **out, struct pm_error *err)
{
	struct pm_profile *profile = stream->loader.profile;
	int ret;

	stream_undo_finish(stream);
	stream->stacks = profile->stacks.len;
	stream->frames = profile->frames.len;
	stream->info = profile->info;
	stream->looked = true;
	/* Only the footer contains the end time. */
	profile->info.cut = end != PM_PROFILE_WHOLE;
	/* The last view looks up all missing names again, because files and build-ids may
	 * appear late. */
	if (end != PM_PROFILE_GROWS)
		stream->loader.asked = 0;
	ret = pm_load_finish(&stream->loader);
	profile->info.cut = end == PM_PROFILE_CUT;
	profile->info.grows = end == PM_PROFILE_GROWS;
	if (ret < 0)
		return pm_load_failed(ret, err);
	*out = profile;
	return 0;
}
