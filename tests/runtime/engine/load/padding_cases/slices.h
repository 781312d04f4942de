// Models in which the size of one axis decides the computation along another one, or which form an
// answer has.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tests/runtime/engine/load/padding_cases/parts.h"

namespace reprise {

// `rows` and `length`, the sizes of x [n, m, 4] as scalars, and numbers to compare them with.
inline void AddSizesOfX(ModelBuilder& b) {
  b.Node("Shape", {"x"}, {"shape"});
  AddInteger(b, "at_zero", 0);
  AddInteger(b, "at_one", 1);
  AddIntegers(b, "zero", {0});
  AddIntegers(b, "one", {1});
  b.Node("Gather", {"shape", "at_zero"}, {"rows"});
  b.Node("Gather", {"shape", "at_one"}, {"length"});
}

inline void AddComparison(ModelBuilder& b, const std::string& op, const std::string& size,
                          int64_t with) {
  AddInteger(b, "limit", with);
  b.Node(op, {size, "limit"}, {"is_so"}, "limit");
}

// `to` = from less its mean over the rows of the batch.
inline void AddRowsApart(ModelBuilder& b, const std::string& from, const std::string& to) {
  AddReduce(b, "ReduceMean", from, to + ".mean", {0}, /*keep=*/true);
  b.Node("Sub", {from, to + ".mean"}, {to});
}

// y = is_so ? one of `branch` : x.
inline void AddBranchOf(ModelBuilder& b, void (*branch)(onnx::GraphProto&)) {
  auto& node = b.Node("If", {"is_so"}, {"chosen"}, "choice");
  onnx::GraphProto& first = AddBranch(node, "then_branch");
  branch(first);
  first.add_output()->set_name("r");
  onnx::GraphProto& second = AddBranch(node, "else_branch");
  AddBranchNode(second, "Identity", {"x"}, "same");
  second.add_output()->set_name("same");
  b.Node("Relu", {"chosen"}, {"y"});
}

inline void SoftmaxOverRows(onnx::GraphProto& branch) {
  SetAttribute(AddBranchNode(branch, "Softmax", {"x"}, "r"), "axis", int64_t{0});
}

struct SliceCase {
  const char* name;
  void (*build)(ModelBuilder&);  // makes y from x [n, m, 4]
  std::vector<int64_t> rows, lengths;
  // The sizes above that run exact once they are known, as {rows, length}; 0: any.
  std::vector<std::pair<int64_t, int64_t>> exact;
  const char* words = "";  // part of a certificate
  bool batch = true;       // it is certified
  bool is_cut = false;     // the part at issue runs after a cut, at each request's own sizes
};

inline void PrintTo(const SliceCase& c, std::ostream* out) { *out << c.name; }

inline const SliceCase kSliceCases[] = {
    {.name = "ALengthOfOneIsSqueezedAway",
     .build =
         [](ModelBuilder& b) {
           AddSizesOfX(b);
           AddComparison(b, "Equal", "length", 1);
           AddBranchOf(b, [](onnx::GraphProto& branch) {
             AddBranchNode(branch, "Squeeze", {"x", "one"}, "r");
           });
         },
     .rows = {1, 2, 3, 9},
     .lengths = {1, 2, 7},
     .exact = {{0, 1}},
     .words = "looked at anew for each size of sequence, since node 'choice' (If) takes a branch "
              "that node 'limit' (Equal) decides by the size of sequence"},
    {.name = "ABatchOfOneIsSqueezedAway",
     .build =
         [](ModelBuilder& b) {
           AddSizesOfX(b);
           AddComparison(b, "Equal", "rows", 1);
           AddBranchOf(b, [](onnx::GraphProto& branch) {
             AddBranchNode(branch, "Squeeze", {"x", "zero"}, "r");
           });
         },
     .rows = {1, 2, 3},
     .lengths = {3, 20, 100},
     .exact = {{1, 0}},
     .words = "looked at anew for each size of batch",
     .batch = false},
    {.name = "ADimOfOneIsDroppedByASqueezeWithoutAxes",
     .build =
         [](ModelBuilder& b) {
           b.Node("Squeeze", {"x"}, {"squeezed"}, "drop");
           b.Node("Relu", {"squeezed"}, {"y"});
         },
     .rows = {2, 3, 9},
     .lengths = {1, 2, 7},
     .batch = false},
    {.name = "AReshapeInTheBranch",
     .build =
         [](ModelBuilder& b) {
           AddSizesOfX(b);
           AddComparison(b, "Equal", "length", 3);
           AddIntegers(b, "flat", {-1, 12});
           AddBranchOf(b, [](onnx::GraphProto& branch) {
             AddBranchNode(branch, "Reshape", {"x", "flat"}, "r");
           });
         },
     .rows = {1, 3, 9},
     .lengths = {2, 3, 8},
     .exact = {{0, 3}}},
    {.name = "AnUnsqueezeInTheBranch",
     .build =
         [](ModelBuilder& b) {
           AddSizesOfX(b);
           AddComparison(b, "Less", "length", 3);
           AddBranchOf(b, [](onnx::GraphProto& branch) {
             AddBranchNode(branch, "Unsqueeze", {"x", "zero"}, "r");
           });
         },
     .rows = {1, 3, 9},
     .lengths = {2, 3, 8},
     .exact = {{0, 2}}},
    {.name = "ABranchThatMixesRowsAboveHundred",
     .build =
         [](ModelBuilder& b) {
           AddSizesOfX(b);
           AddComparison(b, "Greater", "length", 100);
           AddBranchOf(b, SoftmaxOverRows);
         },
     .rows = {1, 2, 3, 9},
     .lengths = {7, 100, 101},
     .exact = {{0, 101}},
     .words = "node 'limit' (Greater) decides by the size of sequence"},
    {.name = "ABranchThatMixesPositionsAboveFiveRows",
     .build =
         [](ModelBuilder& b) {
           AddSizesOfX(b);
           AddComparison(b, "Greater", "rows", 5);
           AddBranchOf(b, [](onnx::GraphProto& branch) {
             auto& mean = AddBranchNode(branch, "ReduceMean", {"x"}, "mean");
             SetAttribute(mean, "axes", std::vector<int64_t>{1});
             AddBranchNode(branch, "Sub", {"x", "mean"}, "r");
           });
         },
     .rows = {1, 5, 6},
     .lengths = {3, 9, 20},
     .exact = {{6, 0}},
     .words = "decides by the size of batch",
     .batch = false},
    {.name = "AFlipAboveTheLargestBucket",
     .build =
         [](ModelBuilder& b) {
           AddSizesOfX(b);
           AddComparison(b, "Greater", "length", 600);
           AddBranchOf(b, SoftmaxOverRows);
         },
     .rows = {1, 3},
     .lengths = {20, 512, 600, 601},
     .exact = {{0, 601}},
     .words = "looked at anew for each size of sequence above 512"},
    {.name = "AWhereOfMixedRows",
     .build =
         [](ModelBuilder& b) {
           AddSizesOfX(b);
           AddComparison(b, "GreaterOrEqual", "length", 50);
           AddRowsApart(b, "x", "apart");
           AddNumber(b, "nothing", 0);
           // The apart rows have a part in it only where they are chosen, which a walk cannot see.
           AddBranchOf(b, [](onnx::GraphProto& branch) {
             AddBranchNode(branch, "Where", {"is_so", "apart", "x"}, "r");
           });
         },
     .rows = {1, 3},
     .lengths = {20, 50},
     .exact = {{0, 50}}},
    {.name = "WhatIsLeftOfTheLength",
     .build =
         [](ModelBuilder& b) {
           AddSizesOfX(b);
           AddInteger(b, "seven", 7);
           b.Node("Mod", {"length", "seven"}, {"rest"});
           AddComparison(b, "Equal", "rest", 0);
           AddBranchOf(b, SoftmaxOverRows);
         },
     .rows = {1, 3},
     .lengths = {5, 7, 13, 14},
     .exact = {{0, 7}, {0, 14}}},
    {.name = "HundredsOfTheLength",
     .build =
         [](ModelBuilder& b) {
           AddSizesOfX(b);
           AddInteger(b, "hundred", 100);
           b.Node("Div", {"length", "hundred"}, {"hundreds"});
           AddComparison(b, "Equal", "hundreds", 2);
           AddBranchOf(b, SoftmaxOverRows);
         },
     .rows = {1, 3},
     .lengths = {99, 200, 300},
     .exact = {{0, 200}}},
    {.name = "TheSmallerAndTheLargerOfSizes",
     .build =
         [](ModelBuilder& b) {
           AddSizesOfX(b);
           AddInteger(b, "ninety", 90);
           AddInteger(b, "sixty", 60);
           b.Node("Min", {"length", "ninety"}, {"at_most"});
           b.Node("Max", {"at_most", "sixty"}, {"between"});
           b.Node("Sub", {"between", "sixty"}, {"beyond"});
           SetAttribute(b.Node("Cast", {"beyond"}, {"is_so"}, "limit"), "to",
                        int64_t{onnx::TensorProto::BOOL});
           AddBranchOf(b, SoftmaxOverRows);
         },
     .rows = {1, 3},
     .lengths = {20, 60, 61},
     .exact = {{0, 61}}},
    {.name = "ACountOfARange",
     .build =
         [](ModelBuilder& b) {
           AddSizesOfX(b);
           AddInteger(b, "thirty", 30);
           b.Node("Range", {"thirty", "length", "at_one"}, {"beyond"});
           b.Node("Size", {"beyond"}, {"count"});
           AddComparison(b, "Greater", "count", 0);
           AddBranchOf(b, SoftmaxOverRows);
         },
     .rows = {1, 3},
     .lengths = {20, 30, 31, 50},
     .exact = {{0, 31}, {0, 50}}},
    {.name = "RowsThatASliceDropsByTheLength",
     .build =
         [](ModelBuilder& b) {
           AddSizesOfX(b);
           AddIntegers(b, "hundred", {100});
           b.Node("Reshape", {"length", "one"}, {"lengths"});
           b.Node("Sub", {"lengths", "hundred"}, {"beyond"});
           b.Node("Max", {"beyond", "zero"}, {"start"});
           AddIntegers(b, "end", {kNoEnd});
           b.Node("Slice", {"x", "start", "end", "zero"}, {"late"});
           b.Node("Relu", {"late"}, {"y"});
         },
     .rows = {2, 3},
     .lengths = {20, 100, 101},
     .exact = {{0, 101}}},
    {.name = "RowsThatASliceEndsBefore",
     .build =
         [](ModelBuilder& b) {
           AddSizesOfX(b);
           AddIntegers(b, "most", {700});
           b.Node("Reshape", {"length", "one"}, {"lengths"});
           b.Node("Sub", {"most", "lengths"}, {"end"});
           b.Node("Slice", {"x", "zero", "end", "zero"}, {"first"}, "first");
           b.Node("Relu", {"first"}, {"y"});
         },
     .rows = {2, 3},
     .lengths = {20, 600, 698},
     .exact = {{0, 698}}},
    {.name = "RowsThatAreZeroedFromTheLargestBucketOn",
     .build =
         [](ModelBuilder& b) {
           AddSizesOfX(b);
           AddIntegers(b, "most", {518});
           b.Node("Reshape", {"length", "one"}, {"lengths"});
           b.Node("Sub", {"most", "lengths"}, {"end"});
           b.Node("Slice", {"x", "zero", "end", "zero"}, {"first"});
           b.Node("Shape", {"first"}, {"first.shape"});
           b.Node("Sub", {"shape", "first.shape"}, {"missing"});
           b.Node("Mul", {"shape", "zero"}, {"nothing"});
           SetAttribute(b.Node("Concat", {"nothing", "missing"}, {"pads"}), "axis", int64_t{0});
           b.Node("Pad", {"first", "pads"}, {"filled"});
           b.Node("Relu", {"filled"}, {"y"});
         },
     .rows = {5, 7},
     .lengths = {20, 512},
     .exact = {{7, 0}},
     .words = "looked at anew for each size of batch",
     .batch = false},
    {.name = "ALoopThatRunsByTheLength",
     .build =
         [](ModelBuilder& b) {
           AddSizesOfX(b);
           AddInteger(b, "hundred", 100);
           b.Node("Sub", {"length", "hundred"}, {"beyond"});
           b.Node("Max", {"beyond", "at_zero"}, {"count"});
           b.Node("Relu", {"x"}, {"start"});
           auto& node = b.Node("Loop", {"count", "", "start"}, {"looped"}, "loop");
           onnx::GraphProto& body = AddBranch(node, "body");
           ModelBuilder::SetType(body.add_input(), "i", onnx::TensorProto::INT64, {});
           ModelBuilder::SetType(body.add_input(), "goes_on", onnx::TensorProto::BOOL, {});
           ModelBuilder::SetType(body.add_input(), "v", onnx::TensorProto::FLOAT, {"n", "m", "4"});
           AddBranchNode(body, "Identity", {"goes_on"}, "still");
           SetAttribute(AddBranchNode(body, "ReduceMean", {"v"}, "mean"), "axes",
                        std::vector<int64_t>{0});
           AddBranchNode(body, "Sub", {"v", "mean"}, "next");
           ModelBuilder::SetType(body.add_output(), "still", onnx::TensorProto::BOOL, {});
           ModelBuilder::SetType(body.add_output(), "next", onnx::TensorProto::FLOAT,
                                 {"n", "m", "4"});
           b.Node("Neg", {"looped"}, {"y"});
         },
     .rows = {1, 3},
     .lengths = {20, 100, 101},
     .is_cut = true},
};

}  // namespace reprise
