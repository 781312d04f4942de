// Models in which the size of one axis decides what is computed along another one, or which form an
// answer has: requests get the answers that they get alone and unpadded, whatever their sizes are.
#include "runtime/engine/model/size_slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "tests/runtime/engine/load/padding_cases/parts.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using testing::HasSubstr;

// `rows` and `length`, the sizes of x [n, m, 4] as scalars, and numbers to compare them with.
void AddSizesOfX(ModelBuilder& b) {
  b.Node("Shape", {"x"}, {"shape"});
  AddInteger(b, "at_zero", 0);
  AddInteger(b, "at_one", 1);
  AddIntegers(b, "zero", {0});
  AddIntegers(b, "one", {1});
  b.Node("Gather", {"shape", "at_zero"}, {"rows"});
  b.Node("Gather", {"shape", "at_one"}, {"length"});
}

void AddComparison(ModelBuilder& b, const std::string& op, const std::string& size, int64_t with) {
  AddInteger(b, "limit", with);
  b.Node(op, {size, "limit"}, {"is_so"}, "limit");
}

// `to` = from less its mean over the rows of the batch.
void AddRowsApart(ModelBuilder& b, const std::string& from, const std::string& to) {
  AddReduce(b, "ReduceMean", from, to + ".mean", {0}, /*keep=*/true);
  b.Node("Sub", {from, to + ".mean"}, {to});
}

// y = is_so ? one of `branch` : x.
void AddBranchOf(ModelBuilder& b, void (*branch)(onnx::GraphProto&)) {
  auto& node = b.Node("If", {"is_so"}, {"chosen"}, "choice");
  onnx::GraphProto& first = AddBranch(node, "then_branch");
  branch(first);
  first.add_output()->set_name("r");
  onnx::GraphProto& second = AddBranch(node, "else_branch");
  AddBranchNode(second, "Identity", {"x"}, "same");
  second.add_output()->set_name("same");
  b.Node("Relu", {"chosen"}, {"y"});
}

void SoftmaxOverRows(onnx::GraphProto& branch) {
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
  bool is_cut = false;     // the part at issue runs behind a cut, at each request's own sizes
};

void PrintTo(const SliceCase& c, std::ostream* out) { *out << c.name; }

const SliceCase kCases[] = {
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

class SizeSlicesTest : public testing::TestWithParam<SliceCase> {
 protected:
  std::shared_ptr<Model> Load(const std::string& name, std::set<std::string> no_padding,
                              bool declared = false) {
    ModelBuilder builder;
    builder.Input("x", {"n", "m", "4"});
    GetParam().build(builder);
    if (declared) {
      ModelBuilder::SetType(builder.graph().add_output(), "y", onnx::TensorProto::FLOAT,
                            {"n", "m", "4"});
    } else {
      builder.Output("y");
    }
    const TempFolder folder;
    auto model = fixture_.engine.Load({.id = {name, 1},
                                       .path = folder.Write("model.onnx", builder.Bytes()),
                                       .no_padding = std::move(no_padding)});
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? *std::move(model) : nullptr;
  }

  bool IsExact(int64_t rows, int64_t length) const {
    for (const auto& [r, l] : GetParam().exact) {
      if ((r == 0 || r == rows) && (l == 0 || l == length)) return true;
    }
    return false;
  }

  EngineFixture fixture_;
};

struct Numbers {
  Numbers(int64_t rows, int64_t length, int seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < rows * length * 4; ++i) values.push_back(normal(random));
    request.inputs = {{{rows, length, 4}, values.data()}};
  }
  Numbers(const Numbers&) = delete;
  std::vector<float> values;
  Request request;
};

