/* The entry of each kernel module: starts the build of it that suits the processor.
 *
 * BAYESVOTE_BUILD=baseline in the environment asks for the one that suits every processor; results are the same. */

#include <Python.h>
#include <stdlib.h>
#include <string.h>

PyMODINIT_FUNC INIT_baseline(void);

#ifdef INIT_v3
#include <cpuid.h>

PyMODINIT_FUNC INIT_v3(void);

static unsigned long long enabled_state(void) {
    unsigned low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (unsigned long long)high << 32 | low;
}

/* What the build for x86-64-v3 may use. Asked of the processor itself, since not every compiler that can build this comes
 * with what __builtin_cpu_supports needs at run time. */
static int has_v3(void) {
    unsigned a, b, c, d;
    const unsigned first = bit_FMA | bit_MOVBE | bit_OSXSAVE | bit_AVX | bit_F16C | bit_SSE4_2 | bit_POPCNT;
    const unsigned seventh = bit_AVX2 | bit_BMI | bit_BMI2;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (c & first) != first)
        return 0;
    if ((enabled_state() & 6) != 6) /* the system keeps the wide registers */
        return 0;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & seventh) != seventh)
        return 0;
    return __get_cpuid(0x80000001, &a, &b, &c, &d) && (c & (1u << 5)); /* LZCNT */
}
#endif

PyMODINIT_FUNC INIT(void) {
#ifdef INIT_v3
    const char *asked = getenv("BAYESVOTE_BUILD");
    if (has_v3() && !(asked && strcmp(asked, "baseline") == 0))
        return INIT_v3();
#endif
    return INIT_baseline();
}
