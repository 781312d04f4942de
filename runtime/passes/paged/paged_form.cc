#include "runtime/passes/paged/paged_form.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <optional>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/parallel_for.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/text.h"
#include "runtime/ops/attention/paged.h"
#include "runtime/ops/attention/paged_op.h"
#include "runtime/ops/attention/segment_op.h"
#include "runtime/ops/elementwise/select_op.h"
#include "runtime/ops/kit/onnx_types.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/concat_op.h"
#include "runtime/ops/movement/expand_op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/movement/reshape_op.h"
#include "runtime/ops/movement/shape_op.h"
#include "runtime/passes/kit/pass.h"
#include "runtime/passes/kit/rewrite.h"
#include "runtime/passes/pack/pack_tokens.h"
#include "runtime/passes/paged/attended.h"
#include "runtime/passes/paged/causality.h"
#include "runtime/passes/paged/decoder_inputs.h"
#include "runtime/passes/paged/heads_apart.h"
#include "runtime/passes/paged/paged_passes.h"
#include "runtime/passes/paged/place_values.h"
#include "runtime/passes/paged/small_tables.h"
#include "runtime/passes/paged/whole_tables.h"
#include "runtime/passes/specialize/specialize.h"

namespace reprise {
namespace {

// Lengths of the past at which the graph is compared; kept in the result, which forgets them.
constexpr int64_t kComparedPast = 9, kOtherPast = 22;
// The same with the lengths of an encoder's result.
constexpr int64_t kCross = 13, kOtherCross = 30;
// The longest past at which a decoder with an encoder is measured: the bias that it adds by
// distance is a table of all pairs of positions in many exporters' graphs.
constexpr int64_t kLongestMeasuredBesideEncoder = 1023;
// Sizes at which it is looked at. No dim of a model has such a number of tokens by chance.
constexpr int64_t kPackedTokens = 6, kSegments = 7;
// Lengths of the past at which masks are measured, besides the longest.
constexpr int64_t kMeasured[] = {3, 40};

Binding BindingAt(int64_t tokens) {
  return {.axes = {{kTokensAxis, tokens}, {kSegmentsAxis, kSegments}}};
}

int64_t CrossAt(int64_t past) { return past == kOtherPast ? kOtherCross : kCross; }

class FormMaker {
 public:
  FormMaker(const Graph& symbolic, Decoder decoder, const PagedOptions& options)
      : symbolic_(symbolic), decoder_(std::move(decoder)), options_(options) {}

  absl::StatusOr<PagedForm> Make() {
    RETURN_IF_ERROR(TracePast(kComparedPast, traces_.a));
    RETURN_IF_ERROR(TracePast(kOtherPast, traces_.b));
    PagedForm form;
    form.decoder = decoder_;
    ASSIGN_OR_RETURN(const int64_t tables, Positions());
    form.context = options_.context > 0          ? options_.context
                   : tables > 0                  ? tables
                   : options_.stated_context > 0 ? options_.stated_context
                                                 : PagedOptions::kContext;
    if (tables > 0 && form.context > tables) {
      return absl::UnimplementedError(absl::StrCat("a context of ", form.context,
                                                   " is asked for, and its tables of positions "
                                                   "have ",
                                                   tables));
    }
    RETURN_IF_ERROR(MeasureMasks(form));
    if (HasCross()) form.cross_context = options_.cross_context;
    PlaceCaches(form);
    ASSIGN_OR_RETURN(form.graph, Build(kComparedPast, &form));
    RETURN_IF_ERROR(Check(form));
    RETURN_IF_ERROR(RunLoadPasses(*form.graph));
    return form;
  }

 private:
  static ValueId Add(Graph& graph, absl::string_view op, std::vector<ValueId> inputs,
                     Attributes attributes = {}) {
    const NodeId node = graph.AddNode(op, std::move(inputs), std::move(attributes));
    return graph.node(node).outputs[0];
  }

  static Tensor Whole(DType dtype, const Shape& shape, int64_t value) {
    return NumbersAs(dtype, shape, std::vector<int64_t>(NumElements(shape), value));
  }

  // Returns the model with each token as a row after `past` cached ones. `form`: the pages, as far
  // as known; null: nothing yet. Values that depend on the past are computed from positions once
  // that is known.
  absl::StatusOr<Graph> Build(int64_t past, const PagedForm* form) const {
    ASSIGN_OR_RETURN(Graph graph, BuildAsIs(past, form));
    ComputeFromPositions(graph, graph.FindValue(kPositionsInput), traces_);
    if (!graph.Compact()) return absl::InternalError("the paged form has a cycle");
    return graph;
  }

