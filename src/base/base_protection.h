/*
 * base_protection.h: protections that the system may refuse, such as locks of files on a network file system. Work goes
 * on without them, and it is said once in a process what cannot be protected.
 *
 * Code that finds such a refusal notes it; a context says what was noted (cvy_context_say_protections).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_PROTECTION_H
#define CVY_BASE_PROTECTION_H

#include <stddef.h>

typedef enum {
    CVY_PROTECTION_RUN_LOCK,
    CVY_PROTECTION_WISDOM_LOCK,
    CVY_PROTECTION_SYNC,
    CVY_PROTECTION_SYNC_FOLDER,
    CVY_PROTECTION_FREE_SPACE,
    CVY_PROTECTION_READER_MEMORY,
    CVY_PROTECTIONS
} cvy_protection;

enum { CVY_PROTECTION_TEXT = 1024 };

/* Notes that this protection cannot work for `path`, because its call fails with this errno. The first note counts. Any
 * thread. */
void cvy_protection_note(cvy_protection which, const char *path, int error);
/* Writes the next note that was not taken yet. 0: there is none. */
int cvy_protection_take(char text[CVY_PROTECTION_TEXT]);
/* Whether the errno of fsync() says that the file system cannot do it, and not that it has failed. */
int cvy_protection_is_unsupported(int error);

/* flock() without waiting, repeated if a signal interrupts it. */
typedef enum { CVY_LOCK_HELD, CVY_LOCK_BUSY, CVY_LOCK_CANNOT /* errno says why */ } cvy_lock;
cvy_lock cvy_file_lock(int fd);
/* The same for a lock that others may hold, too. */
cvy_lock cvy_file_lock_shared(int fd);

#endif
