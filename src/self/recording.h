/* SPDX-License-Identifier: MIT */
/*
 * From what an engine gives to the table and the file: unwinds, interns, names, writes. Belongs
 * to the helper thread.
 */
#pragma once

#include "engine.h"
#include "pm/profile.h"

struct pm_self_recording;

/* Opens engine and file, nothing is sampled yet. @settings are borrowed. */
int pm_self_recording_open(struct pm_self_recording **ret,
			   const struct pm_self_settings *settings, struct pm_error *err);
void pm_self_recording_free(struct pm_self_recording *recording);
int pm_self_recording_begin(struct pm_self_recording *recording, struct pm_error *err);
/* Takes what has been sampled so far. */
int pm_self_recording_drain(struct pm_self_recording *recording, struct pm_error *err);
/*
 * Ends the sampling, finds names, completes the file. @table gets the table, whatever went
 * wrong with the file; its text is to be freed. 0 or what went wrong first.
 */
int pm_self_recording_finish(struct pm_self_recording *recording, char **table,
			     struct pm_error *err);
const struct pm_self_engine *pm_self_recording_engine(
	const struct pm_self_recording *recording);
