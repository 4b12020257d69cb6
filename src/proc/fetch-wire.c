/* SPDX-License-Identifier: MIT */
#include "fetch-internal.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

union control {
	struct cmsghdr header; /* aligns */
	char bytes[CMSG_SPACE(PM_FETCH_FDS_MAX * sizeof(int))];
};

int pm_fetch_send(int socket, const void *head, size_t head_len, const void *data,
		  size_t len, const int *fds, size_t fds_len)
{
	struct iovec parts[] = { { (void *)(uintptr_t)head, head_len },
				 { (void *)(uintptr_t)data, len } };
	struct msghdr message = { .msg_iov = parts, .msg_iovlen = len > 0 ? 2 : 1 };
	union control control = { .bytes = { 0 } };
	ssize_t n;

	if (fds_len > 0) {
		struct cmsghdr *header;

		message.msg_control = control.bytes;
		message.msg_controllen = CMSG_SPACE(fds_len * sizeof(int));
		header = CMSG_FIRSTHDR(&message);
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(fds_len * sizeof(int));
		memcpy(CMSG_DATA(header), fds, fds_len * sizeof(int));
	}
	do
		n = sendmsg(socket, &message, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

static void take_fds(struct msghdr *message, int *fds, size_t fds_len)
{
	for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
	     header = CMSG_NXTHDR(message, header)) {
		size_t len = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < len; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(fd));
			if (i < fds_len)
				fds[i] = fd;
			else
				close(fd);
		}
	}
}

ssize_t pm_fetch_receive(int socket, void *head, size_t head_len, void *data, size_t len,
			 int *fds, size_t fds_len, int flags)
{
	struct iovec parts[] = { { head, head_len }, { data, len } };
	union control control;
	struct msghdr message = { .msg_iov = parts,
				  .msg_iovlen = len > 0 ? 2 : 1,
				  .msg_control = control.bytes,
				  .msg_controllen = sizeof(control.bytes) };
	ssize_t n;

	for (size_t i = 0; i < fds_len; i++)
		fds[i] = -1;
	do
		n = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | flags);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	take_fds(&message, fds, fds_len);
	return n;
}
