// CountingEvents: events of the core, counted in the catalogue and written to the log.
#pragma once

#include <memory>
#include <string>

#include "server/log.h"
#include "server/metrics/catalogue.h"
#include "server/repository/events.h"
#include "server/request_log.h"

namespace reprise {

// Catalogue and logs outlive the object and all that it makes.
class CountingEvents final : public ServerEvents {
 public:
  CountingEvents(Catalogue& catalogue, Log& log, const RequestLog& requests);
  ~CountingEvents() override;
  std::unique_ptr<ModelEvents> ForModel(const std::string& name,
                                        const std::string& version) override;
  void OnUnknownModel(const RequestRecord& record) override;

 private:
  Catalogue& catalogue_;
  Log& log_;
  const RequestLog& requests_;
  const std::unique_ptr<ModelEvents> unknown_;
};

}  // namespace reprise
