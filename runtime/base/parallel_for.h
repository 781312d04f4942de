// ParallelFor: one piece of work on a few threads that live as long as it does.
//
// For work that must not take a core of the HelperPool for its whole time, such as loading a model
// during traffic: a thread here holds a core only while it replays.
#pragma once

#include <functional>

namespace reprise {

// Calls `work(lane)` for every lane of [0, lanes), lane 0 on the caller's thread; returns when all
// have returned. Where the system gives no more threads there are fewer lanes: the lanes share the
// work by claiming pieces. The first exception of a lane is thrown again here when all have ended.
void ParallelFor(int lanes, const std::function<void(int lane)>& work);

}  // namespace reprise
