// CountingEvents: events of the core, counted in the catalogue and written to the log.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "server/config/log_switch.h"
#include "server/metrics/catalogue.h"
#include "server/repository/events.h"

namespace reprise {

// `catalogue` outlives the object and all that it makes.
class CountingEvents final : public ServerEvents {
 public:
  CountingEvents(Catalogue& catalogue, LogFunction log);
  ~CountingEvents() override;
  std::unique_ptr<ModelEvents> ForModel(const std::string& name,
                                        const std::string& version) override;
  void OnUnknownModel(const RequestRecord& record) override;

 private:
  Catalogue& catalogue_;
  const LogFunction log_;
  const std::unique_ptr<ModelEvents> unknown_;
};

}  // namespace reprise
