#include "runtime/base/file_faults.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace reprise {
namespace {

struct Slot {
  std::atomic<uintptr_t> begin{0};  // 0: free
  std::atomic<uintptr_t> end{0};    // 0: not watched (yet, any more)
  std::atomic<bool> lost{false};
};
constexpr int kSlots = 4096;
constinit Slot slots[kSlots];
constinit std::atomic<uintptr_t> page_bytes{4096};
constinit struct sigaction before = {};

void OnFault(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  for (Slot& slot : slots) {
    if (address < slot.begin || address >= slot.end) continue;
    slot.lost = true;
    const uintptr_t page = address / page_bytes * page_bytes;
    // A system call, and nothing else: the instruction to which it returns reads the page again.
    if (mmap(reinterpret_cast<void*>(page), page_bytes, PROT_READ,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED) {
      return;
    }
  }
  // The fault is not ours: the instruction to which this returns meets it again, and ends the
  // process.
  sigaction(signal, &before, nullptr);
}

}  // namespace

void CatchFileFaults() {
  page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  struct sigaction action = {};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  struct sigaction old = {};
  sigaction(SIGBUS, &action, &old);
  // Called again: the handler from before is known.
  if ((old.sa_flags & SA_SIGINFO) == 0 || old.sa_sigaction != OnFault) before = old;
}

WatchedPages::WatchedPages(const void* address, size_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  for (int i = 0; i < kSlots; ++i) {
    uintptr_t free = 0;
    if (!slots[i].begin.compare_exchange_strong(free, begin)) continue;
    slots[i].lost = false;
    slots[i].end = begin + bytes;
    slot_ = i;
    return;
  }
}

WatchedPages::~WatchedPages() {
  if (slot_ < 0) return;
  slots[slot_].end = 0;
  slots[slot_].begin = 0;
}

bool WatchedPages::lost() const { return slot_ >= 0 && slots[slot_].lost; }

}  // namespace reprise
