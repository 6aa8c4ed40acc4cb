/* SPDX-License-Identifier: BSD-3-Clause */
/* poll.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_POLL_H
#define DARWIN_POLL_H
struct pollfd {
    int fd;
    short events, revents;
};
typedef unsigned int nfds_t;
#define POLLIN 0x0001
#define POLLOUT 0x0004
#define POLLERR 0x0008
#define POLLHUP 0x0010
int poll(struct pollfd *, nfds_t, int);
#endif
