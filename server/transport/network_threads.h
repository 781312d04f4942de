// NetworkThreads: the threads that take the steps of a port's connections.
//
// When clients that held much disconnect, each of them gives the end of its heap back to the
// system, which no other thread can do for it.
//
// Threads: Start and Join from one.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <thread>
#include <vector>

#include "runtime/base/mutex.h"
#include "server/transport/byte_account.h"

namespace reprise {

class NetworkThreads {
 public:
  // `io` outlives this. `account`: of the clients of the port; outlives the threads; null: memory
  // is kept.
  NetworkThreads(boost::asio::io_context& io, const ByteAccount* account)
      : io_(io), account_(account), pause_(io) {}
  ~NetworkThreads() { Join(); }

  void Start(int threads);
  // Ends the steps: those that are left are not taken any more.
  void Join();

 private:
  void Run();
  // Looks once a second whether there is memory for the system.
  void LookLater();
  void Look();
  // Gives back the end of this thread's heap, if that is asked for and not done yet.
  void GiveBackEnd();

  boost::asio::io_context& io_;
  const ByteAccount* const account_;
  boost::asio::steady_timer pause_;
  int64_t falls_ = 0;  // the account's falls, as last seen; one look at a time uses it
  std::vector<std::thread> threads_;
  Mutex mutex_;
  std::vector<std::thread::id> asked_ GUARDED_BY(mutex_);  // threads that have not given back yet
};

}  // namespace reprise
