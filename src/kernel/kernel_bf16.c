/*
 * kernel_bf16.c: whether bf16 may be asked for on this machine. At planning time only.
 */
#include "base/base_cpu.h"
#include "kernel/kernel.h"
#if CVY_HAVE_ONEDNN
#include "kernel/onednn/onednn_api.h"
#endif

cvy_status cvy_kernel_check_bf16(void)
{
    CVY_CHECK(cvy_cpu_has_amx_bf16() || cvy_cpu_has_avx512_bf16(), CVY_E_UNSUPPORTED,
              "dtype bf16 needs a CPU with AMX-BF16 or AVX512_BF16, and this one has neither: use dtype f32");
#if CVY_HAVE_ONEDNN
    CVY_CHECK(cvy_onednn_has_bf16(), CVY_E_UNSUPPORTED,
              "dtype bf16 needs AMX-BF16 or AVX512_BF16, which ONEDNN_MAX_CPU_ISA hides: unset it, or use dtype f32");
#endif
    return CVY_OK;
}