void ExpectSame(const Response& actual, const Response& expected) {
  ASSERT_TRUE(actual.status.ok()) << actual.status;
  ASSERT_TRUE(expected.status.ok()) << expected.status;
  ASSERT_EQ(actual.outputs[0].shape, expected.outputs[0].shape);
  ASSERT_EQ(actual.outputs[0].bytes.size(), expected.outputs[0].bytes.size());
  const auto* got = reinterpret_cast<const float*>(actual.outputs[0].bytes.data());
  const auto* want = reinterpret_cast<const float*>(expected.outputs[0].bytes.data());
  for (size_t i = 0; i < expected.outputs[0].bytes.size() / sizeof(float); ++i) {
    ASSERT_NEAR(got[i], want[i], 1e-5) << "element " << i;
  }
}

TEST_P(SizeSlicesTest, AnswersInAnyCompanyAreThoseAloneAndUnpadded) {
  const std::shared_ptr<Model> model = Load("model", {});
  const std::shared_ptr<Model> exact = Load("exact", {"batch", "sequence"});
  ASSERT_TRUE(model != nullptr && exact != nullptr);
  int seed = 0;
  for (const int64_t length : GetParam().lengths) {
    for (const int64_t rows : GetParam().rows) {
      SCOPED_TRACE(absl::StrCat(rows, " rows of ", length));
      const Numbers first(rows, length, ++seed);
      const Numbers second(2, length, ++seed), third(1, length, ++seed);
      const Response alone = fixture_.engine.RunOne(*exact, first.request, *fixture_.stream);
      for (int again = 0; again < 2; ++again) {
        ExpectSame(fixture_.engine.RunOne(*model, first.request, *fixture_.stream), alone);
      }
      BatchPlan plan(*model);
      std::vector<const Request*> requests;
      for (const Numbers* one : {&first, &second, &third}) {
        const auto shape = model->Measure(one->request);
        ASSERT_TRUE(shape.ok()) << shape.status();
        EXPECT_TRUE(one != &first || !shape->in_new_slice) << "it has been looked at";
        EXPECT_TRUE(one != &first || GetParam().is_cut || shape->exact == IsExact(rows, length));
        if (plan.TryAdd(*shape)) requests.push_back(&one->request);
      }
      const auto responses = fixture_.engine.Run(plan, requests, *fixture_.stream);
      for (size_t i = 0; i < requests.size(); ++i) {
        ExpectSame(responses[i], fixture_.engine.RunOne(*exact, *requests[i], *fixture_.stream));
      }
    }
  }
}

TEST_P(SizeSlicesTest, TheCertificateSaysWhichSizesItHangsOn) {
  const std::shared_ptr<Model> model = Load("model", {});
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->axes()[0].certificate.certified, GetParam().batch)
      << model->axes()[0].certificate.reason;
  const AxisCertificate& known = model->axes()[GetParam().batch ? 0 : 1].certificate;
  EXPECT_THAT(known.reason, HasSubstr(GetParam().words));
}

TEST_P(SizeSlicesTest, WhatTheFileDeclaresOfTheAnswerChangesNothing) {
  const std::shared_ptr<Model> model = Load("model", {}, /*declared=*/true);
  const std::shared_ptr<Model> exact = Load("exact", {"batch", "sequence"});
  ASSERT_TRUE(model != nullptr && exact != nullptr);
  for (const int64_t length : GetParam().lengths) {
    const Numbers one(3, length, static_cast<int>(length));
    ExpectSame(fixture_.engine.RunOne(*model, one.request, *fixture_.stream),
               fixture_.engine.RunOne(*exact, one.request, *fixture_.stream));
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SizeSlicesTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return info.param.name; });

