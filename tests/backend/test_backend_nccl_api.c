/* rows: clang */
/*
 * test_backend_nccl_api.c: the declarations of comm_nccl_api.h are those of nccl.h, where that is installed: the types
 * of all functions and the values of all numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#if defined(__has_include)
#if __has_include(<nccl.h>) && __has_include(<cuda_runtime.h>)
#include <nccl.h>
#endif
#endif

#include "comm/nccl/comm_nccl_api.h"
#include "test_util.h"

#ifdef NCCL_VERSION_CODE
/* Numbers of NCCL are enumerations, and int here. */
#define cvy_nccl_dtype ncclDataType_t
#define cvy_nccl_op ncclRedOp_t
#define cvy_nccl_id ncclUniqueId
#define cvy_cu_stream cudaStream_t
#define cvy_nccl_result ncclResult_t

static void functions(void)
{
#define SAME(name, parameters)                                                                                         \
    test_checks++;                                                                                                     \
    if (!__builtin_types_compatible_p(__typeof__(&name), ncclResult_t(*) parameters))                                  \
        TEST_FAIL("%s has another type in nccl.h", #name);
    CVY_NCCL_FUNCTIONS(SAME)
#undef SAME
#define SAME(name, parameters)                                                                                         \
    test_checks++;                                                                                                     \
    if (!__builtin_types_compatible_p(__typeof__(&name), const char *(*)parameters))                                   \
        TEST_FAIL("%s has another type in nccl.h", #name);
    CVY_NCCL_TEXTS(SAME)
#undef SAME
}
#undef cvy_nccl_id

static void numbers(void)
{
    EXPECT_INT(CVY_NCCL_IN_PROGRESS, ncclInProgress);
    EXPECT_INT(CVY_NCCL_F32, ncclFloat32);
    EXPECT_INT(CVY_NCCL_F64, ncclFloat64);
    EXPECT_INT(CVY_NCCL_BF16, ncclBfloat16);
    EXPECT_INT(CVY_NCCL_BYTE, ncclUint8);
    EXPECT_INT(CVY_NCCL_SUM, ncclSum);
    EXPECT_INT(sizeof(cvy_nccl_id), sizeof(ncclUniqueId));
    EXPECT_INT(sizeof(ncclResult_t), sizeof(int));
    EXPECT_INT(sizeof(ncclDataType_t), sizeof(int));
    EXPECT_INT(sizeof(ncclRedOp_t), sizeof(int));
}

int main(void)
{
    TEST(functions);
    TEST(numbers);
    return test_end();
}
#else
int main(void)
{
    printf("skipped: no nccl.h\n");
    return 77;
}
#endif
