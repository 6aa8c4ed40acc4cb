/*
 * base_cpu.h: what this CPU can do in bf16, asked at planning time.
 */
#ifndef CVY_BASE_CPU_H
#define CVY_BASE_CPU_H

/* Products of pairs of bf16 in vectors (AVX512_BF16), with AVX-512 BW, DQ and VL. */
int cvy_cpu_has_avx512_bf16(void);
/* Products of tiles of bf16 (AMX-BF16), with AVX-512; asks the kernel for the leave to use tiles, which is given to the whole process. */
int cvy_cpu_has_amx_bf16(void);
/* Whether CPUID describes the tiles (leaf 0x1D). Some virtual machines cut it off, although tiles work. */
int cvy_cpu_describes_amx(void);

#endif
