// reprise rewrite --static: dynamic operators of a model in a form of fixed size, proved and tried.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/json_inputs.h"
#include "client/cli/table.h"
#include "runtime/base/status_macros.h"
#include "runtime/graph/graph.h"
#include "runtime/onnx/importer.h"
#include "runtime/passes/cut/cuts.h"
#include "runtime/passes/specialize/specialize.h"
#include "runtime/recipe/record_file.h"
#include "tools/command.h"
#include "tools/files/file_bytes.h"
#include "tools/files/row_forms.h"
#include "tools/files/static_forms.h"
#include "tools/local_engine.h"
#include "tools/serve/made_up_request.h"

namespace reprise::cli {
namespace {

// Sizes of all axes at which the shapes of values and mask are compared, and both models run.
constexpr int64_t kTriedSizes[] = {3, 5, 8};
constexpr int kTriedValues = 3;
// Answers differ by the order in which they are summed.
constexpr double kTolerance = 1e-4;
constexpr char kNoForm[] = "no form of fixed size is known";

struct RewriteFlags {
  std::string in, out;
  std::vector<std::string> inputs;  // files of JSON
  bool is_static = false;
  bool allow_output_change = false;
  int64_t most_boxes = 0;  // 0: as the model says
  bool json = false;
};

// Sizes go no further where a model takes none of the first.
constexpr int64_t kMostTried = int64_t{1} << 16;

// Returns sizes of the axes, by position, from `size` on: those that the model takes first, where
// it needs as many boxes as it looks for, say; from `size` itself where it takes none.
std::vector<int64_t> SizesFrom(int64_t size, const Model& model) {
  const auto sizes_at = [&model](int64_t from) {
    std::vector<int64_t> sizes;
    // Sizes that differ, so that no two axes are alike by chance.
    for (const ModelAxis& axis : model.axes()) {
      sizes.push_back(axis.Fitting(from + static_cast<int64_t>(sizes.size())));
    }
    return sizes;
  };
  for (int64_t from = size; from <= kMostTried; from *= 2) {
    std::vector<int64_t> sizes = sizes_at(from);
    Binding binding;
    for (size_t i = 0; i < sizes.size(); ++i) binding.axes[model.axes()[i].symbol] = sizes[i];
    if (Specialize(Engine::SymbolicGraph(model, /*packed=*/false), binding).ok()) return sizes;
  }
  return sizes_at(size);
}

// Reads a request from a file of JSON.
absl::StatusOr<MadeUpRequest> RequestOfFile(const std::string& path, const Model& model) {
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const inference::ModelMetadataResponse metadata = MetadataOf(model);
  MadeUpRequest request;
  ASSIGN_OR_RETURN(request.tensors, ParseJsonInputs(text, metadata));
  request.request = RequestOfTensors(model, request.tensors);
  return request;
}

// The shapes of values of a model's file at some sizes, and their dtypes.
class ValueShapes {
 public:
  // `inputs`: files of requests whose sizes are tried besides small ones.
  static absl::StatusOr<ValueShapes> Of(const std::string& path, const Model& model,
                                        const std::vector<std::string>& inputs) {
    ASSIGN_OR_RETURN(ImportedModel imported, ImportOnnxFile(path));
    ValueShapes shapes;
    shapes.graph_ = std::move(imported.graph);
    for (const ModelIo& input : model.inputs()) {
      const ValueId value = shapes.graph_.FindValue(input.name);
      if (value != kNone && !input.optional) shapes.graph_.value(value).dims = input.dims;
    }
    std::vector<std::vector<int64_t>> tried;
    for (const int64_t size : kTriedSizes) tried.push_back(SizesFrom(size, model));
    for (const std::string& file : inputs) {
      // The comparison names the fault of one that cannot be used.
      const absl::StatusOr<MadeUpRequest> request = RequestOfFile(file, model);
      if (!request.ok()) continue;
      absl::StatusOr<RequestShape> shape = model.Measure(request->request);
      if (shape.ok()) tried.push_back(std::move(shape->sizes));
    }
    for (const std::vector<int64_t>& sizes : tried) {
      std::map<std::string, int64_t>& axes = shapes.tried_.emplace_back();
      for (size_t i = 0; i < sizes.size(); ++i) axes[model.axes()[i].symbol] = sizes[i];
    }
    return shapes;
  }

