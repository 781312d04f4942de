// ConnectionPlace: the place of a connection among those that its port may have. Given back when it
// goes.
//
// A port has some spare places beyond its limit, so that probes of health and metrics are answered
// while clients hold all the others: a client on one is answered nothing else, and has little time.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace reprise {

class ConnectionPlace {
 public:
  explicit ConnectionPlace(std::shared_ptr<std::atomic<int>> taken, bool is_spare = false)
      : taken_(std::move(taken)), is_spare_(is_spare) {
    ++*taken_;
  }
  ~ConnectionPlace() {
    if (taken_ != nullptr) --*taken_;
  }
  ConnectionPlace(ConnectionPlace&& other) = default;
  ConnectionPlace& operator=(ConnectionPlace&&) = delete;

  bool is_spare() const { return is_spare_; }

 private:
  std::shared_ptr<std::atomic<int>> taken_;
  bool is_spare_;
};

}  // namespace reprise
