// Requests at sizes that decide something and that no request had before, next to others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/engine/load/padding_cases/slice_request.h"
#include "tests/runtime/engine/load/padding_cases/slices.h"
#include "tests/testing/engine_fixture.h"
#include "tests/testing/temp_folder.h"

namespace reprise {
namespace {

using testing::HasSubstr;

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
    const SliceRequest x(3, m, 1), z(3, k, 2);
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
    const SliceRequest x(rows, 7, static_cast<int>(rows));
    const Response alone = fixture.engine.RunOne(**exact, x.request, *fixture.stream);
    for (int again = 0; again < 2; ++again) {
      ExpectSame(fixture.engine.RunOne(**model, x.request, *fixture.stream), alone);
    }
  }
}

// The model is looked at on a capture thread; requests that wait for that are padded then.
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
    const SliceRequest numbers(3, length, 1);
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

// An input of one row stands for as many as another one has, unless rows see each other: there it
// is one row.
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
    const SliceRequest x(3, length, 1), user(1, 1, 2);
    Request request;
    request.inputs = {x.request.inputs[0], user.request.inputs[0]};
    const Response response = fixture.engine.RunOne(**model, request, *fixture.stream);
    ASSERT_TRUE(response.status.ok()) << response.status;
    EXPECT_EQ(response.outputs[0].shape, (Shape{3, length, 4}));
    const auto* y = reinterpret_cast<const float*>(response.outputs[0].bytes.data());
    EXPECT_NEAR(y[5], x.values[5] + user.values[1], 1e-6) << length;
    (*model)->SpreadRows(request);
    const absl::StatusOr<RequestShape> shape = (*model)->Measure(request);
    ASSERT_TRUE(shape.ok()) << shape.status();
    EXPECT_EQ(shape->splits_axes(), length == 101);
    EXPECT_EQ(request.inputs[1].shape[0], length == 101 ? 1 : 3);
  }
}

}  // namespace
}  // namespace reprise
