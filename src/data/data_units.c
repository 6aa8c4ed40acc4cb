/*
 * data_units.c: units of measurement as files spell them.
 *
 * Units are products of powers: "kg m-2 s-1", "kg/m^2/s", "kg m**-2 s**-1". Each word of them is known as a factor and
 * powers of base units, or stands for itself: "mJy/beam" and "Jy/beam" differ by 1000, whatever a beam is. Only
 * temperatures that stand alone have an offset. Words of several meanings are left unknown unless they stand alone as
 * usual ("C", "F"); months and years, which differ in length, always are. Two units whose difference cannot be told
 * with certainty are other units.
 *
 * udunits2 knows more, but a build without it would refuse what a build with it converts. Source: the SI brochure, 9th
 * edition; UDUNITS-2, syntax of units; CF conventions 1.10, section 3.1.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "data/data_units.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/base_mem.h"

enum { METRE, KILOGRAM, SECOND, KELVIN, MOLE, AMPERE, CANDELA, RADIAN, NBASE };
enum { WORD = 32, WORDS_MAX = 8 };

struct units {
    double factor, offset;
    int power[NBASE];
    unsigned over; /* bits of the base units that stand above and below: kg/kg is no mol/mol */
    unsigned under;
    int nword; /* words that are not known */
    struct {
        char text[WORD];
        int power;
    } word[WORDS_MAX];
    int ntoken; /* words and numbers in all */
};

struct known {
    const char *name;
    double factor, offset;
    signed char power[NBASE];
    int has_prefixes; /* "k", "m" and so on may stand before it */
};

static const struct known table[] = {
    {"m", 1, 0, {[METRE] = 1}, 1},
    {"g", 1e-3, 0, {[KILOGRAM] = 1}, 1},
    {"s", 1, 0, {[SECOND] = 1}, 1},
    {"K", 1, 0, {[KELVIN] = 1}, 1},
    {"mol", 1, 0, {[MOLE] = 1}, 1},
    {"A", 1, 0, {[AMPERE] = 1}, 1},
    {"cd", 1, 0, {[CANDELA] = 1}, 1},
    {"rad", 1, 0, {[RADIAN] = 1}, 1},
    {"sr", 1, 0, {[RADIAN] = 2}, 1},
    {"Hz", 1, 0, {[SECOND] = -1}, 1},
    {"N", 1, 0, {[METRE] = 1, [KILOGRAM] = 1, [SECOND] = -2}, 1},
    {"Pa", 1, 0, {[METRE] = -1, [KILOGRAM] = 1, [SECOND] = -2}, 1},
    {"J", 1, 0, {[METRE] = 2, [KILOGRAM] = 1, [SECOND] = -2}, 1},
    {"W", 1, 0, {[METRE] = 2, [KILOGRAM] = 1, [SECOND] = -3}, 1},
    {"V", 1, 0, {[METRE] = 2, [KILOGRAM] = 1, [SECOND] = -3, [AMPERE] = -1}, 1},
    {"T", 1, 0, {[KILOGRAM] = 1, [SECOND] = -2, [AMPERE] = -1}, 1},
    {"eV", 1.602176634e-19, 0, {[METRE] = 2, [KILOGRAM] = 1, [SECOND] = -2}, 1},
    {"Jy", 1e-26, 0, {[KILOGRAM] = 1, [SECOND] = -2}, 1},
    {"erg", 1e-7, 0, {[METRE] = 2, [KILOGRAM] = 1, [SECOND] = -2}, 0},
    {"bar", 1e5, 0, {[METRE] = -1, [KILOGRAM] = 1, [SECOND] = -2}, 1},
    {"mb", 1e2, 0, {[METRE] = -1, [KILOGRAM] = 1, [SECOND] = -2}, 0},
    {"atm", 101325, 0, {[METRE] = -1, [KILOGRAM] = 1, [SECOND] = -2}, 0},
    {"l", 1e-3, 0, {[METRE] = 3}, 1},
    {"L", 1e-3, 0, {[METRE] = 3}, 1},
    {"min", 60, 0, {[SECOND] = 1}, 0},
    {"h", 3600, 0, {[SECOND] = 1}, 0},
    {"hr", 3600, 0, {[SECOND] = 1}, 0},
    {"d", 86400, 0, {[SECOND] = 1}, 0},
    {"sec", 1, 0, {[SECOND] = 1}, 0},
    {"gpm", 1, 0, {[METRE] = 1}, 0},
    {"um", 1e-6, 0, {[METRE] = 1}, 0},
    {"Angstrom", 1e-10, 0, {[METRE] = 1}, 0},
    {"nmi", 1852, 0, {[METRE] = 1}, 0},
    {"kt", 1852. / 3600, 0, {[METRE] = 1, [SECOND] = -1}, 0},
    {"degC", 1, 273.15, {[KELVIN] = 1}, 0},
    {"degK", 1, 0, {[KELVIN] = 1}, 0},
    {"degF", 5. / 9, 273.15 - 32 * 5. / 9, {[KELVIN] = 1}, 0},
    {"degN", 0.017453292519943295, 0, {[RADIAN] = 1}, 0},
    {"degE", 0.017453292519943295, 0, {[RADIAN] = 1}, 0},
    {"deg", 0.017453292519943295, 0, {[RADIAN] = 1}, 0},
    {"arcmin", 0.017453292519943295 / 60, 0, {[RADIAN] = 1}, 0},
    {"arcsec", 0.017453292519943295 / 3600, 0, {[RADIAN] = 1}, 0},
    {"%", 1e-2, 0, {0}, 0},
    {"ppm", 1e-6, 0, {0}, 0},
    {"ppb", 1e-9, 0, {0}, 0},
};

