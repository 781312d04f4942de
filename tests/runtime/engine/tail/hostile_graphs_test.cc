// Files whose graphs are small to write and would be large to walk.
#include <gtest/gtest.h>

#include <vector>

#include "tests/runtime/engine/tail/tail_fixture.h"

namespace reprise {
namespace {

using Proto = onnx::TensorProto;

// The sizes of x, through `levels` of a hundred copies of which one is taken, compared with -1 as
// exporters do: 100^levels ways lead back to them.
TEST_F(TailTest, SizesThatManyWaysLeadToAreFollowedOnce) {
  ModelBuilder b;
  b.Input("x", {"batch", "sequence"});
  b.Initializer<int64_t>("zero", Proto::INT64, {1}, {0});
  b.Initializer<int64_t>("one", Proto::INT64, {1}, {1});
  b.Initializer<int64_t>("minus", Proto::INT64, {1}, {-1});
  b.Node("Shape", {"x"}, {"sizes"});
  b.Node("Gather", {"sizes", "one"}, {"size0"});
  constexpr int kLevels = 5;
  for (int level = 0; level < kLevels; ++level) {
    const std::string number = std::to_string(level), next = std::to_string(level + 1);
    auto& join = b.Node("Concat", std::vector<std::string>(100, "size" + number), {"all" + number});
    SetAttribute(join, "axis", int64_t{0});
    b.Node("Gather", {"all" + number, "zero"}, {"size" + next});
  }
  const std::string last = "size" + std::to_string(kLevels);
  b.Node("Equal", {last, "minus"}, {"open"});
  b.Node("Where", {"open", "one", last}, {"chosen"});
  b.Node("Mul", {"chosen", "zero"}, {"none"});
  SetAttribute(b.Node("Cast", {"none"}, {"floats"}), "to", int64_t{Proto::FLOAT});
  b.Node("Add", {"x", "floats"}, {"y"});
  AddOutput(b, "y", Proto::FLOAT, {"batch", "sequence"});
  Load(b);
  const std::vector<float> x = {1, 2, 3};
  EXPECT_EQ(Elements<float>(Run({{{1, 3}, x.data()}})), x);
}

// Pieces of 4, the fourth from the end, where the request decides how many there are.
TEST_F(TailTest, PieceBeforeTheFirstOneIsEmptyAtEveryLength) {
  ModelBuilder b;
  b.Input("x", {"batch", "sequence"});
  b.Initializer<int64_t>("four", Proto::INT64, {}, {4});
  b.Initializer<int64_t>("place", Proto::INT64, {}, {-4});
  SetAttribute(b.Node("SplitToSequence", {"x", "four"}, {"pieces"}), "axis", int64_t{1});
  b.Node("SequenceAt", {"pieces", "place"}, {"y"});
  AddOutput(b, "y", Proto::FLOAT, {"batch", "piece"});
  Load(b);
  std::vector<float> x(16);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  for (int64_t length = 1; length <= 16; ++length) {
    const std::vector<float> piece = Elements<float>(Run({{{1, length}, x.data()}}));
    EXPECT_EQ(piece, length <= 12 ? std::vector<float>() : std::vector<float>({0, 1, 2, 3}))
        << length;
  }
}

}  // namespace
}  // namespace reprise