  absl::StatusOr<Graph> BuildAsIs(int64_t past, const PagedForm* form) const {
    Graph graph = symbolic_;
    const ValueId ids = graph.FindValue(decoder_.ids);
    graph.value(ids).dims = {{.symbol = kTokensAxis}, {.size = 1}};
    // In front of the others, which the packed frame writes for priming.
    graph.AddInput(kTablesInput, DType::kInt64, {{.symbol = kTokensAxis}});
    if (HasCross()) {
      graph.AddInput(kCrossTablesInput, DType::kInt64, {{.symbol = kTokensAxis}});
      graph.AddInput(kCrossLengthsInput, DType::kInt64, {{.symbol = kTokensAxis}});
    }
    const ValueId positions =
        graph.AddInput(kPositionsInput, DType::kInt64, {{.symbol = kTokensAxis}});
    const ValueId segments = graph.AddInput(kSegmentsInput, DType::kInt32,
                                            {{.symbol = absl::StrCat(kSegmentsAxis, " + 1")}});
    const auto ints = [&](const std::vector<int64_t>& values) {
      return graph.AddConstant("", Tensor::Int64s(values));
    };
    const ValueId tokens = Add(graph, ShapeOp::kName, {positions});
    if (const std::string& name = decoder_.positions; !name.empty()) {
      ValueId rows = Add(graph, ReshapeOp::kName, {positions, ints({-1, 1})});
      if (graph.value(graph.FindValue(name)).dtype == DType::kInt32) {
        rows = Add(graph, CastOp::kName, {rows}, {{"to", ops::OnnxNumber(DType::kInt32)}});
      }
      TakeInput(graph, name, rows);
    }
    for (const auto& [name, keys] :
         {std::pair{decoder_.mask, past + 1}, std::pair{decoder_.states_mask, CrossAt(past)}}) {
      if (name.empty()) continue;
      const DType dtype = graph.value(graph.FindValue(name)).dtype;
      const ValueId one = graph.AddConstant("", Whole(dtype, {1, 1}, 1));
      const ValueId shape =
          Add(graph, ConcatOp::kName, {tokens, ints({keys})}, {{"axis", int64_t{0}}});
      TakeInput(graph, name, Add(graph, ExpandOp::kName, {one, shape}));
    }
    if (const std::string& name = decoder_.place; !name.empty()) {
      const DType dtype = graph.value(graph.FindValue(name)).dtype;
      TakeInput(graph, name, graph.AddConstant("", Whole(dtype, {1}, past)));
    }
    if (const std::string& name = decoder_.states; !name.empty()) {
      // Read for its shape alone, or by a branch that is not taken: its numbers are not there.
      const Dim& width = graph.value(graph.FindValue(name)).dims[2];
      AddRows(graph, name,
              {{"cache", int64_t{-1}},
               {"heads", int64_t{1}},
               {"size", width.is_constant() ? width.size : 1},
               {"past", CrossAt(past)}},
              [&](ValueId rows) {
                return Add(graph, SqueezeOp::kName, {rows, ints({1})});
              });
    }
    if (const std::string& name = decoder_.last_keys; !name.empty()) {
      const Value& input = graph.value(graph.FindValue(name));
      const ValueId last = graph.AddConstant("", Whole(input.dtype, {1}, past));
      TakeInput(graph, name, Add(graph, ExpandOp::kName, {last, tokens}));
    }
    if (const std::string& name = decoder_.length; !name.empty()) {
      const Value& input = graph.value(graph.FindValue(name));
      const Tensor keys = Whole(input.dtype, Shape(input.dims.size(), 1), past + 1);
      TakeInput(graph, name, graph.AddConstant("", keys));
    }
    if (const std::string& name = decoder_.cache_branch; !name.empty()) {
      const Shape shape(graph.value(graph.FindValue(name)).dims.size(), 1);
      TakeInput(graph, name, graph.AddConstant("", Whole(DType::kBool, shape, 1)));
    }
    for (size_t i = 0; i < decoder_.caches.size(); ++i) {
      const DecoderCache& cache = decoder_.caches[i];
      Attributes attributes = {{"cache", static_cast<int64_t>(i)},
                               {"heads", cache.heads},
                               {"size", cache.size},
                               {"past", cache.cross ? CrossAt(past) : past}};
      if (cache.cross) attributes.Set("cross", int64_t{1});
      if (form != nullptr) Describe(*form, i, attributes);
      AddRows(graph, cache.input, std::move(attributes), [](ValueId rows) { return rows; });
    }
    const ValueId logits = graph.outputs()[decoder_.logits];
    graph.ClearOutputs();
    const ValueId wanted = Add(graph, SegmentReduceOp::kName, {logits, segments},
                               {{"reduction", std::string("last")}, {"often_fewer", int64_t{1}}});
    graph.AddOutput(
        Add(graph, CastOp::kName, {wanted}, {{"to", ops::OnnxNumber(DType::kFloat32)}}));
    if (!graph.Compact()) return absl::InternalError("the paged form has a cycle");
    return graph;
  }