/* Names in words, of which one is the same in upper and lower case and with an "s" at its end. */
static const struct {
    const char *name, *of;
} spelled[] = {
    {"metre", "m"},
    {"meter", "m"},
    {"gram", "g"},
    {"second", "s"},
    {"kelvin", "K"},
    {"deg_k", "K"},
    {"degree_kelvin", "K"},
    {"mole", "mol"},
    {"radian", "rad"},
    {"hertz", "Hz"},
    {"newton", "N"},
    {"pascal", "Pa"},
    {"joule", "J"},
    {"watt", "W"},
    {"millibar", "mb"},
    {"litre", "l"},
    {"liter", "l"},
    {"minute", "min"},
    {"hour", "h"},
    {"day", "d"},
    {"knot", "kt"},
    {"celsius", "degC"},
    {"deg_c", "degC"},
    {"degree_c", "degC"},
    {"degree_celsius", "degC"},
    {"fahrenheit", "degF"},
    {"deg_f", "degF"},
    {"degree_f", "degF"},
    {"degree_fahrenheit", "degF"},
    {"percent", "%"},
    {"degree", "deg"},
    {"degree_north", "deg"},
    {"degree_n", "deg"},
    {"degree_east", "deg"},
    {"degree_e", "deg"},
    {"degree_true", "deg"},
    {"arcminute", "arcmin"},
    {"arcsecond", "arcsec"},
    {"ppmv", "ppm"},
    {"ppbv", "ppb"},
    {"gpm", "gpm"},
};

static const struct {
    const char *text;
    double factor;
} prefix[] = {{"Y", 1e24},      {"Z", 1e21},      {"E", 1e18}, {"P", 1e15},  {"T", 1e12},  {"G", 1e9},  {"M", 1e6},
              {"k", 1e3},       {"h", 1e2},       {"da", 10},  {"d", 1e-1},  {"c", 1e-2},  {"m", 1e-3}, {"u", 1e-6},
              {"\u00b5", 1e-6}, {"\u03bc", 1e-6}, {"n", 1e-9}, {"p", 1e-12}, {"f", 1e-15}, {"a", 1e-18}},
  long_prefix[] = {{"tera", 1e12}, {"giga", 1e9},   {"mega", 1e6},   {"kilo", 1e3},   {"hecto", 1e2},
                   {"deci", 1e-1}, {"centi", 1e-2}, {"milli", 1e-3}, {"micro", 1e-6}, {"nano", 1e-9}};

/* What says that a number has no unit. */
static int is_pure(const char *text)
{
    static const char *const none[] = {"",         "1",    "-",        "(0 - 1)", "(0-1)", "0-1", "dimensionless",
                                       "unitless", "none", "fraction", "no_unit", "number"};
    for (int i = 0; i < CVY_COUNT(none); i++)
        if (strcasecmp(text, none[i]) == 0)
            return 1;
    return 0;
}

static const struct known *find_symbol(const char *name)
{
    for (int i = 0; i < CVY_COUNT(table); i++)
        if (strcmp(name, table[i].name) == 0)
            return &table[i];
    return NULL;
}