// Two inputs, whose lengths are compared.
TEST(SlicesOfTwoSizesTest, RowsMeetWhereOneIsShorterThanTheOther) {
  ModelBuilder b;
  b.Input("x", {"n", "m", "4"}).Input("z", {"n", "k", "4"});
  AddSizesOfX(b);
  b.Node("Shape", {"z"}, {"z.shape"});
  b.Node("Gather", {"z.shape", "at_one"}, {"z.length"});
  b.Node("Less", {"length", "z.length"}, {"is_so"}, "limit");
  AddBranchOf(b, SoftmaxOverRows);
  AddReduce(b, "ReduceMax", "z", "sum", {1}, true);
  b.Node("Add", {"y", "sum"}, {"w"});
  b.Output("w");
  EngineFixture fixture;
  const TempFolder folder;
  const std::string path = folder.Write("model.onnx", b.Bytes());
  const auto model = fixture.engine.Load({.id = {"model", 1}, .path = path});
  ASSERT_TRUE(model.ok()) << model.status();
  std::set<std::string> all;
  for (const ModelAxis& axis : (*model)->axes()) all.insert(axis.label);
  const auto exact = fixture.engine.Load({.id = {"exact", 1}, .path = path, .no_padding = all});
  ASSERT_TRUE(exact.ok()) << exact.status();
  for (const auto& [m, k] : {std::pair<int64_t, int64_t>{5, 6}, {6, 6}, {9, 4}, {40, 40}}) {
    const Numbers x(3, m, 1), z(3, k, 2);
    Request request;
    request.inputs = {x.request.inputs[0], z.request.inputs[0]};
    const Response alone = fixture.engine.RunOne(**exact, request, *fixture.stream);
    ExpectSame(fixture.engine.RunOne(**model, request, *fixture.stream), alone);
    EXPECT_EQ((*model)->Measure(request)->exact, m < k);
  }
}

// Parts of a request would have numbers of rows for which the model decides otherwise.
TEST(RowsThatDecideTest, RequestOfMoreRowsThanAReplayTakesIsNotSplit) {
  ModelBuilder b;
  b.Input("x", {"n", "m", "4"});
  AddSizesOfX(b);
  AddComparison(b, "Equal", "rows", 41);
  AddBranchOf(b, [](onnx::GraphProto& branch) { AddBranchNode(branch, "Neg", {"x"}, "r"); });
  b.Output("y");
  EngineFixture fixture;
  const TempFolder folder;
  const std::string path = folder.Write("model.onnx", b.Bytes());
  const auto model = fixture.engine.Load({.id = {"model", 1}, .path = path});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto exact =
      fixture.engine.Load({.id = {"exact", 1}, .path = path, .no_padding = {"batch", "sequence"}});
  ASSERT_TRUE(exact.ok()) << exact.status();
  for (const int64_t rows : {31, 40, 41, 42, 82}) {
    SCOPED_TRACE(rows);
    const Numbers x(rows, 7, static_cast<int>(rows));
    const Response alone = fixture.engine.RunOne(**exact, x.request, *fixture.stream);
    for (int again = 0; again < 2; ++again) {
      ExpectSame(fixture.engine.RunOne(**model, x.request, *fixture.stream), alone);
    }
  }
}

// The model is looked at on a capture thread; whoever waits for that is padded then.
TEST(NewSliceTest, RequestsWaitUntilItsSizesAreLookedAt) {
  ModelBuilder b;
  b.Input("x", {"n", "m", "4"});
  AddSizesOfX(b);
  AddComparison(b, "Greater", "length", 100);
  AddBranchOf(b, SoftmaxOverRows);
  b.Output("y");
  SteadyClock clock;
  HelperPool cores(1);
  const CpuDevice device(DetectIsa());
  RememberingObserver observer;
  CapturePool captures({.urgent_threads = 1, .behind_threads = 1});
  Engine engine({.device = &device, .clock = &clock, .cores = &cores, .captures = &captures},
                observer);
  const TempFolder folder;
  const auto model = engine.Load({.id = {"m", 1}, .path = folder.Write("model.onnx", b.Bytes())});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto wait = [&](int64_t length) {
    const Numbers numbers(3, length, 1);
    const RequestShape before = *(*model)->Measure(numbers.request);
    EXPECT_TRUE(before.exact && before.in_new_slice);
    BatchPlan plan(**model);
    EXPECT_TRUE(plan.TryAdd(before));
    Mutex mutex;
    CondVar told;
    bool ready = false;
    EXPECT_NE(engine.Prepare(plan,
                             [&](const absl::Status&) {
                               MutexLock lock(mutex);
                               ready = true;
                               told.NotifyOne();
                             }),
              nullptr);
    MutexLock lock(mutex);
    while (!ready) told.Wait(mutex);
    return (*model)->MeasureAgain(before);
  };
  const auto padded = wait(7);
  ASSERT_TRUE(padded.has_value());
  EXPECT_FALSE(padded->exact || padded->in_new_slice);
  const auto alone = wait(101);
  ASSERT_TRUE(alone.has_value());
  EXPECT_TRUE(alone->exact && !alone->in_new_slice);
  captures.Stop();
}

