#include "server/repository/warmup_sizes.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/batch/batch_plan.h"
#include "runtime/shapes/dim_expression.h"
#include "server/repository/warmup.h"

namespace reprise {
namespace {

// Sizes that requests had along axes without buckets, for which a warm-up captures.
constexpr size_t kMostSeenSizes = 16;

std::string AxesText(const Model& model) {
  return absl::StrJoin(model.axes(), ", ", [](std::string* out, const ModelAxis& axis) {
    absl::StrAppend(out, axis.label);
  });
}

// Returns the sizes under the labels of their axes, which may also go by the names that the
// file gives them.
absl::StatusOr<AxisSizes> ByLabel(const Model& model, const AxisSizes& sizes) {
  const auto is_label = [&model](const std::string& name) {
    return std::any_of(model.axes().begin(), model.axes().end(),
                       [&name](const ModelAxis& axis) { return axis.label == name; });
  };
  if (model.has_shape_inputs()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model '", model.id().name,
                     "': the value of an input decides its shapes, so that sizes name no recipe"));
  }
  AxisSizes labelled;
  for (const auto& [name, size] : sizes) {
    const std::string& label = is_label(name) ? name : model.LabelOf(name);
    if (!is_label(label)) {
      return absl::InvalidArgumentError(absl::StrCat("model '", model.id().name, "' has no axis '",
                                                     name, "' to warm up, only ", AxesText(model)));
    }
    if (!labelled.emplace(label, size).second) {
      return absl::InvalidArgumentError(absl::StrCat("model '", model.id().name, "': '", name,
                                                     "' is another name of axis ", label,
                                                     ", whose size to warm up is given twice"));
    }
  }
  for (const ModelAxis& axis : model.axes()) {
    const auto size = labelled.find(axis.label);
    if (size == labelled.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("model '", model.id().name, "': the sizes to warm up name no axis ",
                       axis.label, ", only ", absl::StrJoin(sizes, ",", absl::PairFormatter("="))));
    }
    if (const auto range = model.options().ranges.find(axis.label);
        range != model.options().ranges.end() && !range->second.Allows(size->second)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "model '", model.id().name, "': ", size->second, " is to be warmed up along axis ",
          axis.label, ", whose range (reprise.range.", axis.label, ") is ", range->second.Text()));
    }
    if (size->second < axis.smallest) {
      return absl::InvalidArgumentError(
          absl::StrCat("model '", model.id().name, "' takes sizes of ", axis.smallest,
                       " and more along axis ", axis.label, ", not ", size->second));
    }
  }
  return labelled;
}

// Small values of a fixed seed: 0 and 1 in integers, so that every index is in range.
void Fill(DType dtype, int64_t elements, std::mt19937_64& random, std::string& bytes) {
  bytes.assign(static_cast<size_t>(elements) * DTypeSize(dtype), '\0');
  if (dtype == DType::kFloat32) {
    auto* values = reinterpret_cast<float*>(bytes.data());
    for (int64_t i = 0; i < elements; ++i) {
      values[i] = static_cast<float>(static_cast<int64_t>(random() % 257) - 128) / 128;
    }
    return;
  }
  if (dtype != DType::kBool && dtype != DType::kInt32 && dtype != DType::kInt64) return;
  for (int64_t i = 0; i < elements; ++i) {
    bytes[static_cast<size_t>(i) * DTypeSize(dtype)] = static_cast<char>(random() % 2);
  }
}

struct MadeUp {
  std::vector<std::string> bytes;
  Request request;
};

absl::StatusOr<MadeUp> MakeUp(const Model& model, const AxisSizes& sizes) {
  std::map<std::string, int64_t> by_symbol;
  for (const ModelAxis& axis : model.axes()) by_symbol[axis.symbol] = sizes.at(axis.label);
  std::mt19937_64 random(1);
  MadeUp made;
  made.bytes.resize(model.inputs().size());
  for (size_t i = 0; i < model.inputs().size(); ++i) {
    const ModelIo& input = model.inputs()[i];
    InputTensor& tensor = made.request.inputs.emplace_back();
    if (input.optional) continue;
    for (const Dim& dim : input.dims) {
      ASSIGN_OR_RETURN(const int64_t size, DimSize(dim, by_symbol));
      tensor.shape.push_back(size);
    }
    ASSIGN_OR_RETURN(const int64_t elements, CheckedNumElements(tensor.shape));
    Fill(input.dtype, elements, random, made.bytes[i]);
    tensor.data = made.bytes[i].data();
  }
  return made;
}

// Returns the positions of a row of a request to a packed model.
int64_t LengthOf(const Model& model, const AxisSizes& sizes) {
  return sizes.at(model.axes()[static_cast<size_t>(model.packing()->sequence_axis())].label);
}