/* A name in words: "Metres". */
static const struct known *find_name(const char *name)
{
    const size_t n = strlen(name);
    for (int i = 0; i < CVY_COUNT(spelled); i++) {
        const size_t own = strlen(spelled[i].name);
        if (strncasecmp(name, spelled[i].name, own) == 0 && (n == own || (n == own + 1 && tolower(name[own]) == 's')))
            return find_symbol(spelled[i].of);
        /* "degrees_north" */
        if (n == own + 1 && strncasecmp(name, "degrees_", 8) == 0 && strncasecmp(spelled[i].name, "degree_", 7) == 0 &&
            strcasecmp(name + 8, spelled[i].name + 7) == 0)
            return find_symbol(spelled[i].of);
    }
    return NULL;
}

/* Finds a word, with a prefix or without; NULL: it is not known. */
static const struct known *find_word(const char *name, double *factor_out)
{
    const struct known *k = find_symbol(name);
    *factor_out = 1;
    if (!k)
        k = find_name(name);
    for (int i = 0; !k && i < CVY_COUNT(prefix); i++) {
        const size_t n = strlen(prefix[i].text);
        if (strncmp(name, prefix[i].text, n) != 0)
            continue;
        k = find_symbol(name + n);
        k = k && k->has_prefixes ? k : NULL;
        *factor_out = prefix[i].factor;
    }
    for (int i = 0; !k && i < CVY_COUNT(long_prefix); i++) {
        const size_t n = strlen(long_prefix[i].text);
        if (strncasecmp(name, long_prefix[i].text, n) != 0)
            continue;
        k = find_name(name + n);
        k = k && k->has_prefixes ? k : NULL;
        *factor_out = long_prefix[i].factor;
    }
    return k;
}

/* Words of three letters and more mean the same in upper and lower case and with an "s" at their end: "ADU", "counts".
 */
static void spell_plainly(char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i < n && n >= 3; i++)
        word[i] = (char)tolower((unsigned char)word[i]);
    if (n > 3 && word[n - 1] == 's')
        word[n - 1] = 0;
}

/* Adds a word to the product; 0: there are too many that are not known. */
static int add_word(struct units *u, char *name, int power)
{
    double factor = 1;
    const struct known *k = find_word(name, &factor);
    u->ntoken++;
    if (k) {
        u->factor *= pow(factor * k->factor, power);
        u->offset = k->offset;
        for (int i = 0; i < NBASE; i++) {
            const int each = power * k->power[i];
            u->power[i] += each;
            u->over |= each > 0 ? 1u << i : 0;
            u->under |= each < 0 ? 1u << i : 0;
        }
        return 1;
    }
    spell_plainly(name);
    for (int i = 0; i < u->nword; i++)
        if (strcmp(u->word[i].text, name) == 0) {
            u->word[i].power += power;
            return 1;
        }
    if (u->nword == WORDS_MAX)
        return 0;
    snprintf(u->word[u->nword].text, WORD, "%s", name);
    u->word[u->nword++].power = power;
    return 1;
}

static int is_letter(const char *at)
{
    return isalpha((unsigned char)*at) || *at == '_' || *at == '%' || *at == '\'' || *at == '"' ||
           ((unsigned char)*at & 0x80);
}

/* Reads the power after a word: "2", "-2", "^-2", "**-2". Returns where it ends; NULL: it makes no sense. */
static const char *read_power(const char *at, int *power_out)
{
    const int has_mark = *at == '^' || strncmp(at, "**", 2) == 0;
    const char *digits = at + (*at == '^' ? 1 : has_mark ? 2 : 0);
    char *end = NULL;
    *power_out = 1;
    if (!(isdigit((unsigned char)*digits) || ((*digits == '-' || *digits == '+') && isdigit((unsigned char)digits[1]))))
        return has_mark ? NULL : at;
    const long power = strtol(digits, &end, 10);
    *power_out = (int)power;
    return power >= -20 && power <= 20 && *end != '.' ? end : NULL;
}

