#include "runtime/engine/audit/auditor.h"

#include <cmath>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "runtime/base/cpu_clock.h"
#include "runtime/base/format_text.h"
#include "runtime/base/memory_net.h"
#include "runtime/engine/capture/capture_pool.h"
#include "runtime/engine/replay/helper_pool.h"
#include "runtime/engine/tune/background_throttle.h"
#include "runtime/graph/graph.h"
#include "runtime/recipe/record_file.h"

namespace reprise {
namespace {

// Answers that wait for their turn, and the bytes of their copies.
constexpr int64_t kMostWaiting = 16;
constexpr int64_t kMostWaitingBytes = int64_t{64} << 20;

// Sums of floats in another order; and steps of quantisation, which the last bit of a number in
// front of them moves.
constexpr double kToleranceOfFloats = 1e-3;
constexpr double kToleranceOfSteps = 0.1;

bool Quantises(const Graph& graph) {
  return absl::c_any_of(graph.NodeIds(), [&](NodeId id) {
    const std::string& op = graph.node(id).op;
    return absl::StrContains(op, "Quantize") || absl::StrContains(op, "Integer") ||
           absl::StartsWith(op, "QLinear");
  });
}

bool DrawsNumbers(const Graph& graph) {
  return absl::c_any_of(graph.NodeIds(), [&](NodeId id) {
    const std::string& op = graph.node(id).op;
    return absl::StartsWith(op, "Random") || op == "Bernoulli";
  });
}

bool WasPadded(const BatchPlan& plan, const BatchTarget& target, const RequestShape& shape) {
  return plan.packed() || plan.shapes().size() > 1 ||
         (target.bucketed && target.sizes != shape.sizes);
}

int CoresOf(const EngineOptions& options) {
  return options.cores == nullptr ? 1 : options.cores->cores();
}

}  // namespace

Auditor::Auditor(const EngineOptions& options, RunExact run_exact)
    : options_(options),
      run_exact_(std::move(run_exact)),
      budget_(CoresOf(options), options.clock->NowNs()) {}

double Auditor::ToleranceOf(const Model& model) {
  const bool rounds = model.options().precision != Precision::kExact ||
                      model.options().weights != WeightBits::kStored ||
                      model.program().nodes != nullptr || Quantises(*model.program().graph);
  return rounds ? kToleranceOfSteps : kToleranceOfFloats;
}

bool Auditor::CanAudit(const Model& model) {
  return model.tail() == nullptr && !DrawsNumbers(*model.program().graph);
}

bool Auditor::IsSampled() {
  const auto before = static_cast<double>(padded_answers_.fetch_add(1, std::memory_order_relaxed));
  const double share = options_.audit_share;
  return std::floor((before + 1) * share) > std::floor(before * share);
}

void Auditor::Consider(const BatchPlan& plan, const BatchTarget& target,
                       absl::Span<const Request* const> requests,
                       absl::Span<const Response> responses) {
  if (options_.audit_share <= 0 || options_.captures == nullptr) return;
  for (size_t i = 0; i < requests.size(); ++i) {
    const RequestShape& shape = plan.shapes()[i];
    const bool counts = responses[i].status.ok() && !shape.rehearsal && !shape.exact &&
                        !shape.needs_variant() && shape.own_values.empty() &&
                        WasPadded(plan, target, shape);
    if (counts && IsSampled()) Add(plan, target, i, *requests[i], responses[i]);
  }
}

void Auditor::Add(const BatchPlan& plan, const BatchTarget& target, size_t i,
                  const Request& request, const Response& response) {
  const Model& model = plan.model();
  if (!CanAudit(model)) return;
  ModelObserver& observer = model.owner()->observer();
  const int64_t now_ns = options_.clock->NowNs();
  const int64_t bytes = AuditedAnswer::BytesOf(model, request, response);
  const bool has_room = waiting_ < kMostWaiting && waiting_bytes_ + bytes <= kMostWaitingBytes &&
                        budget_.Allows(now_ns);
  if (!has_room) return observer.On(AuditOutcome{AuditResult::kSkipped});
  std::string served = absl::StrCat(plan.packed() ? "packed, bucket " : "bucket ", target.bucket);
  if (const size_t others = plan.shapes().size() - 1; others > 0) {
    absl::StrAppend(&served, ", with ", others, " other request", others == 1 ? "" : "s");
  }
  const auto answer = std::make_shared<const AuditedAnswer>(model, plan.shapes()[i], request,
                                                            response, std::move(served));
  ++waiting_;
  waiting_bytes_ += bytes;
  const auto job = [this, answer, bytes, now_ns,
                    weak = std::weak_ptr<const Model>(model.shared_from_this())](Stream* stream) {
    const absl::Cleanup gone = [&] {
      --waiting_;
      waiting_bytes_ -= bytes;
    };
    const std::shared_ptr<const Model> audited = weak.lock();
    if (stream == nullptr || audited == nullptr) return;
    const bool done = WhereMemoryAllows([&] { Audit(*audited, *answer, now_ns, *stream); });
    if (!done) audited->owner()->observer().On(AuditOutcome{AuditResult::kSkipped});
  };
  if (options_.captures->Add(CaptureUrgency::kTuning, job)) return;
  --waiting_;
  waiting_bytes_ -= bytes;
  observer.On(AuditOutcome{AuditResult::kSkipped});
}

void Auditor::Audit(const Model& model, const AuditedAnswer& answer, int64_t asked_ns,
                    Stream& stream) {
  const ThreadCpuClock thread_clock;
  BackgroundThrottle throttle(ThrottleOptions(options_, asked_ns, thread_clock,
                                              [this] { return options_.captures->stopped(); }));
  ModelObserver& observer = model.owner()->observer();
  if (!throttle.Wait()) return observer.On(AuditOutcome{AuditResult::kSkipped});
  const Response exact = run_exact_(model, answer.shape(), answer.request(), stream);
  budget_.Spend(throttle.spent_ns());
  // A model whose memory is short, or that is being unloaded, tells nothing.
  if (!exact.status.ok()) return observer.On(AuditOutcome{AuditResult::kSkipped});
  const Difference difference = answer.DifferenceTo(model, exact);
  if (difference.value <= ToleranceOf(model)) return observer.On(AuditOutcome{AuditResult::kEqual});
  observer.On(AuditOutcome{AuditResult::kDifferent});
  Report(model, answer, difference);
}

void Auditor::Report(const Model& model, const AuditedAnswer& answer,
                     const Difference& difference) const {
  const std::string words =
      absl::StrCat("an audited answer differs: output '", model.outputs()[difference.output].name,
                   "' is off by ", FormatText("%.2g", difference.value), " of its largest number (",
                   answer.served(), "; ", answer.SizesText(model), ")");
  for (size_t axis = 0; axis < model.axes().size(); ++axis) {
    AxisCertificate certificate = model.CertificateOf(axis);
    if (!certificate.certified) continue;
    model.quarantine().Add(axis, std::move(certificate), words);
    model.owner()->observer().On(Quarantine{axis});
  }
  model.Note(absl::StrCat(words, ": it runs at exact sizes, alone, until it is loaded again",
                          Keep(model, answer)));
}

std::string Auditor::Keep(const Model& model, const AuditedAnswer& answer) const {
  if (options_.audit_dir.empty()) return "";
  const absl::StatusOr<std::string> json = answer.RequestJson(model);
  if (!json.ok()) return absl::StrCat("; the request is not kept: ", json.status().message());
  const std::string name = absl::StrCat(absl::StrReplaceAll(model.id().name, {{"/", "_"}}), "-",
                                        model.id().version, "-", options_.clock->NowNs(), ".json");
  const absl::Status written = WriteFileAtomically(options_.audit_dir, name, *json);
  if (!written.ok()) return absl::StrCat("; the request is not kept: ", written.message());
  return absl::StrCat("; the request is in ", options_.audit_dir, "/", name,
                      " (see reprise audit --requests)");
}

}  // namespace reprise
