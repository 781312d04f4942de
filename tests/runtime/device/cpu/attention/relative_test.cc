// Attention whose scores depend on distances, of sequences around every width that its kernel has.
#include <cstring>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/runtime/device/cpu/device_harness.h"
#include "tests/runtime/device/cpu/tiers.h"

namespace reprise {
namespace {

class RelativeTest : public DeviceOfTier {
 protected:
  void ExpectAsReference(const std::string& text) {
    SCOPED_TRACE(text);
    NodeRun run(text, 3);
    const Tensor expected = run.Reference()[0];
    const std::vector<KernelOption> options = device_.Options(run.graph, run.id);
    ASSERT_EQ(options.size(), 1u);
    for (int parts : {1, 3}) {
      ExpectClose(run.RunOption(device_, options[0], parts)[0], expected);
    }
  }

  // Places of the distances below `reach`, in a table of `width`: they rise, fall, or are any.
  std::string Places(int64_t reach, int64_t width, int way) {
    std::vector<int64_t> places;
    for (int64_t t = -reach; t <= reach; ++t) {
      places.push_back(way == 0   ? t + width / 2
                       : way == 1 ? width / 2 - t
                                  : static_cast<int64_t>(random_() % width));
    }
    return absl::StrCat("i64[", places.size(), "] = {", absl::StrJoin(places, ", "), "}");
  }

  std::mt19937 random_{5};
};

TEST_P(RelativeTest, RowsOfAnyLengthGetWhatTheReferenceGives) {
  for (int64_t length : {1, 2, 7, 8, 9, 16, 17, 31, 47, 64, 95, 97, 130, 200}) {
    for (int64_t size : {1, 3, 16}) {
      const int way = static_cast<int>((length + size) % 3);
      // Some cases have places for fewer distances than there are, and columns out of range.
      const int64_t reach = length % 2 == 0 ? length - 1 : length / 2;
      const int64_t width = 2 * (length / 2) + 3 + (length % 3 == 0 ? 1 : 0);
      const bool of_queries = (length + size) % 5 != 0, of_keys = (length + size) % 4 != 0;
      ExpectAsReference(absl::StrCat(
          "input %q: f32[2, ", length, ", ", 2 * size, "]\ninput %k: f32[2, ", length, ", ",
          2 * size, "]\ninput %v: f32[2, ", length, ", 10]\ninput %m: f32[2, 1, ", length, ", ",
          length, "]\nparam %a: f32[2, ", size, ", ", width, "] = p0\nparam %b: f32[2, ", size,
          ", ", width, "] = p1\nconst %ap: ", Places(reach, width, way), "\nconst %bp: ",
          Places(reach, width, 2 - way), "\n%y: ? = reprise.RelativeAttention(%q, %k, %v, %m, _, ",
          of_queries ? "%a, %ap, " : "_, _, ", of_keys ? "%b, %bp" : "_, _",
          ") {num_heads = 2, scale = 0.5}\noutput %y"));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(RelativeTest, MasksOfEveryKindAreAdded) {
  const std::string operands = absl::StrCat(
      "input %q: f32[3, 21, 24]\ninput %k: f32[3, 21, 24]\ninput %v: f32[3, 21, 24]\nparam %a: "
      "f32[3, 8, 9] = p0\nconst %p: ",
      Places(20, 9, 2), "\n");
  for (const char* mask : {"f32[3, 1, 1, 21]", "f32[21]", "bool[3, 1, 21, 21]", "f32[1, 3, 21, 21]",
                           "bool[3, 1, 1, 21]", "f32[3, 3, 21, 21]"}) {
    ExpectAsReference(absl::StrCat(operands, "input %m: ", mask,
                                   "\n%y: ? = reprise.RelativeAttention(%q, %k, %v, %m, _, %a, %p) "
                                   "{num_heads = 3, scale = 0.3, nan_to_zero = 1}\noutput %y"));
    if (HasFatalFailure()) return;
  }
}

TEST_P(RelativeTest, SegmentsAttendToThemselves) {
  const std::string operands = absl::StrCat(
      "input %q: f32[301, 24]\ninput %k: f32[301, 24]\ninput %v: f32[301, 36]\ninput %m: f32[301]\n"
      "input %n: f32[301]\nparam %a: f32[3, 8, 33] = p0\nparam %b: f32[3, 8, 70] = p1\nconst %ap: ",
      Places(16, 33, 1), "\nconst %bp: ", Places(140, 70, 2),
      "\nconst %s: i32[7] = {0, 1, 1, 18, 120, 260, 301}\n");
  for (const char* inputs : {"%m, %n, %a, %ap, %b, %bp", "%m, _, %a, %ap, _, _",
                             "_, %n, _, _, _, _", "_, _, _, _, %b, %bp"}) {
    ExpectAsReference(absl::StrCat(operands, "%y: ? = reprise.RelativeAttention(%q, %k, %v, ",
                                   inputs, ", %s) {num_heads = 3, scale = 0.4, longest = 140, ",
                                   "lowest = -0.5}\noutput %y"));
    if (HasFatalFailure()) return;
  }
}

// A segment gets the bytes that it gets alone, wherever it lies.
TEST_P(RelativeTest, BatchMatesDoNotMatter) {
  const std::string tables =
      absl::StrCat("param %a: f32[2, 6, 40] = p0\nconst %p: ", Places(99, 40, 2), "\n");
  const std::string op =
      "%y: ? = reprise.RelativeAttention(%q, %q, %q, _, _, %a, %p, %a, %p, %s) {num_heads = 2, "
      "scale = 0.4}\noutput %y";
  NodeRun both("input %q: f32[130, 12]\n" + tables + "const %s: i32[3] = {0, 37, 130}\n" + op);
  NodeRun alone("input %q: f32[93, 12]\n" + tables + "const %s: i32[2] = {0, 93}\n" + op);
  const float* rows = both.inputs[0]->span<float>().data() + 37 * 12;
  for (size_t i : {0, 1, 2}) {
    alone.inputs[i] = Tensor::FromVector<float>(DType::kFloat32, {93, 12},
                                                std::vector<float>(rows, rows + 93 * 12));
  }
  for (size_t i : {5, 7}) alone.inputs[i] = both.inputs[i];
  const Tensor got = both.RunOption(device_, device_.Options(both.graph, both.id).at(0), 5)[0];
  const Tensor expected =
      alone.RunOption(device_, device_.Options(alone.graph, alone.id).at(0), 2)[0];
  EXPECT_EQ(std::memcmp(expected.data(), got.span<float>().data() + 37 * 12, expected.bytes()), 0);
}

INSTANTIATE_TEST_SUITE_P(Tiers, RelativeTest, testing::ValuesIn(cpu::EveryTier()), cpu::TierName);

}  // namespace
}  // namespace reprise
