#include "runtime/engine/tail/tail_run.h"

#include <cstring>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/replay/gather.h"
#include "runtime/engine/tail/node_by_node.h"
#include "runtime/engine/tail/scanned_values.h"
#include "runtime/engine/types/data_error.h"
#include "runtime/graph/graph.h"
#include "runtime/graph/rank_error.h"
#include "runtime/ops/control/loop.h"
#include "runtime/ops/kit/op.h"
#include "runtime/ops/movement/gather_op.h"
#include "runtime/ops/weights/narrowed_weights.h"

namespace reprise {
namespace {

// Kernels read aligned elements; clients send bytes at any address.
constexpr uintptr_t kSizeAlignment = alignof(int64_t);

// A node or a light section that reads no more than this runs by reference kernels at once: fast
// ones are looked up or prepared only where there is enough work for them.
constexpr size_t kLittleBytes = 64 << 10;

// A recipe that would need more is not run on the stream's memory, which is sized by requests'
// bytes and not by requests' data.
constexpr size_t kMaxPreparedBytes = size_t{1} << 30;

// No loop of a request is longer: one whose condition never fails has to end.
constexpr int64_t kMostTrips = int64_t{1} << 20;

// The largest result of a node that runs by itself.
constexpr int64_t kMaxResultBytes = int64_t{1} << 30;

Tensor Copied(DType dtype, const Shape& shape, const void* data) {
  return Tensor::Make(dtype, shape, [&](void* to) {
    const size_t bytes = NumElements(shape) * DTypeSize(dtype);
    if (bytes > 0) std::memcpy(to, data, bytes);
  });
}

// Returns a tensor over bytes that outlive the run.
Tensor Borrowed(DType dtype, const Shape& shape, const void* data) {
  const bool usable = data != nullptr && reinterpret_cast<uintptr_t>(data) % kSizeAlignment == 0;
  if (!usable) return Copied(dtype, shape, data);
  return Tensor(dtype, shape, std::shared_ptr<const void>(data, [](const void*) {}));
}

// Copies `value` to the beginning of the place of `slot`, whose sizes are no smaller; along a
// larger one the last position is repeated up to the end, or zeros follow.
void CopyIn(const Tensor& value, const TensorSlot& slot, bool repeats, std::byte* to) {
  if (value.bytes() == slot.bytes) {
    std::memcpy(to, value.data(), slot.bytes);
    return;
  }
  if (!repeats) std::memset(to, 0, slot.bytes);
  const Shape origin(slot.shape.size(), 0);
  CopyBlock({.shape = value.shape(),
             .from_shape = value.shape(),
             .from_offset = origin,
             .to_shape = slot.shape,
             .to_offset = origin,
             .element_bytes = DTypeSize(slot.dtype)},
            value.data(), to);
  if (!repeats) return;
  // The lines that lie before dim `d` in the value itself; those beyond them are filled by an
  // earlier dim, whole.
  const Shape strides = Strides(slot.shape);
  for (size_t d = slot.shape.size(); d-- > 0;) {
    const int64_t size = value.shape()[d];
    if (size == slot.shape[d]) continue;
    const size_t line = static_cast<size_t>(strides[d]) * DTypeSize(slot.dtype);
    const int64_t lines = NumElements(absl::MakeConstSpan(value.shape()).first(d));
    for (int64_t i = 0; i < lines; ++i) {
      size_t offset = 0;
      int64_t rest = i;
      for (size_t outer = d; outer-- > 0;) {
        offset += static_cast<size_t>(rest % value.shape()[outer] * strides[outer]);
        rest /= value.shape()[outer];
      }
      std::byte* const end = to + offset * DTypeSize(slot.dtype) + size * line;
      for (int64_t k = 0; k < slot.shape[d] - size; ++k) {
        std::memcpy(end + k * line, end - line, line);
      }
    }
  }
}

// Marks the first `size` positions of a row as the request's.
void MarkLive(int64_t size, const TensorSlot& slot, std::byte* to) {
  std::memset(to, 0, slot.bytes);
  std::memset(to, 1, static_cast<size_t>(size));
}

// Copies the first elements at `from`, of the shape of `slot`: as many as `shape` has.
Tensor CopiedOut(const TensorSlot& slot, const Shape& shape, const std::byte* from) {
  if (shape == slot.shape) return Copied(slot.dtype, shape, from);
  return Tensor::Make(slot.dtype, shape, [&](void* to) {
    const Shape origin(shape.size(), 0);
    CopyBlock({.shape = shape,
               .from_shape = slot.shape,
               .from_offset = origin,
               .to_shape = shape,
               .to_offset = origin,
               .element_bytes = DTypeSize(slot.dtype)},
              from, to);
  });
}

absl::Status InSection(const GraphSection& section, const absl::Status& status) {
  if (section.label.empty()) return status;
  return absl::Status(status.code(), absl::StrCat(section.label, ": ", status.message()));
}

// Returns the error of a node, which counts its inputs, with the model's names for these.
absl::Status WithNames(const absl::Status& status, const std::vector<std::string>& inputs) {
  return WithMessage(status, absl::StrCat(status.message(), " (its inputs are '",
                                          absl::StrJoin(inputs, "', '"), "')"));
}

}  // namespace

void TailRun::Run(const Request& request, const Recipe& front, Response& response) {
  const int64_t start_ns = context_.options.clock->NowNs();
  absl::Status status = RunAll(request, front, response);
  if (!status.ok()) {
    response.outputs.clear();
    response.status = std::move(status);
  }
  response.info.capture = Harder(response.info.capture, recipes_.outcome());
  response.info.replay_ns += context_.options.clock->NowNs() - start_ns;
}

absl::Status TailRun::RunAll(const Request& request, const Recipe& front, Response& response) {
  TakeInputs(request);
  const std::vector<OutputTensor> given = std::move(response.outputs);
  response.outputs.clear();
  for (size_t i = 0; i < given.size(); ++i) {
    values_[context_.tail.front_outputs()[i].name] =
        Borrowed(front.outputs[i].dtype, given[i].shape, given[i].bytes.data());
  }
  RETURN_IF_ERROR(RunGraph(context_.tail.graph()));
  response.outputs.resize(context_.tail.outputs().size());
  for (size_t i = 0; i < context_.tail.outputs().size(); ++i) {
    if (!request.wanted_outputs.empty() && !request.wanted_outputs[i]) continue;
    const ModelIo& output = context_.tail.outputs()[i];
    ASSIGN_OR_RETURN(const Tensor value,
                     ValueOf(context_.tail.graph(), context_.tail.graph().outputs[i]));
    if (value.dtype() != output.dtype) {
      return absl::InvalidArgumentError(absl::StrCat("the model declares output '", output.name,
                                                     "' as ", DTypeName(output.dtype),
                                                     ", and it is ", DTypeName(value.dtype())));
    }
    RETURN_IF_ERROR(context_.control.Admit(static_cast<int64_t>(value.bytes()),
                                           absl::StrCat("the answer's '", output.name, "'")));
    response.outputs[i].shape = value.shape();
    if (value.bytes() > 0) {
      response.outputs[i].bytes.assign(static_cast<const char*>(value.data()), value.bytes());
    }
  }
  return absl::OkStatus();
}

void TailRun::TakeInputs(const Request& request) {
  for (size_t i = 0; i < context_.tail.inputs().size(); ++i) {
    const InputTensor& input = request.inputs[i];
    if (context_.tail.inputs()[i].optional && input.data == nullptr) continue;
    values_[context_.tail.inputs()[i].name] =
        Borrowed(context_.tail.inputs()[i].dtype, input.shape, input.data);
  }
}

absl::Status TailRun::RunGraph(const CutGraph& graph) {
  for (const CutGraph::Stage& stage : graph.stages) {
    const bool is_front = &stage == &context_.tail.graph().stages.front();
    if (!is_front && !stage.section.outputs.empty()) {
      RETURN_IF_ERROR(
          context_.control.Check([&] { return absl::StrCat("section ", stage.section.label); }));
      RETURN_IF_ERROR(InSection(stage.section, RunSection(stage.section)));
    }
    for (const EagerNode& node : stage.nodes) {
      RETURN_IF_ERROR(RunEager(graph, node));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Tensor> TailRun::ValueOf(const CutGraph& graph, const std::string& name) {
  if (const auto it = values_.find(name); it != values_.end()) return it->second;
  if (const auto it = graph.constants.find(name); it != graph.constants.end()) return it->second;
  if (const auto it = graph.parameters.find(name); it != graph.parameters.end()) {
    return context_.model.owner()->parameters().ValueWith(*ops::WithoutNarrowing(it->second),
                                                          context_.shape.own_values);
  }
  return absl::InternalError(absl::StrCat("nothing made the value '", name, "'"));
}

absl::StatusOr<std::vector<Tensor>> TailRun::EvaluateWithin(
    const Node& node, const std::vector<std::optional<Tensor>>& inputs,
    const std::vector<std::string>& names) {
  RETURN_IF_ERROR(context_.control.Check([&] { return NodeLabel(node); }));
  const int64_t most = context_.control.BytesLeft(kMaxResultBytes);
  RunWatch watch(context_.control);
  auto results = Evaluate(node, inputs, most);
  if (!results.ok() && watch.ended()) return context_.control.Ended(NodeLabel(node));
  if (!results.ok()) {
    absl::Status status = WithNames(results.status(), names);
    if (most == kMaxResultBytes || !absl::IsResourceExhausted(status)) return status;
    return context_.control.RefuseBytes(
        most + 1,
        absl::StrCat(status.message(), "; ", context_.control.LimitName(), " leaves no more"));
  }
  for (Tensor& result : *results) {
    ASSIGN_OR_RETURN(result, context_.control.Keep(std::move(result), NodeLabel(node)));
  }
  return results;
}

absl::Status TailRun::RunEager(const CutGraph& graph, const EagerNode& node) {
  RETURN_IF_ERROR(context_.control.Check([&] { return NodeLabel(node.node); }));
  if (node.then_branch != nullptr) return RunBranch(graph, node);
  return node.body != nullptr ? RunLoop(graph, node) : RunNode(graph, node);
}

absl::Status TailRun::RunNode(const CutGraph& graph, const EagerNode& node) {
  std::vector<std::optional<Tensor>> inputs(node.inputs.size());
  size_t bytes = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i].empty()) continue;
    ASSIGN_OR_RETURN(inputs[i], ValueOf(graph, node.inputs[i]));
    // A tensor that is indexed is not read as a whole.
    if (i > 0 || node.node.op != GatherOp::kName) bytes += inputs[i]->bytes();
  }
  const int64_t start_ns = context_.options.clock->NowNs();
  // Where nothing is captured every op on data has a recipe of its own, however little it reads.
  const bool prepares = bytes > kLittleBytes ||
                        (node.is_cut && context_.model.options().capture == CapturePolicy::kOff);
  const GraphSection* section = prepares ? context_.tail.SectionOf(graph, node) : nullptr;
  if (section == nullptr || !RunPrepared(*section)) {
    ASSIGN_OR_RETURN(std::vector<Tensor> results, EvaluateWithin(node.node, inputs, node.inputs));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (!node.outputs[i].empty()) values_[node.outputs[i]] = std::move(results[i]);
    }
  }
  if (node.is_cut) {
    context_.model.owner()->observer().On(
        EagerNodeRun{SourceOp(node.node), context_.options.clock->NowNs() - start_ns});
    NoteShape(node);
  }
  return absl::OkStatus();
}

