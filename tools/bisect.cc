// reprise bisect: which pass, node and kernel make an answer wrong.

#include "tools/bisect/bisect.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/table.h"
#include "runtime/base/format_text.h"
#include "runtime/base/status_macros.h"
#include "tools/command.h"
#include "tools/local_engine.h"
#include "tools/serve/made_up_request.h"

namespace reprise::cli {
namespace {

struct BisectFlags {
  std::string path;
  std::string inputs;  // JSON, or a file of it; empty: they are made up
  std::string sizes;   // sizes of made-up inputs
  std::string max_isa = std::string(IsaName(kEveryIsa));
  BisectOptions options;
  bool json = false;
};

absl::StatusOr<MadeUpRequest> RequestToBisect(const BisectFlags& flags, const Model& model) {
  if (!flags.inputs.empty()) return RequestOfJson(model, flags.inputs);
  ASSIGN_OR_RETURN(const RequestSizes sizes, SizesOf(model, flags.sizes));
  return MakeUpRequest(model, sizes.sizes, kMadeUpIds);
}

// Reads the file again, without any pass, and with the names of axes that `model` has found.
absl::StatusOr<BisectSubject> BisectedSubject(const Model& model, const Request& request) {
  ASSIGN_OR_RETURN(ImportedModel imported,
                   ImportOnnxFile(model.options().path, nullptr, model.options().ranks));
  ASSIGN_OR_RETURN(const RequestShape shape, model.Measure(request));
  if (shape.needs_variant()) {
    return absl::InvalidArgumentError(
        "the request's sizes, or its values for initialisers, make a model of its own");
  }
  BisectSubject subject = {.graph = std::move(imported.graph),
                           .parameters = std::move(imported.parameters),
                           .files = std::move(imported.files)};
  subject.binding = model.KeyAt({.sizes = shape.sizes}, shape, nullptr).binding;
  for (size_t i = 0; i < model.inputs().size(); ++i) {
    const ModelIo& input = model.inputs()[i];
    const ValueId value = subject.graph.FindValue(input.name);
    if (value == kNone) continue;
    if (input.optional) {
      subject.graph.value(value).overridable = false;
      continue;
    }
    subject.graph.value(value).dims = input.dims;
    const InputTensor& sent = request.inputs[i];
    subject.inputs[input.name] = Tensor::Make(input.dtype, sent.shape, [&](void* data) {
      const size_t bytes = NumElements(sent.shape) * DTypeSize(input.dtype);
      if (bytes > 0) std::memcpy(data, sent.data, bytes);
    });
  }
  return subject;
}

std::string OffBy(double value) { return FormatText("%.2g", value); }

absl::Status PrintCulpritJson(const Culprit& culprit, const std::string& output) {
  nlohmann::ordered_json json = {{"agrees", culprit.agrees},
                                 {"difference", OffBy(culprit.difference.value)},
                                 {"output", output},
                                 {"pass", culprit.pass},
                                 {"pass_is_wrong", culprit.pass_is_wrong},
                                 {"made", culprit.made},
                                 {"node", culprit.node},
                                 {"kernel", culprit.kernel},
                                 {"trials", culprit.trials}};
  json["kernels"] = nlohmann::ordered_json::array();
  for (const KernelVerdict& verdict : culprit.kernels) {
    json["kernels"].push_back({{"kernel", verdict.kernel},
                               {"difference", OffBy(verdict.difference)},
                               {"wrong", verdict.wrong}});
  }
  return PrintJson(json);
}

void PrintCulprit(const Culprit& culprit, const std::string& output) {
  std::printf("output '%s' is off by %s of its largest number, found in %d trials\n",
              output.c_str(), OffBy(culprit.difference.value).c_str(), culprit.trials);
  if (culprit.agrees) {
    std::printf("the answers agree: no pass and no kernel is at fault\n");
    return;
  }
  if (culprit.pass.empty()) {
    std::printf("pass     none: the answer is wrong without any fusion\n");
  } else {
    std::printf("pass     %s (graph --without %s shows the graph without it)\n",
                culprit.pass.c_str(), culprit.pass.c_str());
    constexpr size_t kMostMade = 10;
    for (size_t i = 0; i < std::min(culprit.made.size(), kMostMade); ++i) {
      std::printf("made     %s\n", culprit.made[i].c_str());
    }
    if (culprit.made.size() > kMostMade) {
      std::printf("         and %zu more\n", culprit.made.size() - kMostMade);
    }
  }
  if (culprit.pass_is_wrong) {
    std::printf("kernel   none: reference kernels give the wrong answer, too\n");
    return;
  }
  std::printf("node     %s\nkernel   %s\n", culprit.node.c_str(), culprit.kernel.c_str());
  Table table({{"kernel alone"}, {"off by", kRight}, {"verdict"}});
  for (const KernelVerdict& verdict : culprit.kernels) {
    table.AddRow({verdict.kernel, OffBy(verdict.difference), verdict.wrong ? "wrong" : "right"});
  }
  std::printf("\n%s", table.Text().c_str());
}

absl::Status RunBisect(const BisectFlags& flags) {
  LocalEngine local(*ParseIsa(flags.max_isa));
  ASSIGN_OR_RETURN(const std::shared_ptr<Model> model,
                   local.Load({.id = {.name = flags.path}, .path = flags.path}));
  if (model->tail() != nullptr) {
    return absl::UnimplementedError(
        "data decide a shape, so that no single graph computes the answer; `reprise graph "
        "--without PASS` and `reprise replay` show the parts of the model");
  }
  ASSIGN_OR_RETURN(const MadeUpRequest made, RequestToBisect(flags, *model));
  ASSIGN_OR_RETURN(const BisectSubject subject, BisectedSubject(*model, made.request));
  ASSIGN_OR_RETURN(const Culprit culprit, Bisect(subject, local.device, flags.options));
  const std::string& output = model->outputs()[culprit.difference.output].name;
  if (flags.json) RETURN_IF_ERROR(PrintCulpritJson(culprit, output));
  if (!flags.json) PrintCulprit(culprit, output);
  if (culprit.agrees) return absl::OkStatus();
  return absl::InternalError(
      culprit.pass_is_wrong
          ? absl::StrCat("pass ", culprit.pass, " changes the answer")
          : absl::StrCat("kernel ", culprit.kernel, " of ", culprit.node, " is wrong"));
}

}  // namespace

void AddBisect(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<BisectFlags>();
  CLI::App* command = app.add_subcommand(
      "bisect", "Find the pass, node and kernel that make an answer wrong; no server");
  command->footer(
      "Passes that join or replace nodes, then kernels, are switched off by halves. Right is each\n"
      "node as the file has it, by its reference kernel. Exit 1 if something is at fault.");
  AddOption(*command, "model", flags->path, "MODEL.onnx", "Path of a model.onnx")->required();
  CLI::Option* inputs =
      AddOption(*command, "-i,--inputs", flags->inputs, "JSON|FILE",
                "JSON with the inputs, or a file of it, as for infer; made up without it");
  AddOption(*command, "--sizes", flags->sizes, "AXIS=SIZE,...",
            "Sizes of made-up inputs: a bucket, or a size for each axis")
      ->excludes(inputs);
  command
      ->add_option("--tolerance", flags->options.tolerance,
                   "Largest difference of right answers, as a part of an output's largest number")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  AddMaxIsa(*command, flags->max_isa, "Most features of the CPU that kernels use");
  AddJson(*command, flags->json);
  command->callback([flags, &action] { action = [flags] { return RunBisect(*flags); }; });
}

}  // namespace reprise::cli
