/*
 * test_data_hdf5_lists.c: lists of bytes (encoded pictures) in HDF5 files: every layout that is read by position, and
 * files that are damaged anywhere: a row is then read as it was, or is a fault, and no byte outside of it is touched.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "test_data_support.h"

#if CVY_HAVE_HDF5
#include "base/base_file.h"
#include "test_data_hdf5.h"

static uint8_t expected[LIST_MAX];

/* Returns how many rows are faults. All others must be as written, or, if `damaged`, of any content. */
static int read_all(const char *name, int damaged)
{
    cvy_dataset *d = NULL;
    cvy_raw raw = {0};
    int faults = 0;
    if (open_in(name, "", &d) != CVY_OK)
        return LISTS;
    for (int i = 0; i < LISTS; i++) {
        const int row = i * 37 % LISTS;
        if (cvy_dataset_read_raw(d, row, &raw) != CVY_OK) {
            faults++;
            continue;
        }
        fill_list(row, expected);
        TRUE_THAT(damaged || (raw.x.bytes == list_bytes(row) && memcmp(raw.x.data, expected, raw.x.bytes) == 0));
    }
    cvy_raw_free(&raw);
    cvy_dataset_destroy(&d);
    return faults;
}

static void test_layouts(void)
{
    static const struct layout layouts[] = {{.ndim = 1},
                                            {.chunk = {16}},
                                            {.chunk = {64}, .level = 4},
                                            {.chunk = {64}, .shuffle = 1, .level = 4},
                                            {.chunk = {7}, .shuffle = 1}};
    for (int i = 0; i < CVY_COUNT(layouts); i++) {
        const hid_t file = new_file("lists.h5");
        add_lists(file, layouts[i]);
        H5Fclose(file);
        TRUE_THAT(read_all("lists.h5", 0) == 0);
    }
}

/* Damage in the references, and in the heads of collections and objects. The process that has libhdf5 may crash of it;
 * this one must not. */
static void test_damage(void)
{
    char *data = NULL;
    size_t bytes = 0;
    const hid_t file = new_file("whole.h5");
    add_lists(file, (struct layout){.ndim = 1});
    H5Fclose(file);
    OK(cvy_file_read(in_scratch("whole.h5"), 16 << 20, &data, &bytes));
    char *heap = memmem(data, bytes, "GCOL", 4);
    TRUE_THAT(heap != NULL);
    const size_t at = (size_t)(heap - data);
    static const unsigned char values[] = {0, 1, 0x7f, 0xff};
    for (size_t i = 0; i < 64; i += 3)
        for (int k = 0; k < CVY_COUNT(values); k++) {
            const char before = data[at + i];
            data[at + i] = (char)values[k];
            put_file(in_scratch("bad.h5"), data, bytes);
            (void)read_all("bad.h5", 1);
            data[at + i] = before;
        }
    put_file(in_scratch("cut.h5"), data, at + 40);
    TRUE_THAT(read_all("cut.h5", 1) > 0);
    put_file(in_scratch("same.h5"), data, bytes);
    TRUE_THAT(read_all("same.h5", 0) == 0);
    cvy_mem_free(&data);
}

int main(void)
{
    scratch_make();
    test_layouts();
    test_damage();
    scratch_remove();
    return 0;
}

#else

int main(void)
{
    printf("skipped: this build has no HDF5\n");
    return 77;
}

#endif
