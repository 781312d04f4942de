#include "runtime/lazy/programs.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "runtime/base/status_macros.h"
#include "runtime/engine/graph_model.h"
#include "runtime/graph/text.h"
#include "runtime/lazy/numbers.h"
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

absl::StatusOr<Session*> Programs::Find(const std::vector<TracedValuePtr>& wanted,
                                        std::vector<TracedValuePtr>& inputs) {
  const std::vector<bool> none;
  TracedGraph traced = GraphOf(wanted, {.held = &none});
  const std::string graph = ProgramKey(traced);
  auto held = held_.find(graph);
  if (held == held_.end() && !by_key_.contains(graph) && options_.fusion) {
    const std::vector<bool> hold = NumbersToHold(wanted, traced.numbers.size());
    if (absl::c_linear_search(hold, true)) held = held_.emplace(graph, hold).first;
  }
  std::string key = graph;
  inputs = traced.inputs;
  if (held != held_.end()) {
    for (size_t i = 0; i < traced.numbers.size(); ++i) {
      if (!held->second[i]) continue;
      const TracedValuePtr& number = traced.numbers[i];
      absl::StrAppend(&key, "#", i, "=");
      key.append(reinterpret_cast<const char*>(number->bytes.get()), number->size());
      std::erase(inputs, number);
    }
  }
  if (const auto found = by_key_.find(key); found != by_key_.end()) {
    entries_.splice(entries_.begin(), entries_, found->second);
    return entries_.front().session.get();
  }
  if (held != held_.end()) traced = GraphOf(wanted, {.held = &held->second});
  ASSIGN_OR_RETURN(std::unique_ptr<Session> session, Bind(traced, {}));
  while (!entries_.empty() && static_cast<int64_t>(entries_.size()) >= options_.max_programs) {
    by_key_.erase(entries_.back().key);
    held_.erase(entries_.back().graph);
    entries_.pop_back();
    ++evictions_;
  }
  entries_.push_front({.graph = graph, .key = std::move(key), .session = std::move(session)});
  by_key_[entries_.front().key] = entries_.begin();
  return entries_.front().session.get();
}

}  // namespace reprise::lazy