// Adds the buckets of as many rows as replays of `sizes` may hold, from its own rows on.
void AddSharedBuckets(const Model& model, AxisSizes sizes, std::set<AxisSizes>& bindings) {
  const std::shared_ptr<const BucketPolicy> policy = model.buckets();
  const std::string& batch = policy->batch_axis;
  std::set<std::string> certified;
  for (size_t i = 0; i < model.axes().size(); ++i) {
    if (model.CertificateOf(i).certified) certified.insert(model.axes()[i].label);
  }
  const auto axis = std::find_if(policy->axes.begin(), policy->axes.end(),
                                 [&](const AxisBuckets& one) { return one.axis == batch; });
  if (axis == policy->axes.end() || !certified.contains(batch)) {
    bindings.insert(std::move(sizes));
    return;
  }
  for (auto& [label, size] : sizes) {
    if (label != batch && certified.contains(label)) size = policy->Fit(label, size).value_or(size);
  }
  // Requests of more rows than a replay holds are split.
  const int64_t most = policy->LargestBatch(sizes);
  const int64_t rows = std::min(sizes.at(batch), most);
  for (const int64_t bucket : axis->sizes) {
    if (bucket < rows || bucket > most) continue;
    sizes[batch] = bucket;
    bindings.insert(sizes);
  }
}

using Sample = inference::ModelWarmup;

absl::Status Misfit(const Sample& sample, const std::string& input, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("config.pbtxt: model_warmup \"", sample.name(),
                                                 "\": input \"", input, "\" ", why));
}

