// Runs a graph of one node on a device, launch by launch as a recipe would, and by the reference
// kernel, over the same random operands.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "runtime/device/cpu/cpu_device.h"
#include "runtime/device/device.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/weights/rounded_weights.h"

namespace reprise {

struct RecordedError {
  int operand;
  int64_t element, value, low, high;
};

class RecordedErrors final : public ReplayErrors {
 public:
  void Report(int, int operand, int64_t element, int64_t value, int64_t low,
              int64_t high) override {
    errors.push_back({operand, element, value, low, high});
  }
  void Fail(int, const absl::Status& status) override { failures.push_back(status); }
  std::vector<RecordedError> errors;
  std::vector<absl::Status> failures;
};

// One node; `text` is the body of a graph in text form whose results are typed `?`.
class NodeRun {
 public:
  explicit NodeRun(const std::string& text, uint32_t seed = 1) {
    absl::StatusOr<Graph> parsed = Parse(absl::StrCat("graph {\n", text, "\n}\n"));
    EXPECT_TRUE(parsed.ok()) << parsed.status().ToString() << "\n" << text;
    REPRISE_CHECK(parsed.ok());
    graph = *std::move(parsed);
    for (ValueId input : graph.inputs()) {
      Value& value = graph.value(input);
      if (value.shape.has_value()) continue;
      value.shape.emplace();
      for (const Dim& dim : value.dims) value.shape->push_back(dim.size);
    }
    REPRISE_CHECK(graph.NodeIds().size() == 1);
    id = graph.NodeIds()[0];
    RoundWeights();
    const absl::Status inferred = InferNode(graph, id);
    EXPECT_TRUE(inferred.ok()) << inferred.ToString() << "\n" << text;
    std::mt19937 random(seed);
    for (ValueId operand : node().inputs) {
      if (operand == kNone) {
        inputs.emplace_back();
        continue;
      }
      const Value& value = graph.value(operand);
      // One value given twice has one content.
      const size_t first =
          std::find(node().inputs.begin(), node().inputs.end(), operand) - node().inputs.begin();
      if (first < inputs.size()) {
        inputs.push_back(inputs[first]);
      } else {
        inputs.push_back(value.kind == Value::Kind::kConstant ? value.constant
                         : value.kind == Value::Kind::kParameter
                             ? ValueOf(*value.parameter, random)
                             : RandomTensor(value.dtype, *value.shape, random));
      }
    }
  }

  const Node& node() const { return graph.node(id); }

  std::vector<Tensor> Reference() const {
    absl::StatusOr<std::vector<Tensor>> outputs = Evaluate(node(), inputs, int64_t{1} << 32);
    EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
    return outputs.ok() ? *std::move(outputs) : std::vector<Tensor>();
  }