  struct Pair {
    Shape values, mask;
    DType dtype = DType::kUndefined;
  };
  // Returns the rank of a value whose shape does not depend on data.
  absl::StatusOr<int> Rank(const std::string& value) const {
    ASSIGN_OR_RETURN(const std::vector<Pair> at, Tried(value, value));
    return static_cast<int>(at.front().values.size());
  }

  // Returns the shapes at all sizes that are tried and that the model takes; an error where it
  // takes none.
  absl::StatusOr<std::vector<Pair>> Tried(const std::string& values,
                                          const std::string& mask) const {
    std::vector<Pair> pairs;
    absl::Status refused;
    for (const std::map<std::string, int64_t>& axes : tried_) {
      absl::StatusOr<Pair> at = At(values, mask, axes);
      if (at.ok()) {
        pairs.push_back(*std::move(at));
      } else {
        refused.Update(at.status());
      }
    }
    if (pairs.empty()) return refused;
    return pairs;
  }

 private:
  absl::StatusOr<Pair> At(const std::string& values, const std::string& mask,
                          const std::map<std::string, int64_t>& axes) const {
    Graph graph = graph_;
    graph.ClearOutputs();
    for (const std::string& name : {values, mask}) {
      const ValueId value = graph.FindValue(name);
      if (value == kNone) return absl::NotFoundError(absl::StrCat("'", name, "' is not known"));
      graph.AddOutput(value);
    }
    graph.Compact();
    ASSIGN_OR_RETURN(const Graph at, Specialize(graph, {.axes = axes}));
    const Value& first = at.value(at.outputs()[0]);
    const Value& second = at.value(at.outputs()[1]);
    if (!first.shape.has_value() || !second.shape.has_value()) {
      return absl::FailedPreconditionError("its shape depends on data");
    }
    return Pair{*first.shape, *second.shape, first.dtype};
  }

  Graph graph_;
  std::vector<std::map<std::string, int64_t>> tried_;  // sizes by symbol; one at least
};

int OnnxType(DType dtype) {
  return dtype == DType::kFloat32   ? onnx::TensorProto::FLOAT
         : dtype == DType::kFloat64 ? onnx::TensorProto::DOUBLE
                                    : onnx::TensorProto::UNDEFINED;
}

// Proves that the mask covers the dims of the values that the form says, at every size that is
// tried.
absl::StatusOr<FormFacts> Prove(const StaticForm& form, const ValueShapes& shapes) {
  FormFacts facts;
  ASSIGN_OR_RETURN(const std::vector<ValueShapes::Pair> tried,
                   shapes.Tried(form.values, form.mask));
  for (const ValueShapes::Pair& at : tried) {
    facts = {.value_rank = static_cast<int>(at.values.size()),
             .mask_rank = static_cast<int>(at.mask.size()),
             .dtype = OnnxType(at.dtype)};
    bool fits = at.mask.size() <= at.values.size();
    if (form.flattens) {
      fits = at.mask.size() == 1 && NumElements(at.values) == at.mask[0];
    } else if (form.axis >= 0) {
      fits = at.mask.size() == 1 && form.axis < facts.value_rank &&
             at.values[static_cast<size_t>(form.axis)] == at.mask[0];
    } else {
      for (size_t d = 0; fits && d < at.mask.size(); ++d) fits = at.mask[d] == at.values[d];
    }
    if (!fits) {
      return absl::FailedPreconditionError(
          absl::StrCat("the mask '", form.mask, "' has shape ", ShapeToString(at.mask),
                       " where the values '", form.values, "' have ", ShapeToString(at.values)));
    }
  }
  return facts;
}

std::vector<double> Numbers(const OutputTensor& tensor, DType dtype) {
  const int64_t elements = NumElements(tensor.shape);
  Tensor view = Tensor::Make(dtype, tensor.shape, [&](void* data) {
    std::memcpy(data, tensor.bytes.data(), tensor.bytes.size());
  });
  std::vector<double> numbers = view.ToDoubles();
  numbers.resize(static_cast<size_t>(elements));
  return numbers;
}

bool Alike(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return true;
  return std::fabs(a - b) <= kTolerance + kTolerance * std::fabs(b);
}

// Both models side by side.
class Comparison {
 public:
  Comparison(LocalEngine& local, const Model& was, const Model& now,
             const std::map<std::string, MaskedOutput>& masks)
      : local_(local), was_(was), now_(now), masks_(masks) {}

