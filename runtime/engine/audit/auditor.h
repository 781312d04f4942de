// Auditor: computes a share of the answers again, after they were sent, and compares.
//
// Looked at are answers of replays that were padded, packed or shared; each is computed alone, at
// its exact size, with the kernels that the model has there. Work waits for a moment without
// replays (BackgroundThrottle), and takes at most AuditBudget's share of the cores. An answer that
// differs by more than its precision allows is counted and logged, and its model runs exact until
// it is loaded again: its axes are quarantined (PaddingProgress).
//
// Left out: models that are cut where data decides shapes, models that draw random numbers,
// requests with values for initialisers.
//
// Threads: all methods from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/types/span.h"
#include "runtime/engine/audit/audit_budget.h"
#include "runtime/engine/audit/audited_answer.h"
#include "runtime/engine/batch/batch_plan.h"
#include "runtime/engine/replay/stream.h"
#include "runtime/engine/types/engine_options.h"

namespace reprise {

class Auditor {
 public:
  // Answers `request` of `model` alone, at its exact size, on `stream`; nothing counts that.
  using RunExact = std::function<Response(const Model& model, const RequestShape& shape,
                                          const Request& request, Stream& stream)>;

  // `options` outlive the object, which outlives the jobs of options.captures.
  Auditor(const EngineOptions& options, RunExact run_exact);

  // Takes the answers of a replay that are among the share. `target`: of the recipe that it had.
  void Consider(const BatchPlan& plan, const BatchTarget& target,
                absl::Span<const Request* const> requests, absl::Span<const Response> responses);

  // Returns the largest difference (Difference::value) of right answers of `model`.
  static double ToleranceOf(const Model& model);
  // Returns whether `model` answers alike whenever it is asked alike, in one graph.
  static bool CanAudit(const Model& model);

 private:
  bool IsSampled();
  void Add(const BatchPlan& plan, const BatchTarget& target, size_t i, const Request& request,
           const Response& response);
  // `asked_ns`: when the answer was sent.
  void Audit(const Model& model, const AuditedAnswer& answer, int64_t asked_ns, Stream& stream);
  void Report(const Model& model, const AuditedAnswer& answer, const Difference& difference) const;
  // Writes the request to options.audit_dir. Returns the words for the log; empty: nothing is kept.
  std::string Keep(const Model& model, const AuditedAnswer& answer) const;

  // Constant after construction.
  const EngineOptions& options_;
  const RunExact run_exact_;
  // Self-synchronised.
  AuditBudget budget_;
  std::atomic<uint64_t> padded_answers_{0};
  std::atomic<int64_t> waiting_{0};        // answers that are kept until their turn
  std::atomic<int64_t> waiting_bytes_{0};  // and their bytes
};

}  // namespace reprise