// Takes the sizes of one input's axes.
absl::Status TakeInput(const Sample& sample, const std::string& name, const Sample::Input& input,
                       const Model& model, const Signature& signature, AxisSizes& sizes) {
  const auto io = std::find_if(signature.inputs.begin(), signature.inputs.end(),
                               [&](const ModelIo& one) { return one.name == name; });
  if (io == signature.inputs.end()) return Misfit(sample, name, "is none of the model's");
  std::vector<int64_t> dims(input.dims().begin(), input.dims().end());
  // Triton leaves the batch out of them.
  if (signature.config.max_batch_size() > 0) {
    dims.insert(dims.begin(), std::max<int64_t>(1, sample.batch_size()));
  }
  if (dims.size() != io->dims.size()) {
    return Misfit(sample, name,
                  absl::StrCat("has dims [", absl::StrJoin(input.dims(), ", "),
                               "], the model expects rank ", io->dims.size()));
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    const Dim& dim = io->dims[i];
    if (dims[i] < 1 || (dim.is_constant() && dim.size != dims[i])) {
      return Misfit(sample, name,
                    absl::StrCat("has ", dims[i], " as dim ", i, ", the model expects ",
                                 dim.is_constant() ? absl::StrCat(dim.size) : "at least 1"));
    }
    for (const ModelAxis& axis : model.axes()) {
      if (axis.symbol == dim.symbol) sizes[axis.label] = dims[i];
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<AxisSizes>> BindingsOfRequests(const Model& model,
                                                          const std::vector<AxisSizes>& requests) {
  const Packing* packing = model.packing();
  std::set<AxisSizes> bindings;
  std::optional<int64_t> fewest;  // tokens of a packed replay of one request
  for (const AxisSizes& given : requests) {
    ASSIGN_OR_RETURN(AxisSizes one, ByLabel(model, given));
    if (packing == nullptr) {
      AddSharedBuckets(model, std::move(one), bindings);
    } else if (const int64_t length = LengthOf(model, one); length > packing->longest()) {
      bindings.insert(std::move(one));  // runs by itself
    } else {
      int64_t rows = 1;
      for (const ModelAxis& axis : model.axes()) {
        if (axis.is_batch) rows = std::min(one.at(axis.label), model.MaxPackedRows(length));
      }
      const auto fitted = packing->Fit({.tokens = rows * length, .segments = rows});
      if (fitted.has_value()) fewest = std::min(fewest.value_or(fitted->tokens), fitted->tokens);
    }
  }
  // Requests that share a replay may have any number of tokens together.
  for (size_t i = 0; fewest.has_value() && i < packing->buckets().size(); ++i) {
    const int64_t tokens = packing->buckets()[i];
    if (tokens >= *fewest) bindings.insert({{kTokensAxis, tokens}});
  }
  return std::vector<AxisSizes>(bindings.begin(), bindings.end());
}

absl::StatusOr<std::vector<AxisSizes>> BindingsOfSizes(const Model& model,
                                                       const std::vector<AxisSizes>& sizes) {
  std::vector<AxisSizes> bindings;
  for (const AxisSizes& given : sizes) {
    ASSIGN_OR_RETURN(AxisSizes one, ByLabel(model, given));
    const Packing* packing = model.packing();
    if (packing == nullptr || LengthOf(model, one) > packing->longest()) {
      bindings.push_back(std::move(one));
      continue;
    }
    PackedSizes wanted = {.tokens = 1, .segments = 1};
    for (const ModelAxis& axis : model.axes()) {
      wanted.tokens *= one.at(axis.label);
      if (axis.is_batch) wanted.segments = one.at(axis.label);
    }
    const auto fitted = packing->Fit(wanted);
    if (!fitted.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("model '", model.id().name, "': ", wanted.tokens, " tokens in ",
                       wanted.segments, " rows are more than one of its replays holds"));
    }
    bindings.push_back({{kTokensAxis, fitted->tokens}});
  }
  return bindings;
}

absl::StatusOr<WarmupOfAll> EverythingOf(const Model& model, const ShapeTable* seen) {
  WarmupOfAll all;
  std::vector<size_t> open;  // axes without buckets
  for (size_t i = 0; i < model.axes().size(); ++i) {
    if (!model.CertificateOf(i).certified) open.push_back(i);
  }
  if (open.empty() || model.packing() != nullptr) {
    ASSIGN_OR_RETURN(all.bindings, BindingsOf(model, {}));
    return all;
  }
  // Sizes along the open axes, by how often they came.
  std::map<AxisSizes, int64_t> counts;
  if (seen != nullptr) {
    for (const ShapeRow& row : seen->rows) {
      AxisSizes sizes;
      for (const size_t i : open) sizes[model.axes()[i].label] = row.sizes[i];
      counts[sizes] += row.all.requests;
    }
  }
  std::vector<std::pair<AxisSizes, int64_t>> order(counts.begin(), counts.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  const size_t distinct = order.size();
  if (order.size() > kMostSeenSizes) order.resize(kMostSeenSizes);
  std::vector<AxisSizes> buckets = {{}};
  if (open.size() < model.axes().size()) {
    const auto known = model.AllBuckets();
    if (!known.has_value()) return BindingsOf(model, {}).status();
    buckets = *known;
  }
  for (const auto& [sizes, count] : order) {
    for (AxisSizes binding : buckets) {
      binding.insert(sizes.begin(), sizes.end());
      all.bindings.push_back(std::move(binding));
    }
  }
  const std::string& label = model.axes()[open[0]].label;
  const std::string names = absl::StrJoin(
      open, ", ", [&](std::string* out, size_t i) { absl::StrAppend(out, model.axes()[i].label); });
  all.notes.push_back(absl::StrCat(open.size() == 1 ? "axis " : "axes ", names,
                                   " may not be padded, so that no bucket holds its sizes (", label,
                                   ": ", model.CertificateOf(open[0]).reason, ")"));
  all.notes.push_back(
      distinct == 0
          ? absl::StrCat("no request came yet whose sizes could be captured: name them, as in "
                         "`reprise warmup ",
                         model.id().name, " --sizes ",
                         absl::StrJoin(model.axes(), ",",
                                       [](std::string* out, const ModelAxis& axis) {
                                         absl::StrAppend(out, axis.label, "=SIZE");
                                       }),
                         "`")
          : absl::StrCat("captured for ", order.size() == distinct ? "all " : "the most frequent ",
                         order.size(), " of ", distinct, " sizes that requests have had"));
  return all;
}

absl::Status Rehearse(Engine& engine, const Model& model, const AxisSizes& sizes, Stream& stream) {
  if (model.tail() == nullptr) return absl::OkStatus();
  for (const ModelAxis& axis : model.axes()) {
    if (!sizes.contains(axis.label)) return absl::OkStatus();  // packed: no request's own sizes
  }
  ASSIGN_OR_RETURN(const MadeUp made, MakeUp(model, sizes));
  ASSIGN_OR_RETURN(RequestShape shape, model.Measure(made.request));
  shape.rehearsal = true;
  BatchPlan plan(model);
  if (!plan.TryAdd(shape)) return absl::OkStatus();  // it would be split: its parts are smaller
  const Request* request = &made.request;
  return engine.Run(plan, {&request, 1}, stream)[0].status;
}

absl::StatusOr<WarmupSettings> WarmupOfSamples(const ModelSettings& settings, const Model& model,
                                               const Signature& signature) {
  WarmupSettings warmup = settings.warmup;
  for (const Sample& sample : settings.config.model_warmup()) {
    AxisSizes sizes;
    const std::map<std::string, Sample::Input> inputs(sample.inputs().begin(),
                                                      sample.inputs().end());
    for (const auto& [name, input] : inputs) {
      RETURN_IF_ERROR(TakeInput(sample, name, input, model, signature, sizes));
    }
    if (!sizes.empty()) warmup.sizes.push_back(std::move(sizes));
    warmup.ready_when_all = true;
  }
  return warmup;
}

}  // namespace reprise
