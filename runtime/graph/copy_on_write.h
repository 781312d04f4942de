// CopyOnWrite: a value that copies share until one of them is changed.
//
// Threads: as a value's; copies may be used by different threads.
#pragma once

#include <atomic>
#include <memory>

namespace reprise {

template <typename T>
class CopyOnWrite {
 public:
  const T& operator*() const { return value_ == nullptr ? Empty() : *value_; }
  const T* operator->() const { return &**this; }

  // Returns the value to change it, which no copy shares from then on.
  T& Edit() {
    if (value_ == nullptr) {
      value_ = std::make_shared<T>();
    } else if (value_.use_count() > 1) {
      value_ = std::make_shared<T>(*value_);
    } else {
      // Orders the last reads of copies that are gone before the change.
      std::atomic_thread_fence(std::memory_order_acquire);
    }
    return *value_;
  }

  friend bool operator==(const CopyOnWrite& a, const CopyOnWrite& b) {
    return a.value_ == b.value_ || *a == *b;
  }

 private:
  static const T& Empty() {
    static const T empty;
    return empty;
  }

  std::shared_ptr<T> value_;  // null: an empty one
};

}  // namespace reprise