  // Calls `work` for each of [0, count).
  void SideBySide(size_t count, const std::function<void(size_t)>& work) const {
    std::atomic<size_t> next{0};
    ParallelFor(std::min(options_.threads, static_cast<int>(count)), [&](int) {
      for (size_t i; (i = next++) < count;) work(i);
    });
  }

  bool HasCross() const {
    return absl::c_any_of(decoder_.caches, [](const DecoderCache& one) { return one.cross; });
  }

  // Replaces input `name`, shaped by `shaped`, by rows that stand for the rows of a cache.
  template <class Shaped>
  static void AddRows(Graph& graph, const std::string& name, Attributes attributes,
                      const Shaped& shaped) {
    const ValueId positions = graph.FindValue(kPositionsInput);
    const DType dtype = graph.value(graph.FindValue(name)).dtype;
    const ValueId rows = shaped(AddCachedRows(graph, positions, std::move(attributes)));
    TakeInput(graph, name, CastRows(graph, rows, dtype));
  }

  void Describe(const PagedForm& form, size_t cache, Attributes& attributes) const {
    attributes.Set("offset", form.caches[cache].offset);
    const bool cross = decoder_.caches[cache].cross;
    attributes.Set("context", cross ? form.cross_context : form.context);
    // An encoder's result is read once a token and written once: it stays float32.
    if (!cross && options_.cache_dtype != ops::CacheDType::kFloat32) {
      attributes.Set("cache_dtype", static_cast<int64_t>(options_.cache_dtype));
      attributes.Set("scales", form.caches[cache].scales);
    }
    for (const Attended& attended : attended_) {
      if (attended.key != static_cast<int64_t>(cache) || attended.cross) continue;
      if (attended.facts.visible < longest_keys_) attributes.Set("window", attended.facts.visible);
      if (!attended.facts.slopes.empty()) attributes.Set("slopes", attended.facts.slopes);
      if (!attended.facts.biases.empty()) {
        attributes.Set("biases", attended.facts.biases);
        attributes.Set("bias_span", attended.facts.span);
      }
    }
  }

  // Returns the positions that the smallest table of them has; 0: there is none.
  absl::StatusOr<int64_t> Positions() const {
    ASSIGN_OR_RETURN(Graph graph, BuildAsIs(kComparedPast, nullptr));
    int64_t smallest = PositionsOfCuts(graph, PastValues(graph, traces_.a, traces_.b));
    const ValueId positions = graph.FindValue(kPositionsInput);
    const int64_t looked_up = ComputeFromPositions(graph, positions, traces_);
    for (const int64_t rows : {looked_up, PositionsOfTables(graph, positions)}) {
      smallest = smallest == 0 || rows == 0 ? smallest + rows : std::min(smallest, rows);
    }
    return smallest;
  }

  // Traces tables that grow with the past at their longest, unless other values are too large
  // there to be computed.
  absl::Status TraceLongest(int64_t past) {
    PastTrace traced;
    absl::Status status = TracePast(past, traced);
    if (absl::IsResourceExhausted(status)) return absl::OkStatus();
    if (status.ok()) traces_.longest = std::move(traced);
    return status;
  }

  absl::Status TracePast(int64_t past, PastTrace& traced) const {
    ASSIGN_OR_RETURN(const Graph graph, BuildAsIs(past, nullptr));
    traced.past = past;
    traced.rows = kPackedTokens;
    return Specialize(graph, BindingAt(kPackedTokens), {.trace = &traced.trace}).status();
  }

