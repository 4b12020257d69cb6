/* SPDX-License-Identifier: MIT */
#include "control.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>

void pm_rec_control_init(struct pm_rec_control *control)
{
	*control = (struct pm_rec_control){ .fd = -1, .ack_fd = -1 };
}

void pm_rec_control_release(struct pm_rec_control *control)
{
	pm_cleanup_close(&control->fd);
	pm_cleanup_close(&control->ack_fd);
}

/* Opens the FIFO for reading and writing, so that it does not reach end of file when a
 * writer closes it (fifo(7)). */
static int open_fifo(const char *path, struct pm_error *err)
{
	PM_AUTO_CLOSE int fd = open(path, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	if (fd < 0) {
		int ret = -errno;

		pm_error_set(err, ret, "--control: %s", strerror(-ret));
		pm_error_where(err, path, -1);
		if (ret == -ENOENT)
			pm_error_fix(err, "mkfifo %s", path);
		return ret;
	}
	if (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode)) {
		pm_error_set(err, -EINVAL, "--control: this is no FIFO");
		pm_error_where(err, path, -1);
		return -EINVAL;
	}
	return pm_take_fd(&fd);
}

/* Returns a duplicate of the descriptor, so that closing it does not affect others. A
 * descriptor with the access mode @not is refused: it would be useless. */
static int take_fd(const char *number, int not, struct pm_error *err)
{
	int fd = fcntl(atoi(number), F_DUPFD_CLOEXEC, 3);

	if (fd < 0)
		return pm_error_set(err, -errno, "--control fd:%s: %s", number,
				    strerror(errno));
	if ((fcntl(fd, F_GETFL) & O_ACCMODE) == not ) {
		close(fd);
		return pm_error_set(err, -EBADF, "--control fd:%s is open for %s only",
				    number, not == O_WRONLY ? "writing" : "reading");
	}
	return fd;
}

int pm_rec_control_open(struct pm_rec_control *control, const char *text,
			struct pm_error *err)
{
	bool fifo = strncmp(text, "fifo:", 5) == 0;
	const char *names = text + (fifo ? 5 : 3);
	size_t len = strcspn(names, ",");
	PM_AUTO_FREE char *first = strndup(names, len);
	const char *second = names[len] ? names + len + 1 : NULL;

	if (!first)
		return pm_error_set(err, -ENOMEM, "out of memory");
	if (fifo)
		control->fd = open_fifo(first, err);
	else
		control->fd = take_fd(first, O_WRONLY, err);
	if (control->fd < 0)
		return control->fd;
	if (!second)
		return 0;
	if (fifo)
		control->ack_fd = open_fifo(second, err);
	else
		control->ack_fd = take_fd(second, O_RDONLY, err);
	return PM_MIN(control->ack_fd, 0);
}

void pm_rec_control_read(struct pm_rec_control *control)
{
	ssize_t len = read(control->fd, control->rest, sizeof(control->rest));

	control->rest_at = 0;
	if (len > 0)
		control->rest_len = (size_t)len;
	else
		control->rest_len = 0;
	/* The other end is closed, or reading failed: poll(2) would always report it. */
	if (len == 0 || (len < 0 && errno != EAGAIN && errno != EINTR)) {
		close(control->fd);
		control->fd = -1;
	}
}

static enum pm_rec_command command_of(const char *line)
{
	static const char *const words[] = {
		[PM_REC_CONTROL_ENABLE] = "enable",
		[PM_REC_CONTROL_DISABLE] = "disable",
		[PM_REC_CONTROL_PING] = "ping",
		[PM_REC_CONTROL_SNAPSHOT] = "snapshot",
		[PM_REC_CONTROL_STOP] = "stop",
	};

	for (size_t i = PM_REC_CONTROL_ENABLE; i < PM_ARRAY_LEN(words); i++)
		if (strcmp(line, words[i]) == 0)
			return (enum pm_rec_command)i;
	return PM_REC_CONTROL_UNKNOWN;
}

enum pm_rec_command pm_rec_control_next(struct pm_rec_control *control)
{
	while (control->rest_at < control->rest_len) {
		char c = control->rest[control->rest_at++];

		/* perf also ends a line with a NUL. */
		if (c != '\n' && c != '\0') {
			if (control->line_len < sizeof(control->line) - 1)
				control->line[control->line_len++] = c;
			continue;
		}
		control->line[control->line_len] = '\0';
		if (control->line_len == 0)
			continue;
		control->line_len = 0;
		return command_of(control->line);
	}
	return PM_REC_CONTROL_NONE;
}

void pm_rec_control_ack(const struct pm_rec_control *control)
{
	static const char word[] = "ack\n";

	struct pollfd fd = { .fd = control->ack_fd, .events = POLLOUT };

	/* If the other side does not read, it does not need the ack and must not delay
	 * us. A write to a full inherited descriptor may block, and its flags are shared,
	 * so we must not change them. */
	if (fd.fd >= 0 && poll(&fd, 1, 0) > 0 && (fd.revents & POLLOUT) &&
	    write(fd.fd, word, sizeof(word) - 1) < 0)
		return;
}
