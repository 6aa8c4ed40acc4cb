/*
 * data_index.h: code that readers of records and lines share: where each sample is stored, the files of a set, large
 * sequential reads, class labels found in the data, and the shape of the first sample.
 *
 * A reader's open() calls these functions, before training. Its read() uses only the entries and
 * cvy_data_read_picture().
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_DATA_INDEX_H
#define CVY_DATA_INDEX_H

#include "base/base_hash.h"
#include "base/base_index.h"
#include "data/data_reader.h"

/* ---- where samples are stored: 16 bytes each, in blocks, so that growing copies nothing ---- */

/* The label of a sample whose label was not found. read() looks for it again and reports what is wrong. */
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

/* The label for a split by class. An unknown label counts as 0, because only read() may reject a sample: there, the job
 * may ask to skip bad samples. */
static inline int32_t cvy_entries_label(const cvy_entries *e, int64_t number)
{
    const int32_t label = cvy_entries_at(e, number)->label;
    return label == CVY_LABEL_UNKNOWN ? 0 : label;
}

/* ---- the files of a set ---- */

/* Whether path has wildcards (* ? [) and no file has exactly that name. */
int cvy_data_is_glob(const char *path);
/* Lists files in bytewise order, in pool: the file at path; or those files of a folder for which ours(name) is true; or
 * all files that match a glob. CVY_E_IO if there is none. kind: what was looked for, for messages: "*.tfrecord".
 * passed: counts the other files of a folder; may be NULL. */
cvy_status cvy_data_files(cvy_pool *pool, const char *path, int (*ours)(const char *name), const char *kind,
                          const char ***out, int64_t *count_out, cvy_passed *passed);

/* ---- reads a file from start to end in large requests ---- */
typedef struct cvy_scan {
    const cvy_data_file *file;
    size_t window; /* least number of bytes to read at once */
    cvy_bytes room;
    int64_t from; /* file offset of the first byte in room */
} cvy_scan;
void cvy_scan_begin(cvy_scan *s, const cvy_data_file *file, size_t window); /* reuses the buffer of an earlier file */
/* Gets `bytes` bytes at offset, which must be inside the file. They are valid until the next call. */
cvy_status cvy_scan_at(cvy_scan *s, int64_t offset, size_t bytes, const uint8_t **out);
void cvy_scan_end(cvy_scan *s);

/* ---- classes found in the data: labels are numbers that may have names, or labels are names ---- */
enum { CVY_CLASSES_MAX = 1 << 20, CVY_CLASS_NAME_MAX = 255 };
typedef struct cvy_classes {
    cvy_pool *pool;
    int by_name;
    const char **name; /* [room]; NULL: class without a name */
    int count, room;   /* one past the last name */
    int32_t largest;   /* by number: the largest label seen */
    cvy_index numbers; /* by name: name -> number, in order of appearance until cvy_classes_resolve() */
} cvy_classes;
/* By number: notes that the label occurs. A label of CVY_CLASSES_MAX or more is ignored: it is damage, not a class. */
void cvy_classes_note_label(cvy_classes *c, int32_t label);
/* By number: sets the label's name, unless it has one. A label or name out of bounds is ignored. */
cvy_status cvy_classes_set_name(cvy_classes *c, int64_t label, const char *text, size_t bytes);
/* By number: reads names from folder/labels.txt, if it exists, from lines such as "3:tulips". first_label is subtracted
 * from their numbers. */
cvy_status cvy_classes_read_names(cvy_classes *c, const char *folder, int64_t first_label);
/* By name: the number of the name; a new name gets a new number. */
cvy_status cvy_classes_number(cvy_classes *c, const char *text, size_t bytes, int32_t *label_out);
/* Call it after all samples. Names are sorted bytewise, e's labels are changed to match, and info's classes are filled.
 * asked: the `classes` option; 0: as many as were found. */
cvy_status cvy_classes_resolve(cvy_classes *c, int64_t asked, cvy_entries *e, cvy_reader_info *info);
void cvy_classes_free(cvy_classes *c);
/* The label that a number means, in any format: a whole number in the range of int32, also if its type is a real.
 * CVY_E_FORMAT for any other. */
cvy_status cvy_label_of(double value, int32_t *label_out);
/* Number of classes for labels that are numbers and already read: `asked` if it is not 0, else largest + 1. path: the
 * file with the largest label, for messages. */
cvy_status cvy_classes_count(int64_t asked, int64_t largest, const char *path, int64_t *count_out);

/* ---- samples ---- */

/* Reads a whole JPEG or PNG file into raw->x. Error messages do not name the path; the caller adds it. */
cvy_status cvy_data_read_picture(const char *path, cvy_raw *raw);
/* The samples of a set that may be pictures, for a look at some of them. */
typedef struct cvy_pictures {
    cvy_status (*read)(void *state, int64_t number, cvy_raw *raw);
    void (*where)(void *state, int64_t number, char *text, size_t room);
    void *state;
    int64_t count;
    /* The sample to look at as number i of 32 or fewer, so that each class has one; NULL: they are evenly spread. */
    int64_t (*number_of)(void *state, int64_t i);
    int gives_up; /* 1: the first sample that cannot be read ends the look */
} cvy_pictures;
/* Sets info's dtype, shape and varying from the first sample that can be read, among the first 32: a damaged sample is
 * for the loader to report or skip. channels: 0 as in the sample, 1 grey, 2 colour. Pictures are looked at, see below.
 * An error message begins with the text of where(). */
cvy_status cvy_data_read_first(const cvy_pictures *p, int channels, cvy_reader_info *info);
/* Looks at 32 pictures, and says in info's note how all are read, whether one is of the other kind, and what is lost.
 * read_as: 1 or 3 channels; is_guess 0: the source says so. (data_look.c) */
cvy_status cvy_pictures_look(const cvy_pictures *p, int64_t read_as, int is_guess, cvy_reader_info *info);

#endif