void TailRun::NoteShape(const EagerNode& node) {
  // Where nothing is captured every node is a cut, and the sizes of the request tell enough.
  if (context_.model.options().capture == CapturePolicy::kOff || context_.shape.rehearsal) return;
  if (node.outputs.empty() || node.outputs[0].empty()) return;
  const Tensor& made = values_.at(node.outputs[0]);
  context_.model.owner()->new_shapes().OnNode(
      SourceOp(node.node), node.node.name.empty() ? node.outputs[0] : node.node.name,
      node.outputs[0], made.shape(), context_.shape.id);
}

absl::Status TailRun::RunBranch(const CutGraph& graph, const EagerNode& node) {
  ASSIGN_OR_RETURN(const Tensor condition, ValueOf(graph, node.inputs[0]));
  ASSIGN_OR_RETURN(const int64_t chosen,
                   OneElement(node.node, node.inputs[0], condition, DType::kBool));
  const CutGraph& taken = chosen != 0 ? *node.then_branch : *node.else_branch;
  context_.model.owner()->observer().On(EagerNodeRun{SourceOp(node.node), 0});
  RETURN_IF_ERROR(RunGraph(taken));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    ASSIGN_OR_RETURN(values_[node.outputs[i]], ValueOf(taken, taken.outputs[i]));
  }
  return absl::OkStatus();
}

