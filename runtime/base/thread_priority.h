// The scheduling priority of one thread.
#pragma once

namespace reprise {

// Adds `by` (1 to 19) to the nice value of the calling thread: on Linux it belongs to a thread, not
// to the process. If the system refuses, the thread keeps its priority, which only makes others
// slower.
void LowerThreadPriority(int by);

}  // namespace reprise
