// reprise audit: whether padded answers are the exact ones, request by request.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/table.h"
#include "client/files/recorded_file.h"
#include "runtime/base/format_text.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/audit/audited_answer.h"
#include "runtime/engine/audit/auditor.h"
#include "tools/command.h"
#include "tools/local_engine.h"
#include "tools/serve/made_up_request.h"

namespace reprise::cli {
namespace {

struct AuditFlags {
  std::string path;
  std::string model;     // the model of a recording; empty: any
  std::string requests;  // a file: JSON of one request, or a recording; empty: they are made up
  std::string max_isa = std::string(IsaName(kEveryIsa));
  double tolerance = 0;  // 0: the server's
  bool json = false;
};

// Largest made-up ids: those that the model takes are the first with an answer.
constexpr int64_t kMostIds[] = {kMadeUpIds, 100, 10, 1};
// Lengths of requests that are made up, along each axis that is no batch.
constexpr int64_t kLengths[] = {1, 2, 3, 5, 9, 17, 33, 65, 100, 224};
// Rows of the request beside each.
constexpr int64_t kOtherRows = 2;

struct Audited {
  std::string sizes, bucket, output;
  double difference = 0;
  bool differs = false;
};

absl::StatusOr<std::vector<MadeUpRequest>> MadeUp(const Model& model, int64_t most) {
  std::vector<MadeUpRequest> all;
  absl::Status last;
  for (const int64_t length : kLengths) {
    AxisSizes sizes;
    for (const ModelAxis& axis : model.axes()) {
      sizes[axis.label] = axis.is_batch ? 1 : axis.Fitting(length);
    }
    absl::StatusOr<MadeUpRequest> made =
        MakeUpRequest(model, sizes, most, static_cast<uint64_t>(length));
    if (made.ok()) {
      all.push_back(*std::move(made));
    } else {
      last = made.status();
    }
  }
  if (all.empty()) return last;
  return all;
}

absl::StatusOr<std::vector<MadeUpRequest>> RequestsOf(const AuditFlags& flags, const Model& model,
                                                      int64_t most) {
  if (flags.requests.empty()) return MadeUp(model, most);
  std::vector<MadeUpRequest> all;
  absl::StatusOr<MadeUpRequest> one = RequestOfJson(model, flags.requests);
  if (one.ok()) {
    all.push_back(*std::move(one));
    return all;
  }
  const auto shapes = client::ReadRecordedFile(flags.requests, flags.model);
  if (!shapes.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("'", flags.requests, "' is neither a request (",
                                                   one.status().message(), ") nor a recording (",
                                                   shapes.status().message(), ")"));
  }
  uint64_t seed = 1;
  for (const client::RecordedShape& shape : *shapes) {
    AxisSizes sizes(shape.sizes.begin(), shape.sizes.end());
    for (const ModelAxis& axis : model.axes()) {
      if (sizes.contains(axis.label)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("'", flags.requests, "': a request has no size of axis ", axis.label));
    }
    ASSIGN_OR_RETURN(MadeUpRequest made, MakeUpRequest(model, sizes, most, seed++));
    all.push_back(std::move(made));
  }
  return all;
}

// Answers `request` as a server does, beside another one where they may share a replay.
absl::StatusOr<Audited> Audit(LocalEngine& local, const Model& model, const Request& request,
                              int64_t most, double tolerance, Stream& stream) {
  ASSIGN_OR_RETURN(const RequestShape shape, model.Measure(request));
  BatchPlan plan(model);
  if (!plan.TryAdd(shape)) return absl::InvalidArgumentError("no bucket holds the request");
  std::vector<const Request*> requests = {&request};
  AxisSizes beside;
  for (size_t i = 0; i < model.axes().size(); ++i) {
    const ModelAxis& axis = model.axes()[i];
    beside[axis.label] = axis.is_batch ? kOtherRows : axis.Fitting(shape.sizes[i] / 2 + 1);
  }
  const absl::StatusOr<MadeUpRequest> other = MakeUpRequest(model, beside, most);
  if (other.ok() && !shape.exact) {
    const absl::StatusOr<RequestShape> of_other = model.Measure(other->request);
    if (of_other.ok() && plan.TryAdd(*of_other)) requests.push_back(&other->request);
  }
  const Response answer = std::move(local.engine.Run(plan, requests, stream)[0]);
  RETURN_IF_ERROR(answer.status);
  const Response exact = local.engine.Recompute(model, shape, request, stream);
  RETURN_IF_ERROR(exact.status);
  const AuditedAnswer kept(model, shape, request, answer, answer.info.bucket);
  const Difference difference = kept.DifferenceTo(model, exact);
  return Audited{.sizes = kept.SizesText(model),
                 .bucket = answer.info.bucket,
                 .output = model.outputs()[difference.output].name,
                 .difference = difference.value,
                 .differs = difference.value > tolerance};
}

void Print(const std::vector<Audited>& all, bool as_json) {
  if (as_json) {
    auto json = nlohmann::ordered_json::array();
    for (const Audited& one : all) {
      json.push_back({{"sizes", one.sizes},
                      {"bucket", one.bucket},
                      {"output", one.output},
                      {"difference", FormatText("%.2g", one.difference)},
                      {"differs", one.differs}});
    }
    std::printf("%s\n", json.dump(2).c_str());
    return;
  }
  Table table({{"sizes"}, {"bucket"}, {"off by", kRight}, {"verdict"}});
  for (const Audited& one : all) {
    table.AddRow({one.sizes, one.bucket, FormatText("%.2g", one.difference),
                  one.differs ? absl::StrCat("different: output '", one.output, "'") : "equal"});
  }
  std::printf("%s", table.Text().c_str());
}

absl::Status RunAudit(const AuditFlags& flags) {
  LocalEngine local(*ParseIsa(flags.max_isa));
  ASSIGN_OR_RETURN(const std::shared_ptr<Model> model,
                   local.LoadToStudy(flags.path, Precision::kExact));
  if (!Auditor::CanAudit(*model)) {
    return absl::UnimplementedError(
        "the model is cut where data decide a shape, or draws random numbers: no single answer is "
        "the exact one");
  }
  const double tolerance = flags.tolerance > 0 ? flags.tolerance : Auditor::ToleranceOf(*model);
  ASSIGN_OR_RETURN(const std::unique_ptr<Stream> stream, Stream::Create({.cores = &local.cores}));
  std::vector<Audited> all;
  absl::Status refused;
  for (const int64_t most : kMostIds) {
    ASSIGN_OR_RETURN(const std::vector<MadeUpRequest> requests, RequestsOf(flags, *model, most));
    for (const MadeUpRequest& made : requests) {
      absl::StatusOr<Audited> audited =
          Audit(local, *model, made.request, most, tolerance, *stream);
      if (audited.ok()) {
        all.push_back(*std::move(audited));
      } else {
        refused = audited.status();
      }
    }
    if (!all.empty()) break;
  }
  if (all.empty()) return refused;
  Print(all, flags.json);
  const auto differing =
      std::count_if(all.begin(), all.end(), [](const Audited& one) { return one.differs; });
  if (differing == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(differing, " of ", all.size(),
                                          " answers differ from the same request computed alone"));
}

}  // namespace

void AddAudit(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<AuditFlags>();
  CLI::App* command = app.add_subcommand(
      "audit", "Compare padded answers with the same requests computed alone; no server");
  command->footer(
      "A server does so with a share of its answers (--audit-share). Exit 1 if one differs.");
  AddOption(*command, "model", flags->path, "MODEL.onnx", "Path of a model.onnx")->required();
  command
      ->add_option("--requests", flags->requests,
                   "A request as JSON, as for infer and as --audit-dir keeps it, or a recording of "
                   "`record`; made up without it")
      ->check(CLI::ExistingFile);
  command->add_option("--model", flags->model, "Model of the recording; all of it without it");
  command
      ->add_option("--tolerance", flags->tolerance,
                   "Largest difference of equal answers, as a part of an output's largest number; "
                   "the server's without it")
      ->check(CLI::NonNegativeNumber);
  AddMaxIsa(*command, flags->max_isa, "Most features of the CPU that kernels use");
  AddJson(*command, flags->json);
  command->callback([flags, &action] { action = [flags] { return RunAudit(*flags); }; });
}

}  // namespace reprise::cli