  // Returns the graph with `past`, fused; positions are constants, so that masks are.
  absl::StatusOr<Graph> Fused(int64_t past) const {
    constexpr int64_t kRows = 2;
    ASSIGN_OR_RETURN(const Graph graph, Build(past, nullptr));
    Binding binding = BindingAt(kRows);
    binding.shape_inputs.emplace(kPositionsInput,
                                 Tensor::Int64s(std::vector<int64_t>(kRows, past)));
    const SpecializeOptions all = {.max_value_bytes = std::numeric_limits<int64_t>::max() / 16};
    ASSIGN_OR_RETURN(Graph fused, Specialize(graph, binding, all));
    if (TakeSmallTables(fused, options_.value_of)) {
      ASSIGN_OR_RETURN(fused, Specialize(fused, {}, all));
    }
    RETURN_IF_ERROR(RunCapturePasses(fused, {.verify = false}));
    return fused;
  }

  absl::StatusOr<std::vector<Attended>> AttendedAt(int64_t past) const {
    ASSIGN_OR_RETURN(const Graph graph, Fused(past));
    return AttendedIn(graph, decoder_, past + 1, CrossAt(past));
  }

  // Measures the masks up to the model's context. Where nobody asked for it and they follow one
  // rule up to a shorter one alone, that is the context.
  absl::Status MeasureMasks(PagedForm& form) {
    absl::Status status;
    for (const int64_t most :
         {form.context, int64_t{1} << 18, int64_t{1} << 15, int64_t{PagedOptions::kContext}}) {
      if (!status.ok() && (most >= form.context || options_.context > 0 || !fails_at_longest_)) {
        continue;
      }
      form.context = most;
      attended_.clear();
      traces_.longest.reset();
      fails_at_longest_ = true;
      status = TraceLongest(most - 1);
      if (status.ok()) status = MeasureMasksUpTo(form);
      if (status.ok()) break;
    }
    return status;
  }

  // Masks must follow one rule at all lengths.
  absl::Status MeasureMasksUpTo(const PagedForm& form) {
    const int64_t longest_past =
        HasCross() ? std::min(form.context - 1, kLongestMeasuredBesideEncoder) : form.context - 1;
    longest_keys_ = longest_past + 1;
    std::vector<int64_t> lengths = {longest_past};
    for (const int64_t past : kMeasured) {
      if (past < longest_past) lengths.push_back(past);
    }
    std::vector<absl::StatusOr<std::vector<Attended>>> seen(lengths.size(),
                                                            std::vector<Attended>());
    SideBySide(lengths.size(), [&](size_t i) { seen[i] = AttendedAt(lengths[i]); });
    for (size_t length = 1; length < seen.size(); ++length) {
      fails_at_longest_ = fails_at_longest_ && seen[length].ok();
    }
    for (size_t length = 0; length < lengths.size(); ++length) {
      const int64_t past = lengths[length];
      ASSIGN_OR_RETURN(const std::vector<Attended> found, std::move(seen[length]));
      if (attended_.empty()) attended_ = found;
      if (found.size() != attended_.size()) {
        return absl::UnimplementedError("its attention depends on the length of the past");
      }
      for (size_t i = 0; i < found.size(); ++i) {
        const MaskFacts &longest = attended_[i].facts, &here = found[i].facts;
        if (attended_[i].cross) continue;  // All places, at all lengths.
        if (here.visible != std::min(past + 1, longest.visible) || !SameRule(longest, here)) {
          return absl::UnimplementedError(absl::StrCat(
              "cache '", decoder_.caches[found[i].key].input,
              "': the values that the mask hides or adds do not follow one rule at all lengths"));
        }
      }
    }
    return absl::OkStatus();
  }

  int64_t OwnAttentions() const {
    return absl::c_count_if(attended_, [](const Attended& one) { return !one.cross; });
  }

  void PlaceCaches(PagedForm& form) const {
    for (const DecoderCache& cache : decoder_.caches) {
      form.caches.push_back(
          {.input = cache.input, .heads = cache.heads, .size = cache.size, .cross = cache.cross});
    }
    for (const Attended& attended : attended_) form.caches[attended.key].is_key = true;
    const auto heads_of = [&](const PagedCache& cache) {
      return (cache.heads + options_.ranks - 1) / options_.ranks;
    };
    int64_t elements = 0, cross_elements = 0;
    for (PagedCache& cache : form.caches) {
      int64_t& placed = cache.cross ? cross_elements : elements;
      cache.offset = placed;
      const int64_t width = cache.is_key ? cache.size : ops::PagedValueStride(cache.size);
      placed += heads_of(cache) * width * ops::kPagePositions;
    }
    form.cross_page_bytes = cross_elements * ops::CacheCellBytes(ops::CacheDType::kFloat32);
    form.page_bytes = elements * ops::CacheCellBytes(options_.cache_dtype);
    if (options_.cache_dtype != ops::CacheDType::kInt8) return;
    constexpr int64_t kLine = 64;
    form.page_bytes = (form.page_bytes + kLine - 1) / kLine * kLine;
    constexpr int64_t kFloat = sizeof(float);
    for (PagedCache& cache : form.caches) {
      if (cache.cross) continue;
      cache.scales = form.page_bytes / kFloat;
      form.page_bytes += heads_of(cache) * ops::kPagePositions * kFloat;
    }
  }

