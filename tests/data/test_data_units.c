/*
 * test_data_units.c: units of measurement are the same in any spelling, are converted if they measure the same, and are
 * others if that is not certain.
 *
 * rows: clang asan
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_units.h"
#include "test_util.h"

static void test_same(void)
{
    static const char *const same[][2] = {
        {"K", "kelvin"},
        {"K", "Kelvin"},
        {"degC", "celsius"},
        {"degC", "degrees Celsius"},
        {"C", "deg_C"},
        {"m s-1", "m/s"},
        {"m s**-1", "m.s^-1"},
        {"m s-1", "meters per second"},
        {"m s-1", "metre second-1"},
        {"kg m-2 s-1", "kg/m2/s"},
        {"W m-2", "watt/m^2"},
        {"hPa", "mbar"},
        {"hPa", "millibars"},
        {"hPa", "mb"},
        {"1", ""},
        {"1", "kg kg-1"},
        {"kg kg**-1", "kg/kg"},
        {"%", "percent"},
        {"degrees_north", "degree_north"},
        {"degrees_east", "degrees"},
        {"K", "K "},
        {"m  s-1", "m s-1"},
        {"J", "N m"},
        {"J kg-1", "m2 s-2"},
        {"something else", "something else"},
        {"(0 - 1)", "1"},
        {"electron/s", "electron s-1"},
        {"counts/s", "Count s-1"},
        {"ADU", "adu"},
        {"umol m-2 s-1", "micromole m-2 s-1"},
        {"\u00b0C", "degC"},
    };
    for (int i = 0; i < CVY_COUNT(same); i++)
        for (int way = 0; way < 2; way++) {
            double factor = 0, offset = 1;
            if (cvy_units_relate(same[i][way], same[i][!way], &factor, &offset) != CVY_UNITS_SAME || factor != 1 ||
                offset != 0)
                TEST_FAIL("%s and %s: factor %.17g offset %.17g", same[i][way], same[i][!way], factor, offset);
        }
}

static void test_converted(void)
{
    static const struct {
        const char *from, *to;
        double factor, offset;
    } row[] = {
        {"degC", "K", 1, 273.15},
        {"K", "degC", 1, -273.15},
        {"Celsius", "kelvin", 1, 273.15},
        {"degF", "degC", 5. / 9, -160. / 9},
        {"Pa", "hPa", 1e-2, 0},
        {"mbar", "Pa", 1e2, 0},
        {"m", "km", 1e-3, 0},
        {"mm", "m", 1e-3, 0},
        {"g/kg", "kg kg-1", 1e-3, 0},
        {"g kg**-1", "1", 1e-3, 0},
        {"%", "1", 1e-2, 0},
        {"1e-3", "1", 1e-3, 0},
        {"km/h", "m s-1", 1 / 3.6, 0},
        {"mm/day", "mm hr-1", 1. / 24, 0},
        {"knots", "m/s", 1852. / 3600, 0},
        {"degC/day", "K/day", 1, 0},
        {"mJy/beam", "Jy beam-1", 1e-3, 0},
        {"10^3 kg", "kg", 1e3, 0},
        {"radians", "degrees", 57.29577951308232, 0},
        {"keV", "eV", 1e3, 0},
    };
    for (int i = 0; i < CVY_COUNT(row); i++) {
        double factor = 0, offset = 0;
        const cvy_units_relation r = cvy_units_relate(row[i].from, row[i].to, &factor, &offset);
        const int is_same = row[i].factor == 1 && row[i].offset == 0;
        if (r != (is_same ? CVY_UNITS_SAME : CVY_UNITS_CONVERTED) ||
            fabs(factor - row[i].factor) > 1e-14 * row[i].factor || fabs(offset - row[i].offset) > 1e-12)
            TEST_FAIL("%s to %s: %d, factor %.17g offset %.17g", row[i].from, row[i].to, (int)r, factor, offset);
    }
}

/* Decimal factors are the numbers next to them, so that 850 hPa become 85000 Pa and nothing near it. */
static void test_exact(void)
{
    double factor = 0, offset = 0;
    EXPECT(cvy_units_relate("g/kg", "kg/kg", &factor, &offset) == CVY_UNITS_CONVERTED && factor == 1e-3);
    EXPECT(cvy_units_relate("hPa", "Pa", &factor, &offset) == CVY_UNITS_CONVERTED && factor == 100);
    EXPECT(cvy_units_relate("degC", "K", &factor, &offset) == CVY_UNITS_CONVERTED && offset == 273.15 && factor == 1);
}

static void test_other(void)
{
    static const char *const other[][2] = {
        {"K", "Pa"},
        {"mm/day", "kg m-2 s-1"},
        {"m", "m2"},
        {"kg kg-1", "mol mol-1"},
        {"months", "days"},
        {"K", "unknown"},
        {"psu", "1"},
        {"K", "1"},
        {"dBZ", "1"},
        {"m2 s-2", "m"},
        {"K", "m/"},
        {"K", "//"},
        {"K", "m^"},
        {"K", "m99"},
        {"adu", "electron"},
        {"ms", "Ms-1"},
        {"m of water", "m"},
        {"K", "(((("},
        {"K", "0 K"},
        {"degrees", "K"},
        {"days since 2000-01-01", "days"},
        {"K", "1e400 K"},
    };
    char text[600];
    for (int i = 0; i < CVY_COUNT(other); i++)
        for (int way = 0; way < 2; way++) {
            double factor = 0, offset = 1;
            if (cvy_units_relate(other[i][way], other[i][!way], &factor, &offset) != CVY_UNITS_OTHER || factor != 1 ||
                offset != 0)
                TEST_FAIL("%s and %s: factor %.17g offset %.17g", other[i][way], other[i][!way], factor, offset);
        }
    double factor = 0, offset = 0;
    memset(text, 'm', sizeof text);
    text[sizeof text - 1] = 0;
    EXPECT(cvy_units_relate(text, "m", &factor, &offset) == CVY_UNITS_OTHER);
    for (size_t i = 0; i + 1 < sizeof text; i++)
        text[i] = i % 2 ? ' ' : (char)('a' + i % 26);
    EXPECT(cvy_units_relate(text, "m", &factor, &offset) == CVY_UNITS_OTHER);
}

int main(void)
{
    TEST(test_same);
    TEST(test_converted);
    TEST(test_exact);
    TEST(test_other);
    return test_end();
}