  absl::Status Run(const Request& request, const std::string& what) {
    ASSIGN_OR_RETURN(const auto stream, Stream::Create({.cores = &local_.cores, .max_threads = 1}));
    const Response a = local_.engine.RunOne(was_, request, *stream);
    const Response b = local_.engine.RunOne(now_, request, *stream);
    if (!a.status.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat(what, ": the model itself refuses: ", std::string(a.status.message())));
    }
    RETURN_IF_ERROR(b.status);
    for (size_t i = 0; i < a.outputs.size(); ++i) {
      RETURN_IF_ERROR(CompareOutput(i, a, b, what));
    }
    ++tally_.runs;
    return absl::OkStatus();
  }

  // The comparison so far.
  struct Tally {
    int64_t runs = 0;
    int64_t elements = 0;
    double largest = 0;  // difference
  };
  const Tally& tally() const { return tally_; }

 private:
  absl::Status CompareOutput(size_t i, const Response& a, const Response& b,
                             const std::string& what) {
    const std::string& name = was_.outputs()[i].name;
    std::vector<double> before = Numbers(a.outputs[i], was_.outputs()[i].dtype);
    std::vector<double> after = Numbers(b.outputs[i], was_.outputs()[i].dtype);
    if (const auto mask = masks_.find(name); mask != masks_.end()) {
      after = Selected(after, b.outputs[i].shape, b, mask->second);
    } else if (a.outputs[i].shape != b.outputs[i].shape) {
      return absl::InternalError(absl::StrCat(what, ": output '", name, "' has shape ",
                                              ShapeToString(b.outputs[i].shape), ", was ",
                                              ShapeToString(a.outputs[i].shape)));
    }
    if (before.size() != after.size()) {
      return absl::InternalError(absl::StrCat(what, ": output '", name, "' has ", after.size(),
                                              " elements, was ", before.size()));
    }
    for (size_t k = 0; k < before.size(); ++k) {
      if (!Alike(after[k], before[k])) {
        return absl::InternalError(absl::StrCat(what, ": output '", name, "', element ", k, ": ",
                                                after[k], ", was ", before[k]));
      }
      if (std::isfinite(before[k])) {
        tally_.largest = std::max(tally_.largest, std::fabs(after[k] - before[k]));
      }
    }
    tally_.elements += static_cast<int64_t>(before.size());
    return absl::OkStatus();
  }

  // Returns the elements that the mask keeps, which is an output of its own. It begins at dim
  // `dim` of `shape`; where it has fewer dims each of its elements stands for several.
  std::vector<double> Selected(const std::vector<double>& all, const Shape& shape,
                               const Response& response, const MaskedOutput& masked) const {
    for (size_t i = 0; i < now_.outputs().size(); ++i) {
      if (now_.outputs()[i].name != masked.mask) continue;
      const std::string& bytes = response.outputs[i].bytes;
      int64_t outer = 1;
      for (int d = 0; d < masked.dim; ++d) outer *= shape[static_cast<size_t>(d)];
      const size_t behind = all.size() / static_cast<size_t>(std::max<int64_t>(outer, 1));
      const size_t each = bytes.empty() ? 1 : std::max<size_t>(behind / bytes.size(), 1);
      std::vector<double> kept;
      for (size_t k = 0; k < all.size(); ++k) {
        if (bytes[k / each % bytes.size()] != 0) kept.push_back(all[k]);
      }
      return kept;
    }
    return {};
  }

