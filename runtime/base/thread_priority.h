// The scheduling priority of one thread.
#pragma once

namespace reprise {

// Adds `by` (1 to 19) to the nice value of the calling thread: on Linux it belongs to a thread, not
// to the process. A refusal leaves the thread as it is: others are slower then, nothing is wrong.
void LowerThreadPriority(int by);

}  // namespace reprise
