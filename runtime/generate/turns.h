// Turns: pieces of work that several threads do concurrently, except for one part of each, which
// they do in order, the first piece first.
//
// Threads: all methods from any; each piece has a turn of its own. Pieces must be begun in order,
// or the one whose turn it is might be queued after pieces that wait for it.
#pragma once

#include <cstddef>

#include "runtime/base/mutex.h"

namespace reprise {

class Turns {
 public:
  // One piece's turn, which ends with the object, waited for or not.
  class Turn {
   public:
    Turn(Turns& turns, size_t position) : turns_(turns), position_(position) {}
    ~Turn() {
      Await();
      turns_.EndOf(position_);
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    // Returns when the turns of all pieces before this one have ended.
    void Await() { turns_.AwaitOf(position_); }

   private:
    Turns& turns_;
    const size_t position_;
  };

 private:
  void AwaitOf(size_t position) {
    MutexLock lock(mutex_);
    while (next_ != position) changed_.Wait(mutex_);
  }
  void EndOf(size_t position) {
    MutexLock lock(mutex_);
    next_ = position + 1;
    changed_.NotifyAll();
  }

  Mutex mutex_;
  CondVar changed_;
  size_t next_ GUARDED_BY(mutex_) = 0;
};

}  // namespace reprise