absl::Status TailRun::RunLoop(const CutGraph& graph, const EagerNode& node) {
  const LoopBody& body = *node.body;
  const std::string label = NodeLabel(node.node);
  const auto one = [&](const CutGraph& of, const std::string& name, DType dtype,
                       int64_t left_out) -> absl::StatusOr<int64_t> {
    if (name.empty()) return left_out;
    ASSIGN_OR_RETURN(const Tensor value, ValueOf(of, name));
    return OneElement(node.node, name, value, dtype);
  };
  ASSIGN_OR_RETURN(const int64_t trips,
                   one(graph, node.inputs[LoopParts::kTripCount], DType::kInt64, INT64_MAX));
  ASSIGN_OR_RETURN(int64_t condition,
                   one(graph, node.inputs[LoopParts::kCondition], DType::kBool, 1));
  std::vector<Tensor> carried(body.carried);
  for (size_t i = 0; i < carried.size(); ++i) {
    ASSIGN_OR_RETURN(carried[i], ValueOf(graph, node.inputs[LoopParts::kFirstCarried + i]));
  }
  context_.model.owner()->observer().On(EagerNodeRun{SourceOp(node.node), 0});
  const auto begin_with = [&](size_t i, Tensor value) {
    if (!body.begins_with[i].empty()) values_[body.begins_with[i]] = std::move(value);
  };
  std::vector<ScannedValues> scanned;
  for (const LoopBody::Scanned& declared : body.scanned) scanned.emplace_back(label, declared);
  const auto admit = [&](size_t i) {
    const std::string& output = node.outputs[carried.size() + i];
    if (output.empty()) return absl::OkStatus();
    return context_.control.Admit(scanned[i].bytes(),
                                  absl::StrCat(label, ": its result '", output, "'"));
  };
  for (int64_t trip = 0; condition != 0 && trip < trips; ++trip) {
    if (trip == kMostTrips) {
      return absl::ResourceExhaustedError(
          absl::StrCat(label, ": it goes on after ", kMostTrips, " iterations, the limit"));
    }
    begin_with(LoopParts::kStepIteration, Tensor::Int64Scalar(trip));
    begin_with(LoopParts::kStepCondition, Tensor::FromVector<uint8_t>(DType::kBool, {}, {1}));
    for (size_t i = 0; i < carried.size(); ++i) {
      begin_with(LoopParts::kStepFirstCarried + i, std::move(carried[i]));
    }
    RETURN_IF_ERROR(RunGraph(*body.graph));
    const std::vector<std::string>& results = body.graph->outputs;
    ASSIGN_OR_RETURN(condition, one(*body.graph, results[0], DType::kBool, 1));
    for (size_t i = 0; i < carried.size(); ++i) {
      ASSIGN_OR_RETURN(carried[i], ValueOf(*body.graph, results[1 + i]));
    }
    for (size_t i = 0; i < scanned.size(); ++i) {
      ASSIGN_OR_RETURN(Tensor value, ValueOf(*body.graph, results[1 + carried.size() + i]));
      RETURN_IF_ERROR(scanned[i].Add(std::move(value), kMaxResultBytes));
      // Results are joined at the end: a limit that will be exceeded is reported before.
      RETURN_IF_ERROR(admit(i));
    }
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (i < carried.size()) {
      values_[node.outputs[i]] = std::move(carried[i]);
    } else {
      RETURN_IF_ERROR(admit(i - carried.size()));
      ASSIGN_OR_RETURN(Tensor joined, scanned[i - carried.size()].Join());
      ASSIGN_OR_RETURN(values_[node.outputs[i]], context_.control.Keep(std::move(joined), label));
    }
  }
  return absl::OkStatus();
}

