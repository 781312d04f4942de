#include "tests/runtime/passes/testing/packing_harness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/passes/kit/pass.h"
#include "runtime/passes/pack/pack_tokens.h"
#include "runtime/passes/pack/request_scales.h"
#include "runtime/passes/specialize/specialize.h"
#include "tests/runtime/passes/testing/pass_test_util.h"
#include "tests/testing/interpreter.h"

namespace reprise {
namespace {

constexpr int64_t kTokens = 40;
constexpr int64_t kSegments = 8;
constexpr int64_t kIdLimit = 5;

// The model's inputs of one request, whose rows are segments, and the same put at its place in a
// packed tensor.
struct Segment {
  int64_t begin;  // token
  int64_t first;  // segment
  int64_t rows;
  int64_t length;
  std::map<std::string, Tensor> inputs;
};

// [rows, length, ...] or [rows, ...] tensors side by side in one of `capacity` rows; the rest is
// filled with ones.
Tensor Join(const std::vector<Segment>& segments, const std::string& name, const Shape& packed,
            bool by_token) {
  const DType dtype = segments[0].inputs.at(name).dtype();
  const size_t row = NumElements(packed) / std::max<int64_t>(1, packed[0]) * DTypeSize(dtype);
  return Tensor::Make(dtype, packed, [&](void* data) {
    std::memset(data, 0, NumElements(packed) * DTypeSize(dtype));
    for (size_t s = 0; s < segments.size(); ++s) {
      const Tensor& own = segments[s].inputs.at(name);
      const size_t at = by_token ? segments[s].begin : segments[s].first;
      std::memcpy(static_cast<char*>(data) + at * row, own.data(), own.bytes());
    }
  });
}

void ExpectRows(const Tensor& packed, int64_t first, const Tensor& alone) {
  const std::vector<double> got = packed.ToDoubles(), expected = alone.ToDoubles();
  const int64_t row = packed.num_elements() / std::max<int64_t>(1, packed.shape()[0]);
  for (size_t i = 0; i < expected.size(); ++i) {
    const double value = got[first * row + static_cast<int64_t>(i)];
    if (std::isnan(expected[i])) {
      ASSERT_TRUE(std::isnan(value)) << "element " << i;
      continue;
    }
    ASSERT_NEAR(value, expected[i], 1e-4 + 1e-4 * std::abs(expected[i])) << "element " << i;
  }
}

// Returns the requests of a round, side by side: two of one row and two of two.
std::vector<Segment> DrawSegments(const Graph& symbolic, std::mt19937& random) {
  std::vector<Segment> segments;
  int64_t tokens = 0, rows = 0;
  for (const auto& [of_rows, length] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 5}, {2, 1}, {1, kLongest}, {2, 7}}) {
    Segment segment = {.begin = tokens, .first = rows, .rows = of_rows, .length = length};
    for (ValueId id : symbolic.inputs()) {
      const Value& value = symbolic.value(id);
      Shape shape;
      for (const Dim& dim : value.dims) {
        shape.push_back(dim.symbol == "batch" ? of_rows : dim.is_constant() ? dim.size : length);
      }
      segment.inputs[value.name] = RandomTensor(value.dtype, shape, kIdLimit, random);
    }
    segments.push_back(std::move(segment));
    tokens += of_rows * length;
    rows += of_rows;
  }
  return segments;
}

// Returns where each of `begins` begins, and `end` for all after them.
Tensor Bounds(const std::vector<int32_t>& begins, int64_t end) {
  std::vector<int32_t> all(kSegments + 1, static_cast<int32_t>(end));
  std::copy(begins.begin(), begins.end(), all.begin());
  return Tensor::FromVector(DType::kInt32, Shape{kSegments + 1}, all);
}

Tensor Positions(const std::vector<Segment>& segments) {
  std::vector<int64_t> positions(kTokens, 0);
  for (const Segment& segment : segments) {
    for (int64_t i = 0; i < segment.rows * segment.length; ++i) {
      positions[segment.begin + i] = i % segment.length;
    }
  }
  return Tensor::FromVector(DType::kInt64, Shape{kTokens}, positions);
}

// Returns the bounds of each row of each request.
Tensor SegmentBounds(const std::vector<Segment>& segments) {
  std::vector<int32_t> begins;
  for (const Segment& segment : segments) {
    for (int64_t row = 0; row < segment.rows; ++row) {
      begins.push_back(static_cast<int32_t>(segment.begin + row * segment.length));
    }
  }
  const Segment& last = segments.back();
  return Bounds(begins, last.begin + last.rows * last.length);
}

