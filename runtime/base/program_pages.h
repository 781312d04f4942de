// DropProgramPages: unused pages of the program and its libraries leave the process.
#pragma once

namespace reprise {

// Start-up touches much of a large program once: symbols that are looked up, constructors, parsers.
// Those pages count as the process's memory until the system runs short. This gives back every page
// that was only read; a page that is needed again comes from the system's cache of files, a
// microsecond for the first touch of some pages. Bytes that were written stay: writable segments,
// and all of an object whose code the loader patched. Other patches of code, such as a debugger's
// breakpoints, have to be made again.
//
// Threads: any, at any time; code that runs meanwhile is not disturbed.
void DropProgramPages();

}  // namespace reprise
