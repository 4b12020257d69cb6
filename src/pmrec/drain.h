/* SPDX-License-Identifier: MIT */
/*
 * Reads the records from the rings and passes them on.
 */
#pragma once

#include "session.h"

/* Makes one round. @final: reads everything; the events must be stopped. @err is set for
 * errors other than those of the file. */
int pm_rec_drain(struct pm_rec_session *session, bool final, struct pm_error *err);