// Returns the bounds of each request, in tokens or in rows.
Tensor RequestBounds(const std::vector<Segment>& segments, bool by_token) {
  std::vector<int32_t> begins;
  for (const Segment& segment : segments) {
    begins.push_back(static_cast<int32_t>(by_token ? segment.begin : segment.first));
  }
  const Segment& last = segments.back();
  return Bounds(begins, by_token ? last.begin + last.rows * last.length : last.first + last.rows);
}

std::map<std::string, Tensor> PackedInputs(const Graph& packed,
                                           const std::vector<Segment>& segments) {
  std::map<std::string, Tensor> inputs;
  for (ValueId id : packed.inputs()) {
    const Value& value = packed.value(id);
    Tensor& input = inputs[value.name];
    if (value.name == kPositionsInput) {
      input = Positions(segments);
    } else if (value.name == kSegmentsInput) {
      input = SegmentBounds(segments);
    } else if (value.name == kRequestTokensInput || value.name == kRequestRowsInput) {
      input = RequestBounds(segments, value.name == kRequestTokensInput);
    } else {
      input = Join(segments, value.name, *value.shape, (*value.shape)[0] == kTokens);
    }
  }
  return inputs;
}

}  // namespace

Graph Symbolic(absl::string_view text) {
  absl::StatusOr<Graph> graph = Parse(absl::StrCat("graph {\n", text, "\n}\n"));
  EXPECT_TRUE(graph.ok()) << graph.status() << "\n" << text;
  return graph.ok() ? *std::move(graph) : Graph();
}

absl::StatusOr<Graph> Pack(absl::string_view text) {
  Graph symbolic = Symbolic(text);
  ScaleByRequest(symbolic);
  return PackTokens(symbolic, {.batch = "batch", .sequence = "sequence", .longest = kLongest});
}

void ExpectPacks(absl::string_view text) {
  SCOPED_TRACE(std::string(text));
  const Graph symbolic = Symbolic(text);
  absl::StatusOr<Graph> packed = Pack(text);
  ASSERT_TRUE(packed.ok()) << packed.status();
  absl::StatusOr<Graph> graph =
      Specialize(*packed, {.axes = {{kTokensAxis, kTokens}, {kSegmentsAxis, kSegments}}});
  ASSERT_TRUE(graph.ok()) << graph.status() << Print(*packed);
  ASSERT_TRUE(RunCapturePasses(*graph).ok());

  std::mt19937 random(11);
  for (int round = 0; round < 3; ++round) {
    const std::vector<Tensor> parameters = RandomParameters(symbolic, kIdLimit, random);
    const std::vector<Segment> segments = DrawSegments(symbolic, random);
    const std::map<std::string, Tensor> inputs = PackedInputs(*graph, segments);
    const auto together = Interpret(*graph, inputs, parameters);
    ASSERT_TRUE(together.ok()) << together.status() << Print(*graph);
    for (size_t s = 0; s < segments.size(); ++s) {
      SCOPED_TRACE(absl::StrCat("segment of ", segments[s].length));
      const auto alone_graph = Specialize(
          symbolic, {.axes = {{"batch", segments[s].rows}, {"sequence", segments[s].length}}});
      ASSERT_TRUE(alone_graph.ok()) << alone_graph.status();
      const auto alone = Interpret(*alone_graph, segments[s].inputs, parameters);
      ASSERT_TRUE(alone.ok()) << alone.status();
      for (size_t o = 0; o < alone->size(); ++o) {
        SCOPED_TRACE(absl::StrCat("output ", o));
        const bool by_token = (*together)[o].shape()[0] == kTokens;
        ExpectRows((*together)[o], by_token ? segments[s].begin : segments[s].first, (*alone)[o]);
      }
    }
  }
}

void ExpectRefused(absl::string_view text, absl::string_view why) {
  const absl::StatusOr<Graph> packed = Pack(text);
  ASSERT_FALSE(packed.ok()) << text;
  EXPECT_EQ(packed.status().code(), absl::StatusCode::kUnimplemented) << packed.status();
  EXPECT_THAT(std::string(packed.status().message()), testing::HasSubstr(std::string(why)));
}

}  // namespace reprise