  LocalEngine& local_;
  const Model& was_;
  const Model& now_;
  const std::map<std::string, MaskedOutput> masks_;  // outputs that have changed, by name
  Tally tally_;
};

absl::Status Compare(LocalEngine& local, const Model& was, const Model& now,
                     const RewriteFlags& flags, Comparison& comparison) {
  int refused = 0;
  absl::Status first;
  for (const int64_t size : kTriedSizes) {
    AxisSizes sizes;
    const std::vector<int64_t> tried = SizesFrom(size, was);
    for (size_t i = 0; i < tried.size(); ++i) sizes[was.axes()[i].label] = tried[i];
    for (int i = 0; i < kTriedValues; ++i) {
      ASSIGN_OR_RETURN(const MadeUpRequest made,
                       MakeUpRequest(was, sizes, kMadeUpIds, static_cast<uint64_t>(i + 1)));
      const absl::Status status =
          comparison.Run(made.request, absl::StrCat("made-up inputs of size ", size));
      if (absl::IsFailedPrecondition(status)) {
        first.Update(status);
        ++refused;
        continue;
      }
      RETURN_IF_ERROR(status);
    }
  }
  if (refused == static_cast<int>(std::size(kTriedSizes)) * kTriedValues && flags.inputs.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "no made-up input could be compared, give some with --inputs: ", first.message()));
  }
  for (const std::string& path : flags.inputs) {
    ASSIGN_OR_RETURN(const MadeUpRequest request, RequestOfFile(path, was));
    RETURN_IF_ERROR(comparison.Run(request.request, path));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Model>> LoadExactly(LocalEngine& local, const std::string& path) {
  return local.engine.Load(
      {.id = {.name = std::filesystem::path(path).filename().string()}, .path = path});
}

absl::Status RunRewrite(const RewriteFlags& flags) {
  LocalEngine local(kEveryIsa);
  ASSIGN_OR_RETURN(const std::shared_ptr<Model> was, LoadExactly(local, flags.in));
  ASSIGN_OR_RETURN(const ValueShapes shapes, ValueShapes::Of(flags.in, *was, flags.inputs));
  ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(flags.in, kMostFileBytes));
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes)) {
    return absl::InvalidArgumentError(absl::StrCat("'", flags.in, "' is not an ONNX model"));
  }
  nlohmann::ordered_json report = {{"nodes", nlohmann::ordered_json::array()}};
  Table table({{"node"}, {"done"}, {"form"}});
  std::map<std::string, MaskedOutput> masks;
  const RowFormOptions row_options = {
      .allow_output_change = flags.allow_output_change,
      .most_boxes = flags.most_boxes,
      .rank = [&shapes](const std::string& value) { return shapes.Rank(value); }};
  int64_t done = 0;
  // Positions of nodes change with each rewrite, so that the forms are looked for again.
  std::vector<std::string> left;
  while (true) {
    std::optional<StaticForm> next;
    for (StaticForm& form : FindStaticForms(model.graph())) {
      if (std::find(left.begin(), left.end(), form.node) != left.end()) continue;
      next = std::move(form);
      break;
    }
    if (!next.has_value()) break;
    left.push_back(next->node);
    absl::StatusOr<FormFacts> facts = FormFacts();
    if (next->known) facts = Prove(*next, shapes);
    absl::Status status = facts.status();
    if (next->has_rows) {
      const auto changed = ApplyRowForm(next->output, row_options, model);
      status = changed.status();
      if (changed.ok()) {
        for (const MaskedOutput& output : *changed) masks[output.name] = output;
      }
    } else if (status.ok()) {
      onnx::ModelProto changed = model;
      status = ApplyStaticForm(*next, *facts, {.allow_output_change = flags.allow_output_change},
                               changed);
      if (status.ok()) model = std::move(changed);
    }
    if (status.ok()) {
      ++done;
      if (next->reaches_output && !next->has_rows) {
        const std::string& mask = model.graph().output(model.graph().output_size() - 1).name();
        masks[next->output] = {.name = next->output, .mask = mask};
      }
    }
    const std::string why = status.ok() ? "yes" : absl::StrCat("no: ", status.message());
    table.AddRow({absl::StrCat(next->op, " '", next->node, "'"), why, next->words});
    report["nodes"].push_back({{"node", next->node},
                               {"op", next->op},
                               {"rewritten", status.ok()},
                               {"why_not", status.ok() ? "" : std::string(status.message())},
                               {"form", next->words}});
  }
  // Lists the nodes at which data decide shapes still, of which no form is known; then all is told.
  const auto tell = [&](const Model& rewritten) {
    if (rewritten.tail() != nullptr) {
      for (const Cut& cut : rewritten.tail()->cuts()) {
        if (std::find(left.begin(), left.end(), cut.node) != left.end()) continue;
        table.AddRow(
            {absl::StrCat(cut.op, " '", cut.node, "'"), absl::StrCat("no: ", cut.why), kNoForm});
        report["nodes"].push_back({{"node", cut.node},
                                   {"op", cut.op},
                                   {"rewritten", false},
                                   {"why_not", cut.why},
                                   {"form", kNoForm}});
      }
    }
    if (flags.json) return;
    if (table.empty()) std::printf("%s has no dynamic operator\n", flags.in.c_str());
    if (!table.empty()) std::printf("%s\n", table.Text().c_str());
  };
  if (done == 0) {
    tell(*was);
    if (flags.json) RETURN_IF_ERROR(PrintJson(report));
    return absl::FailedPreconditionError(
        absl::StrCat("nothing was rewritten, ", flags.out, " is not written"));
  }
  // Weights in other files are found from where the model lies: it is tried there, under a name of
  // its own, so that nothing else is lost where it is not kept.
  const std::filesystem::path out = std::filesystem::absolute(flags.out);
  const std::filesystem::path tried = absl::StrCat(out.string(), ".tried");
  RETURN_IF_ERROR(WriteFileAtomically(tried.parent_path().string(), tried.filename().string(),
                                      model.SerializeAsString()));
  const auto checked = [&]() -> absl::StatusOr<Comparison::Tally> {
    ASSIGN_OR_RETURN(const std::shared_ptr<Model> now, LoadExactly(local, tried.string()));
    tell(*now);
    Comparison comparison(local, *was, *now, masks);
    RETURN_IF_ERROR(Compare(local, *was, *now, flags, comparison));
    return comparison.tally();
  }();
  std::error_code moved;
  if (checked.ok()) std::filesystem::rename(tried, out, moved);
  if (!checked.ok() || moved) {
    std::error_code ignored;
    std::filesystem::remove(tried, ignored);
  }
  if (!checked.ok()) {
    return absl::Status(
        checked.status().code(),
        absl::StrCat("the rewritten model is not kept: ", std::string(checked.status().message())));
  }
  if (moved) {
    return absl::UnavailableError(
        absl::StrCat("'", flags.out, "' cannot be written: ", moved.message()));
  }
  if (flags.json) {
    report["compared"] = {{"runs", checked->runs},
                          {"elements", checked->elements},
                          {"largest_difference", checked->largest}};
    return PrintJson(report);
  }
  std::printf(
      "%s: %lld rewritten; compared with %s in %lld runs, %lld elements of answers, the "
      "largest difference is %g\n",
      flags.out.c_str(), static_cast<long long>(done), flags.in.c_str(),
      static_cast<long long>(checked->runs), static_cast<long long>(checked->elements),
      checked->largest);
  return absl::OkStatus();
}

}  // namespace

