/* SPDX-License-Identifier: MIT */
/* "Did you mean": finds the names most similar to an unknown one. */
#include "event-parser.h"

#include <ctype.h>
#include <string.h>

enum {
	SUBSTRING_MIN = 3,
	/* A name that contains the word counts like one with two typos. */
	SUBSTRING_SCORE = 2,
};

/* Whether @name begins with @word except for the last letter or two of @word:
 * "L1-dcachex" and "L1-dcache-loads". */
static bool do_names_begin_alike(const char *word, const char *name)
{
	size_t same = 0;

	while (word[same] &&
	       tolower((unsigned char)word[same]) == tolower((unsigned char)name[same]))
		same++;
	return same >= SUBSTRING_MIN && strlen(word) - same <= SUBSTRING_SCORE;
}

/* Returns the distance, or SIZE_MAX if it is above half of the word's length: suggesting
 * such a name would not help. */
static size_t nearness_of_event_name(const char *word, const char *name)
{
	size_t score = pm_name_distance(word, name), len = strlen(word);

	if (len >= SUBSTRING_MIN && score > SUBSTRING_SCORE &&
	    (strcasestr(name, word) || do_names_begin_alike(word, name)))
		return SUBSTRING_SCORE;
	if (score <= (len < 4 ? 1 : len / 2))
		return score;
	return SIZE_MAX;
}

void pm_near_add(struct pm_near *near, const char *name)
{
	size_t score = nearness_of_event_name(near->word, name), at = near->len;

	if (score == SIZE_MAX || strlen(name) >= sizeof(near->name[0]))
		return;
	for (size_t i = 0; i < near->len; i++) {
		if (strcmp(near->name[i], name) == 0)
			return;
	}
	while (at > 0 && near->score[at - 1] > score)
		at--;
	if (at >= PM_NEAR_MAX)
		return;
	if (near->len < PM_NEAR_MAX)
		near->len++;
	for (size_t i = near->len - 1; i > at; i--) {
		near->score[i] = near->score[i - 1];
		memcpy(near->name[i], near->name[i - 1], sizeof(near->name[i]));
	}
	near->score[at] = score;
	snprintf(near->name[at], sizeof(near->name[at]), "%s", name);
}

void pm_near_print(const struct pm_near *near, size_t max, struct pm_str *out)
{
	for (size_t i = 0; i < near->len && i < max; i++)
		pm_str_printf(out, "%s%s", pm_text_if(i > 0, ", "), near->name[i]);
}

void pm_event_names_near(const char *word, bool (*wanted)(const char *name), size_t max,
			 struct pm_str *out)
{
	const char *const *names = pm_event_names();
	struct pm_near near = { .word = word };

	for (size_t i = 0; names[i]; i++) {
		/* wanted() may open the event, so it is only called for similar names. */
		if (nearness_of_event_name(word, names[i]) != SIZE_MAX &&
		    (!wanted || wanted(names[i])))
			pm_near_add(&near, names[i]);
	}
	pm_near_print(&near, max, out);
}