absl::Status TailRun::RunSection(const GraphSection& section) {
  for (const ValueId id : section.graph->inputs()) {
    const std::string& name = section.graph->value(id).name;
    if (values_.contains(name)) continue;
    return absl::InternalError(absl::StrCat("nothing made the value '", name, "'"));
  }
  const int64_t start_ns = context_.options.clock->NowNs();
  RETURN_IF_ERROR(section.is_light ? RunLightSection(section) : RunAsRecipe(section));
  context_.model.owner()->observer().On(SectionRun{context_.options.clock->NowNs() - start_ns});
  return absl::OkStatus();
}

absl::Status TailRun::RunAsRecipe(const GraphSection& section) {
  ASSIGN_OR_RETURN(const SectionRecipes::Choice padded, recipes_.Find(section, values_));
  const absl::Status status = Replay(section, padded);
  // An index that padding made may be out of range where the data is not.
  if (status.ok() || !padded.fitted.has_value()) return status;
  ASSIGN_OR_RETURN(const SectionRecipes::Choice exact,
                   recipes_.Find(section, values_, /*pad=*/false));
  return Replay(section, exact);
}

size_t TailRun::BytesRead(const GraphSection& section) const {
  size_t bytes = 0;
  for (const ValueId id : section.graph->inputs()) {
    const std::string& name = section.graph->value(id).name;
    if (!section.shape_only.contains(name)) bytes += values_.at(name).bytes();
  }
  return bytes;
}

