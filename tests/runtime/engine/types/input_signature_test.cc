#include "runtime/engine/types/input_signature.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace reprise {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

// "4" is a constant, all else a symbol or an expression.
ModelIo Input(const std::string& name, const std::vector<std::string>& dims,
              bool optional = false) {
  ModelIo input;
  input.name = name;
  input.optional = optional;
  for (const std::string& dim : dims) {
    input.dims.push_back(std::isdigit(dim[0]) ? Dim{std::stoll(dim), ""} : Dim{-1, dim});
  }
  return input;
}

class InputSignatureTest : public testing::Test {
 protected:
  // Matches a shape for each input; nullopt: left out.
  absl::StatusOr<std::map<std::string, int64_t>> Match(
      const std::vector<std::optional<Shape>>& shapes) const {
    std::vector<const Shape*> pointers;
    for (const auto& shape : shapes) {
      pointers.push_back(shape.has_value() ? &*shape : nullptr);
    }
    return signature_.Match(pointers);
  }
  std::string Refusal(const std::vector<std::optional<Shape>>& shapes) const {
    const auto sizes = Match(shapes);
    EXPECT_EQ(sizes.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(sizes.status().message());
  }

  const std::vector<ModelIo> inputs_ = {
      Input("ids", {"batch", "sequence"}),    Input("mask", {"batch", "past + sequence"}),
      Input("cache", {"batch", "4", "past"}), Input("rest", {"past - sequence"}),
      Input("name", {"batch-size"}),          Input("scale", {"wide"}, /*optional=*/true)};
  const InputSignature signature_{inputs_};
  // Shapes that agree with the inputs.
  const std::vector<std::optional<Shape>> right_ = {Shape{2, 3}, Shape{2, 8}, Shape{2, 4, 5},
                                                    Shape{2},    Shape{7},    std::nullopt};
};

TEST_F(InputSignatureTest, SymbolsHaveTheirSizes) {
  const auto sizes = Match(right_);
  ASSERT_TRUE(sizes.ok()) << sizes.status();
  EXPECT_THAT(*sizes, ElementsAre(Pair("batch", 2), Pair("batch-size", 7), Pair("past", 5),
                                  Pair("sequence", 3)));
  auto with_optional = right_;
  with_optional[5] = Shape{9};
  EXPECT_EQ(Match(with_optional)->at("wide"), 9);
}

TEST_F(InputSignatureTest, WhatDoesNotAgreeIsNamed) {
  const auto wrong = [&](size_t input, const Shape& shape) {
    auto shapes = right_;
    shapes[input] = shape;
    return Refusal(shapes);
  };
  EXPECT_THAT(wrong(0, {2}), HasSubstr("input 'ids' has shape [2], the model expects "
                                       "[batch, sequence]: rank 1 instead of 2"));
  EXPECT_THAT(wrong(0, {2, -1}), HasSubstr("dim 1 is negative"));
  EXPECT_THAT(wrong(2, {2, 3, 5}), HasSubstr("dim 1 is 3 instead of 4"));
  EXPECT_THAT(wrong(2, {1, 4, 5}), HasSubstr("'batch' is 1 here and 2 in input 'ids'"));
  EXPECT_THAT(wrong(1, {2, 7}), HasSubstr("'past + sequence' is 7 instead of 8"));
  EXPECT_THAT(wrong(3, {1}), HasSubstr("'past - sequence' is 1 instead of 2"));
}

TEST_F(InputSignatureTest, ASizeThatWouldBeNegativeIsRefused) {
  EXPECT_THAT(Refusal({Shape{2, 6}, Shape{2, 11}, Shape{2, 4, 5}, Shape{0}, Shape{1}, {}}),
              HasSubstr("dim 'past - sequence' would be negative: -1"));
}

TEST_F(InputSignatureTest, EveryDimThatFollowsIsChecked) {
  const std::vector<ModelIo> two = {Input("x", {"n"}), Input("y", {"n + 1"}),
                                    Input("z", {"n + 1"})};
  const InputSignature signature(two);
  const Shape n = {3}, right = {4}, wrong = {5};
  const std::vector<const Shape*> all_right = {&n, &right, &right},
                                  last_wrong = {&n, &right, &wrong};
  EXPECT_TRUE(signature.Match(all_right).ok());
  EXPECT_THAT(std::string(signature.Match(last_wrong).status().message()),
              HasSubstr("input 'z' has shape [5]"));
}

TEST_F(InputSignatureTest, DimsAlongASymbolAreItAndWhatFollowsFromIt) {
  EXPECT_THAT(signature_.DimsAlong(0, "sequence"), ElementsAre(1));
  EXPECT_THAT(signature_.DimsAlong(1, "sequence"), ElementsAre(1));
  EXPECT_THAT(signature_.DimsAlong(1, "past"), ElementsAre(1));
  EXPECT_THAT(signature_.DimsAlong(2, "past"), ElementsAre(2));
  EXPECT_THAT(signature_.DimsAlong(2, "sequence"), IsEmpty());
}

}  // namespace
}  // namespace reprise