  // Returns the outputs that `option` computes when its launch is cut into `parts`. Checks that
  // nothing outside outputs and workspace is written. `only_part`: it is called by itself, as its
  // lone part where it is the first; -1: all are.
  std::vector<Tensor> RunOption(const Device& device, const KernelOption& option, int parts,
                                bool in_place = false, int64_t live_rows = 0, int only_part = -1) {
    absl::StatusOr<BoundKernel> bound = device.Bind(graph, id, option);
    EXPECT_TRUE(bound.ok()) << bound.status().ToString();
    std::vector<Tensor> prepared;
    std::vector<std::unique_ptr<Fenced>> fenced;
    std::vector<void*> operands;
    const bool odd = parts % 2 == 1;  // a test runs both
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].has_value()) {
        operands.push_back(nullptr);
        continue;
      }
      Tensor tensor = *inputs[i];
      for (const PrepareStep& step : option.prepare) {
        if (step.input != i) continue;
        std::vector<std::optional<Tensor>> from;
        for (const ParameterExprPtr& part : step.parts) from.emplace_back(values_.at(part->text()));
        if (from.empty()) from.emplace_back(tensor);
        absl::StatusOr<Tensor> result = device.Prepare(step.op, step.attributes, from);
        EXPECT_TRUE(result.ok()) << result.status().ToString();
        EXPECT_EQ(result->shape(), step.shape);
        tensor = *std::move(result);
      }
      // An operand that is not prepared may be an input of the graph.
      const bool lies_anywhere = IsFloating(tensor.dtype()) &&
                                 tensor.dtype() == inputs[i]->dtype() &&
                                 tensor.shape() == inputs[i]->shape();
      const bool at_end = odd;
      prepared.push_back(tensor);
      fenced.push_back(lies_anywhere ? std::make_unique<Fenced>(tensor, at_end) : nullptr);
      operands.push_back(lies_anywhere ? fenced.back()->data() : const_cast<void*>(tensor.data()));
    }
    std::vector<std::unique_ptr<Fenced>> outputs;
    for (ValueId output : node().outputs) {
      const bool used = output != kNone;
      const DType dtype = used ? graph.value(output).dtype : DType::kUndefined;
      const size_t bytes = used ? NumElements(*graph.value(output).shape) * DTypeSize(dtype) : 0;
      // It may be an output of the graph.
      const bool lies_anywhere = used && IsFloating(dtype);
      outputs.push_back(std::make_unique<Fenced>(bytes, lies_anywhere && odd));
      operands.push_back(used ? outputs.back()->data() : nullptr);
    }
    if (in_place && option.in_place >= 0) {
      const size_t bytes = inputs[option.in_place]->bytes();
      if (bytes > 0) std::memcpy(outputs[0]->data(), operands[option.in_place], bytes);
      operands[option.in_place] = outputs[0]->data();
    }
    const Fenced workspace(option.workspace_bytes, /*at_end=*/false);
    if (option.workspace_bytes > 0) operands.push_back(workspace.data());

    errors.errors.clear();
    Frame frame;
    frame.errors = &errors;
    frame.live_rows = live_rows;
    // Parts may run in any order, and may be others in each phase.
    for (int phase = 0; phase < bound->phases; ++phase) {
      const int cut = phase % 5 == (odd ? 2 : 3) ? 1 : parts;
      for (int part = cut - 1; part >= 0; --part) {
        if (only_part >= 0 && part != only_part) continue;
        bound->run({.operands = operands.data(),
                    .params = bound->params.get(),
                    .frame = &frame,
                    .launch = 0,
                    .part = part,
                    .parts = cut,
                    .phase = phase,
                    .lone_part = only_part == 0});
      }
    }
    std::vector<Tensor> results;
    for (size_t i = 0; i < outputs.size(); ++i) {
      outputs[i]->ExpectIntact();
      const ValueId output = node().outputs[i];
      if (output == kNone) {
        results.emplace_back();
        continue;
      }
      const Value& value = graph.value(output);
      results.push_back(Tensor::Make(value.dtype, *value.shape, [&](void* data) {
        if (outputs[i]->bytes() > 0) std::memcpy(data, outputs[i]->data(), outputs[i]->bytes());
      }));
    }
    workspace.ExpectIntact();
    return results;
  }

  Graph graph;
  NodeId id = kNone;
  std::vector<std::optional<Tensor>> inputs;
  RecordedErrors errors;

 private:
  // Gives a product that rounds to bytes the weights that it has after the passes.
  void RoundWeights() {
    const Attributes& attributes = node().attributes;
    if (attributes.String(kPrecisionAttribute, "") != "int8") return;
    Value& weights = graph.value(node().inputs[1]);
    const bool blocks = attributes.Has(kRoundedBlockAttribute);
    weights.parameter = ops::RoundedWeights(weights.parameter, attributes.Int("transB", 0) ? 0 : 1,
                                            blocks ? WeightBits::kInt4 : WeightBits::kInt8);
  }

  // Returns the value of an expression over random leaves, and of all its parts.
  Tensor ValueOf(const ParameterExpr& expression, std::mt19937& random) {
    const auto known = values_.find(expression.text());
    if (known != values_.end()) return known->second;
    if (expression.is_constant()) return expression.constant();
    Tensor value;
    if (expression.is_leaf()) {
      value = RandomTensor(expression.dtype(), expression.shape(), random);
    } else {
      std::vector<std::optional<Tensor>> parts;
      for (const ParameterExprPtr& part : expression.inputs()) {
        parts.emplace_back(ValueOf(*part, random));
      }
      absl::StatusOr<Tensor> made =
          PrepareWithReference(expression.op(), expression.attributes(), parts);
      EXPECT_TRUE(made.ok()) << made.status().ToString();
      REPRISE_CHECK(made.ok());
      value = *std::move(made);
    }
    values_.emplace(expression.text(), value);
    return value;
  }

  std::map<std::string, Tensor> values_;  // keyed by the text of an expression

  // Bytes between inaccessible pages: they begin after the first of them, or end at the second and
  // begin where their number wants. The rest of their own pages are canaries.
  class Fenced {
   public:
    Fenced(size_t bytes, bool at_end) : bytes_(bytes) {
      const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
      room_ = (bytes + page) / page * page;
      mapped_ = page + room_ + page;
      void* const base = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      REPRISE_CHECK(base != MAP_FAILED);
      base_ = static_cast<std::byte*>(base);
      begin_ = base_ + page;
      REPRISE_CHECK(mprotect(begin_, room_, PROT_READ | PROT_WRITE) == 0);
      std::memset(begin_, 0x5a, room_);
      data_ = at_end ? begin_ + room_ - bytes : begin_;
    }
    // A copy of a tensor in read-only memory.
    Fenced(const Tensor& tensor, bool at_end) : Fenced(tensor.bytes(), at_end) {
      if (tensor.bytes() > 0) std::memcpy(data_, tensor.data(), tensor.bytes());
      REPRISE_CHECK(mprotect(begin_, room_, PROT_READ) == 0);
    }
    ~Fenced() { munmap(base_, mapped_); }
    Fenced(const Fenced&) = delete;
    Fenced& operator=(const Fenced&) = delete;
    std::byte* data() const { return data_; }
    size_t bytes() const { return bytes_; }
    void ExpectIntact() const {
      for (const std::byte* at = begin_; at < begin_ + room_; ++at) {
        if (at >= data_ && at < data_ + bytes_) continue;
        ASSERT_EQ(*at, std::byte{0x5a}) << at - data_ << " bytes from where an operand begins";
      }
    }

   private:
    size_t bytes_;
    size_t room_ = 0;  // bytes between the fences
    size_t mapped_ = 0;
    std::byte* base_ = nullptr;
    std::byte* begin_ = nullptr;
    std::byte* data_ = nullptr;
  };

  static Tensor RandomTensor(DType dtype, const Shape& shape, std::mt19937& random) {
    std::uniform_real_distribution<float> uniform(-2, 2);
    return Tensor::Make(dtype, shape, [&](void* data) {
      for (int64_t i = 0; i < NumElements(shape); ++i) {
        const int64_t small = static_cast<int64_t>(random() % 9) - 4;
        switch (dtype) {
          case DType::kFloat32:
            static_cast<float*>(data)[i] = uniform(random);
            break;
          case DType::kFloat64:
            static_cast<double*>(data)[i] = uniform(random);
            break;
          case DType::kFloat16:
            static_cast<uint16_t*>(data)[i] = FloatToHalf(uniform(random));
            break;
          case DType::kBFloat16:
            static_cast<uint16_t*>(data)[i] = FloatToBFloat16(uniform(random));
            break;
          case DType::kInt32:
            static_cast<int32_t*>(data)[i] = static_cast<int32_t>(small);
            break;
          case DType::kInt64:
            static_cast<int64_t*>(data)[i] = small;
            break;
          case DType::kInt16:
            static_cast<int16_t*>(data)[i] = static_cast<int16_t>(small);
            break;
          case DType::kInt8:
            static_cast<int8_t*>(data)[i] = static_cast<int8_t>(small);
            break;
          case DType::kUInt8:
            static_cast<uint8_t*>(data)[i] = static_cast<uint8_t>(small + 4);
            break;
          default:
            REPRISE_CHECK(dtype == DType::kBool);
            static_cast<uint8_t*>(data)[i] = random() % 3 != 0;
        }
      }
    });
  }
};

// Floats within `relative` of the largest element, everything else equal.
inline void ExpectClose(const Tensor& got, const Tensor& want, double relative = 1e-5) {
  ASSERT_EQ(got.shape(), want.shape());
  ASSERT_EQ(got.dtype(), want.dtype());
  const std::vector<double> a = got.ToDoubles(), b = want.ToDoubles();
  double largest = 1;
  for (double x : b) {
    if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
  }
  const double bound = got.dtype() == DType::kFloat32 ? relative * largest : 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(b[i]) ? std::isnan(a[i]) : a[i] == b[i]) continue;
    ASSERT_NEAR(a[i], b[i], bound) << "element " << i;
  }
}

// A device of each tier.
class DeviceOfTier : public testing::TestWithParam<Isa> {
 protected:
  CpuDevice device_{GetParam()};
};

}  // namespace reprise
