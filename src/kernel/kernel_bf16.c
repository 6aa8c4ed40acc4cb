/*
 * kernel_bf16.c: checks at planning time whether bf16 can be used on this machine.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "base/machine/base_isa.h"
#include "kernel/kernel.h"
#if CVY_HAVE_ONEDNN
#include "kernel/onednn/onednn_api.h"
#endif

static int allowed(void)
{
#if CVY_HAVE_ONEDNN
    if (!cvy_onednn_has_bf16())
        return 0;
#endif
    return cvy_isa_may_use(CVY_ISA_AVX512_BF16);
}

cvy_status cvy_kernel_check_bf16(void)
{
    CVY_CHECK(cvy_isa_has(CVY_ISA_AVX512_BF16), CVY_E_UNSUPPORTED,
              "dtype bf16 needs a CPU with AVX512_BF16, which this one does not have: use dtype f32");
    CVY_CHECK(allowed(), CVY_E_UNSUPPORTED,
              "dtype bf16 needs AVX512_BF16, which ONEDNN_MAX_CPU_ISA hides: unset it, or use dtype f32");
    return CVY_OK;
}
