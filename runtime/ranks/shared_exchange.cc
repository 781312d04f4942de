#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <thread>

#include "absl/strings/str_cat.h"
#include "runtime/ranks/exchanges.h"

namespace reprise {
namespace {

// Each rank's place begins with its head. Numbers of exchanges begin with 1 and may wrap.
struct alignas(64) Head {
  std::atomic<uint32_t> written{0};  // exchanges that this rank has written its share of
  std::atomic<uint32_t> waiting{0};  // ranks that sleep until `written` changes
};
constexpr size_t kHeadBytes = 4096;  // heads of all ranks
static_assert(sizeof(Head) * Collective::kMostRanks <= kHeadBytes);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

// Two places a rank: one is read by slower ranks while the next one is written. No rank is ahead by
// two exchanges, since it waits for all others in each.
constexpr int kSlots = 2;

size_t BytesOf(int ranks) {
  return kHeadBytes + static_cast<size_t>(ranks) * kSlots * RankExchange::kSlotBytes;
}

// Looks this often before it lets other threads run, and for this long before it sleeps.
constexpr int kLooks = 4000;
constexpr std::chrono::microseconds kAwake{100};

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

class SharedMemoryExchange final : public RankExchange {
 public:
  SharedMemoryExchange(std::byte* base, int rank, int ranks)
      : RankExchange(rank, ranks), base_(base) {}
  ~SharedMemoryExchange() override { munmap(base_, BytesOf(ranks())); }

 protected:
  bool Exchange(const std::byte* mine, const size_t* bytes, const std::byte** theirs) override {
    if (is_broken()) return false;
    ++number_;
    std::memcpy(Slot(rank()), mine, bytes[rank()]);
    Head& own = HeadOf(rank());
    own.written.store(number_);
    if (own.waiting.load() > 0) {
      syscall(SYS_futex, &own.written, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    }
    for (int other = 0; other < ranks(); ++other) {
      if (other != rank() && !Await(HeadOf(other))) return false;
      theirs[other] = Slot(other);
    }
    return true;
  }

 private:
  Head& HeadOf(int rank) const { return reinterpret_cast<Head*>(base_)[rank]; }
  std::byte* Slot(int rank) const {
    const auto slot = static_cast<size_t>(rank * kSlots) + number_ % kSlots;
    return base_ + kHeadBytes + slot * kSlotBytes;
  }
  bool HasCome(const Head& head) const {
    return static_cast<int32_t>(head.written.load(std::memory_order_acquire) - number_) >= 0;
  }

  // Returns false where the exchange is broken meanwhile.
  bool Await(Head& head) const {
    for (int i = 0; i < kLooks; ++i) {
      if (HasCome(head)) return true;
      Pause();
    }
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < kAwake) {
      if (HasCome(head)) return true;
      std::this_thread::yield();
    }
    head.waiting.fetch_add(1);
    bool has_come = false;
    while (!is_broken()) {
      const uint32_t seen = head.written.load();
      has_come = static_cast<int32_t>(seen - number_) >= 0;
      if (has_come) break;
      const timespec most = {.tv_sec = 0, .tv_nsec = 20'000'000};
      syscall(SYS_futex, &head.written, FUTEX_WAIT, seen, &most, nullptr, 0);
    }
    head.waiting.fetch_sub(1);
    return has_come;
  }

  std::byte* const base_;
  uint32_t number_ = 0;
};

}  // namespace

absl::StatusOr<int> MakeSharedFile(int ranks) {
  const int file = memfd_create("reprise ranks", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(BytesOf(ranks))) != 0) {
    if (file >= 0) close(file);
    return absl::ResourceExhaustedError(
        absl::StrCat("shared memory of ", BytesOf(ranks), " bytes: ", std::strerror(errno)));
  }
  return file;
}

absl::StatusOr<std::unique_ptr<RankExchange>> SharedExchange(int file, int rank, int ranks) {
  void* const base =
      mmap(nullptr, BytesOf(ranks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
  close(file);
  if (base == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("mapping shared memory: ", std::strerror(errno)));
  }
  return std::make_unique<SharedMemoryExchange>(static_cast<std::byte*>(base), rank, ranks);
}

}  // namespace reprise
