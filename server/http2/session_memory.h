// SessionMemory: where one HTTP/2 session of libnghttp2 takes its memory from.
//
// Each session keeps a buffer of a whole frame, 16 KiB, of which small answers touch the beginning
// alone. Such blocks are mapped for themselves: the pages that nobody touches take no memory, and
// the holes that the buffers of TLS leave in the heap are not filled with them.
//
// Threads: one at a time, as the session. Outlives the session.
#pragma once

#include <nghttp2/nghttp2.h>

#include <array>
#include <cstddef>

namespace reprise {

class SessionMemory {
 public:
  SessionMemory() = default;
  ~SessionMemory();
  SessionMemory(const SessionMemory&) = delete;
  SessionMemory& operator=(const SessionMemory&) = delete;

  // As libnghttp2 takes it.
  nghttp2_mem* mem() { return &mem_; }

 private:
  struct Block {
    void* data = nullptr;
    size_t bytes = 0;
  };

  // Null: the system has no memory.
  void* Take(size_t bytes);
  static void* TakeZeroed(size_t count, size_t bytes);
  void Give(void* data);
  void* Resize(void* data, size_t bytes);
  // The mapped block that begins at `data`; null: there is none.
  Block* Find(const void* data);

  nghttp2_mem mem_ = {
      this, [](size_t bytes, void* self) { return static_cast<SessionMemory*>(self)->Take(bytes); },
      [](void* data, void* self) { static_cast<SessionMemory*>(self)->Give(data); },
      [](size_t count, size_t bytes, void*) { return TakeZeroed(count, bytes); },
      [](void* data, size_t bytes, void* self) {
        return static_cast<SessionMemory*>(self)->Resize(data, bytes);
      }};
  std::array<Block, 2> mapped_;
};

}  // namespace reprise
