/* SPDX-License-Identifier: MIT */
/*
 * Turns an engine's records into the table and the file: unwinds, interns, names, writes.
 * Belongs to the helper thread.
 */
#pragma once

#include "engine.h"
#include "pm/profile.h"

struct pm_self_recording;

/* Opens the engine and the file without starting to sample. @settings are borrowed. */
int pm_self_recording_open(struct pm_self_recording **out,
			   const struct pm_self_settings *settings, struct pm_error *err);
void pm_self_recording_free(struct pm_self_recording *recording);
int pm_self_recording_begin(struct pm_self_recording *recording, struct pm_error *err);
/* Processes all samples that are available. */
int pm_self_recording_drain(struct pm_self_recording *recording, struct pm_error *err);
/*
 * Ends sampling, finds names, completes the file. @table is set to the table even if
 * writing the file has failed; the caller has to free the string. Returns 0 or the first
 * error.
 */
int pm_self_recording_finish(struct pm_self_recording *recording, char **table,
			     struct pm_error *err);
const struct pm_self_engine *pm_self_recording_engine(
	const struct pm_self_recording *recording);