absl::Status TailRun::RunLightSection(const GraphSection& section) {
  if (BytesRead(section) > kLittleBytes && RunPrepared(section)) return absl::OkStatus();
  return RunNodeByNode(section);
}

bool TailRun::RunPrepared(const GraphSection& section) {
  for (const std::string& name : section.shape_inputs) {
    if (values_.at(name).num_elements() > kMaxShapeInputElements) return false;
  }
  const auto recipe = recipes_.Prepare(section, values_);
  if (!recipe.ok() || (*recipe)->frame_bytes() > kMaxPreparedBytes) return false;
  const auto is_reference = [](const Launch& launch) { return launch.reference; };
  if (absl::c_all_of((*recipe)->launches, is_reference)) return false;
  // The reference kernels say more about the faults of the data.
  return Replay(section, {.recipe = *recipe}).ok();
}

absl::Status TailRun::RunNodeByNode(const GraphSection& section) {
  const auto given = [&](const Value& value) -> absl::StatusOr<Tensor> {
    if (value.kind == Value::Kind::kInput) return values_.at(value.name);
    return context_.model.owner()->parameters().ValueWith(*ops::WithoutNarrowing(value.parameter),
                                                          context_.shape.own_values);
  };
  const auto evaluate = [&](const Node& node, const std::vector<std::optional<Tensor>>& inputs,
                            const std::vector<std::string>& names) {
    return EvaluateWithin(node, inputs, names);
  };
  ASSIGN_OR_RETURN(std::vector<Tensor> results,
                   reprise::RunNodeByNode(*section.graph, given, evaluate));
  for (size_t i = 0; i < section.outputs.size(); ++i) {
    values_[section.outputs[i]] = std::move(results[i]);
  }
  return absl::OkStatus();
}

