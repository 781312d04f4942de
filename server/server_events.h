// CountingEvents: events of the core, counted in the catalogue and written to the log.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "server/log.h"
#include "server/metrics/catalogue.h"
#include "server/prefixes/prefix_publisher.h"
#include "server/repository/events.h"
#include "server/request_log.h"

namespace reprise {

// Sums over all models, for load reports.
struct EventCounts {
  std::atomic<int64_t> requests{0};
  std::atomic<int64_t> errors{0};      // requests that failed by the server's doing
  std::atomic<int64_t> pages_used{0};  // pages of keys and values, now
  std::atomic<int64_t> pages{0};
};

// Catalogue, logs and publisher outlive the object and all that it makes.
class CountingEvents final : public ServerEvents {
 public:
  // `prefixes`: gets the pages of models that make tokens; null: none does.
  CountingEvents(Catalogue& catalogue, Log& log, const RequestLog& requests,
                 PrefixPublisher* prefixes);
  ~CountingEvents() override;
  std::unique_ptr<ModelEvents> ForModel(const std::string& name,
                                        const std::string& version) override;
  void OnUnknownModel(const RequestRecord& record) override;

  const EventCounts& counts() const { return *counts_; }

 private:
  Catalogue& catalogue_;
  Log& log_;
  const RequestLog& requests_;
  PrefixPublisher* const prefixes_;
  const std::shared_ptr<EventCounts> counts_ = std::make_shared<EventCounts>();
  const std::unique_ptr<ModelEvents> unknown_;
};

}  // namespace reprise