// An input of one row stands for as many as another one has, unless rows see each other.
TEST(SpreadRowsInSlicesTest, NoRowStandsForOthersWhereRowsMeet) {
  ModelBuilder b;
  b.Input("x", {"n", "m", "4"}).Input("user", {"u", "1", "4"});
  AddSizesOfX(b);
  AddComparison(b, "Greater", "length", 100);
  auto& node = b.Node("If", {"is_so"}, {"chosen"}, "choice");
  onnx::GraphProto& first = AddBranch(node, "then_branch");
  AddBranchNode(first, "ReduceSum", {"user", "zero"}, "r");
  first.add_output()->set_name("r");
  onnx::GraphProto& second = AddBranch(node, "else_branch");
  AddBranchNode(second, "Identity", {"user"}, "same");
  second.add_output()->set_name("same");
  b.Node("Add", {"x", "chosen"}, {"y"});
  b.Output("y");
  EngineFixture fixture;
  const TempFolder folder;
  const auto model =
      fixture.engine.Load({.id = {"m", 1}, .path = folder.Write("model.onnx", b.Bytes())});
  ASSERT_TRUE(model.ok()) << model.status();
  for (const int64_t length : {7, 101}) {
    const Numbers x(3, length, 1), user(1, 1, 2);
    Request request;
    request.inputs = {x.request.inputs[0], user.request.inputs[0]};
    const Response response = fixture.engine.RunOne(**model, request, *fixture.stream);
    if (length == 7) {
      ASSERT_TRUE(response.status.ok()) << response.status;
      const auto* y = reinterpret_cast<const float*>(response.outputs[0].bytes.data());
      EXPECT_NEAR(y[5], x.values[5] + user.values[1], 1e-6);
    } else {
      EXPECT_TRUE(absl::IsInvalidArgument(response.status)) << response.status;
    }
  }
}

TEST(SizeSlicesMapTest, OneFindsOutAndAllAreTold) {
  SizeSlices slices({SizeSlices::kDecidesNothing, 512, 0});
  EXPECT_EQ(slices.Find({3, 100, 0}), SizeSlices::State::kHolds) << "nothing is fixed";
  EXPECT_EQ(slices.Find({3, 600, 7}), SizeSlices::State::kUnknown);
  const SizeSlices::Slice slice = slices.SliceOf({3, 600, 7});
  EXPECT_EQ(slice, (SizeSlices::Slice{SizeSlices::kFree, 600, 7}));
  int told = 0, begun = 0;
  const auto tell = [&] { ++told; };
  EXPECT_FALSE(slices.Await(slice, tell, [] { return false; })) << "no thread takes it";
  EXPECT_TRUE(slices.Await(slice, tell, [&] { return ++begun == 1; }));
  EXPECT_TRUE(slices.Await(slice, tell, [&] { return ++begun == 1; })) << "it is under way";
  slices.Learn(slice, absl::FailedPreconditionError("rows meet"));
  EXPECT_EQ(told, 2);
  EXPECT_EQ(begun, 1);
  EXPECT_FALSE(slices.Await(slice, tell, [&] { return ++begun == 1; })) << "it is known";
  EXPECT_EQ(slices.Find({9, 600, 7}), SizeSlices::State::kRefused);
  EXPECT_EQ(slices.FindWithReason(slice).why, "rows meet");
  EXPECT_EQ(slices.refused(), 1u);
  slices.Forget();
  EXPECT_EQ(slices.Find({9, 600, 7}), SizeSlices::State::kUnknown);
  EXPECT_EQ(told, 2);
}

}  // namespace
}  // namespace reprise
