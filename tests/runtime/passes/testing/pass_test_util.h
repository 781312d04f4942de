// How pass tests are written: a graph as text, the pass, the text that must come out; and the same
// graph run before and after with the reference kernels on random data.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "runtime/passes/kit/pass.h"

namespace reprise {

// Aborts the test when `text` does not parse. The types of results may be left out (`?`): they are
// inferred.
Graph ParseSpecialized(absl::string_view text);

// Returns `text` with `pass` run on it, compacted and verified; values are numbered in the output.
std::string RunPass(const Pass& pass, absl::string_view text);

// Expects that `pass` leaves the graph as it is.
void ExpectUnchanged(const Pass& pass, absl::string_view text);

// Expects that the graph gives the same answers after `pass` (or after the whole capture pipeline)
// on random data, within `tolerance` + `relative` times the largest element. Bool and integer
// inputs draw from `[0, integer_limit)`.
struct SameAnswersOptions {
  double tolerance = 2e-5;
  double relative = 0;
  int rounds = 3;
  int64_t integer_limit = 2;
};
// Options for quantised graphs: a difference of one in a sum of floats may be a step of bytes.
inline constexpr SameAnswersOptions kBytes = {
    .tolerance = 1e-3, .relative = 1e-5, .integer_limit = 100};

void ExpectSameAnswers(const Pass& pass, absl::string_view text,
                       const SameAnswersOptions& options = {});
void ExpectSameAnswersAfterCapture(absl::string_view text, const SameAnswersOptions& options = {});

// Checks both: the answers stay, and the result is `expected` (compared as numbered text).
void ExpectRewrite(const Pass& pass, absl::string_view text, absl::string_view expected,
                   const SameAnswersOptions& options = {});

// ExpectRewrite by the pass Canonicalize.
void ExpectCanonical(absl::string_view text, absl::string_view expected);

// Normal floats; integers and bools in [0, integer_limit).
Tensor RandomTensor(DType dtype, const Shape& shape, int64_t integer_limit, std::mt19937& random);
// Returns a value for each leaf parameter, by its index.
std::vector<Tensor> RandomParameters(const Graph& graph, int64_t integer_limit,
                                     std::mt19937& random);

// Returns how many nodes apply `op`.
int CountOps(const Graph& graph, absl::string_view op);
// Returns the ops of all nodes in order, "MatMul Add Softmax".
std::string OpsOf(const Graph& graph);
// Returns the same after `pass` was run on `text`.
std::string OpsAfter(const Pass& pass, absl::string_view text);
// Returns the graph after the whole capture pipeline.
Graph Captured(absl::string_view text);

}  // namespace reprise
