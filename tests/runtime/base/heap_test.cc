#include "runtime/base/heap.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace reprise {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Memory that was mapped and never touched.
class Mapped {
 public:
  explicit Mapped(size_t bytes) : bytes_(bytes) {
    data_ = static_cast<char*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  ~Mapped() { munmap(data_, bytes_); }
  char* data() const { return data_; }

  // Returns whether the system was asked for huge pages in the mapping that holds byte `at`.
  bool WantsHugePages(size_t at) const {
    std::ifstream smaps("/proc/self/smaps");
    const auto address = reinterpret_cast<uintptr_t>(data_ + at);
    bool inside = false;
    for (std::string line; std::getline(smaps, line);) {
      uint64_t begin = 0, end = 0;
      const std::vector<std::string> range =
          absl::StrSplit(std::string(line, 0, line.find(' ')), absl::MaxSplits('-', 1));
      if (range.size() == 2 && absl::SimpleHexAtoi(range[0], &begin) &&
          absl::SimpleHexAtoi(range[1], &end)) {
        inside = address >= begin && address < end;
      }
      if (inside && absl::StartsWith(line, "VmFlags:")) return absl::StrContains(line, " hg");
    }
    return false;
  }

 private:
  size_t bytes_;
  char* data_;
};

TEST(HeapTest, HugePagesAreAskedForInsideOfLargeMemoryAlone) {
  if (access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0) {
    GTEST_SKIP() << "this system has no transparent huge pages";
  }
  const Mapped large(48 * kMiB), small(24 * kMiB);
  AskForHugePages(large.data() + 100, 40 * kMiB);
  AskForHugePages(small.data(), 24 * kMiB);
  EXPECT_TRUE(large.WantsHugePages(20 * kMiB));
  EXPECT_FALSE(large.WantsHugePages(0));
  EXPECT_FALSE(large.WantsHugePages(45 * kMiB));
  EXPECT_FALSE(small.WantsHugePages(12 * kMiB));
}

TEST(HeapTest, NoByteIsLost) {
  std::string text(40 * kMiB, 'a');
  AskForHugePages(text.data(), text.size());
  AskForHugePages(text.data(), 0);
  AskForHugePages(nullptr, 0);
  EXPECT_EQ(text, std::string(40 * kMiB, 'a'));
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

size_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  size_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

TEST(HeapTest, EndOfAThreadsHeapIsKeptUntilTheThreadGivesItBack) {
  KeepFreedMemory();
  std::thread([] {
    ResidentBytes();  // the memory that it keeps lies below the blocks
    std::vector<std::string> blocks(20);
    for (std::string& block : blocks) block.assign(kMiB, 'a');
    const size_t full = ResidentBytes();
    blocks.clear();
    ReturnFreedMemory();
    EXPECT_GT(ResidentBytes(), full - 5 * kMiB);
    ReturnFreedEndOfThread();
    EXPECT_LT(ResidentBytes(), full - 15 * kMiB);
  }).join();
}

#endif

}  // namespace
}  // namespace reprise