absl::Status TailRun::Replay(const GraphSection& section, const SectionRecipes::Choice& choice) {
  const std::shared_ptr<const Recipe>& recipe = choice.recipe;
  RETURN_IF_ERROR(context_.stream.ReserveForRequest(*recipe, SizedBy::kData));
  ParameterStore& store = context_.model.owner()->parameters();
  ASSIGN_OR_RETURN(auto parameters, store.TableFor(recipe));
  if (const auto& own = context_.shape.own_values; !own.empty()) {
    ASSIGN_OR_RETURN(parameters, store.TableWith(*recipe, *parameters, own));
  }
  FirstDataError error(*recipe);
  const Frame frame = context_.stream.MakeFrame(*recipe, parameters->addresses(), &error);
  for (const TensorSlot& slot : recipe->inputs) {
    if (slot.bytes == 0 || section.shape_only.contains(slot.name)) continue;
    std::byte* const to = context_.stream.inputs() + slot.offset;
    const bool is_live = choice.fitted.has_value() && choice.fitted->live != nullptr;
    if (is_live && choice.fitted->live_sizes.contains(slot.name)) {
      MarkLive(choice.fitted->live_sizes.at(slot.name), slot, to);
    } else {
      CopyIn(values_.at(slot.name), slot, /*repeats=*/!is_live, to);
    }
  }
  const int ended = context_.stream.Replay(*recipe, frame, nullptr, &context_.control);
  if (ended >= 0) {
    return context_.control.Ended(recipe->launches[static_cast<size_t>(ended)].node);
  }
  if (const DataError* found = error.get(); found != nullptr) {
    return ErrorOf(*found, found->input < 0
                               ? found->place
                               : absl::StrCat("'", recipe->inputs[found->input].name, "'"));
  }
  for (size_t i = 0; i < section.outputs.size(); ++i) {
    const TensorSlot& slot = recipe->outputs[i];
    ASSIGN_OR_RETURN(const Shape shape, TrueShape(slot, i, choice));
    RETURN_IF_ERROR(
        context_.control.Admit(NumElements(shape) * static_cast<int64_t>(DTypeSize(slot.dtype)),
                               absl::StrCat("'", slot.name, "'")));
    ASSIGN_OR_RETURN(Tensor value, context_.control.Keep(CopiedOut(slot, shape, frame.outputs[i]),
                                                         absl::StrCat("'", slot.name, "'")));
    if (context_.stream.poisons() &&
        HoldsPoison({static_cast<const char*>(value.data()), value.bytes()})) {
      return absl::InternalError(
          absl::StrCat("'", slot.name, "' holds bytes that the replay has not written"));
    }
    values_[section.outputs[i]] = std::move(value);
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> TailRun::TrueShape(const TensorSlot& slot, size_t output,
                                         const SectionRecipes::Choice& choice) const {
  Shape shape = slot.shape;
  if (!choice.fitted.has_value()) return shape;
  const auto& sizes = choice.fitted->true_sizes[output];
  bool as_promised = sizes.size() == shape.size();
  for (size_t d = 0; d < shape.size() && as_promised; ++d) {
    const int64_t size = sizes[d].value_or(shape[d]);
    as_promised = 0 <= size && size <= shape[d];
    shape[d] = size;
  }
  if (as_promised) return shape;
  context_.model.owner()->observer().On(WithheldAnswer{});
  return absl::InternalError(absl::StrCat("'", slot.name, "' has shape ", ShapeToString(slot.shape),
                                          " in its recipe (", choice.recipe->SizesText(),
                                          "), which contradicts its other sizes"));
}

}  // namespace reprise
