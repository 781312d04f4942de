#include "runtime/passes/paged/present_outputs.h"

#include <cstdint>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/ops/attention/attention_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/movement/append_rows_op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/paged/decoder_inputs.h"
#include "runtime/passes/specialize/specialize.h"

namespace reprise {
namespace {

ValueId BeforeCasts(const Graph& graph, ValueId value) {
  while (const Node* cast = graph.ProducerIf(value, CastOp::kName)) value = cast->inputs[0];
  return value;
}

// Returns the index of the input of an attention that takes the past of keys; the past of
// values comes next. Its outputs 1 and 2 are both with the new rows.
std::optional<size_t> PastKeyInput(const Node& node) {
  if (node.op == OnnxAttentionOp::kName || node.op == SinkAttentionOp::kName) return 4;
  if (node.op == MultiHeadAttentionOp::kName) return 6;
  return std::nullopt;
}

// Returns the input whose rows `value` begins with, new ones after them; else kNone.
ValueId PastOf(const Graph& graph, ValueId value) {
  const NodeId producer = ProducerOf(graph, value);
  if (producer == kNone) return kNone;
  const Node& node = graph.node(producer);
  if (const std::optional<size_t> past = PastKeyInput(node)) {
    const size_t output = absl::c_find(node.outputs, value) - node.outputs.begin();
    if (output != 1 && output != 2) return kNone;
    if (const ValueId given = node.input(*past + output - 1); given != kNone) {
      return BeforeCasts(graph, given);
    }
    // Without a past its keys and values have that in front already.
    return node.op != MultiHeadAttentionOp::kName ? PastOf(graph, node.inputs[output]) : kNone;
  }
  // A cast belongs to a cache of halves, whose rows are computed in float32.
  if (node.op == IdentityOp::kName || node.op == CastOp::kName) {
    return PastOf(graph, node.inputs[0]);
  }
  const int64_t axis = node.attributes.Int("axis", 0);
  const bool joined =
      node.op == ConcatOp::kName && node.inputs.size() == 2 && (axis == 2 || axis == -2);
  if (!joined && node.op != AppendRowsOp::kName) return kNone;
  return BeforeCasts(graph, node.inputs[0]);
}

// Sizes at which the outputs are looked at.
constexpr int64_t kProbedRows = 2, kProbedTokens = 3, kProbedPast = 5;

Binding BindingOf(const Graph& symbolic, const Decoder& decoder) {
  Binding binding;
  const auto bind = [&](const std::string& input, size_t place, int64_t size) {
    if (input.empty()) return;
    const std::vector<Dim>& dims = symbolic.value(symbolic.FindValue(input)).dims;
    const bool is_name = place < dims.size() && !dims[place].is_constant() &&
                         !absl::StrContains(dims[place].symbol, ' ');
    if (is_name) binding.axes.emplace(dims[place].symbol, size);
  };
  bind(decoder.ids, 0, kProbedRows);
  bind(decoder.ids, 1, kProbedTokens);
  bind(decoder.caches[0].input, 2, kProbedPast);
  bind(decoder.mask, 1, kProbedPast + kProbedTokens);
  const auto fill = [&](const std::string& input, int64_t value) {
    if (input.empty()) return;
    const Value& known = symbolic.value(symbolic.FindValue(input));
    binding.shape_inputs.emplace(input,
                                 NumbersAs(known.dtype, Shape(known.dims.size(), 1), {value}));
  };
  fill(decoder.length, kProbedPast + kProbedTokens);
  fill(decoder.cache_branch, 1);
  return binding;
}

// Scores have a row for each token, and caches for each old and new one.
absl::Status CheckShapes(const Graph& symbolic, const Decoder& decoder,
                         const std::vector<int>& presents) {
  ASSIGN_OR_RETURN(const Graph at, Specialize(symbolic, BindingOf(symbolic, decoder)));
  const Dim& batch = symbolic.value(symbolic.FindValue(decoder.ids)).dims[0];
  const int64_t rows = batch.is_constant() ? batch.size : kProbedRows;
  for (size_t i = 0; i < presents.size(); ++i) {
    const std::optional<Shape>& shape = at.value(at.outputs()[i]).shape;
    if (!shape.has_value()) return absl::InternalError("an output has no shape");
    Shape wanted = {rows, kProbedTokens, shape->empty() ? 0 : shape->back()};
    if (presents[i] != kNoCache) {
      const DecoderCache& cache = decoder.caches[presents[i]];
      wanted = {rows, cache.heads, kProbedPast + kProbedTokens, cache.size};
    }
    if (*shape == wanted) continue;
    return absl::UnimplementedError(absl::StrCat(
        "output ", i, " has the shape ", ShapeToString(*shape), " for ", rows, " rows of ",
        kProbedTokens, " tokens after ", kProbedPast, ", and not ", ShapeToString(wanted)));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<int>> FindPresents(const Graph& symbolic, const Decoder& decoder,
                                              const std::vector<std::string>& outputs) {
  std::vector<int> presents(outputs.size(), kNoCache);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i == decoder.logits) continue;
    const ValueId past = PastOf(symbolic, symbolic.outputs()[i]);
    for (size_t cache = 0; cache < decoder.caches.size() && past != kNone; ++cache) {
      if (symbolic.FindValue(decoder.caches[cache].input) == past) {
        presents[i] = static_cast<int>(cache);
      }
    }
    if (presents[i] == kNoCache) {
      return absl::UnimplementedError(
          absl::StrCat("output '", outputs[i], "' is not a cache with new rows appended"));
    }
  }
  for (size_t cache = 0; cache < decoder.caches.size(); ++cache) {
    if (absl::c_count(presents, static_cast<int>(cache)) == 1) continue;
    return absl::UnimplementedError(
        absl::StrCat("not one output continues cache '", decoder.caches[cache].input, "'"));
  }
  RETURN_IF_ERROR(CheckShapes(symbolic, decoder, presents));
  return presents;
}

}  // namespace reprise
