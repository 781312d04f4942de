// MakeLiveForm: a model whose nodes find the border of each request where its recipe has padding.
//
// Nodes look ahead, average and normalise over the positions of a request, which are fewer than it
// was sent with after convolutions and pools with strides. The form has an input for each axis,
// "reprise.live.<symbol>", bool [batch, axis]: ones for the positions of each row. From these it
// knows where every value of a row ends (ops/windows/live.h), and past that end a node reads the
// number that its own border would hold:
//
//   Conv, LpPool   zeros
//   AveragePool   zeros, and it divides by the elements that count
//   MaxPool, ReduceMax, GlobalMaxPool, ReduceLogSumExp   minus infinity
//   ReduceSum, ReduceL1, ReduceL2, ReduceSumSquare, a product over the axis   zeros
//   ReduceMean, GlobalAveragePool, InstanceNormalization   zeros, and it divides by the live
//   elements Softmax, LogSoftmax   minus infinity LSTM, GRU, RNN   the lengths of the rows
//   Pad   the number that it sets
//   Gather, Slice of the last position   zeros all around it
//
// The keys of a decoder with a cache lie along a size that several axes make. Where a mask of the
// model's clients lies along it as well, a second one, "reprise.live.input.<mask>", says which of
// its places are each row's own.
//
// Nothing is changed that needs no change; a node that this does not know stays as it is. Whether
// the form may be padded is for the certificate to say, as of any model. Where nothing is padded
// its answers equal the model's.
//
// Threads: pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/graph/extent.h"
#include "runtime/graph/graph.h"

namespace reprise {

inline constexpr char kLiveInput[] = "reprise.live.";
inline constexpr char kLiveLikeInput[] = "reprise.live.input.";

struct LiveForm {
  struct Axis {
    std::string symbol;
    bool has_input = false;       // the graph has an input for it
    std::vector<Extent> extents;  // that its values have, beside the size itself
    int64_t smallest = 1;         // the size from which on they have these
  };
  Graph graph;             // inputs of the axes after all others, in the order of `axes`
  std::vector<Axis> axes;  // those that windows slide along
};

// `wanted`: symbols of the axes to make live; `batch` may be empty; `symbols`: all of the model's
// axes but the batch; `steps`: as LiveAxes has them, and the form is for. NOT_FOUND: the model
// takes none of the sizes that it is read at. UNIMPLEMENTED: windows slide over bytes.
absl::StatusOr<LiveForm> MakeLiveForm(const Graph& symbolic, const std::string& batch,
                                      const std::set<std::string>& symbols,
                                      const std::vector<std::string>& wanted,
                                      const std::map<std::string, int64_t>& steps = {});

// Convolutions or pools are among its nodes.
bool HasWindows(const Graph& graph);

}  // namespace reprise
