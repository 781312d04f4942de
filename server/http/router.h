// Router: methods and paths -> their handlers, and the right that this takes.
//
//   router.Add("POST", "/v2/models/{model}/infer", Right::kInfer, handler);
//   const Router::Found found = router.Find(request);
//   // ... may the client do what takes found.right()?
//   found.Answer(exchange);
//
// A request is matched once: it is judged and answered by the same `Found`.
//
// Threads: Add before the first request; the rest from any.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/access/right_table.h"
#include "server/http/http_message.h"

namespace reprise {

// The segments of a path where its pattern has {name}, without the end of a segment that the
// pattern has after it: "{model}:predict".
using PathParts = std::map<std::string, std::string>;

class Router {
 public:
  using Handler = std::function<void(std::shared_ptr<HttpExchange>, const PathParts&)>;

  struct Route {
    std::string method;
    std::string pattern;
    Right right;
    bool is_probe = false;  // probes and scrapers ask for it: answered on spare connections too
    std::vector<std::string> segments;  // the pattern's
    Handler handler;
  };

  // A request's route; without one, the answer says so.
  class Found {
   public:
    // Returns the right of the route. Where only the method does not fit, the right of a route that
    // has the path; kInfer for unknown paths.
    Right right() const { return right_; }
    // Returns the route's pattern; "" without a route.
    absl::string_view pattern() const {
      return route_ == nullptr ? absl::string_view() : absl::string_view(route_->pattern);
    }
    bool is_probe() const { return route_ != nullptr && route_->is_probe; }
    // Answers by the route's handler, else with 404 or 405; `exchange` has the request found.
    void Answer(std::shared_ptr<HttpExchange> exchange) const;

   private:
    friend class Router;
    const Route* route_ = nullptr;
    Right right_ = Right::kInfer;
    PathParts parts_;
    std::vector<std::string> others_;  // the methods that the path has, where it has not this one
  };

  // Adds a route; `pattern`: "/v2/models/{model}/infer". GET answers HEAD as well. The first route
  // that fits answers.
  void Add(std::string method, std::string pattern, Right right, Handler handler);
  // Does the same for a route that probes ask for.
  void AddProbe(std::string method, std::string pattern, Right right, Handler handler);

  // Finds the route of a request. The router outlives the result.
  Found Find(const HttpRequest& request) const;

  // Returns THE table of the routes, in order.
  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_;
};

}  // namespace reprise
