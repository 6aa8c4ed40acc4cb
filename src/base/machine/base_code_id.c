/*
 * base_code_id.c: see base_code_id.h. Linux alone is asked; the identifier is a note in the loaded file.
 * Source: the ELF specification, notes; Linux, dl_iterate_phdr(3).
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dl_iterate_phdr */
#endif
#include "base/machine/base_code_id.h"

#if defined(__linux__)

#include <elf.h>
#include <link.h>
#include <string.h>

#include "base/base_hash.h"

struct code_id {
    uintptr_t inside;
    uint64_t hash;
};

/* Hashes the notes of the type build-id of one segment. */
static void hash_notes(const char *at, size_t bytes, struct code_id *id)
{
    while (bytes >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, at, sizeof note);
        const size_t name = (note.n_namesz + 3u) & ~(size_t)3, desc = (note.n_descsz + 3u) & ~(size_t)3;
        const size_t whole = sizeof note + name + desc;
        if (whole > bytes)
            return;
        if (note.n_type == NT_GNU_BUILD_ID)
            id->hash = cvy_hash(at + sizeof note + name, note.n_descsz);
        at += whole;
        bytes -= whole;
    }
}

static int look_at_file(struct dl_phdr_info *info, size_t size, void *user)
{
    struct code_id *id = user;
    int has_it = 0;
    (void)size;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        const uintptr_t begin = info->dlpi_addr + p->p_vaddr;
        has_it |= p->p_type == PT_LOAD && id->inside >= begin && id->inside < begin + p->p_memsz;
    }
    for (int i = 0; i < info->dlpi_phnum && has_it; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_NOTE)
            hash_notes((const char *)(info->dlpi_addr + p->p_vaddr), p->p_memsz, id);
    }
    return has_it;
}

uint64_t cvy_code_id(uintptr_t inside)
{
    struct code_id id = {.inside = inside};
    dl_iterate_phdr(look_at_file, &id);
    return id.hash;
}

#else

uint64_t cvy_code_id(uintptr_t inside)
{
    (void)inside;
    return 0;
}

#endif
