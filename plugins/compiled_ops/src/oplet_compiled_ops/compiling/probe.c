/* The highest level of `library/levels.py` that this processor, and its operating system, can run. */

#include <stdint.h>

#if defined(_WIN32)
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

#if defined(__x86_64__)

#include <cpuid.h>

EXPORTED int oplet_machine(void) { return 0; }

static int has(unsigned word, int bit) { return (word >> bit) & 1; }

/* Intel's manual, volume 2A, CPUID and XGETBV: leaf 1 ECX, leaf 7 EBX and ECX, and which registers the system saves. */
EXPORTED int oplet_level(void) {
    unsigned a, b, c, d, a7 = 0, b7 = 0, c7 = 0, d7 = 0, ax = 0, bx = 0, cx = 0, dx = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return -1;
    __get_cpuid_count(7, 0, &a7, &b7, &c7, &d7);
    __get_cpuid(0x80000001, &ax, &bx, &cx, &dx);
    /* v2: SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT, LAHF */
    if (!(has(c, 0) && has(c, 9) && has(c, 13) && has(c, 19) && has(c, 20) && has(c, 23) && has(cx, 0))) return -1;
    /* v3: FMA, MOVBE, OSXSAVE, AVX, F16C, LZCNT, BMI1, AVX2, BMI2; the system saves XMM and YMM */
    if (!(has(c, 12) && has(c, 22) && has(c, 27) && has(c, 28) && has(c, 29))) return 0;
    if (!(has(cx, 5) && has(b7, 3) && has(b7, 5) && has(b7, 8))) return 0;
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 0x6) != 0x6) return 0;
    /* v4: AVX-512 F, DQ, CD, BW, VL; the system saves ZMM and masks */
    if (!(has(b7, 16) && has(b7, 17) && has(b7, 28) && has(b7, 30) && has(b7, 31)) || (low & 0xe6) != 0xe6) return 1;
    /* VNNI */
    return has(c7, 11) ? 3 : 2;
}

#elif defined(__aarch64__)

EXPORTED int oplet_machine(void) { return 1; }

#if defined(__APPLE__)

#include <stddef.h>

int sysctlbyname(const char *, void *, size_t *, void *, size_t);

EXPORTED int oplet_level(void) {
    int found = 0;
    size_t size = sizeof found;
    return sysctlbyname("hw.optional.arm.FEAT_DotProd", &found, &size, 0, 0) == 0 && found ? 1 : 0;
}

#else

/* Linux: AT_HWCAP is 16, HWCAP_ASIMDDP its bit 20. */
unsigned long getauxval(unsigned long);

EXPORTED int oplet_level(void) { return (getauxval(16) >> 20) & 1; }

#endif

#endif
