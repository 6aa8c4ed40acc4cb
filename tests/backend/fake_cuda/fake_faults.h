/*
 * fake_faults.h: injected faults of the fake libraries: a variable of the environment says "name=7@20": the 20th call
 * of `name`, and all later ones, fail with error 7; "@20" left out: from the first call on.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_FAKE_FAULTS_H
#define CVY_FAKE_FAULTS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The error of this call; 0: it does not fail. */
static inline int fake_fails(const char *variable, const char *name)
{
    static struct {
        char name[64];
        int calls;
    } count[64];
    const char *text = getenv(variable), *at = text ? strstr(text, name) : NULL;
    int i = 0, error = 0, from = 1;
    if (!at || at[strlen(name)] != '=')
        return 0;
    while (count[i].name[0] && strcmp(count[i].name, name) != 0)
        i++;
    snprintf(count[i].name, sizeof count[i].name, "%s", name);
    sscanf(at + strlen(name), "=%d@%d", &error, &from);
    return ++count[i].calls >= from ? error : 0;
}

/* For a library that defines fails(): the function that calls it returns the error of this call. */
#define MAY_FAIL()                                                                                                     \
    do {                                                                                                               \
        const int error_ = fails(__func__);                                                                            \
        if (error_)                                                                                                    \
            return error_;                                                                                             \
    } while (0)

#endif
