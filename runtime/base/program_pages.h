// DropProgramPages: the pages of the program and its libraries that nobody needs now leave the
// process.
#pragma once

namespace reprise {

// Start-up touches much of a large program once: symbols that are looked up, constructors, parsers.
// Those pages count as the process's memory until the system runs short. This gives back every page
// that was only read; what is wanted again comes from the system's cache of files, a microsecond
// for the first touch of some pages. Bytes that were written stay: writable segments, and all of an
// object whose code the loader patched. What else patches code, as breakpoints
// of a debugger do, has to do it anew.
//
// Threads: any, at any time; code that runs meanwhile goes on.
void DropProgramPages();

}  // namespace reprise
