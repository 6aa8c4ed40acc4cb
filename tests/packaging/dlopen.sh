#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# rows: mpich
# dlopen.sh: a program that loads the library by dlopen, uses it and closes it, twenty times, takes no more memory in the
# end than after a few times, and still works.
. "$CONVOY_SOURCE/tests/shell.inc"
[ "$CONVOY_SANITIZE" = OFF ] || { echo "the sanitizer's library must be loaded first"; exit 77; }
[ -r /proc/self/statm ] || { echo "there is no /proc/self/statm"; exit 77; }
cat >plugin.c <<'END'
#include <convoy/convoy.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static void *need(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    return found;
}

#define CALL(name) ((__typeof__(&name))(uintptr_t)need(library, #name))

static long resident(void)
{
    long all = 0, pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld %ld", &all, &pages) != 2)
        exit(1);
    fclose(f);
    return pages;
}

int main(int argc, char **argv)
{
    long early = 0;
    for (int i = 0; argc > 1 && i < 20; i++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
        const cvy_context_opts opts = {.size = sizeof opts, .threads = 1};
        cvy_context *context = NULL;
        cvy_model *model = NULL;
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        if (CALL(cvy_context_create)(&opts, &context) != CVY_OK || CALL(cvy_model_create)("m", &model) != CVY_OK ||
            CALL(cvy_model_add)(model, "nothing", NULL, NULL, NULL) == CVY_OK || !*CALL(cvy_error_text)())
            return 2;
        CALL(cvy_model_destroy)(&model);
        CALL(cvy_context_destroy)(&context);
        dlclose(library);
        if (i == 5)
            early = resident();
    }
    printf("%ld pages more\n", resident() - early);
    return resident() - early > 500;
}
END
"$CC" -D_GNU_SOURCE -std=c11 -o plugin plugin.c -I"$CONVOY_SOURCE/include" -ldl >log 2>&1 || { cat log; fail "it does not compile"; }
./plugin "$CONVOY_BUILD/libconvoy.so" >log 2>&1 || fail "exit code $?: $(cat log)"
exit $failed