  absl::StatusOr<std::string> TextAt(int64_t past, const PagedForm& form,
                                     int64_t& vocabulary) const {
    ASSIGN_OR_RETURN(Graph graph, Build(past, &form));
    ASSIGN_OR_RETURN(Graph at, Specialize(graph, BindingAt(kPackedTokens)));
    RETURN_IF_ERROR(RunCapturePasses(at, {.verify = false}));
    for (const NodeId id : at.NodeIds()) {
      const Node& node = at.node(id);
      if (node.op != CachedRowsOp::kName) continue;
      const int64_t cache = node.attributes.Int("cache", 0);
      const Value& value = at.value(node.outputs[0]);
      const std::string reader =
          value.users.empty() ? "no node" : NodeLabel(at.node(value.users[0]));
      if (cache < 0) {
        return absl::UnimplementedError(
            absl::StrCat("input '", decoder_.states, "' is read by ", reader,
                         ", and the caches of the encoder's result should hold all of it"));
      }
      return absl::UnimplementedError(absl::StrCat("cache '", decoder_.caches[cache].input,
                                                   "' is read by ", reader,
                                                   ", which is not part of a known attention"));
    }
    const Shape& logits = *at.value(at.outputs()[0]).shape;
    if (logits.size() != 3 || logits[1] != 1) {
      return absl::UnimplementedError(absl::StrCat(
          "its scores have the shape ", ShapeToString(logits), ", not one row for each token"));
    }
    vocabulary = logits[2];
    return Print(at);
  }

  absl::Status Check(PagedForm& form) {
    if (attended_.empty()) {
      return absl::UnimplementedError("no attention that reads its caches is known");
    }
    for (size_t i = 0; i < decoder_.caches.size(); ++i) {
      const auto reads = [&](const Attended& one) {
        return one.key == static_cast<int64_t>(i) || one.value == static_cast<int64_t>(i);
      };
      if (absl::c_none_of(attended_, reads)) {
        return absl::UnimplementedError(absl::StrCat("cache '", decoder_.caches[i].input,
                                                     "' is read by no attention that is known"));
      }
    }
    absl::StatusOr<std::string> texts[2] = {"", ""};
    int64_t vocabularies[2] = {};
    absl::Status causal;
    SideBySide(3, [&](size_t i) {
      if (i == 2) {
        causal = CheckCausal(symbolic_, decoder_, options_.value_of, OwnAttentions());
      } else {
        texts[i] = TextAt(i == 0 ? kComparedPast : kOtherPast, form, vocabularies[i]);
      }
    });
    ASSIGN_OR_RETURN(const std::string here, std::move(texts[0]));
    ASSIGN_OR_RETURN(const std::string there, std::move(texts[1]));
    form.vocabulary = vocabularies[0];
    if (here == there) return causal;
    const auto differs = std::mismatch(here.begin(), here.end(), there.begin(), there.end());
    const size_t at = differs.first - here.begin();
    const size_t begin = here.rfind('\n', at) + 1;
    return absl::UnimplementedError(
        absl::StrCat("its result depends on the length of the past: ",
                     here.substr(begin, std::min<size_t>(here.find('\n', at) - begin, 200))));
  }

  const Graph& symbolic_;
  const Decoder decoder_;
  const PagedOptions options_;
  PastTraces traces_;
  std::vector<Attended> attended_;  // as seen at the longest past that was measured
  int64_t longest_keys_ = 0;        // the keys there
  bool fails_at_longest_ = false;   // and at no shorter past
};

}  // namespace

absl::StatusOr<PagedForm> MakePagedForm(const Graph& symbolic,
                                        const std::vector<std::string>& outputs,
                                        const PagedOptions& options) {
  ASSIGN_OR_RETURN(const std::optional<Graph> apart, WithHeadsApart(symbolic));
  const Graph& graph = apart.has_value() ? *apart : symbolic;
  ASSIGN_OR_RETURN(Decoder decoder, FindDecoder(graph, outputs));
  return FormMaker(graph, std::move(decoder), options).Make();
}

}  // namespace reprise
