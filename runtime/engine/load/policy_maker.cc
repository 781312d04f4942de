#include "runtime/engine/load/policy_maker.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/saturating.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/load/certifier.h"
#include "runtime/engine/load/model_packer.h"
#include "runtime/graph/graph.h"
#include "runtime/ops/axis/axis_rules.h"
#include "runtime/ops/kit/op.h"
#include "runtime/passes/read/value_shapes.h"
#include "runtime/shapes/dim_expression.h"
#include "runtime/verify/size_choices.h"

namespace reprise {
namespace {

// Requests before the first look at buckets: enough that its result stays.
constexpr int64_t kFirstLookAfter = 600;

// Returns whether some input lies along the axis and another one together, as the mask of a decoder
// lies along cached and new positions: it is called with one new position most of the time.
bool JoinsAnother(const std::vector<ModelIo>& inputs, const ModelAxis& axis) {
  return absl::c_any_of(inputs, [&](const ModelIo& input) {
    return absl::c_any_of(input.dims, [&](const Dim& dim) {
      const std::vector<std::string> symbols = ExpressionSymbols(dim.symbol);
      return symbols.size() > 1 && absl::c_linear_search(symbols, axis.symbol);
    });
  });
}

// The bytes that one replay of a model of small rows may write: few compared with caches and
// arenas.
constexpr int64_t kBytesOfSmallRows = int64_t{8} << 20;
// And the limit on its rows times the bytes of the parameters: some ten milliseconds of products,
// which other requests may have to wait for.
constexpr int64_t kBytesTimesRows = int64_t{4} << 30;

// Returns the most rows of a replay where nothing is configured. A model whose only size is its
// rows may get thousands of them in a request, if they are small: one replay takes as many as are
// cheap to compute and to hold in memory.
int64_t MostRows(const ModelView& model) {
  constexpr int64_t kUsual = BucketPolicy::kDefaultMostRows;
  if (model.proof.axes.size() != 1 || !model.proof.axes[0].is_batch) return kUsual;
  constexpr int64_t kFew = 2, kMore = 2 * kFew;
  const std::string& batch = model.proof.axes[0].symbol;
  ValueShapes shapes(*model.program.graph);
  const auto few = shapes.BytesAt({{batch, kFew}});
  const auto more = shapes.BytesAt({{batch, kMore}});
  if (!few.ok() || !more.ok()) return kUsual;
  const int64_t a_row = std::max<int64_t>((more->all - few->all) / (kMore - kFew), 1);
  const ModelOptions& options = model.options;
  const int64_t parameter_bytes = model.program.owner->parameters().leaf_bytes();
  int64_t most = std::min({kBytesOfSmallRows / a_row, options.max_batch_tokens,
                           kBytesTimesRows / std::max<int64_t>(parameter_bytes, 1)});
  if (options.max_batch_size > 0) most = std::min(most, options.max_batch_size);
  return std::max(most, kUsual);
}

// Returns the buckets that the axis can have: rounded up to multiples of its step.
std::vector<int64_t> InSteps(std::vector<int64_t> sizes, int64_t step) {
  for (int64_t& size : sizes) size = RoundUpTo(size, step);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

// An axis whose smallest size is larger than this counts samples of a recording, hundreds of which
// make one position.
constexpr int64_t kMostPositions = 64;

bool CountsSamples(const ModelView& model, const ModelAxis& axis) {
  const auto others = absl::c_count_if(
      model.proof.axes, [](const ModelAxis& one) { return !one.is_batch && !one.counts_rows; });
  return others == 1 && !axis.extents.empty() && axis.whole_from > kMostPositions;
}

// Returns the samples that give, after all strides, as many positions as other axes have in their
// buckets, in the steps in which buckets open.
std::vector<int64_t> SamplesOfPositions(const ModelAxis& axis) {
  const auto coarser = [](const Extent& a, const Extent& b) { return a.stride < b.stride; };
  const Extent last = *absl::c_max_element(axis.extents, coarser);
  const auto samples_of = [&](int64_t positions) {
    const int64_t samples = positions * last.stride - last.offset;
    return RoundUpTo(std::max(samples, axis.whole_from), axis.step);
  };
  const std::vector<int64_t> positions = BucketPolicy::DefaultPositions();
  AxisBuckets buckets = {.sizes = {samples_of(positions.front())},
                         .opens_to = samples_of(positions.back()),
                         .step = axis.step};
  while (buckets.sizes.back() < buckets.opens_to) {
    buckets.sizes.push_back(buckets.After(buckets.sizes.back()));
  }
  return buckets.sizes;
}

// Limits on one row of a replay whose bucket opened by itself: on the operands of one node
// together, and on a table that sizes make.
constexpr int64_t kMostOpenedBytes = int64_t{1} << 30;
constexpr int64_t kMostOpenedTable = int64_t{32} << 20;

// Returns the bytes of the largest table of positions by positions that a proof makes of attention,
// which it reads as products and a softmax.
int64_t LargestScores(const Graph& graph, const ValueShapes::Shapes& shapes) {
  int64_t longest = 0;
  for (const NodeId id : graph.NodeIds()) {
    const OpRow* row = FindOp(graph.node(id).op);
    if (row == nullptr || row->axis != ops::AttentionAxis) continue;
    for (const ValueId input : graph.node(id).inputs) {
      if (input == kNone || !shapes[static_cast<size_t>(input)].has_value()) continue;
      const Shape& shape = *shapes[static_cast<size_t>(input)];
      for (size_t d = 0; d + 1 < shape.size(); ++d) longest = std::max(longest, shape[d]);
    }
  }
  return SaturatingProduct(SaturatingProduct(longest, longest), sizeof(float));
}

// Returns the multiples that buckets of the axis have.
int64_t StepOf(const ModelOptions& options, const ModelAxis& axis) {
  const auto range = options.ranges.find(axis.label);
  return range == options.ranges.end() ? axis.step : std::lcm(axis.step, range->second.multiple);
}

// Returns whether nothing says where the buckets of the axis end.
bool MayOpen(const ModelOptions& options, const ModelAxis& axis) {
  const auto range = options.ranges.find(axis.label);
  const bool ends = range != options.ranges.end() && range->second.most != kLargestSize;
  return !axis.is_batch && !ends && !options.buckets.contains(axis.label) &&
         options.overflow == BucketPolicy::Overflow::kExact;
}

// Returns whether padding may go as far as boundaries of an earlier run went.
bool Covers(const AdvisorOptions& advisor, const LearntBuckets& learnt) {
  for (size_t i = 0; i < std::min(advisor.axes.size(), learnt.boundaries.size()); ++i) {
    const std::vector<int64_t>& now = advisor.axes[i].start;
    const std::vector<int64_t>& then = learnt.boundaries[i];
    if (now.empty() || then.empty() || then.back() <= now.back()) continue;
    if (!advisor.takes || !advisor.takes(i, then.back())) return false;
  }
  return true;
}

}  // namespace

std::vector<int64_t> PolicyMaker::BucketSizes(const ModelView& model, const ModelAxis& axis) {
  std::vector<int64_t> sizes = UnlimitedSizes(model, axis);
  const auto range = model.options.ranges.find(axis.label);
  // A range of rows is of one request's, and requests share replays.
  if (range == model.options.ranges.end() || axis.is_batch) return sizes;
  return InSteps(range->second.Cut(sizes), axis.step);
}

std::vector<int64_t> PolicyMaker::UnlimitedSizes(const ModelView& model, const ModelAxis& axis) {
  const auto configured = model.options.buckets.find(axis.label);
  if (configured != model.options.buckets.end()) return InSteps(configured->second, axis.step);
  if (axis.is_batch) return BucketPolicy::DefaultRows(MostRows(model));
  if (axis.counts_rows) return BucketPolicy::DefaultRows();
  if (CountsSamples(model, axis)) return SamplesOfPositions(axis);
  std::vector<int64_t> positions = BucketPolicy::DefaultPositions();
  if (JoinsAnother(model.signature.inputs, axis)) positions.insert(positions.begin(), 1);
  return InSteps(std::move(positions), axis.step);
}

std::vector<std::vector<int64_t>> PolicyMaker::BucketsByAxis(const ModelView& model) {
  std::vector<std::vector<int64_t>> buckets;
  for (const ModelAxis& axis : model.proof.axes) buckets.push_back(BucketSizes(model, axis));
  return buckets;
}

int64_t PolicyMaker::FarthestSize(const ModelView& model, size_t position) {
  const std::vector<ModelAxis>& axes = model.proof.axes;
  const ModelAxis& axis = axes[position];
  if (!MayOpen(model.options, axis)) return 0;
  const Graph& graph = *model.program.graph;
  // The others at their largest sizes: rows of a replay may have all of them.
  Binding base = SmallBinding(axes, position, axis.Fitting(1));
  const auto largest = [&](size_t of) {
    const std::vector<int64_t> sizes = BucketSizes(model, axes[of]);
    ValueShapes shapes(graph, base);
    const auto taken = std::find_if(sizes.rbegin(), sizes.rend(), [&](int64_t size) {
      return shapes.Takes({{axes[of].symbol, size}}).ok();
    });
    return taken == sizes.rend() ? 0 : *taken;
  };
  for (size_t i = 0; i < axes.size(); ++i) {
    if (i == position || axes[i].is_batch) continue;
    base.axes[axes[i].symbol] = std::max(largest(i), base.axes[axes[i].symbol]);
  }
  ValueShapes shapes(graph, base);
  const int64_t most_bytes = model.options.max_arena_bytes;
  const auto takes = [&](int64_t size) {
    const absl::StatusOr<ValueShapes::Bytes> bytes = shapes.BytesAt({{axis.symbol, size}});
    if (!bytes.ok() || bytes->reads_beyond || bytes->largest_node > kMostOpenedBytes ||
        bytes->largest_table > kMostOpenedTable || (most_bytes > 0 && bytes->all > most_bytes)) {
      return false;
    }
    const absl::StatusOr<ValueShapes::Shapes> values = shapes.At({{axis.symbol, size}});
    return values.ok() && LargestScores(graph, *values) <= kMostOpenedTable;
  };
  const int64_t step = StepOf(model.options, axis);
  const int64_t bucket = largest(position);
  if (bucket == 0 || !takes(bucket)) return 0;
  // In steps from `low`, which it takes, to below `high`, which it does not.
  int64_t low = bucket / step, high = kLargestRequest / step + 1;
  for (int64_t next = 2 * low; next < high; next *= 2) {
    if (takes(next * step)) {
      low = next;
    } else {
      high = next;
    }
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (takes(middle * step) ? low : high) = middle;
  }
  return low * step > bucket ? low * step : 0;
}

std::string PolicyMaker::OpeningText(const ModelOptions& options, const ModelAxis& axis) {
  if (!MayOpen(options, axis)) return "closed";
  return absl::StrCat("in steps of ", StepOf(options, axis), " within ", options.max_arena_bytes);
}

absl::Status PolicyMaker::SetPolicy(ModelDraft& model) const {
  // Every input of a replay must be cut from requests by rows, or the same for all of them.
  if (model.signature->batch_axis >= 0) {
    ModelAxis& batch = model.proof->axes[model.signature->batch_axis];
    for (int position : model.signature->recipe_inputs) {
      const std::vector<Dim>& dims = model.signature->inputs[position].dims;
      if (batch.certificate.certified && (dims.empty() || dims[0].symbol != batch.symbol)) {
        Refuse(batch, absl::StrCat("input '", model.signature->inputs[position].name,
                                   "' belongs to a whole request, not to its rows"));
      }
    }
  }
  std::string batch_label;
  std::vector<std::string> others;
  for (const ModelAxis& axis : model.proof->axes) {
    if (!axis.certificate.certified) continue;
    model.proof->certified.insert(axis.label);
    if (axis.is_batch) {
      batch_label = axis.label;
    } else {
      others.push_back(axis.label);
    }
  }
  BucketPolicy policy = BucketPolicy::Default(batch_label, others);
  for (AxisBuckets& buckets : policy.axes) {
    const auto axis = absl::c_find_if(
        model.proof->axes, [&](const ModelAxis& one) { return one.label == buckets.axis; });
    buckets.sizes = BucketSizes(model.view(), *axis);
    buckets.step = StepOf(model.options, *axis);
    buckets.opens_to = axis->opens_to;
  }
  policy.max_batch_tokens = model.options.max_batch_tokens;
  policy.overflow = model.options.overflow;
  policy.measure = model.signature->measure;
  for (const ModelAxis& axis : model.proof->axes) policy.measured.push_back(axis.label);
  RETURN_IF_ERROR(policy.Validate());
  LimitBuckets(model, policy);
  for (const AxisBuckets& open : policy.axes) {
    if (open.opens_to == 0) continue;
    AxisSizes row;
    for (const ModelAxis& axis : model.proof->axes) {
      row[axis.label] = axis.is_batch ? 1 : BucketSizes(model.view(), axis).back();
    }
    for (const AxisBuckets& other : policy.axes) row[other.axis] = other.sizes.back();
    row[open.axis] = open.opens_to;
    if (!policy.batch_axis.empty()) row[policy.batch_axis] = 1;
    policy.max_opened_elements = std::max(policy.max_opened_elements, policy.Elements(row));
  }
  // By now an axis may have lost its certificate.
  if (model.proof->packing != nullptr && model.proof->packing_reason.empty() &&
      model.proof->certified.size() != model.proof->axes.size()) {
    ModelPacker(context_).Refuse(model, "an axis has no buckets");
  }
  MakeLearner(model, std::move(policy));
  return absl::OkStatus();
}

Binding PolicyMaker::SmallSizes(const Graph& graph, const std::vector<ModelAxis>& axes) {
  std::optional<Binding> first;
  for (const int64_t length : kFitLengths) {
    Binding binding;
    for (const ModelAxis& axis : axes) {
      binding.axes[axis.symbol] = axis.is_batch ? kFitBatch : axis.Fitting(length);
    }
    if (ValueShapes(graph).Takes(binding.axes).ok()) return binding;
    if (!first.has_value()) first = std::move(binding);
  }
  return *first;
}

absl::Status PolicyMaker::TakesBucket(const Graph& graph, const std::vector<ModelAxis>& axes,
                                      const std::string& label, int64_t size) {
  Binding binding = SmallSizes(graph, axes);
  for (const ModelAxis& axis : axes) {
    if (axis.label == label) binding.axes[axis.symbol] = size;
  }
  return ValueShapes(graph).Takes(binding.axes);
}

std::function<bool(size_t, int64_t)> PolicyMaker::TakesLarger(
    const ModelDraft& model, std::vector<std::string> labels) const {
  // Called while the model serves: its values are there as long as it is, and its learner with
  // them.
  return
      [options = model.options, signature = std::shared_ptr<const ModelSignature>(model.signature),
       program = std::shared_ptr<const ModelProgram>(model.program),
       proof = std::shared_ptr<const ModelProof>(model.proof),
       labels = std::move(labels)](size_t axis, int64_t size) {
        const std::string& label = labels[axis];
        const auto position =
            absl::c_find_if(proof->axes, [&](const ModelAxis& one) { return one.label == label; });
        if (size <= position->opens_to) return true;
        if (!TakesBucket(*program->graph, proof->axes, label, size).ok()) return false;
        // Certificates end at the largest bucket that the model began with.
        return Certifier::Extend({options, *signature, *program, *proof},
                                 position - proof->axes.begin(), size)
            .ok();
      };
}

void PolicyMaker::MakeLearner(ModelDraft& model, BucketPolicy policy) const {
  const ModelOptions& options = model.options;
  // Tokens of packed requests fit every bucket alike.
  const BucketMode mode = model.proof->packing != nullptr ? BucketMode::kOff : options.bucket_mode;
  BucketLearner::Options learner = {.mode = mode};
  learner.advisor.payback_ns = options.bucket_payback_ns;
  learner.advisor.first_after = kFirstLookAfter;
  for (const AxisBuckets& buckets : policy.axes) {
    if (buckets.axis == policy.batch_axis) continue;
    AdvisorAxis axis = {.label = buckets.axis, .start = buckets.sizes};
    axis.step = buckets.step;
    const auto rule = options.learnt_buckets.find(axis.label);
    if (rule != options.learnt_buckets.end()) {
      axis.rule = rule->second;
    } else if (options.buckets.contains(axis.label)) {
      axis.rule.kind = BoundaryRule::Kind::kExplicit;
    }
    learner.advisor.axes.push_back(std::move(axis));
  }
  std::vector<std::string> axes;
  std::vector<size_t> positions;
  for (const AdvisorAxis& axis : learner.advisor.axes) {
    axes.push_back(axis.label);
    const auto named = [&](const ModelAxis& one) { return one.label == axis.label; };
    positions.push_back(absl::c_find_if(model.proof->axes, named) - model.proof->axes.begin());
  }
  learner.advisor.measure = model.signature->measure.Of(positions);
  if (policy.overflow == BucketPolicy::Overflow::kExact) {
    learner.advisor.takes = TakesLarger(model, axes);
  }
  learner.first = std::move(policy);
  if (!axes.empty() && axes == model.traffic.usage.axes &&
      Covers(learner.advisor, model.traffic.usage.learnt)) {
    learner.learnt = &model.traffic.usage.learnt;
  }
  model.traffic.learner = std::make_unique<BucketLearner>(std::move(learner));
}

// Drops such buckets: a model with 256 positions takes no bucket of 512.
void PolicyMaker::LimitBuckets(ModelDraft& model, BucketPolicy& policy) const {
  for (ModelAxis& axis : model.proof->axes) {
    if (!axis.certificate.certified) continue;
    absl::Status refusal;
    const std::vector<int64_t> dropped = policy.DropRefused(axis.label, [&](int64_t size) {
      const absl::Status status =
          TakesBucket(*model.program->graph, model.proof->axes, axis.label, size);
      if (!status.ok()) refusal = status;
      return status.ok();
    });
    if (dropped.empty()) continue;
    const std::string text =
        absl::StrCat("the model does not take ", absl::StrJoin(dropped, ", "), " along axis ",
                     axis.label, ": ", std::string(refusal.message()));
    context_.log(absl::StrCat("model ", model.id().name, ": buckets dropped, ", text));
    if (policy.Largest(axis.label).has_value()) continue;
    Refuse(axis, text);
    model.proof->certified.erase(axis.label);
    if (axis.is_batch) policy.batch_axis.clear();
  }
}

}  // namespace reprise
