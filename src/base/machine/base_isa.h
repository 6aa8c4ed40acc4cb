/*
 * base_isa.h: which instruction sets kernels may use: those that the CPU and the operating system have and that the
 * user's environment allows. Asked at planning time.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#ifndef CVY_BASE_ISA_H
#define CVY_BASE_ISA_H

typedef enum cvy_isa {               /* in the order of ONEDNN_MAX_CPU_ISA */
                       CVY_ISA_AVX2, /* with FMA */
                       CVY_ISA_AVX512F,
                       CVY_ISA_AVX512,      /* F, BW, DQ, VL */
                       CVY_ISA_AVX512_BF16, /* dot products of pairs of bf16 in vectors */
                       CVY_ISA_AMX_BF16, /* products of tiles of bf16; the first question asks Linux for permission to
                                            use tiles in the whole process */
} cvy_isa;

/* Whether the CPU and the operating system have it. */
int cvy_isa_has(cvy_isa isa);
/* Whether they have it and the environment allows it. oneDNN's own limit, the variable ONEDNN_MAX_CPU_ISA (or
 * DNNL_MAX_CPU_ISA), limits all of our kernels too. */
int cvy_isa_may_use(cvy_isa isa);
/* The bits of the SVE vectors of an aarch64 CPU: those that this process has, unless the environment's
 * ONEDNN_MAX_CPU_ISA (ADVSIMD, SVE_128, SVE_256, SVE_512) allows less. 0: there are none. */
int cvy_isa_sve_bits(void);
/* Whether CPUID describes the tiles (leaf 0x1D). Some virtual machines hide this leaf although tiles work. */
int cvy_isa_describes_amx(void);

#endif
