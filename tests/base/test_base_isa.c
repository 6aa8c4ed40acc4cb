/* rows: clang asan aarch64 minimal */
/*
 * test_base_isa.c: the limit on instruction sets that oneDNN reads from the environment also applies to our own
 * kernels.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdlib.h>

#include "base/base_status.h"
#include "base/machine/base_isa.h"
#include "test_util.h"

static int last_allowed(const char *word)
{
    int last = -1;
    if (word)
        setenv("ONEDNN_MAX_CPU_ISA", word, 1);
    else
        unsetenv("ONEDNN_MAX_CPU_ISA");
    for (int i = CVY_ISA_AVX2; i <= CVY_ISA_AMX_BF16; i++)
        if (cvy_isa_may_use((cvy_isa)i)) {
            EXPECT(cvy_isa_has((cvy_isa)i));
            last = i;
        }
    return last;
}

int main(void)
{
    static const struct {
        const char *word;
        int last;
    } limits[] = {{"SSE41", -1},
                  {"AVX", -1},
                  {"AVX2", CVY_ISA_AVX2},
                  {"avx2_vnni", CVY_ISA_AVX2},
                  {"AVX512_CORE", CVY_ISA_AVX512},
                  {"AVX512_CORE_BF16", CVY_ISA_AVX512_BF16},
                  {"AVX512_CORE_AMX", CVY_ISA_AMX_BF16},
                  {"ALL", CVY_ISA_AMX_BF16},
                  {"DEFAULT", CVY_ISA_AMX_BF16}};
    unsetenv("DNNL_MAX_CPU_ISA");
    const int all = last_allowed(NULL);
    for (int i = 0; i < CVY_COUNT(limits); i++)
        EXPECT_INT(last_allowed(limits[i].word), limits[i].last < all ? limits[i].last : all);
    unsetenv("ONEDNN_MAX_CPU_ISA");
    setenv("DNNL_MAX_CPU_ISA", "AVX2", 1);
    EXPECT(!cvy_isa_may_use(CVY_ISA_AVX512F));
    unsetenv("DNNL_MAX_CPU_ISA");
    const int bits = cvy_isa_sve_bits(); /* 0 on other processors than aarch64 */
    setenv("ONEDNN_MAX_CPU_ISA", "SVE_128", 1);
    EXPECT_INT(cvy_isa_sve_bits(), bits > 128 ? 0 : bits);
    setenv("ONEDNN_MAX_CPU_ISA", "advsimd", 1);
    EXPECT_INT(cvy_isa_sve_bits(), 0);
    return test_end();
}
