// CpuPause(): tells the CPU that this thread spins, so that the other thread of its core runs
// faster.
#pragma once

namespace reprise {

inline void CpuPause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace reprise