void AddRewrite(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<RewriteFlags>();
  CLI::App* command = app.add_subcommand(
      "rewrite", "Give dynamic operators of a model a form of fixed size; no server");
  command->footer(
      "x[x > 0].sum() is Where and ReduceSum: such selections are rewritten where the shapes of "
      "mask\nand values agree. Both models then run on made-up inputs, and on the ones of "
      "--inputs, and the\nnew one is kept only where the answers agree. Other selections are "
      "listed with the form\nthat would do.");
  AddOption(*command, "in", flags->in, "IN.onnx", "The model")->required();
  AddOption(*command, "out", flags->out, "OUT.onnx", "The rewritten model")->required();
  command
      ->add_flag("--static", flags->is_static,
                 "Rewrite dynamic sizes to fixed ones; the only "
                 "kind of rewrite")
      ->required();
  command->add_flag("--allow-output-change", flags->allow_output_change,
                    "Also rewrite a dynamic size of an output, which then keeps all elements and "
                    "gets a mask as a further output");
  AddOption(*command, "--most-boxes", flags->most_boxes, "N",
            "NonMaxSuppression: the most boxes of a class in a picture, where the model "
            "allows more")
      ->check(CLI::PositiveNumber);
  AddOption(*command, "--inputs", flags->inputs, "FILE.json",
            "Compare on these inputs too, as for infer")
      ->check(CLI::ExistingFile);
  AddJson(*command, flags->json);
  command->callback([flags, &action] { action = [flags] { return RunRewrite(*flags); }; });
}

}  // namespace reprise::cli
