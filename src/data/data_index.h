/*
 * data_index.h: what readers of records and lines have in common: where each sample lies, the files of a set, large
 * sequential reads, classes as they turn up, the look at the first sample.
 *
 * Before the step: all of it serves a reader's open(), but for the entries and cvy_data_read_picture(), which read()
 * uses.
 */
#ifndef CVY_DATA_INDEX_H
#define CVY_DATA_INDEX_H

#include "base/base_hash.h"
#include "base/base_index.h"
#include "data/data_reader.h"

/* ---- where samples lie: 16 bytes each, in blocks, so that growing copies nothing ---- */

/* Of a sample whose label could not be found: read() looks again and says what is wrong. */
#define CVY_LABEL_UNKNOWN INT32_MIN

typedef struct cvy_entry {
    uint64_t offset;
    uint32_t bytes;
    int32_t label;
} cvy_entry;

enum { CVY_ENTRY_BLOCK = 4096 };

typedef struct cvy_entries { /* {0} is empty */
    cvy_entry **block;
    int nblock, room;
    int64_t count;
} cvy_entries;

cvy_status cvy_entries_add(cvy_entries *e, const cvy_entry *entry);
void cvy_entries_hash(const cvy_entries *e, cvy_hasher *h);
void cvy_entries_free(cvy_entries *e);

static inline cvy_entry *cvy_entries_at(const cvy_entries *e, int64_t number)
{
    return &e->block[number / CVY_ENTRY_BLOCK][number % CVY_ENTRY_BLOCK];
}

/* The label as a split into classes wants it: an unknown one counts as 0, for only read() may refuse a sample, where
 * the job may say to skip it. */
static inline int32_t cvy_entries_label(const cvy_entries *e, int64_t number)
{
    const int32_t label = cvy_entries_at(e, number)->label;
    return label == CVY_LABEL_UNKNOWN ? 0 : label;
}

/* ---- the files of a set ---- */

/* Whether path has wildcards (* ? [) and is no file of that very name. */
int cvy_data_is_glob(const char *path);
/* Into pool, in bytewise order: the file at path; of a folder those whose names are `ours`; of a glob all that match.
 * CVY_E_IO where there is none; kind: what was looked for, "*.tfrecord". */
cvy_status cvy_data_files(cvy_pool *pool, const char *path, int (*ours)(const char *name), const char *kind,
                          const char ***out, int64_t *count_out);

/* ---- a file from front to back in large requests ---- */
typedef struct cvy_scan {
    const cvy_data_file *file;
    size_t window; /* bytes asked for at once, at least */
    cvy_bytes room;
    int64_t from; /* room's first byte in the file */
} cvy_scan;
void cvy_scan_begin(cvy_scan *s, const cvy_data_file *file, size_t window); /* keeps the room of an earlier file */
/* The bytes at offset, which the file has; valid until the next call. */
cvy_status cvy_scan_at(cvy_scan *s, int64_t offset, size_t bytes, const uint8_t **out);
void cvy_scan_end(cvy_scan *s);

/* ---- classes as they turn up: labels are numbers that may have names, or they are names ---- */
enum { CVY_CLASSES_MAX = 1 << 20, CVY_CLASS_NAME_MAX = 255 };
typedef struct cvy_classes {
    cvy_pool *pool;
    int by_name;
    const char **name; /* [room]; NULL: not named */
    int count, room;   /* one past the last name */
    int32_t largest;   /* by number: the largest label seen */
    cvy_index place;   /* by name: the numbers, in the order of appearance until cvy_classes_resolve() */
} cvy_classes;
/* By number: the label was seen. One of CVY_CLASSES_MAX or more counts as damage, not as a million classes. */
void cvy_classes_see(cvy_classes *c, int32_t label);
/* By number: the label's name, unless it has one already; a label or name out of bounds is passed over. */
cvy_status cvy_classes_call(cvy_classes *c, int64_t label, const char *text, size_t bytes);
/* By number: names from folder/labels.txt, if it is there: its lines of the kind "3:tulips". */
cvy_status cvy_classes_names_beside(cvy_classes *c, const char *folder, int64_t first_label);
/* By name: its number, a new one for a new name. */
cvy_status cvy_classes_number(cvy_classes *c, const char *text, size_t bytes, int32_t *label_out);
/* When all were seen: names are sorted bytewise and e's labels follow; fills info's classes. asked: the option, 0: as
 * many as turned up. */
cvy_status cvy_classes_resolve(cvy_classes *c, int64_t asked, cvy_entries *e, cvy_reader_info *info);
void cvy_classes_free(cvy_classes *c);
/* Of labels that are numbers and read already: as many as asked for, or up to the largest, which stands in path. */
cvy_status cvy_classes_count(int64_t asked, int64_t largest, const char *path, int64_t *count_out);

/* ---- samples ---- */

/* A JPEG or PNG file, whole, into raw->x. Faults leave the path to the caller. */
cvy_status cvy_data_read_picture(const char *path, cvy_raw *raw);
/* dtype, shape and varying from the first sample that can be read, of the first 32: a damaged one is the loader's to
 * report or skip. channels: 0 as the sample's, 1 grey, 2 colour. A fault is prefixed by where(). */
cvy_status cvy_data_look_at_first(cvy_status (*read)(void *, int64_t, cvy_raw *),
                                  void (*where)(void *, int64_t, char *, size_t), void *state, int64_t count,
                                  int channels, cvy_reader_info *info);

#endif
