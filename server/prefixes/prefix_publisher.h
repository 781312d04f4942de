// PrefixPublisher: a port that tells its subscribers which pages of keys and values there are, by
// content, so that a router sends a request to the server that has computed how it begins.
//
// A subscriber is first told that no page is left, and all pages that there are; then each change.
// One that does not read is disconnected, and begins again when it comes back: no subscriber
// misses a change. Pages of a salt are not told, since routers do not know them.
//
// Topics are "kv@INSTANCE@MODEL". Messages have three parts: the topic, a number that grows by one
// with each message of a connection (eight bytes, big-endian), and a batch (prefix_events.h).
//
// Threads: all methods from any; those of a Pages by one at a time.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "runtime/base/mutex.h"
#include "runtime/sequences/page_pool.h"
#include "server/prefixes/prefix_events.h"
#include "server/transport/listener.h"
#include "server/transport/network_threads.h"

namespace reprise {

class PrefixPublisher {
 public:
  // More subscribers wait until one leaves.
  static constexpr int kMostSubscribers = 16;

  // `instance`: the name of this server in topics.
  explicit PrefixPublisher(std::string instance);
  ~PrefixPublisher();

  // Errors as Listener::Listen.
  absl::Status Start(const std::string& address, int port);
  int port() const { return listener_.port(); }

  // The pages of a version of a model, which are forgotten with the object. The publisher outlives
  // it.
  class Pages {
   public:
    Pages(PrefixPublisher& publisher, const std::string& model, const std::string& version);
    ~Pages();
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    void OnPage(const PageChange& change);

   private:
    PrefixPublisher& publisher_;
    const uint64_t seed_;  // tells equal ids of different models apart, on all servers alike
    const int64_t number_;
  };

 private:
  class Subscriber;

  // Pages by their hashes, and in the order in which they came: those before others first.
  struct Place {
    int64_t order = 0;
    int64_t pools = 1;  // that have the page: of a model that is loaded again there are two
  };
  struct Held {
    std::string model;
    std::map<int64_t, PrefixEvent> in_order;
    std::unordered_map<uint64_t, Place> places;
    int64_t next = 0;
  };

  std::string TopicOf(const std::string& model) const;
  void Change(int64_t number, PrefixEvent event);
  void ForgetPages(int64_t number);
  // Queues an event, and has it sent soon.
  void Add(const std::string& model, PrefixEvent event) REQUIRES(mutex_);
  // The rest runs on the thread of the port. Sends what was queued.
  void Flush();
  void Deliver(const std::map<std::string, std::vector<PrefixEvent>>& changes);
  // Sends all pages of the topics that begin with `prefix` to a subscriber that has not had them.
  void Subscribe(const std::shared_ptr<Subscriber>& subscriber, const std::string& prefix);
  void Leave(const std::shared_ptr<Subscriber>& subscriber) { subscribers_.erase(subscriber); }

  // Constant after construction.
  const std::string instance_;
  // Guarded.
  Mutex mutex_;
  std::map<int64_t, Held> held_ GUARDED_BY(mutex_);  // the key is the number of a Pages
  std::map<std::string, std::vector<PrefixEvent>> queued_
      GUARDED_BY(mutex_);  // the key is the model
  bool flushes_ GUARDED_BY(mutex_) = false;
  int64_t opened_ GUARDED_BY(mutex_) = 0;
  // Used on the thread of the port.
  std::set<std::shared_ptr<Subscriber>> subscribers_;
  // Self-synchronised.
  boost::asio::io_context io_;
  Listener listener_;
  NetworkThreads threads_;  // end first
};

}  // namespace reprise