/* Reads "kg m-2 s-1". Returns 0 if the text is no such product. */
static int parse(const char *text, struct units *u)
{
    int divides = 0;
    *u = (struct units){.factor = 1};
    if (is_pure(text))
        return 1;
    for (const char *at = text; *at;) {
        char word[WORD] = "", *end = NULL;
        size_t n = 0;
        int power = 1;
        if (*at == ' ' || *at == '.' || (*at == '*' && at[1] != '*')) {
            at++;
            continue;
        }
        if (*at == '/' || strncmp(at, "per ", 4) == 0) {
            if (divides)
                return 0;
            divides = 1;
            at += *at == '/' ? 1 : 4;
            continue;
        }
        if (isdigit((unsigned char)*at)) { /* "1e-3", "10^3" */
            double number = strtod(at, &end);
            at = read_power(end, &power);
            if (!at || number == 0)
                return 0;
            number = pow(number, power);
            u->factor *= divides ? 1 / number : number;
            u->ntoken += number != 1;
            divides = 0;
            continue;
        }
        while (is_letter(at) && n + 1 < sizeof word)
            word[n++] = *at++;
        if (n == 0 || n + 1 == sizeof word)
            return 0;
        at = read_power(at, &power);
        if (!at || !add_word(u, word, divides ? -power : power))
            return 0;
        divides = 0; /* "/" counts for the next word alone */
    }
    if (divides || u->ntoken != 1 || u->power[KELVIN] != 1)
        u->offset = 0;
    return !divides;
}

/* Copies the text without blanks at its ends, and with one blank for several. "C" and "F" that stand alone are degrees,
 * and "degrees C" is one word. */
static void clean(const char *text, char *out, size_t room)
{
    static const struct {
        const char *text, *is;
    } alone[] = {{"C", "degC"},
                 {"F", "degF"},
                 {"\u00b0C", "degC"},
                 {"\u00b0F", "degF"},
                 {"degrees C", "degC"},
                 {"degree C", "degC"},
                 {"deg C", "degC"},
                 {"degrees K", "K"},
                 {"deg K", "K"},
                 {"degrees F", "degF"},
                 {"deg F", "degF"},
                 {"degrees Celsius", "degC"},
                 {"degrees north", "deg"},
                 {"degrees east", "deg"},
                 {"\u00b0", "deg"},
                 {"degree Celsius", "degC"}};
    size_t n = 0;
    for (const char *at = text; *at && n + 1 < room; at++) {
        const int is_blank = isspace((unsigned char)*at);
        if (!is_blank || (n > 0 && out[n - 1] != ' '))
            out[n++] = is_blank ? ' ' : *at;
    }
    while (n > 0 && out[n - 1] == ' ')
        n--;
    out[n] = 0;
    for (int i = 0; i < CVY_COUNT(alone); i++)
        if (strcmp(out, alone[i].text) == 0)
            snprintf(out, room, "%s", alone[i].is);
}

static int power_of_word(const struct units *u, const char *word)
{
    for (int i = 0; i < u->nword; i++)
        if (strcmp(u->word[i].text, word) == 0)
            return u->word[i].power;
    return 0;
}

static int measure_the_same(const struct units *a, const struct units *b)
{
    const unsigned a_share = a->over & a->under, b_share = b->over & b->under;
    int same = memcmp(a->power, b->power, sizeof a->power) == 0 && (!a_share || !b_share || a_share == b_share);
    for (int i = 0; i < a->nword; i++)
        same &= a->word[i].power == power_of_word(b, a->word[i].text);
    for (int i = 0; i < b->nword; i++)
        same &= b->word[i].power == power_of_word(a, b->word[i].text);
    return same;
}

cvy_units_relation cvy_units_relate(const char *from, const char *to, double *factor_out, double *offset_out)
{
    char own[256], wanted[256];
    struct units a, b;
    *factor_out = 1;
    *offset_out = 0;
    clean(from, own, sizeof own);
    clean(to, wanted, sizeof wanted);
    if (strcmp(own, wanted) == 0)
        return CVY_UNITS_SAME;
    if (!parse(own, &a) || !parse(wanted, &b) || !measure_the_same(&a, &b))
        return CVY_UNITS_OTHER;
    const double factor = a.factor / b.factor, offset = (a.offset - b.offset) / b.factor;
    if (!isfinite(factor) || factor <= 0)
        return CVY_UNITS_OTHER;
    if (fabs(factor - 1) < 1e-12 && offset == 0)
        return CVY_UNITS_SAME;
    /* decimal factors are exact: 1e-2, and not 0.010000000000000002 */
    const double power = round(log10(factor));
    *factor_out = fabs(factor / pow(10, power) - 1) < 1e-12 ? pow(10, power) : factor;
    *offset_out = offset;
    return CVY_UNITS_CONVERTED;
}
