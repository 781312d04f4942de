#include "runtime/base/memory_net.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "absl/status/statusor.h"
#include "runtime/base/aligned_buffer.h"
#include "runtime/base/shared_bytes.h"

namespace reprise {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// More than any address space has.
constexpr size_t kTooMany = size_t{1} << 60;

absl::Status Caught(const std::function<void()>& work) {
  return WithinMemory([] { return "node 'a'"; },
                      [&] {
                        work();
                        return absl::OkStatus();
                      });
}

TEST(MemoryNetTest, WorkThatFindsMemoryReturnsWhatItReturns) {
  const auto who = [] { return "x"; };
  EXPECT_EQ(*WithinMemory(who, []() -> absl::StatusOr<int> { return 7; }), 7);
  EXPECT_TRUE(absl::IsNotFound(WithinMemory(who, [] { return absl::NotFoundError("y"); })));
}

// A sanitizer's allocator ends the process where it cannot get the memory it is asked for.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kAllocatorEnds = true;
#else
constexpr bool kAllocatorEnds = false;
#endif

TEST(MemoryNetTest, BuffersThatCannotBeHadAreNamedWithTheirBytes) {
  if (kAllocatorEnds) GTEST_SKIP() << "the sanitizer's allocator ends the process";
  const int64_t before = times_without_memory;
  const absl::Status status = Caught([] { MakeSharedBytes(kTooMany); });
  EXPECT_EQ(times_without_memory, before + 1);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("node 'a'"), HasSubstr("1152921504606846976 bytes")));
}

TEST(MemoryNetTest, ContainersThatCannotGrowAreCaughtWithoutANumber) {
  if (kAllocatorEnds) GTEST_SKIP() << "the sanitizer's allocator ends the process";
  volatile size_t many = kTooMany;
  for (const absl::Status& status :
       {Caught([&] { AlignedBuffer buffer(many); }),
        Caught([&] { std::vector<char> one(many); }),    // no memory
        Caught([&] { std::vector<double> two(many); }),  // no such vector
        Caught([&] { std::string().append(many, 'x'); })}) {
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("node 'a'"), Not(HasSubstr("0"))));
  }
}

TEST(MemoryNetTest, PartOfTheWorkIsNamedBehindTheWork) {
  const absl::Status status = Caught([] { throw NoMemory(12, "step 'b'"); });
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("node 'a': step 'b'"), HasSubstr("12 bytes")));
}

TEST(MemoryNetTest, OtherMistakesAreInternalWithTheirWords) {
  const absl::Status status = WithinMemory(
      [] { return "the load"; }, []() -> absl::Status { throw std::runtime_error("a mistake"); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(std::string(status.message()), "the load: a mistake");
}

}  // namespace
}  // namespace reprise
