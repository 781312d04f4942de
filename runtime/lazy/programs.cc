#include "runtime/lazy/programs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/graph_model.h"
#include "runtime/graph/text.h"
#include "runtime/lazy/op_stream.h"
#include "runtime/lazy/trace.h"

namespace reprise::lazy {
namespace {

std::string ProgramKey(const TracedGraph& traced) {
  std::string key = Print(traced.graph, {.names = false});
  for (const TracedValuePtr& parameter : traced.parameters) {
    absl::StrAppend(&key, "#", parameter->parameter_number);
  }
  return key;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Programs::Bind(TracedGraph& traced,
                                                        SessionOptions options) {
  std::vector<reprise::Tensor> parameters;
  for (const TracedValuePtr& value : traced.parameters) parameters.push_back(*value->parameter);
  ASSIGN_OR_RETURN(ImportedModel made,
                   ModelOfGraph(std::move(traced.graph), std::move(parameters)));
  for (size_t i = 0; i < made.outputs.size(); ++i) {
    made.outputs[i].name =
        i < traced.output_names.size() ? traced.output_names[i] : absl::StrCat("output_", i);
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<Model> model,
                   engine_.Load({.id = {.name = "program"},
                                 .bucket_mode = BucketMode::kOff,
                                 .precision = options_.precision,
                                 .precision_ops = options_.precision_ops,
                                 .fusion = options_.fusion,
                                 .tune = TuneMode::kOff},
                                std::move(made)));
  ++captures_;
  return engine_.Bind(model, {}, std::move(options));
}

absl::StatusOr<Session*> Programs::Find(TracedGraph& traced) {
  std::string key = ProgramKey(traced);
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    entries_.splice(entries_.begin(), entries_, found->second);
    return entries_.front().session.get();
  }
  ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Bind(traced, {}));
  while (!entries_.empty() && static_cast<int64_t>(entries_.size()) >= options_.max_programs) {
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
    ++evictions_;
  }
  entries_.push_front({.key = std::move(key), .session = std::move(session)});
  by_key_[entries_.front().key] = entries_.begin();
  return entries_.front().session.get();
}

}  // namespace reprise::lazy
