// WatchedPages: a mapped file that became shorter, or cannot be read any more, ends no process.
//
// The system answers a read of such a page with SIGBUS, whose default is the end of the process.
// Once a program has called CatchFileFaults, a page of WatchedPages that is gone reads as zeros
// instead, and lost() tells. The reader asks that before it uses the bytes.
//
// A signal handler sees only global state: the watched ranges are kept in one table of the process,
// which has room for 4096. More are not watched.
//
// Threads: CatchFileFaults once, from main; the rest from any.
#pragma once

#include <cstddef>

namespace reprise {

// Installs the handler. Every other SIGBUS has the same effect as before.
void CatchFileFaults();

class WatchedPages {
 public:
  // `address` begins a mapping, which outlives the object.
  WatchedPages(const void* address, size_t bytes);
  ~WatchedPages();
  WatchedPages(const WatchedPages&) = delete;
  WatchedPages& operator=(const WatchedPages&) = delete;

  // Returns whether a page was read that is not there any more.
  bool lost() const;

 private:
  int slot_ = -1;  // its index in the table; -1: not watched
};

}  // namespace reprise
