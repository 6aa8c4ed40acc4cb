/* SPDX-License-Identifier: BSD-3-Clause */
/* errno.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_ERRNO_H
#define DARWIN_ERRNO_H
int *__error(void);
#define errno (*__error())
#define EPERM 1
#define ENOENT 2
#define ESRCH 3
#define EINTR 4
#define EIO 5
#define ENXIO 6
#define EBADF 9
#define EAGAIN 35
#define EWOULDBLOCK EAGAIN
#define ENOMEM 12
#define EACCES 13
#define EBUSY 16
#define EEXIST 17
#define EXDEV 18
#define ENOTDIR 20
#define EISDIR 21
#define EINVAL 22
#define EMFILE 24
#define ENOTTY 25
#define EFBIG 27
#define ENOSPC 28
#define EROFS 30
#define EPIPE 32
#define EDOM 33
#define ERANGE 34
#define ENOTSUP 45
#define EOPNOTSUPP 102
#define ELOOP 62
#define ENAMETOOLONG 63
#define ENOTEMPTY 66
#define EDQUOT 69
#define ESTALE 70
#define ENOSYS 78
#define EOVERFLOW 84
#define ETIMEDOUT 60
#endif
