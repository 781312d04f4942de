// RemoteModels: the models that --model names at a place elsewhere (hf://, s3://, gs://, https://).
//
// They are downloaded when they are loaded, and again when they are asked to load once more:
// changes there are then served.
//
// Threads: all methods from any.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace reprise {

class RemoteModels {
 public:
  // Downloads the model of a name (ModelUrl) and returns the path of its folder or file. Runs on
  // a loader thread, and ends soon once `cancelled` returns true.
  using Bring = std::function<absl::StatusOr<std::string>(const std::string& url,
                                                          const std::function<bool()>& cancelled)>;

  // `repositories`: folders, and models by NAME=PATH or NAME=URL.
  RemoteModels(const std::vector<std::string>& repositories, Bring bring);

  // Returns the repositories that are on this machine.
  const std::vector<std::string>& local() const { return local_; }
  // Returns the names of those that are not, in order.
  std::vector<std::string> names() const;
  bool Has(const std::string& name) const { return urls_.contains(name); }
  // Downloads the model of that name; "NAME=PATH", as a repository is named.
  absl::StatusOr<std::string> Fetch(const std::string& name,
                                    const std::function<bool()>& cancelled) const;

 private:
  // Constant after construction.
  std::vector<std::string> local_;
  std::map<std::string, std::string> urls_;  // keys are names
  const Bring bring_;
};

}  // namespace reprise
