/* SPDX-License-Identifier: BSD-3-Clause */
/* math.h: what convoy uses of this header of macOS; declarations only (../macos.sh). */
#ifndef DARWIN_MATH_H
#define DARWIN_MATH_H
#define NAN (__builtin_nanf(""))
#define INFINITY (__builtin_inff())
#define HUGE_VAL (__builtin_huge_val())
#define M_PI 3.14159265358979323846
#define M_E 2.7182818284590452354
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define M_2_SQRTPI 1.12837916709551257390
#define M_LN2 0.69314718055994530942
#define isnan(x) __builtin_isnan(x)
#define isinf(x) __builtin_isinf(x)
#define isfinite(x) __builtin_isfinite(x)
#define signbit(x) __builtin_signbit(x)
double sqrt(double);
float sqrtf(float);
double fabs(double);
float fabsf(float);
double floor(double);
float floorf(float);
double ceil(double);
float ceilf(float);
double exp(double);
float expf(float);
double exp2(double);
float exp2f(float);
double expm1(double);
float expm1f(float);
double log(double);
float logf(float);
double log2(double);
float log2f(float);
double log10(double);
float log10f(float);
double log1p(double);
float log1pf(float);
double pow(double, double);
float powf(float, float);
double fmod(double, double);
float fmodf(float, float);
double sin(double);
float sinf(float);
double cos(double);
float cosf(float);
double tan(double);
float tanf(float);
double tanh(double);
float tanhf(float);
double atan(double);
float atanf(float);
double asin(double);
float asinf(float);
double acos(double);
float acosf(float);
double round(double);
float roundf(float);
double trunc(double);
float truncf(float);
double rint(double);
float rintf(float);
double fmax(double, double);
float fmaxf(float, float);
double fmin(double, double);
float fminf(float, float);
double hypot(double, double);
float hypotf(float, float);
double ldexp(double, int);
float ldexpf(float, int);
double frexp(double, int *);
float frexpf(float, int *);
double cbrt(double);
float cbrtf(float);
double erf(double);
float erff(float);
double erfc(double);
float erfcf(float);
double lgamma(double);
float lgammaf(float);
double tgamma(double);
float tgammaf(float);
double copysign(double, double);
float copysignf(float, float);
double nearbyint(double);
float nearbyintf(float);
double sinh(double);
float sinhf(float);
double cosh(double);
float coshf(float);
double nextafter(double, double);
float nextafterf(float, float);
double atan2(double, double);
float atan2f(float, float);
double asinh(double);
float asinhf(float);
long lround(double);
long lroundf(float);
long long llround(double);
long long llroundf(float);
long lrint(double);
long lrintf(float);
long long llrint(double);
double modf(double, double *);
double fma(double, double, double);
float fmaf(float, float, float);
long double ldexpl(long double, int);
#endif
