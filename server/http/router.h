// Router: methods and paths -> what answers them.
//
// Threads: Add before the first request; Handle from any.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/http/http_server.h"

namespace reprise {

// The parts of a path where its pattern has {name}, percent-decoded.
using PathParts = std::map<std::string, std::string>;

class Router {
 public:
  using Handler = std::function<void(std::shared_ptr<HttpExchange>, const PathParts&)>;

  // `pattern`: "/v2/models/{model}/infer". A trailing slash of a path means nothing. GET answers
  // HEAD as well.
  void Add(std::string method, const std::string& pattern, Handler handler);

  // Answers 404 where no pattern fits, 405 where one does for another method.
  void Handle(std::shared_ptr<HttpExchange> exchange) const;

 private:
  struct Route {
    std::string method;
    std::vector<std::string> segments;
    Handler handler;
  };

  std::vector<Route> routes_;
};

}  // namespace reprise
