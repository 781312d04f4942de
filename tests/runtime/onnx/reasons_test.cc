#include "runtime/onnx/kit/reasons.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"

namespace reprise {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

NodeReason LoopNamed(const std::string& node) {
  return {
      .op = "Loop", .version = 17, .node = node, .dtypes = "(f32, _)", .why = "is not supported"};
}

TEST(ReasonsTest, NoReasonIsOk) { EXPECT_TRUE(Reasons().ToStatus().ok()); }

TEST(ReasonsTest, NodesThatAreRefusedAlikeShareAReason) {
  Reasons reasons;
  reasons.AddNode(absl::StatusCode::kUnimplemented, LoopNamed("'a'"));
  reasons.Add(absl::StatusCode::kUnimplemented, "opset 99 is newer than 23");
  reasons.AddNode(absl::StatusCode::kUnimplemented, LoopNamed("'b'"));
  const absl::Status status = reasons.ToStatus();
  EXPECT_TRUE(absl::IsUnimplemented(status));
  EXPECT_THAT(ReasonsOf(status),
              ElementsAre("op 'Loop' (domain 'ai.onnx', version 17, nodes 'a', 'b', dtypes (f32, "
                          "_)): is not supported",
                          "opset 99 is newer than 23"));
}

TEST(ReasonsTest, ManyNodesAreCounted) {
  Reasons reasons;
  for (int i = 0; i < 100; ++i) {
    reasons.AddNode(absl::StatusCode::kUnimplemented, LoopNamed(absl::StrCat("'", i, "'")));
  }
  EXPECT_THAT(ReasonsOf(reasons.ToStatus()), ElementsAre(HasSubstr("'15' and 84 more, dtypes")));
}

TEST(ReasonsTest, MessageHasAllReasonsAndInvalidWins) {
  Reasons reasons;
  reasons.Add(absl::StatusCode::kUnimplemented, "one");
  reasons.Add(absl::StatusCode::kInvalidArgument, "two\nlines");
  const absl::Status status = reasons.ToStatus();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_EQ(status.message(), "one; two lines");
  EXPECT_THAT(ReasonsOf(status), SizeIs(2));
}

TEST(ReasonsTest, AnotherStatusIsItsOwnReason) {
  EXPECT_THAT(ReasonsOf(absl::NotFoundError("no such file")), ElementsAre("no such file"));
}

}  // namespace
}  // namespace reprise
