/* rows: clang */
/*
 * test_backend_cudnn_api.c: the declarations of cudnn_api.h are those of cudnn.h, where it is installed: the types of
 * all functions and the values of all numbers.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include <stdio.h>

#if defined(__has_include)
#if __has_include(<cudnn.h>)
#include <cudnn.h>
#endif
#endif

#include "kernel/cudnn/cudnn_api.h"
#include "test_util.h"

#ifdef CUDNN_VERSION
/* Numbers of cuDNN are enumerations, and int here. */
#define cvy_cudnn_kind cudnnBackendDescriptorType_t
#define cvy_cudnn_name cudnnBackendAttributeName_t
#define cvy_cudnn_type cudnnBackendAttributeType_t
#define cvy_cudnn_descriptor cudnnBackendDescriptor_t
#define cvy_cudnn_handle cudnnHandle_t

static void functions(void)
{
#define SAME(name, parameters)                                                                                         \
    test_checks++;                                                                                                     \
    if (!__builtin_types_compatible_p(__typeof__(&name), cudnnStatus_t(*) parameters))                                 \
        TEST_FAIL("%s has another type in cudnn.h", #name);
    CVY_CUDNN_FUNCTIONS(SAME)
#undef SAME
    EXPECT(__builtin_types_compatible_p(__typeof__(&cudnnGetVersion), size_t (*)(void)));
    EXPECT(__builtin_types_compatible_p(__typeof__(&cudnnGetErrorString), const char *(*)(cudnnStatus_t)));
    EXPECT(__builtin_types_compatible_p(__typeof__(&cudnnGetLastErrorString), void (*)(char *, size_t)));
}

static void numbers(void)
{
#define SAME(name, value) EXPECT_INT(CVY_CUDNN_##name, (int)CUDNN_##name);
    CVY_CUDNN_NUMBERS(SAME)
#undef SAME
    EXPECT_INT(sizeof(cudnnStatus_t), sizeof(int));
    EXPECT_INT(sizeof(cudnnBackendAttributeName_t), sizeof(int));
    EXPECT_INT(sizeof(cudnnDataType_t), sizeof(int));
    EXPECT_INT(sizeof(cudnnBackendNumericalNote_t), sizeof(int));
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
    printf("skipped: there is no cudnn.h with which to compare\n");
    return 77;
}
#endif
