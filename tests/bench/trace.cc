#include "tests/bench/trace.h"

#include <algorithm>
#include <iostream>
#include <utility>

namespace reprise {

OneRow::OneRow(const Model& model, int64_t length, std::mt19937& random) {
  for (const ModelIo& input : model.inputs()) {
    std::vector<int64_t>& values = columns.emplace_back(length, 0);
    const std::string& name = input.name;
    const bool mask = name.find("mask") != std::string::npos;
    const bool ids =
        name.find("ids") != std::string::npos && name.find("type") == std::string::npos;
    for (int64_t& value : values) value = mask ? 1 : ids ? 1000 + random() % 20000 : 0;
    request.inputs.push_back({{1, length}, values.data()});
  }
}

int64_t RunTrace(Engine& engine, const Model& model, Stream& stream,
                 const std::vector<std::unique_ptr<OneRow>>& requests, size_t window, bool alone) {
  const Clock& clock = *engine.options().clock;
  const int64_t start = clock.NowNs();
  for (size_t first = 0; first < requests.size(); first += window) {
    std::vector<std::pair<RequestShape, const Request*>> waiting;
    for (size_t i = first; i < std::min(requests.size(), first + window); ++i) {
      waiting.emplace_back(*model.Measure(requests[i]->request), &requests[i]->request);
    }
    // Padding is least among requests that are alike.
    std::stable_sort(waiting.begin(), waiting.end(),
                     [](const auto& a, const auto& b) { return a.first.tokens < b.first.tokens; });
    while (!waiting.empty()) {
      BatchPlan plan(model);
      std::vector<const Request*> together;
      std::vector<std::pair<RequestShape, const Request*>> rest;
      for (auto& one : waiting) {
        if (!(alone && !plan.empty()) && plan.TryAdd(one.first)) {
          together.push_back(one.second);
        } else {
          rest.push_back(std::move(one));
        }
      }
      for (const Response& response : engine.Run(plan, together, stream)) {
        if (!response.status.ok()) std::cerr << response.status << "\n";
      }
      waiting = std::move(rest);
    }
  }
  return clock.NowNs() - start;
}

}  // namespace reprise
