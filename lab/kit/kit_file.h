/*
 * kit_file.h: what the parts of a kit share.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_KIT_FILE_H
#define CVY_KIT_FILE_H

#include <stdio.h>

#include "base/text/base_json.h"
#include "base/text/base_tree.h"
#include "kit/kit.h"

enum { CVY_KIT_FORMAT = 1, CVY_KIT_HASH = 65 };

#define CVY_KIT_SEAL "predictions.sha256"
#define CVY_KIT_PLATFORM "platform.yaml"
#define CVY_KIT_PREDICTED "predicted" /* the framework */

typedef struct cvy_kit { /* kit.yaml */
    cvy_pool *pool;
    const char *folder;
    const char *version, *commit, *made, *scheduler, *platform; /* commit, platform: "" if unknown */
    const char *study[CVY_KIT_STUDIES];
    int nstudy;
    int64_t nodes[CVY_KIT_NODES], ranks_per_node;
    int nnodes, quick;
} cvy_kit;

/* ---- kit_sha256.c ---- */
void cvy_kit_sha256(const void *data, size_t bytes, char text[CVY_KIT_HASH]);

/* ---- kit_file.c ---- */
/* Reads kit.yaml. CVY_E_CONFIG: the folder is no kit, or one that this version does not know. */
cvy_status cvy_kit_read(cvy_pool *pool, const char *folder, cvy_kit *out);
/* The path of a part of the kit. */
cvy_status cvy_kit_path(const cvy_kit *kit, char **out, const char *fmt, ...) CVY_PRINTF(3, 4);
/* The text of a file, in the pool of the kit. */
cvy_status cvy_kit_text(const cvy_kit *kit, const char *path, const char **out);

/* What to do about an error: "; .." for a line of the results that is damaged, "" otherwise. */
const char *cvy_kit_advice(const char *error);

/* ---- kit_seal.c ---- */
typedef struct cvy_kit_seal {
    const char *made;        /* the first line of the seal, without its mark; NULL: there is no seal */
    char hash[CVY_KIT_HASH]; /* of the seal */
    const char *changed;     /* the names of files that have changed since; NULL: none */
} cvy_kit_seal;
/* Writes the seal over all that was predicted. note: how many predictions there are. */
cvy_status cvy_kit_make_seal(const cvy_kit *kit, const char *commit, const char *note);
/* Reads the seal, and compares the files with it. */
cvy_status cvy_kit_read_seal(const cvy_kit *kit, cvy_kit_seal *out);

/* ---- kit_journal.c ---- */
/* Appends a line to the journal of the jobs with so many nodes; 0: that of the predictions. */
cvy_status cvy_kit_note(const cvy_kit *kit, int64_t nodes, const cvy_json *line);
typedef struct cvy_kit_part { /* a study on a number of nodes */
    enum { CVY_KIT_NOT_BEGUN, CVY_KIT_BROKEN_OFF, CVY_KIT_STOPPED, CVY_KIT_PARTLY, CVY_KIT_COMPLETE } state;
    int is_wanted;           /* it has cases */
    int64_t results, failed; /* measurements that came back, and those of them that failed */
    int64_t made, left;      /* as the last job that worked on it says; -1: none does */
    int64_t left_out;        /* likewise: threads without cores, frameworks that are not there; 0: unknown */
    const char *seal;        /* that the first job on these nodes found; NULL: unknown, "": none */
    const char *began;       /* when that was */
} cvy_kit_part;
/* Reads the journal and counts the results. */
cvy_status cvy_kit_read_part(const cvy_kit *kit, const char *study, int64_t nodes, cvy_kit_part *out);

/* ---- kit_page.c ---- */
/* What the page needs besides the files. */
typedef struct cvy_kit_page {
    const cvy_kit *kit;
    const char *name; /* of the folder */
    cvy_kit_seal seal;
    cvy_kit_part *part; /* [nstudy, nnodes] */
    cvy_kit_result result;
} cvy_kit_page;
/* Writes report.html, and report.html of each study. */
cvy_status cvy_kit_write_page(cvy_kit_page *page);

#endif
